"""Labelled stores: what one person and their assistant said, what each statement is worth now, and requests.

Half of the stores were written for this purpose and carry their text. The other half are slices of published data sets:
only ids and spans are kept here, and the text is read from `../shared/data` (or `--data DIR`).
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal

__all__ = ["SPLITS", "Request", "Statement", "Store", "Turn", "load_stores", "split_digest"]

Split = Literal["development", "who_the_user_is", "packets_that_are_true"]
SPLITS: tuple[Split, ...] = ("development", "who_the_user_is", "packets_that_are_true")
"""The last two are sealed: each is scored once, at the end of the work that it judges."""
_FOLDER = Path(__file__).parent / "stores"


@dataclass(frozen=True, slots=True)
class Turn:
    id: str
    session: str
    role: str
    ts: str
    text: str
    tool: str | None = None
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    id: str
    turn: str
    start: int
    end: int
    kind: str
    """safety, wish, current, stale, over, other, play, wrong, echo or filler; see README.md."""
    keys: tuple[str, ...]
    """Strings that no rendering of the statement may drop."""
    corrects: tuple[str, ...]
    of: str | None
    """The statement that an echo repeats."""
    is_safety: bool
    """It protects the user or somebody else."""


@dataclass(frozen=True, slots=True)
class Request:
    id: str
    kind: str
    text: str
    crucial: tuple[tuple[str, ...], ...]
    """Of each group one statement must be conveyed."""
    helpful: tuple[tuple[str, ...], ...]
    newer: tuple[tuple[str, str], ...]
    """Old statements that mislead here unless the new one is there too."""

    @property
    def purpose(self) -> Literal["planner", "tool", "responder"]:
        return "planner" if self.kind == "planner" else "tool" if self.kind == "tool" else "responder"


@dataclass(frozen=True, slots=True)
class Store:
    id: str
    language: str
    is_written: bool
    """Written for this benchmark, not taken from a data set."""
    user: str
    timezone: str
    now: str
    turns: tuple[Turn, ...]
    statements: dict[str, Statement]
    requests: tuple[Request, ...]
    times: tuple[tuple[str, str, str], ...]
    """Relative times of user turns: turn, expression, and the day, week, month or year that it means."""

    def newest_of(self, statement: str) -> frozenset[str]:
        """Return what replaced a statement in the end; empty if nothing did."""
        later = {each.id for each in self.statements.values() if statement in each.corrects}
        final = {each for each in later if not self.newest_of(each)}
        return frozenset(final.union(*(self.newest_of(each) for each in later)))


def load_stores(split: Split, data: Path) -> list[Store]:
    return [_read_store(document, data) for document in _documents(split)]


def split_digest(split: Split) -> str:
    """The SHA-256 of a split's labels, which `frozen.json` holds."""
    text = json.dumps(_documents(split), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _documents(split: Split) -> list[dict[str, Any]]:
    """Sealed splits are packed, so that nobody reads them by accident while searching the tree."""
    if split == "development":
        return [json.loads(path.read_text()) for path in sorted((_FOLDER / split).glob("*.json"))]
    found: list[dict[str, Any]] = json.loads(gzip.decompress((_FOLDER / f"{split}.json.gz").read_bytes()))
    return found


def _read_store(wire: dict[str, Any], data: Path) -> Store:
    sessions = wire["sessions"] if "sessions" in wire else _read_source(wire["source"], data)
    turns = [
        Turn(turn["id"], session["id"], turn["role"], turn["ts"], turn["text"], turn.get("tool"), turn.get("speaker"))
        for session in sessions
        for turn in session["turns"]
    ]
    text_of = {turn.id: turn.text for turn in turns}
    statements = {
        each["id"]: Statement(
            id=each["id"],
            turn=each["turn"],
            start=each["span"][0],
            end=each["span"][1],
            kind=each["kind"],
            keys=tuple(text_of[each["turn"]][start:end] for start, end in each.get("keys", ())),
            corrects=tuple(each.get("corrects", ())),
            of=each.get("of"),
            is_safety=each["kind"] == "safety" or bool(each.get("safety")),
        )
        for each in wire["statements"]
    }
    requests = tuple(
        Request(
            id=each["id"],
            kind=each["kind"],
            text=each["text"],
            crucial=tuple(tuple(group.split("|")) for group in each.get("crucial", ())),
            helpful=tuple(tuple(group.split("|")) for group in each.get("helpful", ())),
            newer=tuple((old, new) for old, new in each.get("newer", ())),
        )
        for each in wire["requests"]
    )
    times = tuple(
        (each["turn"], text_of[each["turn"]][each["span"][0] : each["span"][1]], each["day"])
        for each in wire.get("times", ())
    )
    return Store(
        id=wire["id"],
        language=wire["language"],
        is_written="sessions" in wire,
        user=wire["user"],
        timezone=wire.get("timezone", "UTC"),
        now=wire["now"],
        turns=tuple(turns),
        statements=statements,
        requests=requests,
        times=times,
    )


# -- slices of data sets, as sessions of turns


def _read_source(source: dict[str, Any], data: Path) -> list[dict[str, Any]]:
    path = data / source["file"]
    if source["file"].startswith("retrieval/"):
        return list(_retrieval_sessions(path, source))
    if source["file"].startswith("memorybank/"):
        return list(_memorybank_sessions(path, source["scope"]))
    return [_taubench_session(path, source["index"])]


def _retrieval_sessions(path: Path, source: dict[str, Any]) -> Iterator[dict[str, Any]]:
    scope = _retrieval_scopes(path)[source["scope"]]
    wanted = [each for each in scope["sessions"] if each["id"] in source["sessions"]]
    sessions = []
    for day, session in enumerate(wanted):
        turns = []
        for number, turn in enumerate(session["turns"][: source.get("turns")]):
            undated = datetime(2026, 3, 2, 9, tzinfo=UTC) + timedelta(days=day, seconds=30 * number)
            turns.append(turn | {"ts": turn["ts"] or undated.isoformat()})
        sessions.append({"id": session["id"], "turns": turns})
    yield from sorted(sessions, key=lambda each: each["turns"][0]["ts"])


@cache
def _retrieval_scopes(path: Path) -> dict[str, Any]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return {scope["scope"]: scope for scope in map(json.loads, lines)}


def _memorybank_sessions(path: Path, name: str) -> Iterator[dict[str, Any]]:
    history = json.loads(path.read_text())[name]["history"]
    for day, exchanges in sorted(history.items()):
        turns = []
        for number, each in enumerate(exchanges):
            begun = f"{day}T10:{number:02d}"
            turns.append({"id": f"{day}#{number}q", "role": "user", "ts": f"{begun}:00+00:00", "text": each["query"]})
            turns.append(
                {"id": f"{day}#{number}r", "role": "assistant", "ts": f"{begun}:30+00:00", "text": each["response"]}
            )
        yield {"id": day, "turns": turns}


def _taubench_session(path: Path, index: int) -> dict[str, Any]:
    task = json.loads(path.read_text())[index]
    begun = datetime(2024, 5, 15, 20, tzinfo=UTC)
    turns = []
    for number, message in enumerate(task["traj"]):
        if message["role"] == "system":
            continue
        text = message.get("content") or ""
        if calls := message.get("tool_calls"):
            shown = "; ".join(f"{each['function']['name']} {each['function']['arguments']}" for each in calls)
            text = f"{text} [call] {shown}".strip()
        turn = {"id": f"m{number}", "role": message["role"], "text": text}
        turn["ts"] = (begun + timedelta(seconds=20 * number)).isoformat()
        if message["role"] == "tool":
            turn["tool"] = message.get("name") or "tool"
        turns.append(turn)
    return {"id": f"task{task['task_id']}", "turns": turns}
