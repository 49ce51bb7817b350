"""Recorded runs of agents as tracks of events: τ-bench (airline), ALFWorld (Reflexion), Who&When, and a coding agent.

A *track* is one run of an agent, a session in the store. Tracks that belong to one user are a *world*: each is a
distractor for the questions on the others. What is recorded is what the file says: of ALFWorld that is how each trial
of each environment ended and what the agent wrote on it afterwards, not the single moves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.trajectory_coding import coding_sessions

__all__ = ["SOURCES", "Event", "Track", "World", "worlds_of"]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in a run: a message, or a call with its result."""

    at: int
    """Its place in its track."""
    role: str
    text: str
    speaker: str = ""
    tool: str = ""
    args: Mapping[str, Any] | None = None
    ok: bool = True
    """Did the call do what it was asked, by the rule of its source? The library is told where its user would know."""


@dataclass(frozen=True, slots=True)
class Track:
    name: str
    events: tuple[Event, ...]
    topic: str = ""
    """What the run was about, as its first message says it."""
    messages: tuple[dict[str, Any], ...] = ()
    """As an API had them, where that is how they are recorded."""


@dataclass(frozen=True, slots=True)
class World:
    source: str
    name: str
    tracks: tuple[Track, ...]


SOURCES = ("tau", "coding", "alfworld", "whowhen")


def worlds_of(source: str, data: Path) -> list[World]:
    """The worlds of a source; empty where its data are not there."""
    if source == "coding":
        return [World(source, f"project-{seed}", tuple(_coding(seed))) for seed in range(4)]
    made = {"tau": _tau, "alfworld": _alfworld, "whowhen": _whowhen}[source]
    return list(made(data))


# -- τ-bench ------------------------------------------------------------------------------------------


def _tau(data: Path) -> Iterator[World]:
    """A world for each of the four trials: 25 customers one after the other."""
    path = data / "taubench_gpt4o_airline_tasks0-24.json"
    runs = json.loads(path.read_text("utf-8")) if path.exists() else []
    by_trial: dict[int, list[Track]] = {}
    for run in runs:
        messages = [message for message in run["traj"] if message["role"] != "system"]
        by_trial.setdefault(run["trial"], []).append(
            Track(f"task-{run['task_id']}", tuple(_chat_events(messages)), messages=tuple(messages))
        )
    for trial, tracks in sorted(by_trial.items()):
        yield World("tau", f"trial-{trial}", tuple(tracks))


def _chat_events(messages: Iterable[Mapping[str, Any]]) -> Iterator[Event]:
    at = 0
    calls: dict[str, Mapping[str, Any]] = {}
    for message in messages:
        for call in message.get("tool_calls") or ():
            calls[call["id"]] = json.loads(call["function"]["arguments"])
        text = message.get("content") or ""
        if message["role"] == "tool":
            args = calls[message["tool_call_id"]]
            yield Event(at, "tool", text, "", message["name"], args, not text.startswith("Error"))
        elif text:
            yield Event(at, message["role"], text)
        else:
            continue
        at += 1


# -- the coding agent ---------------------------------------------------------------------------------


def _coding(seed: int) -> Iterator[Track]:
    for number, (topic, session) in enumerate(coding_sessions(seed)):
        events = [Event(at, **given) for at, given in enumerate(session)]
        yield Track(f"session-{number}", tuple(events), topic)


# -- ALFWorld -----------------------------------------------------------------------------------------


def _alfworld(data: Path) -> Iterator[World]:
    """A world for each of the two agents: every environment that it did not manage at once, trial after trial."""
    root = data / "reflexion_alfworld" / "root"
    for agent in ("base", "reflexion"):
        files = sorted((root / f"{agent}_run_logs").glob("env_results_trial_*.json"), key=_trial)
        trials = [json.loads(path.read_text("utf-8")) for path in files]
        tracks = [_environment([trial[place] for trial in trials]) for place in range(len(trials[0]) if trials else 0)]
        if tracks:
            yield World("alfworld", agent, tuple(track for track in tracks if len(track.events) > 1))


def _trial(path: Path) -> int:
    return int(path.stem.rpartition("_")[2])


def _environment(trials: list[dict[str, Any]]) -> Track:
    """One environment until it was managed: what was written after each trial that failed."""
    name = str(trials[0]["name"])
    events: list[Event] = []
    known = 0
    for number, trial in enumerate(trials):
        ok = bool(trial["is_success"])
        said = trial["memory"][known:]
        known = len(trial["memory"])
        text = "The task was completed." if ok else " ".join(each.strip() for each in said) or "The task failed."
        args = {"environment": name, "trial": number}
        events.append(Event(number, "tool", text, "", "run_household_task", args, ok))
        if ok:
            break
    return Track(name, tuple(events), name)


# -- Who&When -----------------------------------------------------------------------------------------

_WORLD_SIZE = 21
_CODE = re.compile(r"```(?:\w+)?\n(.*?)```", re.DOTALL)
_EXIT = re.compile(r"exitcode: (\d+)")


def _whowhen(data: Path) -> Iterator[World]:
    """Worlds of 21 runs in the order of the files: experts who talk, and a terminal that runs their code."""
    paths = sorted((data / "whowhen_algorithm_generated").glob("*.json"), key=lambda path: int(path.stem))
    tracks = [_panel(path.stem, json.loads(path.read_text("utf-8"))) for path in paths]
    for start in range(0, len(tracks), _WORLD_SIZE):
        yield World("whowhen", f"runs-{start}", tuple(tracks[start : start + _WORLD_SIZE]))


def _panel(name: str, run: Mapping[str, Any]) -> Track:
    events: list[Event] = []
    code: list[str] = []
    for at, message in enumerate(run["history"]):
        text, speaker = message["content"], message["name"]
        if speaker == "Computer_terminal":
            exit_code = _EXIT.match(text)
            args = {"code": "\n".join(code)} if code else {}
            ok = exit_code is not None and exit_code[1] == "0"
            events.append(Event(at, "tool", text, "", speaker, args, ok))
        else:
            events.append(Event(at, "assistant", text, speaker))
        code = _CODE.findall(text)
    return Track(f"run-{name}", tuple(events), str(run["question"]))
