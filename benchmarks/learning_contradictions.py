"""How often what is handed to a run speaks against the solution of its task (`taubench_*`, `whowhen_*`, `reflexion_*`).

    python -m benchmarks.learning_contradictions [--data DIR]

`airline`: 25 tasks, four runs each, whose gold actions are known. Task by task, a bank learns from the runs of all
other tasks through the library; then each run of the task recalls by its user's words and the tools it called. A hint
contradicts the gold actions where it forbids one of them (the tool, or the argument's value), asks for a tool that
changes something and is no gold action, or asks for another value of an argument than the gold action has. A condition
that no answer of the run's tools met makes it silent. Whoever reads every line as a colleague would needs no model for
that: the lines are few and of known forms, in the words of this version and of the one before. Lines of no known form
are counted, and none is let through unread. A hint agrees where it asks for a gold action or a gold value. Beside
them stand the earlier runs that are handed out, which advise nothing: how many recalls have one, and how many of those
that passed changed what the solution changes and no more.

`lessons`: what all 100 runs teach, with how many of the features that differ are told and how many differ between
tasks only; and of the drafts of rules, how many name an error and a way past it.

`whowhen`: 126 failed runs of unlike questions, learnt from in one bank, with their marked outcome. All failed, so
nothing separates, and nothing may be told. `reflexion`: 134 household tasks tried 7 times without reflections; what is
known of a run is its number and whether the task was solved, and a run stops being tried once it is. The trial is
handed in as the caller's own feature, in an order that nobody drew: it tells nothing of what to do.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import muniment
from benchmarks import data as sets
from benchmarks.harness import report
from benchmarks.learn_blame import CHANGING
from benchmarks.learning_tau import Trial, ingest, intent_of, load, query_of
from muniment.core.stats import wilson_bounds

_CALL = r"(?P<tool>[\w.]+)(?: with (?P<arg>\w+)=(?P<value>[^:,]+?))?"
LINES = (
    ("forbid", re.compile(rf"(?i)\bdo not call {_CALL}(?: next)?(?: right after [\w.]+)?(?: with .* alone)?$")),
    ("forbid", re.compile(r"(?i)\bdo not start with (?P<tool>[\w.]+)$")),
    ("ask", re.compile(rf"(?i)\bcall {_CALL}(?: next)?(?: right before [\w.]+| and try again)?$")),
    ("ask", re.compile(r"(?i)\bstart with (?P<tool>[\w.]+)$")),
    ("plain", re.compile(r"(?i)\b(?:change|check|verify|correct|give|use|avoid|plan|make|go on|finish) .*")),
)
"""What a line asks for, in the words of both versions."""
_COUNTS = re.compile(r":? (?:passed|mended) \d+ of \d+ with it.*$")
_WHEN = re.compile(r"(?i)^(?:in \S+, )?when (?P<when>.*?), (?=[a-z])")
_SAYS = re.compile(r"(?P<tool>[\w.]+) says (?P<field>\w+) is (?P<value>.+)")


def judged(line: str, trial: Trial, gold: Sequence[Mapping[str, Any]]) -> str:
    """`against`, `with` or beside (`neither`) the gold actions; `silent` where its condition was not met; `unread`."""
    said = _COUNTS.sub("", line.strip().split(". ")[0]).rstrip(".")
    when = _WHEN.match(said)
    if when is not None:
        if not _is_met(when["when"], trial):
            return "silent"
        said = said[when.end() :]
    for kind, form in LINES:
        found = form.search(said)
        if found is None:
            continue
        if kind == "plain":
            return "neither"
        parts = found.groupdict()
        return _held(kind, parts["tool"], parts.get("arg"), parts.get("value"), gold)
    return "unread"


def _held(kind: str, tool: str, arg: str | None, value: str | None, gold: Sequence[Mapping[str, Any]]) -> str:
    actions = [action for action in gold if action["name"] == tool]
    if arg is None:
        is_gold = bool(actions)
    else:
        values = [str(action["kwargs"].get(arg)).casefold() for action in actions]
        if not values:
            return "neither" if kind == "forbid" or tool not in CHANGING else "against"
        is_gold = str(value).casefold() in values
    if kind == "forbid":
        return "against" if is_gold else "neither"
    return "with" if is_gold else "against" if arg is not None or tool in CHANGING else "neither"


def _is_met(condition: str, trial: Trial) -> bool:
    """Did an answer of the run's tools say so? What cannot be decided here counts as met."""
    if condition.startswith("asked "):
        return False  # another task by its name: the bank holds none of this one
    found = _SAYS.match(condition)
    if found is None:
        tool = condition.partition(" ")[0]
        return tool in trial.tools
    answers = [
        event["content"] for event in trial.events if event["role"] == "tool" and event["tool"]["name"] == found["tool"]
    ]
    value = found["value"].casefold()
    return any(re.search(rf'"{found["field"]}": "?{re.escape(value)}\b', answer.casefold()) for answer in answers)


# -- the airline ----------------------------------------------------------------------------------------


