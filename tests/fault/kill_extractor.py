"""Run by test_extract_kill.py in a process of its own: reads what is pending, and dies at a transaction of its choice.

    python kill_extractor.py FILE NUMBER inside|after ASKED CLAIM_S

It kills itself (SIGKILL) at the NUMBERth transaction that writes: before it is committed, or as soon as it is. With
more than there are, it ends by itself with 7. ASKED is a file that has a line for each turn the model was asked about.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kill_learner import ENDED, dying

import muniment
from muniment.memory.extraction.model import ModelAnswer, SaidTurn, TurnProposal
from muniment.memory.facts.candidate_records import Proposal

TURNS = [f"I once saw number{at} pass" for at in range(5)]


def policy(claim_s: int) -> dict[str, Any]:
    return {"memory": {"extraction": {"batch_turns_max": 2, "claim_s": claim_s}}}


class Model:
    """Proposes one fact of each turn, and writes down what it was asked."""

    name = "model"

    def __init__(self, asked: Path) -> None:
        self._asked = asked

    def read(self, turns: Sequence[SaidTurn], _context: Sequence[SaidTurn], _tokens_max: int, /) -> ModelAnswer:
        with self._asked.open("a") as file:
            file.writelines(f"{turn.text}\n" for turn in turns)
        return ModelAnswer(
            tuple(
                TurnProposal(
                    turn.id,
                    Proposal(key="user.likes", value=turn.text.split()[3], quote=turn.text, confidence=0.9, why="read"),
                )
                for turn in turns
            )
        )


if __name__ == "__main__":
    path, number, moment, asked, claim_s = sys.argv[1:]
    with muniment.open(path, policy=policy(int(claim_s))) as mem:
        engine = mem._ctx.engine
        engine.write = dying(engine.write, int(number), moment)  # type: ignore[method-assign]
        mem.extract_pending(model=Model(Path(asked)))
    sys.exit(ENDED)
