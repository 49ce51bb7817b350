"""Does a real model solve more with what was learnt? Tool puzzles in rounds, for a model that is asked in batches.

    python -m benchmarks.learning_model step --state S --out P.jsonl.gz                       the prompts of round 1
    python benchmarks/answers_torch.py --model M.gguf --name NAME --prompts P.jsonl.gz --out A.jsonl
    python -m benchmarks.learning_model step --state S --out P.jsonl.gz --answers A.jsonl     learns; the next round
    …                                                                                         until it says "done"
    python -m benchmarks.learning_model table --state S                                       the figures
    python -m benchmarks.learning_model serve --state S --server http://localhost:8080        all of it with a server

`benchmarks.model_puzzles` has the puzzles. Many desks stand side by side, each with a memory of its own; a round is
a few tasks of each desk, asked with what the memory held when the round began. The arms have the same tasks:

    none         told nothing
    last five    the last five runs of the desk that passed
    lessons      what recall hands out
    written      the same, and the model writes lessons too (`lessons=`), where the library can have it do so. What it
                 writes of a round is asked for together with the next round, so it comes a round later

All that is needed from step to step lies in the folder of `--state`; a step that fails leaves it as it was. A prompt
that is the same in two arms is asked once.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import inspect
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import muniment
from benchmarks.answers_server import Served
from benchmarks.model_figures import lesson_counts, outcome_rows
from benchmarks.model_puzzles import (
    SYSTEM,
    Asked,
    Desk,
    Made,
    arguments,
    asked_of,
    calls_in,
    make_desks,
    play,
    user_text,
)
from muniment.handles.run import Run

__all__ = ["ARMS", "Bench", "main", "read_answers"]

ARMS = ("none", "last five", "lessons", "written")
KEPT = 5
ANSWER_TOKENS, LESSON_TOKENS = 80, 320
TASKS, LESSONS = 0, 1
"""The stages of prompts."""

_NO_LESSON = '{"lessons": []}'

Answers = Mapping[str, Mapping[str, Any]]
Chat = Callable[[Sequence[Mapping[str, str]]], str]


def has_writers() -> bool:
    """Can the library have a model write lessons?"""
    return "lessons" in inspect.signature(muniment.open).parameters


def key_of(system: str, user: str) -> str:
    return hashlib.sha256(f"{system}\n{user}".encode()).hexdigest()[:24]


def read_answers(paths: Iterable[Path]) -> dict[str, dict[str, Any]]:
    found = {}
    for path in paths:
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            found[row["key"]] = row
    return found


class Place(NamedTuple):
    """A task in an arm, and the run it is in where the arm has a memory."""

    arm: str
    desk: int
    round: int
    task: int

    @property
    def run_id(self) -> str:
        return f"{self.arm}-{self.desk}-{self.round}-{self.task}"


class Bench:
    """The state of the rounds in a folder."""

    def __init__(self, folder: Path, settings: Mapping[str, Any] | None = None) -> None:
        self._folder = folder
        self._open: dict[str, muniment.Memory] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "state.json"
        if self._file.exists():
            self._state: dict[str, Any] = json.loads(self._file.read_text("utf-8"))
        else:
            arms = [arm for arm in ARMS if arm != "written" or has_writers()]
            fresh = {"round": 0, "asked": {}, "outcomes": [], "kept": {}, "unlearnt": [], "wanted": {}}
            self._state = {"settings": dict(settings or {}), "arms": arms, **fresh}
        held = self._state["settings"]
        self.desks = make_desks(held["seed"], held["desks"])

    # -- what is asked --------------------------------------------------------------------------------

    def step(self, answers: Answers) -> list[dict[str, Any]]:
        """Learn from the answers to what was asked last, and say what is asked next; nothing when all is done."""
        missing = set(self._state["asked"].values()) - set(answers)
        if missing:
            raise SystemExit(f"{len(missing)} prompts have no answer yet; nothing was changed")
        with tempfile.TemporaryDirectory() as name:
            saved = Path(name)
            for path in self._folder.glob("*.db"):
                shutil.copy(path, saved)
            try:
                prompts = self._step(answers)
            except BaseException:
                self._put_back(saved)
                raise
        write_prompts(self._folder / f"prompts-{self.round}.jsonl.gz", prompts)
        self._file.write_text(json.dumps(self._state), "utf-8")
        return prompts

    def _step(self, answers: Answers) -> list[dict[str, Any]]:
        state = self._state
        if state["asked"]:
            self._record(answers)
        prompts: dict[str, dict[str, Any]] = {}
        if state["round"] < state["settings"]["rounds"]:
            prompts |= self._lesson_prompts()
            prompts |= self._task_prompts()
            state["round"] += 1
        return list(prompts.values())

    def _task_prompts(self) -> dict[str, dict[str, Any]]:
        state, prompts = self._state, {}
        for place in self._places(state["round"]):
            desk, asked = self._task(place)
            told = self._told(place, desk, asked)
            user = user_text(desk, asked, told)
            key = key_of(SYSTEM, user)
            state["asked"][json.dumps(place)] = key
            prompts[key] = _prompt(key, SYSTEM, user, ANSWER_TOKENS, TASKS)
        self._close()
        return prompts

    def _places(self, round_: int) -> list[Place]:
        held = self._state["settings"]
        return [
            Place(arm, desk, round_, task)
            for arm in self._state["arms"]
            for desk in range(held["desks"])
            for task in range(held["tasks"])
        ]

    def _task(self, place: Place) -> tuple[Desk, Asked]:
        desk = self.desks[place.desk]
        draws = f"{self._state['settings']['seed']} {place.desk} {place.round} {place.task}"
        return desk, asked_of(desk, draws)

    def _told(self, place: Place, desk: Desk, asked: Asked) -> str:
        if place.arm == "last five":
            kept = self._state["kept"].get(str(place.desk), [])
            return "\n".join(["Earlier runs that passed:", *(f"- {text}" for text in kept)]) if kept else ""
        if place.arm not in ("lessons", "written"):
            return ""
        text = self._run(place).learning.recall(asked.text, intent=desk.intent, features=_features(asked)).text
        return f"What earlier runs taught:\n{text}" if text else ""

    # -- what came of it ------------------------------------------------------------------------------

    def _record(self, answers: Answers) -> None:
        """Play what was answered; the runs of the arm that the model writes for are learnt from a round later."""
        state = self._state
        self._learn_written(answers)
        for name, key in state["asked"].items():
            place = Place(*json.loads(name))
            desk, asked = self._task(place)
            answer = answers[key]
            made = play(desk, asked, calls_in(answer["answer"], desk))
            self._keep(place, asked, made, answer)
            if place.arm in ("lessons", "written"):
                self._observe(place, asked, made, answer["answer"])
            if place.arm == "lessons":
                self._finish(place, desk, made)
            elif place.arm == "written":
                state["unlearnt"].append([list(place), [list(each) for each in made]])
        state["asked"] = {}
        self._close()

    def _keep(self, place: Place, asked: Asked, made: Sequence[Made], answer: Mapping[str, Any]) -> None:
        passed = bool(made) and made[-1].accepted
        spent = int(answer.get("prompt_tokens", 0)), int(answer.get("new_tokens", 0))
        self._state["outcomes"].append(
            {
                "arm": place.arm, "desk": place.desk, "kind": self.desks[place.desk].kind, "round": place.round,
                "passed": passed, "first": passed and len(made) == 1, "calls": len(made), "tokens": sum(spent),
                "is_read": bool(made),
            }
        )  # fmt: skip
        if place.arm == "last five" and passed:
            kept = self._state["kept"].setdefault(str(place.desk), [])
            steps = ", then ".join(f"{each.tool} with grade {each.grade}: {each.content}" for each in made)
            kept.append(f"{asked.text} Passed. Did: {steps}")
            del kept[:-KEPT]

    def _observe(self, place: Place, asked: Asked, made: Sequence[Made], said: str) -> None:
        run = self._run(place)
        run.observe("user", asked.text)
        for each in made:
            run.observe_tool(each.tool, content=each.content, args=arguments(asked, each), ok=each.accepted)
        if not made:
            run.observe("assistant", said[:500] or "(nothing)")

    def _finish(self, place: Place, desk: Desk, made: Sequence[Made], lessons: Chat | None = None) -> None:
        passed = bool(made) and made[-1].accepted
        verdict = {"verdict": "PASS" if passed else "FAIL", "outcome": "OK" if passed else "FAIL"}
        more: dict[str, Any] = {} if lessons is None else {"lessons": lessons}
        self._run(place).finish(
            verifier_result={"verifier_id": "desk", **verdict},
            intent=desk.intent,
            cost={"tool_calls": len(made)},
            **more,
        )

    # -- the arm whose lessons a model writes ---------------------------------------------------------

    def _unlearnt(self) -> list[tuple[Place, list[Made]]]:
        return [(Place(*place), [Made(*each) for each in made]) for place, made in self._state["unlearnt"]]

    def _lesson_prompts(self) -> dict[str, dict[str, Any]]:
        """What the library would ask of a model about the runs of the last round: they are learnt from in a copy."""
        state = self._state
        prompts: dict[str, dict[str, Any]] = {}
        state["wanted"] = {}
        if not state["unlearnt"]:
            return prompts
        self._close()
        kept = self._store("written").with_suffix(".kept")
        shutil.copy(self._store("written"), kept)
        for place, made in self._unlearnt():
            asked: list[str] = []

            def take_down(messages: Sequence[Mapping[str, str]], asked: list[str] = asked) -> str:
                system = "\n".join(each["content"] for each in messages if each["role"] == "system")
                user = "\n".join(each["content"] for each in messages if each["role"] != "system")
                key = key_of(system, user)
                prompts[key] = _prompt(key, system, user, LESSON_TOKENS, LESSONS)
                asked.append(key)
                return _NO_LESSON

            self._finish(place, self.desks[place.desk], made, take_down)
            if asked:
                state["wanted"][place.run_id] = asked[0]
        self._close()
        for end in ("-wal", "-shm"):
            Path(f"{self._store('written')}{end}").unlink(missing_ok=True)
        kept.replace(self._store("written"))
        state["lessons_asked"] = state.get("lessons_asked", 0) + len(prompts)
        return prompts

    def _learn_written(self, answers: Answers) -> None:
        """Learn from the round before the last, with what the model has written of it."""
        for place, made in self._unlearnt():
            row = answers.get(self._state["wanted"].get(place.run_id, ""))
            self._finish(place, self.desks[place.desk], made, _says(str(row["answer"]) if row else _NO_LESSON))
            if row:
                spent = int(row.get("prompt_tokens", 0)) + int(row.get("new_tokens", 0))
                self._state["lesson_tokens"] = self._state.get("lesson_tokens", 0) + spent
        self._state["unlearnt"] = []

    # -- the stores -----------------------------------------------------------------------------------

    def _store(self, arm: str) -> Path:
        return self._folder / f"{arm}.db"

    def _memory(self, arm: str) -> muniment.Memory:
        if arm not in self._open:
            self._open[arm] = muniment.open(str(self._store(arm)), embedder="none")
        return self._open[arm]

    def _run(self, place: Place) -> Run:
        return self._memory(place.arm).run(
            user_id=f"desk{place.desk}", run_id=place.run_id, session_id=f"ses-{place.run_id}", task_type="desk"
        )

    def _close(self) -> None:
        for mem in self._open.values():
            mem.close()
        self._open.clear()

    def _put_back(self, saved: Path) -> None:
        """The stores as they were before a step that failed."""
        self._close()
        for path in self._folder.glob("*.db*"):
            path.unlink()
        for path in saved.glob("*.db"):
            shutil.copy(path, self._folder)

    # -- figures --------------------------------------------------------------------------------------

    def table(self) -> dict[str, dict[str, Any]]:
        state = self._state
        rows = outcome_rows(state["outcomes"], state["arms"])
        for arm in ("lessons", "written"):
            if arm in state["arms"]:
                mem = self._memory(arm)
                held = [
                    (desk, memory)
                    for number, desk in enumerate(self.desks)
                    for memory in mem.bank(user_id=f"desk{number}").records(kind="tactic", include_all=True)
                ]
                rows |= lesson_counts(arm, held)
        if state.get("lessons_asked"):
            told = {"asked": state["lessons_asked"], "tokens": state.get("lesson_tokens", 0)}
            rows["written: what the model was asked to write"] = told
        self._close()
        return rows

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self._state["settings"])

    @property
    def round(self) -> int:
        return int(self._state["round"])


def _prompt(key: str, system: str, user: str, tokens: int, stage: int) -> dict[str, Any]:
    return {"key": key, "system": system, "user": user, "max_new_tokens": tokens, "stage": stage}


def _says(text: str) -> Chat:
    return lambda _messages: text


def _features(asked: Asked) -> dict[str, str] | None:
    return {"form": asked.form} if asked.form else None


def write_prompts(path: Path, prompts: Sequence[Mapping[str, Any]]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as out:
        out.writelines(json.dumps(prompt, ensure_ascii=False) + "\n" for prompt in prompts)


def serve(bench: Bench, server: str, model: str, answers: Path) -> None:
    """All rounds, each prompt asked of a server that speaks OpenAI's chat."""
    served = Served(server.rstrip("/").removesuffix("/v1"))
    known = read_answers([answers]) if answers.exists() else {}
    while prompts := bench.step(known):
        with answers.open("a", encoding="utf-8") as out:
            for prompt in prompts:
                if prompt["key"] in known:
                    continue
                text, prompt_tokens, new_tokens = served.answer(prompt)
                row = {"key": prompt["key"], "model": model, "answer": text}
                row |= {"prompt_tokens": prompt_tokens, "new_tokens": new_tokens}
                known[prompt["key"]] = row
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
                out.flush()
        print(f"round {bench.round}: {len(prompts)} prompts", file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=("step", "serve", "table"))
    parser.add_argument("--state", type=Path, required=True, help="the folder in which all of it lies")
    parser.add_argument("--out", type=Path, help="where the next prompts go")
    parser.add_argument("--answers", type=Path, nargs="*", default=[])
    parser.add_argument("--desks", type=int, default=12, help="at the first step: streams side by side")
    parser.add_argument("--rounds", type=int, default=8, help="at the first step")
    parser.add_argument("--tasks", type=int, default=8, help="at the first step: of a desk, in a round")
    parser.add_argument("--judged", action="store_true", help="at the first step: the desks that are kept for judging")
    parser.add_argument("--quick", action="store_true", help="at the first step: three desks, three rounds")
    parser.add_argument("--server", default="", help="of `serve`: such as http://localhost:8080")
    parser.add_argument("--model", default="qwen2.5-coder-1.5b", help="what the figures say they are of")
    parser.add_argument("--file", default="learning_model", help="the name of the result file")
    given = parser.parse_args(argv)
    sizes = (3, 3, 4) if given.quick else (given.desks, given.rounds, given.tasks)
    settings = dict(zip(("desks", "rounds", "tasks"), sizes, strict=True))
    bench = Bench(given.state, settings | {"seed": "judged" if given.judged else "look"})
    if given.stage == "step":
        if given.out is None:
            parser.error("--out says where the prompts go")
        prompts = bench.step(read_answers(given.answers))
        if not prompts:
            print("done")
            return
        write_prompts(given.out, prompts)
        print(f"round {bench.round} of {bench.settings['rounds']}: {len(prompts)} prompts in {given.out.name}")
        return
    if given.stage == "serve":
        serve(bench, given.server, given.model, given.state / "answers.jsonl")
    from benchmarks.harness import report

    told = bench.settings | {"model": given.model, "rounds_done": bench.round}
    report("learning_model", bench.table(), told, given.file)


if __name__ == "__main__":
    main()
