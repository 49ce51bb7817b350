"""Whether a session's table of marks says what the builds that gave the numbers say. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import stream
from muniment.core.ports.schema import ITEMS, MARKS
from muniment.errors import MunimentError
from muniment.store.items import stream_items

__all__ = ["mark_faults"]


class _Owner(NamedTuple):
    user_id: str | None


def mark_faults(reader: Reader, where: tuple[Condition, ...] = ()) -> Iterator[tuple[str, str]]:
    """Evidence whose number is not the one that a build of its session gave it, user by user; of builds that meet these
    conditions.

    A number that an import found taken stands for something else here, which a build of here has given.
    """
    builds: tuple[Condition, ...] = (("kind", "=", "build"), ("receipt_id", "=", None), *where)
    users = {row.user_id for row in stream(reader, ITEMS, builds, into=_Owner)}
    for user_id in sorted(user_id for user_id in users if user_id is not None):
        given = _given(reader, user_id)
        rows = stream(reader, MARKS, (("user_id", "=", user_id),), order=("user_id", "session_id", "number"))
        held: dict[str, dict[int, str]] = {}
        for session_id, marks in groupby(rows, key=lambda row: row.session_id):
            held[session_id] = {row.number: row.evidence_id for row in marks}
        for session_id, numbers in sorted(given.items()):
            table = held.get(session_id, {})
            for number, evidence in sorted(numbers.items()):
                if table.get(number) not in evidence:
                    yield min(evidence), f"the mark {number} of the session {session_id!r:.80} was given to it"


def _given(reader: Reader, user_id: str) -> dict[str, dict[int, set[str]]]:
    """By session, what the builds of a user that are still there gave each number to."""
    given: dict[str, dict[int, set[str]]] = {}
    where: tuple[Condition, ...] = (("kind", "=", "build"), ("user_id", "=", user_id), ("receipt_id", "=", None))
    for build in stream_items(reader, where):
        try:
            marks = build.plain().get("marks")
        except MunimentError:  # told of the build
            continue
        if build.session_id is None or not isinstance(marks, dict):
            continue
        for number, evidence_id in marks.items():
            if number.isdecimal() and isinstance(evidence_id, str):
                given.setdefault(build.session_id, {}).setdefault(int(number), set()).add(evidence_id)
    return given
