"""Items of a LangGraph store, as LangMem fills one: out of its SQLite file or as JSON, by namespace and key.

Whose an item is stands in its namespace alone. Where a user is named, an item under a namespace of more than one part
that does not name the user is somebody else's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from muniment.core.canonical import canonical_text
from muniment.moving.formats.values import (
    Placed,
    id_given,
    instant_in,
    make_memory,
    make_origin,
    mapping_in,
    plain_metadata,
    text_in,
    texts_in,
)
from muniment.moving.records import Found, LeftOut, Read

__all__ = ["read"]

SYSTEM = "langmem"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WORDS = ("content", "text", "memory", "data", "value")


def read(values: Iterable[Placed], as_of: str, source_user: str | None) -> Read:
    """The items of a store, one value each; a pair of an id and a content is one of `langmem`'s extracted memories."""
    for path, _, value in values:
        if isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[0], str):
            value = {"key": value[0], "value": value[1]}
        said = mapping_in(value)
        if "value" not in said:
            yield LeftOut(path, "value", "not an item of a store: it has no value", is_loss=bool(said))
            continue
        namespace = _namespace(said.get("namespace"))
        if source_user is not None and not _names(namespace, source_user):
            where = "/".join(namespace)[:120]
            yield LeftOut(path, "memory", f"its namespace {where!r} does not name {source_user!r:.80}", is_loss=False)
            continue
        yield from _item(path, namespace, said, as_of)


def _namespace(given: Any) -> list[str]:
    return (text_in(given) or "").split(".") if isinstance(given, str) else texts_in(given)


def _names(namespace: list[str], user: str) -> bool:
    """A file joins the parts with dots, so that a name with dots stands in several."""
    return len(namespace) <= 1 or f".{user}." in f".{'.'.join(namespace)}."


def _item(path: str, namespace: list[str], said: Mapping[str, Any], as_of: str) -> Read:
    held = said["value"]
    kind = text_in(mapping_in(held).get("kind"))
    text = _text(mapping_in(held).get("content") if kind and "content" in mapping_in(held) else held)
    if not text.strip():
        yield LeftOut(path, "memory", "it holds no text", is_loss=False)
        return
    key = text_in(said.get("key"))
    origin = make_origin(
        SYSTEM, "memory", id="/".join([*namespace, key or ""]).strip("/")[:500] or None,
        created_at=instant_in(said.get("created_at")), updated_at=instant_in(said.get("updated_at")),
    )  # fmt: skip
    made = make_memory(
        id=_id(namespace, key, text), text=text, as_of=as_of, origin=origin,
        speaker=kind[:80] if kind and kind != "Memory" else None,
        metadata=plain_metadata({"namespace": namespace}),
    )  # fmt: skip
    yield Found(path, made)


def _id(namespace: list[str], key: str | None, text: str) -> str:
    """A key is one item's within its namespace alone, unless it is a UUID."""
    bare = key if key and _UUID.fullmatch(key) else "/".join([*namespace, key]) if key else None
    return id_given(bare, SYSTEM, *namespace, text)


def _text(held: Any) -> str:
    """The words of a value; of one with several fields, its fields as `name: value`."""
    if isinstance(held, str):
        return text_in(held) or ""
    said = mapping_in(held)
    named = [name for name in said if said[name] not in (None, "", [], {})]
    if len(named) == 1 and named[0] in _WORDS:
        return _text(said[named[0]])
    if said:
        return "; ".join(f"{text_in(str(name))}: {_flat(said[name])}" for name in named)
    return ", ".join(_flat(each) for each in held) if isinstance(held, list) else "" if held is None else str(held)


def _flat(value: Any) -> str:
    if isinstance(value, str):
        return text_in(value) or ""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(texts_in(value))
    return canonical_text(plain_metadata({"it": value}) or {"it": None})[6:-1]
