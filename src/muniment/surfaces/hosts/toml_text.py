"""TOML edited where it stands: a table is put behind what is there, and taken out again; no other byte changes.

What comes of an edit is read and held against what should come of it; where the two differ nothing is changed.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from muniment.errors import InvalidInput

__all__ = ["parse", "with_table", "without_table"]

_HEADER = re.compile(r"[ \t]*\[{1,2}([^\[\]\n]*)\]")
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")


def parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(f"it is not TOML: {error}", path="$") from None


def with_table(text: str, path: Sequence[str], table: Mapping[str, Any]) -> str:
    """The text with a table at its end. What is no table yet, and cannot become one there, is refused."""
    before = parse(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
    made = text + gap + newline.join(_lines(path, table)) + newline
    try:
        after = tomllib.loads(made)
    except tomllib.TOMLDecodeError:
        after = {}
    wanted: dict[str, Any] = before
    for name in path[:-1]:
        below = wanted.setdefault(name, {})
        if not isinstance(below, dict):
            raise InvalidInput("a table is expected there", path=f"$.{name}")
        wanted = below
    if path[-1] in wanted:
        raise InvalidInput("something stands there already", path="$." + ".".join(path))
    wanted[path[-1]] = dict(table)
    if after != before:
        where = ".".join(path[:-1])
        raise InvalidInput(f"[{where}] is written as a value in braces", hint=f"write it as tables: [{where}.NAME]")
    return made


def _lines(path: Sequence[str], table: Mapping[str, Any]) -> list[str]:
    plain = {name: value for name, value in table.items() if not isinstance(value, Mapping)}
    lines = [f"[{'.'.join(map(_key, path))}]", *(f"{_key(name)} = {_value(value)}" for name, value in plain.items())]
    for name, value in table.items():
        if isinstance(value, Mapping):
            lines += ["", *_lines([*path, name], value)]
    return lines


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return "true" if value is True else "false" if value is False else str(value)


def without_table(text: str, path: Sequence[str]) -> str:
    """The text without a table and those below it; as it is where there is none."""
    before = parse(text)
    holder: Any = before
    for name in path[:-1]:
        holder = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(holder, dict) or path[-1] not in holder:
        return text
    del holder[path[-1]]
    lines = text.splitlines(keepends=True)
    kept: list[str] = []
    is_inside = False
    for line in lines:
        header = _HEADER.match(line)
        if header:
            names = _names(header.group(1))
            is_inside = names[: len(path)] == list(path)
            if is_inside and kept and not kept[-1].strip():
                kept.pop()
        if not is_inside:
            kept.append(line)
    made = "".join(kept)
    if _tidy(parse(made)) != _tidy(before):
        raise InvalidInput(f"[{'.'.join(path)}] cannot be told from what stands around it", hint="take it out by hand")
    return made


def _names(header: str) -> list[str]:
    """The names of a header, with or without quotes."""
    try:
        found: Any = tomllib.loads(f"[{header}]")
    except tomllib.TOMLDecodeError:
        return []
    names = []
    while isinstance(found, dict) and found:
        name, found = next(iter(found.items()))
        names.append(name)
    return names


def _tidy(value: Any) -> Any:
    """Without tables that hold nothing, which are there as long as something below them is."""
    if not isinstance(value, dict):
        return value
    inner = {name: _tidy(each) for name, each in value.items()}
    return {name: each for name, each in inner.items() if each != {}}
