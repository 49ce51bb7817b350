"""Questions on recorded runs whose key is a rule over the events: nobody wrote down an answer.

Every question is asked of a whole world, so its gold is every event of that world that the rule holds of. Kinds:

- `changed`, `created`: which call did it; `failed`: which call failed, and what it said.
- `before`, `after`: what stands next to another event that the question names, in the same run.
- `state_before`, `state_after`: how a thing stood before and after it was changed.
- `first`, `last`: of several calls alike; `count`: how often, all of them; `value`: what a call with these arguments
  said.

A rule that holds of more events than `GOLD_MAX` asks nothing. Wordings are drawn from a few for each kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

from benchmarks.trajectory_tracks import Event, Track, World

__all__ = ["Key", "TrackQuestion", "questions_of"]

GOLD_MAX = 8
Key = tuple[str, int]
"""The name of a track, and the place of an event in it."""


@dataclass(frozen=True, slots=True)
class TrackQuestion:
    text: str
    kind: str
    gold: frozenset[Key]
    cluster: str
    """The track that it is on: questions on one track stand or fall together."""


Asked = Iterator[tuple[str, str, Sequence[tuple[Track, Event]]]]
"""Kind, text, and the events that answer."""
Pair = tuple[Track, Event]


def questions_of(world: World, each_kind: int, seed: int = 23) -> list[TrackQuestion]:
    """Up to so many of each kind, drawn by the seed; the same world gives the same questions."""
    random = Random(f"{seed} {world.source} {world.name}")
    rules: dict[str, Callable[[World, Random], Asked]] = {
        "tau": _tau,
        "coding": _coding,
        "alfworld": _alfworld,
        "whowhen": _whowhen,
    }
    found: dict[str, dict[str, TrackQuestion]] = {}
    for kind, text, gold in rules[world.source](world, random):
        keys = frozenset((track.name, event.at) for track, event in gold)
        if keys and len(keys) <= GOLD_MAX:
            found.setdefault(kind, {}).setdefault(text, TrackQuestion(text, kind, keys, gold[0][0].name))
    chosen: list[TrackQuestion] = []
    for kind in sorted(found):
        every = sorted(found[kind].values(), key=lambda question: question.text)
        chosen += random.sample(every, min(each_kind, len(every)))
    return chosen


def _every(world: World) -> list[Pair]:
    return [(track, event) for track in world.tracks for event in track.events]


def _calls(world: World, *tools: str) -> list[Pair]:
    return [(track, event) for track, event in _every(world) if event.tool and (not tools or event.tool in tools)]


def _before(track: Track, event: Event, wanted: Callable[[Event], bool]) -> list[Pair]:
    """The last event before one that meets a condition."""
    return [(track, each) for each in track.events[: event.at] if wanted(each)][-1:]


def _after(track: Track, event: Event, wanted: Callable[[Event], bool]) -> list[Pair]:
    return [(track, each) for each in track.events[event.at + 1 :] if wanted(each)][:1]


def _named(tool: str, random: Random) -> str:
    """A tool as it is called by name, or by its words."""
    return tool if random.random() < 0.5 else f"the {tool.replace('_', ' ')} tool"


def _alike(pairs: Iterable[Pair], key: Callable[[Event], Any]) -> dict[Any, list[Pair]]:
    groups: dict[Any, list[Pair]] = {}
    for track, event in pairs:
        groups.setdefault(key(event), []).append((track, event))
    return groups


def _repeated(world: World, key: Callable[[Event], str | None], random: Random, what: str) -> Asked:
    """First, last and how often of calls of one tool on one thing."""
    pairs = [(track, event) for track, event in _calls(world) if key(event)]
    for (tool, thing), alike in _alike(pairs, lambda event: (event.tool, key(event))).items():
        said = _named(tool, random)
        if len(alike) > 1:
            yield (
                "last",
                random.choice(("What did {} say last about {} {}?", "The latest result of {} for {} {}?")).format(
                    said, what, thing
                ),
                alike[-1:],
            )
            yield (
                "first",
                random.choice(
                    ("What did {} say first about {} {}?", "What was the first result of {} for {} {}?")
                ).format(said, what, thing),
                alike[:1],
            )
            yield (
                "count",
                random.choice(("How often was {} called for {} {}?", "How many times was {} used on {} {}?")).format(
                    said, what, thing
                ),
                alike,
            )
        yield "value", f"What did {said} return for {what} {thing}?", alike


# -- τ-bench ------------------------------------------------------------------------------------------

_CHANGES = {
    "update_reservation_flights": ("changed", "modified", "rebooked"),
    "update_reservation_baggages": ("changed", "updated"),
    "update_reservation_passengers": ("changed", "updated"),
    "cancel_reservation": ("cancelled", "called off"),
}
_ROUTE = ("origin", "destination", "date")


def _reservation(event: Event) -> str | None:
    found = (event.args or {}).get("reservation_id")
    return found if isinstance(found, str) else None


def _tau(world: World, random: Random) -> Asked:
    yield from _repeated(world, _reservation, random, "reservation")
    changes = [(track, event) for track, event in _calls(world, *_CHANGES) if event.ok]
    for name, done in _alike(changes, _reservation).items():
        verb = random.choice(_CHANGES[done[0][1].tool]) if len({event.tool for _, event in done}) == 1 else "changed"
        which = ("Which call {} reservation {}?", "Which tool call {} {}?", "What {} the reservation {}?")
        yield "changed", random.choice(which).format(verb, name), done
        track, first = done[0]

        def reads(event: Event, name: str = str(name)) -> bool:
            return event.tool == "get_reservation_details" and _reservation(event) == name

        ask = ("How did reservation {} stand before it was {}?", "What were the details of {} before it was {}?")
        yield "state_before", random.choice(ask).format(name, verb), _before(track, first, reads)
        last_track, last = done[-1]
        stands = [(last_track, each) for each in last_track.events[last.at :] if each is last or reads(each)]
        ask = ("How did reservation {} stand after it was {}?", "What were the details of {} after it was {}?")
        yield "state_after", random.choice(ask).format(name, verb), stands[-1:]
        yield from _beside(track, first, f"reservation {name} was {'first ' if len(done) > 1 else ''}{verb}", random)
    failures = [(track, event) for track, event in _calls(world) if not event.ok]
    for name, failed in _alike(failures, _reservation).items():
        if name:
            ask = ("Which call failed for reservation {}, and what did it say?", "What error did {} run into?")
            yield "failed", random.choice(ask).format(name), failed
            if len(failed) == 1:
                yield from _beside(*failed[0], f"the update of reservation {name} failed", random)
    for user, failed in _alike(failures, lambda event: (event.args or {}).get("user_id")).items():
        if user:
            ask = ("Why did the booking for {} fail?", "Which booking of {} was refused, and why?")
            yield "failed", random.choice(ask).format(user), failed
    for user, booked in _alike(_calls(world, "book_reservation"), lambda event: event.args["user_id"]).items():  # type: ignore[index]
        done = [pair for pair in booked if pair[1].ok]
        if done:
            which = (
                "Which call booked a flight for {}?",
                "Which reservation was made for {}?",
                "What was booked for {}?",
            )
            yield "created", random.choice(which).format(user), done
            if len(booked) == 1:
                yield from _beside(*done[0], f"the booking for {user}", random)
    routes = _calls(world, "search_direct_flight", "search_onestop_flight")
    for (origin, destination, date), searched in _alike(routes, _route).items():
        yield "value", f"Which flights were found from {origin} to {destination} on {date}?", searched


def _route(event: Event) -> tuple[Any, ...]:
    return tuple((event.args or {}).get(name) for name in _ROUTE)


def _beside(track: Track, event: Event, named: str, random: Random) -> Asked:
    """What stands before and after an event that is named, by tool or by who speaks."""
    for tool in sorted({each.tool for each in track.events[: event.at] if each.tool and each.tool != event.tool}):
        said = _before(track, event, lambda each, tool=tool: each.tool == tool)  # type: ignore[misc]
        yield "before", f"What did {_named(tool, random)} say before {named}?", said
    for tool in sorted({each.tool for each in track.events[event.at + 1 :] if each.tool}):
        said = _after(track, event, lambda each, tool=tool: each.tool == tool)  # type: ignore[misc]
        yield "after", f"What did {_named(tool, random)} say after {named}?", said
    for role, who in (("user", "the user"), ("assistant", "the agent")):
        ask = f"What did {who} say right after {named}?"
        yield "after", ask, _after(track, event, lambda each, role=role: each.role == role)  # type: ignore[misc]
        ask = f"What did {who} say just before {named}?"
        yield "before", ask, _before(track, event, lambda each, role=role: each.role == role)  # type: ignore[misc]


# -- the coding agent ---------------------------------------------------------------------------------

_SETTING = re.compile(r"(\w+) = (-?\d+)")


def _target(event: Event) -> str | None:
    args = event.args or {}
    return args.get("path") or args.get("target") or args.get("pattern")


def _coding(world: World, random: Random) -> Asked:
    yield from _repeated(world, _target, random, random.choice(("file", "the file")))
    edits = _calls(world, "edit_file")
    for path, done in _alike(edits, _target).items():
        ask = ("Which call changed {}?", "Which edits were made to {}?", "What was modified in {}?")
        yield "changed", random.choice(ask).format(path), done
        yield from _beside(*done[0], f"{path} was {'first ' if len(done) > 1 else ''}edited", random)
    for tool, verbs in (("create_file", ("created", "added")), ("delete_file", ("deleted", "removed"))):
        for path, done in _alike(_calls(world, tool), _target).items():
            kind = "created" if tool == "create_file" else "changed"
            yield kind, f"Which call {random.choice(verbs)} {path}?", done
            if len(done) == 1:
                yield from _beside(*done[0], f"{path} was {random.choice(verbs)}", random)
    yield from _failing_tests(world, random)
    yield from _settings(edits, random)
    for _, event in _calls(world, "git_commit"):
        message = (event.args or {})["message"]
        same = [pair for pair in _calls(world, "git_commit") if pair[1].args == event.args]
        yield "created", f'Which commit says "{message}"?', same
        if len(same) == 1:
            yield from _beside(*same[0], f'the commit "{message}"', random)


def _failing_tests(world: World, random: Random) -> Asked:
    failed = [(track, event) for track, event in _calls(world, "run_tests") if not event.ok]
    for node, told in _alike(failed, lambda event: event.text.split("::")[1].split(" ")[0]).items():
        ask = ("How did {} fail?", "Which test run failed in {}, and what did it say?", "What error did {} end with?")
        yield "failed", random.choice(ask).format(node), told
        track, event = told[0]
        yield from _beside(track, event, f"{node} {'first ' if len(told) > 1 else ''}failed", random)
    for fault, told in _alike(failed, lambda event: event.text.split(" - ")[1].split("\n")[0]).items():
        mended = [_after(track, event, lambda each: each.tool == "edit_file") for track, event in told]
        if len(told) == 1:
            yield "after", f"Which edit came after the tests failed with {fault}?", mended[0]
    commands = [(track, event) for track, event in _calls(world, "run_command") if not event.ok]
    for command, told in _alike(commands, lambda event: (event.args or {})["command"]).items():
        yield "failed", f"When did `{command}` fail, and with which code?", told


def _settings(edits: Iterable[Pair], random: Random) -> Asked:
    """A setting of a file: where it got its last value, and what set it before."""
    tuned = [pair for pair in edits if _SETTING.fullmatch((pair[1].args or {})["new"])]
    for (path, name), done in _alike(tuned, lambda event: (_target(event), event.args["new"].split(" ")[0])).items():  # type: ignore[index]
        ask = ("What is the last value of {} in {}?", "What was {} in {} set to in the end?")
        yield "last", random.choice(ask).format(name, path), done[-1:]
        yield "changed", f"Which calls changed {name} in {path}?", done
        for older, newer in pairwise(done):
            value = newer[1].args["new"].split(" = ")[1]  # type: ignore[index]
            sets = [pair for pair in done if pair[1].args["new"].endswith(f" = {value}")]  # type: ignore[index]
            if len(sets) == 1 and older[0] is newer[0]:
                yield "state_before", f"What was {name} in {path} before it was set to {value}?", [older]
                ran = _after(*newer, lambda each: each.tool == "run_command")
                yield "state_after", f"What did the bench say after {name} in {path} was set to {value}?", ran


# -- ALFWorld -----------------------------------------------------------------------------------------

_FOUND = re.compile(r"\bthe (\w+) (?:was|is) found (?:on|in|at) (\w+ \d+)")
_TAKEN = re.compile(r"\btaken? (?:the )?(\w+ \d+) from (\w+ \d+)")


def _alfworld(world: World, random: Random) -> Asked:
    for track in world.tracks:
        name = track.name
        pairs = [(track, event) for event in track.events]
        failed = [pair for pair in pairs if not pair[1].ok]
        managed = [pair for pair in pairs if pair[1].ok]
        yield "failed", random.choice(("Which trials of {} failed?", "What went wrong in {}?")).format(name), failed
        yield "count", random.choice(("How often was {} tried?", "How many times was {} run?")).format(name), pairs
        yield (
            "first",
            random.choice(("What did the first trial of {} say?", "How did {} go at first?")).format(name),
            pairs[:1],
        )
        yield (
            "last",
            random.choice(("What did the last trial of {} say?", "The latest result of {}?")).format(name),
            pairs[-1:],
        )
        for _, event in pairs:
            number = (event.args or {})["trial"]
            yield "value", f"What came of trial {number} of {name}?", [(track, event)]
            if event.at:
                yield (
                    "before",
                    f"What did the agent learn before trial {number} of {name}?",
                    pairs[event.at - 1 : event.at],
                )
        if managed:
            yield "created", f"Which trial of {name} was completed?", managed
            yield "state_before", f"What was the last failure of {name} before it was completed?", failed[-1:]
        for pattern, ask in (
            (_FOUND, "Where was the {} found in {}?"),
            (_TAKEN, "Where did the agent pick up {} in {}?"),
        ):
            things = {found[1] for _, event in pairs for found in pattern.finditer(event.text)}
            for thing in sorted(things):
                told = [pair for pair in pairs if any(found[1] == thing for found in pattern.finditer(pair[1].text))]
                yield "value", ask.format(thing, name), told


# -- Who&When -----------------------------------------------------------------------------------------

_ERROR = re.compile(r"^(\w*(?:Error|Exception)): (.{8,160})$", re.MULTILINE)
_NAME = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+\b")


def _whowhen(world: World, random: Random) -> Asked:
    runs = _calls(world, "Computer_terminal")
    failed = [(track, event) for track, event in runs if not event.ok and _ERROR.search(event.text)]
    for (kind, told), pairs in _alike(failed, _fault).items():
        if len(pairs) > 2:
            continue
        ask = ("Which code failed with {}: {}?", "When did the terminal stop with {} ({})?")
        yield "failed", random.choice(ask).format(kind, told), pairs
        track, event = pairs[0]
        if len(pairs) == 1:
            for before, direction, beside in (
                ("right before", "before", _before(track, event, lambda each: not each.tool)),
                ("right after", "after", _after(track, event, lambda each: not each.tool)),
            ):
                for _, other in beside:
                    yield (
                        direction,
                        f"What did {other.speaker} say {before} the code failed with {kind}: {told}?",
                        beside,
                    )
    names = _alike_names(runs)
    for name, pairs in sorted(names.items()):
        if len(pairs) == 1:
            yield "value", f"What did the terminal print when the code used {name}?", pairs
        elif len({track.name for track, _ in pairs}) == 1:
            yield "count", f"How often was code with {name} run?", pairs
            yield "last", f"What did the terminal say the last time {name} was run?", pairs[-1:]
            yield "first", f"What did the terminal say the first time {name} was run?", pairs[:1]
    for track in world.tracks:
        topic = " ".join(track.topic.split()[:14])
        stops = [(track, event) for event in track.events if event.tool and not event.ok]
        if len(stops) > 1:
            yield "count", f'How often did the code fail in the task "{topic} …"?', stops
        ran = [(track, event) for event in track.events if event.tool and event.ok]
        if ran:
            yield "last", f'What was the last output of the terminal in the task "{topic} …"?', ran[-1:]


def _fault(event: Event) -> tuple[str, str]:
    found = list(_ERROR.finditer(event.text))[-1]
    return found[1], found[2].strip()


def _alike_names(runs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """The names that stand in the code of a few runs, each with those."""
    held: dict[str, list[Pair]] = {}
    for track, event in runs:
        for name in sorted(set(_NAME.findall((event.args or {}).get("code", "")))):
            held.setdefault(name, []).append((track, event))
    return {name: pairs for name, pairs in held.items() if len(pairs) <= 4}
