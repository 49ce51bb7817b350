"""Whether a session's table of marks says what the builds that gave the numbers say. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import stream
from muniment.core.ports.schema import MARKS, PROOFS, ProofRow
from muniment.errors import MunimentError
from muniment.store.items import get_version

__all__ = ["mark_faults"]


def mark_faults(reader: Reader, where: tuple[Condition, ...] = ()) -> Iterator[tuple[str, str]]:
    """Evidence whose number is not the one that a build of its session gave it, session by session.

    `where` are conditions on user and session. A number that an import found taken stands for something else here,
    which a build of here has given.
    """
    proofs = stream(reader, PROOFS, (("number", ">", 0), *where), order=("user_id", "session_id", "number"))
    for (user_id, session_id), links in groupby(proofs, key=lambda row: (row.user_id, row.session_id)):
        given = _given(reader, links)
        if not given:
            continue
        of_session: tuple[Condition, ...] = (("user_id", "=", user_id), ("session_id", "=", session_id))
        held = {row.number: row.evidence_id for row in stream(reader, MARKS, of_session)}
        for number, evidence in sorted(given.items()):
            if held.get(number) not in evidence:
                yield min(evidence), f"the mark {number} of the session {session_id!r:.80} was given to it"


def _given(reader: Reader, links: Iterable[ProofRow]) -> dict[int, set[str]]:
    """What the builds of a session that are still there gave each number to. Their proofs name them in order."""
    given: dict[int, set[str]] = {}
    for link in links:
        build = get_version(reader, link.item_id, link.version)
        if build is None or build.kind != "build" or build.body is None:
            continue
        try:
            marks = build.plain().get("marks")
        except MunimentError:  # reported with the build
            continue
        for number, evidence_id in marks.items() if isinstance(marks, dict) else ():
            if number.isdecimal() and isinstance(evidence_id, str):
                given.setdefault(int(number), set()).add(evidence_id)
    return given
