"""Where a search looks: conditions on the turns of a user that their index answers, without a look at the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from muniment.core.instants import parse_instant
from muniment.core.record import Absent, Items, Record, issues_of
from muniment.errors import InvalidInput, InvalidRecord
from muniment.memory._index import StoredIndex, field_term, role_number

__all__ = ["DEPTH_MAX", "EVENTS_MAX", "Within", "ids_let_in", "mask_of", "newest_ids", "within_given"]

EVENTS_MAX = 20_000
DEPTH_MAX = 24

Mask = npt.NDArray[np.bool_]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Within(Record):
    """Conditions that hold together. What is absent asks for nothing."""

    fields: Absent[Items[str]] = None
    """All of these fields: what the event lists under `muniment:fields` of its metadata."""
    roles: Absent[Items[str]] = None
    """Said in one of these roles."""
    sessions: Absent[Items[str]] = None
    """Said in one of these sessions."""
    events: Absent[Items[str]] = None
    """One of these events."""
    since: Absent[str] = None
    """Said from this moment on, by whole seconds."""
    until: Absent[str] = None
    """Said up to this moment, by whole seconds."""
    all_of: Absent[Items[Within]] = None
    """All of these hold."""
    any_of: Absent[Items[Within]] = None
    """One of these holds."""
    none_of: Absent[Items[Within]] = None
    """None of these holds."""


def within_given(given: Any) -> Within:
    """The conditions that a caller gave, checked; raises `InvalidInput`."""
    try:
        asked = Within.model_validate(dict(given) if isinstance(given, Mapping) else given)
    except ValidationError as error:
        refused = InvalidRecord("within should be conditions on events", issues_of(error, given))
        raise refused.within("$.within") from None
    _check(asked, "$.within", 1)
    return asked


def _check(asked: Within, path: str, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise InvalidInput(f"conditions may stand {DEPTH_MAX} deep", path=path)
    if len(asked.events or ()) > EVENTS_MAX:
        raise InvalidInput(f"at most {EVENTS_MAX} events can be named", path=f"{path}.events")
    for name in ("since", "until"):
        moment = getattr(asked, name)
        if moment is not None:
            parse_instant(moment, path=f"{path}.{name}")
    for name in ("all_of", "any_of", "none_of"):
        for number, each in enumerate(getattr(asked, name) or ()):
            _check(each, f"{path}.{name}[{number}]", depth + 1)


def mask_of(index: StoredIndex, asked: Within) -> Mask:
    """Of each turn of the index, whether the conditions hold."""
    found = np.ones(len(index), bool)
    for field in asked.fields or ():
        having = np.zeros(len(index), bool)
        having[index.postings(field_term(field))[0]] = True
        found &= having
    if asked.roles is not None:
        found &= np.isin(index.role, [role_number(role) for role in asked.roles])
    if asked.sessions is not None:
        numbers = [index.session_number(session) for session in asked.sessions]
        found &= np.isin(index.session, [number for number in numbers if number is not None])
    if asked.events is not None:
        wanted = frozenset(asked.events)
        found &= np.fromiter((id_ in wanted for id_ in index.ids()), bool, len(index))
    if asked.since is not None:
        found &= index.ts >= _seconds(asked.since)
    if asked.until is not None:
        found &= index.ts <= _seconds(asked.until)
    for each in asked.all_of or ():
        found &= mask_of(index, each)
    if asked.any_of is not None:
        found &= _any(index, asked.any_of)
    if asked.none_of is not None:
        found &= ~_any(index, asked.none_of)
    return found


def _any(index: StoredIndex, several: Iterable[Within]) -> Mask:
    found = np.zeros(len(index), bool)
    for each in several:
        found |= mask_of(index, each)
    return found


def _seconds(moment: str) -> int:
    return int((parse_instant(moment) - _EPOCH).total_seconds())


def newest_ids(index: StoredIndex, mask: Mask, count: int) -> list[str]:
    """The newest turns that the mask lets in, newest first."""
    return [index.id(ordinal) for ordinal in index.newest(mask, count)]


def ids_let_in(index: StoredIndex, mask: Mask, ids: Iterable[str]) -> frozenset[str]:
    """Those of some events that are turns which the mask lets in."""
    wanted = frozenset(ids)
    held = index.ids()
    return frozenset(held[ordinal] for ordinal in mask.nonzero()[0].tolist() if held[ordinal] in wanted)
