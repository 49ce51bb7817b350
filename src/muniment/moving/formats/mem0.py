"""mem0's memories as JSON: the answers of `get_all` or the platform, and rows of its history.

All versions of a memory share its id. The history gives the end of each version; deleted ones are not carried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from muniment.moving.formats.values import (
    Placed,
    id_given,
    instant_in,
    make_memory,
    make_origin,
    mapping_in,
    plain_metadata,
    text_in,
)
from muniment.moving.portable import Found, LeftOut, Read

__all__ = ["read"]

SYSTEM = "mem0"
_OWN = ("data", "memory", "hash", "created_at", "updated_at", "user_id", "text_lemmatized", "id", "metadata", "score",
        "embedding", "vector", "event")  # fmt: skip


class _Version(NamedTuple):
    text: str
    since: str | None
    path: str


def read(values: Iterable[Placed], as_of: str, source_user: str | None) -> Read:
    """Read history rows first, then each memory with its earlier versions."""
    histories: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    seen: set[str] = set()
    has_current = False
    for path, _, value in values:
        said = mapping_in(value)
        if "memory_id" in said and "event" in said:
            histories.setdefault(str(said.get("memory_id")), []).append((path, said))
        elif "data" in said or "memory" in said:
            has_current = True
            seen.add(str(said.get("id")))
            yield from _memory(path, said, histories.get(str(said.get("id")), []), as_of, source_user)
        elif said:
            yield LeftOut(path, "value", "not a memory: it has neither data nor memory")
    for memory_id, rows in histories.items():
        if memory_id not in seen:
            yield from _only_history(memory_id, rows, as_of, has_current=has_current)


def _memory(
    path: str,
    said: Mapping[str, Any],
    history: list[tuple[str, Mapping[str, Any]]],
    as_of: str,
    source_user: str | None,
) -> Read:
    user = text_in(said.get("user_id")) or None
    if source_user is not None and user not in (None, source_user):
        yield LeftOut(path, "memory", f"it is of the user {user!r:.80}", is_loss=False)
        return
    text = text_in(said.get("data")) or text_in(said.get("memory"))
    if not text or not text.strip():
        yield LeftOut(path, "memory", "it holds no text", is_loss=False)
        return
    more = {**{name: value for name, value in said.items() if name not in _OWN}, **mapping_in(said.get("metadata"))}
    versions = [each for each in _versions(history) if each.text != text]
    updated = instant_in(said.get("updated_at")) or instant_in(said.get("created_at"))
    yield Found(path, _made(said, text, updated if versions else None, more, as_of), user)  # first, under its own id
    for index, version in enumerate(versions):
        ends = versions[index + 1].since if index + 1 < len(versions) else updated
        yield Found(version.path, _made(said, version.text, version.since, more, as_of, ends=ends), user)


def _versions(history: list[tuple[str, Mapping[str, Any]]]) -> list[_Version]:
    """Earlier texts of a memory, oldest first."""
    found = []
    for path, row in history:
        text = text_in(row.get("new_memory"))
        at = instant_in(row.get("updated_at")) or instant_in(row.get("created_at"))
        if row.get("event") in ("ADD", "UPDATE") and text and text.strip():
            found.append(_Version(text, at, path))
    return sorted(found, key=lambda version: version.since or "")


def _made(
    said: Mapping[str, Any],
    text: str,
    since: str | None,
    more: Mapping[str, Any],
    as_of: str,
    ends: str | None = None,
) -> Any:
    created, updated = instant_in(said.get("created_at")), instant_in(said.get("updated_at"))
    origin = make_origin(
        SYSTEM, "memory", id=text_in(said.get("id")), created_at=since if ends else created,
        updated_at=None if ends else since or updated, valid_to=ends,
    )  # fmt: skip
    return make_memory(
        id=id_given(said.get("id"), SYSTEM, text), text=text, as_of=as_of, origin=origin,
        metadata=plain_metadata(more),
    )  # fmt: skip


def _only_history(
    memory_id: str, rows: list[tuple[str, Mapping[str, Any]]], as_of: str, *, has_current: bool
) -> Iterator[Found | LeftOut]:
    """A memory found only in the history."""
    path, last = max(rows, key=lambda row: instant_in(row[1].get("updated_at")) or "")
    if last.get("event") == "DELETE" or last.get("is_deleted") in (1, True):
        yield LeftOut(path, "memory", "it was deleted there", is_loss=False, times=len(rows))
    elif has_current:
        yield LeftOut(path, "memory", "it stands in the history and no longer in the store", is_loss=False)
    else:
        said = {"id": memory_id, "created_at": rows[0][1].get("created_at"), "updated_at": last.get("updated_at")}
        versions = _versions(rows)
        for version, after in zip(versions, [*versions[1:], None], strict=True):
            ends = None if after is None else after.since
            since = version.since if len(versions) > 1 else None
            yield Found(version.path, _made(said, version.text, since, {}, as_of, ends=ends))
