"""Runs to recall from, in three sets of different making: airline tasks, household tasks, and desks that are generated.

A set is runs (`Trial`), each of a task and of a family; a family is what solves the task, and no text or key of ours
names it. `airline`: real runs over tools (`benchmarks.learning_tau`); the family is the set of the gold actions.
`household`: Reflexion's ALFWorld runs, of which only what the agent wrote before each trial is recorded: that is what
was asked, its verbs are the tools, and the family is the kind of household task that all its reflections speak of. It
is read off the same words, so words do well there. `desks`: four generated desks with tools that look and tools that
act, many ways to ask for the same, a first message that is often vague, and runs that fail by leaving out, doing too
much, or an error; the family is the set of acts that the task needs. We made it, so it tells least; it has the numbers
that the others lack.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.learning_tau import Asked, Trial, ask_all, load

__all__ = ["SETS", "ask_set", "desks", "household", "load_set"]

SETS = ("airline", "household", "desks")
_FOLDS = {"household": 8, "desks": 5}
_KINDS = (
    ("two", r"\btwo (?!identical|iterations|times)"),
    ("examine", r"desklamp|look at"),
    ("clean", r"\bclean"),
    ("heat", r"\bheat"),
    ("cool", r"\bcool"),
)
_VERBS = {
    "goto": r"\b(?:go|went|gone|going) to\b",
    "take": r"\b(?:take|took|taken|taking)\b",
    "put": r"\bput(?:ting)?\b",
    "open": r"\bopen",
    "clean": r"\bclean",
    "heat": r"\bheat",
    "cool": r"\bcool",
    "use": r"\b(?:use|used|using|turn on|turned on)\b",
    "examine": r"\bexamin",
}


def load_set(name: str, data: Path) -> list[Trial]:
    return load(data) if name == "airline" else household(data) if name == "household" else desks()


def ask_set(name: str, data: Path) -> list[Asked]:
    """The questions of a set; each desk is a bank of its own."""
    trials = load_set(name, data)
    if name == "airline":
        return ask_all(trials)
    desks_of = [[each for each in trials if each.domain == place] for place in sorted({each.domain for each in trials})]
    return [one for desk in desks_of for one in ask_all(desk, folds=_FOLDS[name])]


# -- household ----------------------------------------------------------------------------------------


def household(data: Path) -> list[Trial]:
    """For each task that did not pass at once: its second trial, and the first that passed."""
    folder = data / "reflexion_alfworld" / "root" / "reflexion_run_logs"
    paths = sorted(folder.glob("env_results_trial_*.json"), key=lambda path: int(path.stem.rpartition("_")[2]))
    rounds = [{one["name"]: one for one in json.loads(path.read_text("utf-8"))} for path in paths]
    found: list[Trial] = []
    for number, name in enumerate(rounds[0]):
        if not rounds[-1][name]["memory"]:
            continue
        kind = _kind_of(" ".join(rounds[-1][name]["memory"]))
        wins = [place for place, each in enumerate(rounds) if place and each[name]["is_success"]]
        for place in sorted({1, *wins[:1]}):
            written = rounds[place - 1][name]["memory"]
            if written:
                found.append(
                    _household_trial(number, place, kind, written[-1], bool(rounds[place][name]["is_success"]))
                )
    return found


def _kind_of(text: str) -> str:
    return next((kind for kind, sign in _KINDS if re.search(sign, text.lower())), "put")


def _household_trial(number: int, place: int, kind: str, written: str, passed: bool) -> Trial:
    tools = [name for name, sign in _VERBS.items() if re.search(sign, written.lower())]
    calls = [{"role": "tool", "content": "ok", "tool": {"name": name, "args": {}, "ok": True}} for name in tools]
    events = [{"role": "user", "content": written.strip()}, *calls]
    return _trial(f"house {number}:{place}", number, passed, frozenset((kind,)), events, "household")


# -- desks --------------------------------------------------------------------------------------------

_DESKS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "shop": {
        "refund_order": ("I want my money back", "please pay it back", "a refund would be right"),
        "exchange_item": (
            "swap it for another size", "I would rather have the blue one", "send a different one instead",
        ),
        "update_address": ("it should go to my office", "I have moved", "deliver it somewhere else"),
        "cancel_order": ("call it off", "I do not need it any more", "stop it before it leaves"),
        "issue_coupon": ("some goodwill for the wait", "do I get something for the trouble", "a voucher perhaps"),
    },
    "bank": {
        "block_card": ("my wallet is gone", "somebody pays with my card", "I lost it on the tram"),
        "transfer_money": ("send 300 to my landlord", "move some to savings", "pay the electrician"),
        "raise_limit": ("it was declined at the till", "I need to spend more abroad", "the ceiling is too low"),
        "change_pin": ("I forgot the four digits", "a new secret number", "the code no longer works"),
        "open_account": ("something for my daughter", "a second one for the household", "I would like to join"),
    },
    "repo": {
        "edit_file": ("the total is off by one", "it crashes on empty input", "the date is parsed wrongly"),
        "add_test": ("make sure it stays mended", "nobody checks that path", "cover the corner case"),
        "bump_version": ("it should go out today", "users wait for it", "tag it"),
        "revert_commit": ("since Friday it is broken", "take back what Jo did", "it worked before the merge"),
        "update_docs": ("the page still shows the old flag", "say so in the readme", "newcomers stumble there"),
    },
    "ops": {
        "restart_service": ("it hangs", "no answer from it since noon", "it eats all memory"),
        "scale_up": ("too slow at peak", "queues grow", "more of them"),
        "rotate_key": ("it was in a screenshot", "the old secret leaked", "audit wants a fresh one"),
        "restore_backup": ("somebody dropped a table", "yesterday's rows are missing", "we need Monday's state"),
        "open_ticket": ("tell the vendor", "let the night shift know", "escalate it"),
    },
}  # fmt: skip
_LOOKS = ("get_account", "search_records", "list_recent", "read_policy", "check_status")
_VAGUE = ("Hi, I need some help.", "Hello! Could you look at something for me?", "There is a problem, can you help?")
_CHATTER = (
    "It is rather urgent.", "Thanks in advance.", "I tried it myself on Tuesday.", "The last agent was no help.",
    "My name is {name}.", "The number is {number}.", "Take your time.", "That is all.", "I am on the train just now.",
)  # fmt: skip
_NAMES = ("Mia Li", "Omar Rossi", "Ivan Muller", "Noah Khan", "Ema Silva", "Yara Haddad")
_ERRORS = ("Error: not allowed in this state", "Error: record is locked", "Error: no such id", "Error: amount mismatch")
_FAMILIES, _TASKS, _RUNS = 7, 3, 4


def desks(seed: int = 1) -> list[Trial]:
    """Seven families a desk, three tasks a family, four runs a task."""
    found: list[Trial] = []
    for place, (desk, acts) in enumerate(_DESKS.items()):
        random = Random(f"desk {desk} {seed}")
        names = sorted(acts)
        families = [frozenset((name,)) for name in names] + [
            frozenset(random.sample(names, 2)) for _ in range(_FAMILIES - len(names))
        ]
        for number in range(_FAMILIES * _TASKS):
            family = families[number % _FAMILIES]
            needs = [random.choice(acts[name]) for name in sorted(family)]
            for run in range(_RUNS):
                task = 1000 * place + number
                found.append(_desk_trial(random, desk, task, run, family, needs, names))
    return found


def _desk_trial(
    random: Random, desk: str, task: int, run: int, family: frozenset[str], needs: Sequence[str], acts: Sequence[str]
) -> Trial:
    passed = random.random() < 0.4
    done = sorted(family)
    error: str | None = None
    if not passed:
        match random.randrange(3):
            case 0 if len(done) > 1:
                done.remove(random.choice(done))
            case 1:
                done.append(random.choice([name for name in acts if name not in family]))
            case _:
                error = random.choice(_ERRORS)
                done = done if random.random() < 0.5 else [random.choice(list(acts))]
    events = [*_talk(random, needs), *_calls(random, done, error)]
    return _trial(f"{desk} {task}:{run}", task, passed, family, events, desk)


def _talk(random: Random, needs: Sequence[str]) -> Iterator[dict[str, Any]]:
    said = [
        random.choice(_CHATTER).format(name=random.choice(_NAMES), number=random.randrange(10**5)) for _ in range(3)
    ]
    if random.random() < 0.5:
        yield {"role": "user", "content": random.choice(_VAGUE)}
    for need in needs:
        yield {"role": "user", "content": f"{said.pop()} {need[0].upper()}{need[1:]}."}
    yield {"role": "user", "content": said.pop()}


def _calls(random: Random, done: Sequence[str], error: str | None) -> Iterator[dict[str, Any]]:
    for name in random.sample(_LOOKS, random.randrange(1, 4)):
        yield {
            "role": "tool",
            "content": "{}",
            "tool": {"name": name, "args": {"id": random.randrange(999)}, "ok": True},
        }
    for place, name in enumerate(done):
        broken = error if error is not None and place == len(done) - 1 else None
        args = {"id": random.randrange(999), "reason": random.choice(("customer", "policy", "other"))}
        yield {"role": "tool", "content": broken or "done", "tool": {"name": name, "args": args, "ok": broken is None}}


def _trial(name: str, task: int, passed: bool, family: frozenset[str], events: Sequence[Any], domain: str) -> Trial:
    return Trial(
        name=name,
        task=task,
        passed=passed,
        family=family,
        changing=family,
        asked="\n".join(event["content"] for event in events if event["role"] == "user"),
        tools=tuple(dict.fromkeys(event["tool"]["name"] for event in events if event["role"] == "tool")),
        events=tuple(events),
        domain=domain,
    )