def airline(data: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
    trials = load(data)
    rows = json.loads((data / "taubench_gpt4o_airline_tasks0-24.json").read_text("utf-8"))
    gold = {row["task_id"]: row["info"]["task"]["actions"] for row in rows}
    counted = dict.fromkeys(("against", "with", "neither", "silent", "unread"), 0)
    recalls = contradicted = handed = 0
    runs = dict.fromkeys(("recalls_with_runs", "runs_told", "runs_that_passed", "runs_that_did_as_the_solution"), 0)
    shown: list[str] = []
    for task in sorted(gold):
        with muniment.open(":memory:", embedder="none") as mem:
            for trial in trials:
                if trial.task != task:
                    ingest(mem, trial)
            for trial in (trial for trial in trials if trial.task == task):
                run = mem.run(user_id="airline", agent_id="agent")
                found = run.learning.recall(query_of(trial), intent=intent_of(trial), state={"mode": "main"})
                lines = [hint.summary or "" for hint in found.hints if hint.memory_id.startswith("tac")]
                verdicts = [judged(line, trial, gold[task]) for line in lines]
                for verdict in verdicts:
                    counted[verdict] += 1
                shown += [f"task {task}: {line} [{verdict}]" for line, verdict in zip(lines, verdicts, strict=True)]
                recalls, handed = recalls + 1, handed + bool(lines)
                contradicted += "against" in verdicts
                told = [hint.summary or "" for hint in found.hints if hint.memory_id.startswith("mem") and hint.summary]
                for name, count in _earlier_runs(told, gold[task]).items():
                    runs[name] += count
    bounds = wilson_bounds(contradicted, recalls)
    row = {
        "recalls": recalls,
        "with_advice": handed,
        "contradicted": contradicted,
        "share": contradicted / recalls,
        "low": bounds.lower,
        "high": bounds.upper,
        **{f"hints_{name}": count for name, count in counted.items()},
        **runs,
    }
    return {"airline: recalls that speak against the solution": row}, shown


def _earlier_runs(told: Sequence[str], gold: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Of the earlier runs that a recall told: how many passed, and how many of these changed what the solution does."""
    wanted = {action["name"] for action in gold} & set(CHANGING)
    passed = [line.partition(" A run like it ")[0] for line in told if re.search(r"\bpassed [1-9]|\bPassed\b", line)]
    alike = [line for line in passed if {name for name in CHANGING if re.search(rf"\b{name}\b", line)} == wanted]
    return {
        "recalls_with_runs": int(bool(told)),
        "runs_told": len(told),
        "runs_that_passed": len(passed),
        "runs_that_did_as_the_solution": len(alike),
    }


def lessons(data: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
    with muniment.open(":memory:", embedder="none") as mem:
        for trial in load(data):
            ingest(mem, trial)
        bank = mem.bank(user_id="airline")
        told = [str(memory.record["summary"]) for memory in bank.records(kind="tactic")]
        drafts = [str(draft.proposed_rule.body) for draft in bank.drafts()]
        log = bank.event_logs(newest=1)[0].memory_fold
        row = {
            "lessons": len(told),
            "forbidding": sum("do not call" in line.lower() for line in told),
            "drafts": len(drafts),
            "drafts_with_a_way_past_an_error": sum("got past it" in line for line in drafts),
            "last_fold": "" if log is None else log.notes or "",
        }
    return {"airline: what a hundred runs teach": row}, [*told, *drafts]


# -- the others -----------------------------------------------------------------------------------------


def whowhen(data: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
    from benchmarks.learning_traces import _event

    with muniment.open(":memory:", embedder="none") as mem:
        paths = sorted((data / "whowhen_algorithm_generated").glob("*.json"), key=lambda path: int(path.stem))
        for path in paths:
            told = json.loads(path.read_text("utf-8"))
            run = mem.run(user_id="u", agent_id="agents")
            run.observe("user", told["question"])
            run.observe_many([_event(turn) for turn in told["history"]])
            run.finish(verifier_result={"verifier_id": "people", "verdict": "FAIL", "outcome": "FAIL"})
        return _taught("whowhen", mem, len(paths))


def reflexion(data: Path) -> tuple[dict[str, dict[str, Any]], list[str]]:
    folder = data / "reflexion_alfworld" / "root" / "base_run_logs"
    paths = sorted(folder.glob("env_results_trial_*.json"), key=lambda path: int(path.stem.rpartition("_")[2]))
    solved: set[str] = set()
    runs = 0
    with muniment.open(":memory:", embedder="none") as mem:
        for number, path in enumerate(paths):
            for one in json.loads(path.read_text()):
                if one["name"] in solved:
                    continue
                solved |= {one["name"]} if one["is_success"] else set()
                run = mem.run(user_id="u", agent_id="agent")
                run.observe("user", f"Household task {one['name']}")
                verdict, outcome = ("PASS", "OK") if one["is_success"] else ("FAIL", "FAIL")
                intent = {"domain_tag": "household", "task_family": "alfworld"}
                result = {"verifier_id": "env", "verdict": verdict, "outcome": outcome}
                run.finish(verifier_result=result, intent=intent, features={"trial": number})
                runs += 1
        return _taught("reflexion", mem, runs)


def _taught(name: str, mem: muniment.Memory, runs: int) -> tuple[dict[str, dict[str, Any]], list[str]]:
    bank = mem.bank(user_id="u")
    told = [str(memory.record["summary"]) for memory in bank.records(kind="tactic")]
    drafts = [str(draft.proposed_rule.body) for draft in bank.drafts()]
    return {f"{name}: what is told": {"runs": runs, "lessons": len(told), "drafts": len(drafts)}}, [*told, *drafts]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    parser.add_argument("--show", action="store_true", help="print every line that was handed out or learnt")
    given = parser.parse_args(argv)
    rows: dict[str, dict[str, Any]] = {}
    for measure in (airline, lessons, whowhen, reflexion):
        found, lines = measure(given.data)
        rows |= found
        if given.show:
            print("\n".join(lines))
    report("learning_contradictions", rows, {})


if __name__ == "__main__":
    main()
