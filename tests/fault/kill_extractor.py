"""Run by test_extract_kill.py in a process of its own: reads what is pending, and dies at a transaction of its choice.

    python kill_extractor.py FILE NUMBER inside|after ASKED CLAIM_S

It kills itself (SIGKILL) at the NUMBERth transaction that writes: before it is committed, or as soon as it is. With
more than there are, it ends by itself with 7. ASKED is a file that has a line for each turn the model was asked about.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from kill_learner import ENDED, dying

import muniment

sys.path.append(str(Path(__file__).parents[1]))
from planted_model import PlantedModel

TURNS = [f"I once saw number{at} pass" for at in range(5)]


def policy(claim_s: int) -> dict[str, Any]:
    return {"memory": {"extraction": {"batch_turns_max": 2, "claim_s": claim_s}}}


class Model(PlantedModel):
    """Proposes one fact of each turn, and writes down what it was asked."""

    name = "model"

    def __init__(self, asked: Path) -> None:
        super().__init__(lambda text: [("user.likes", text.split()[3], text)])
        self._asked = asked

    def __call__(self, messages: list[dict[str, str]]) -> str:
        said = super().__call__(messages)
        with self._asked.open("a") as file:
            file.writelines(f"{text}\n" for text in self.asked[-1])
        return said


if __name__ == "__main__":
    path, number, moment, asked, claim_s = sys.argv[1:]
    with muniment.open(path, policy=policy(int(claim_s))) as mem:
        engine = mem._ctx.engine
        engine.write = dying(engine.write, int(number), moment)  # type: ignore[method-assign]
        mem.extract_pending(model=Model(Path(asked)))
    sys.exit(ENDED)
