"""Documents made by walking a JSON Schema, and every small thing that can go wrong with one.

Knows the keywords the contracts use: type, enum, const, properties, required, additionalProperties, items, $ref,
anyOf, minimum, maximum, minLength. Nothing here knows pydantic or our records.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SEEDS = ROOT.parent / "shared" / "seeds"
DROP = object()

WRONG: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    255,
    256.0,
    0.5,
    1.5,
    100.5,
    1e300,
    2**53 + 1,
    "",
    "256",
    "zz",
    "𝔘𝔫",
    [],
    [None],
    ["zz", 7],
    {},
    {"zz": None},
)


def seed_text(number: str) -> str | None:
    """The text of a source document, where the shared tree is beside ours."""
    found = sorted(SEEDS.glob(f"{number}_*.txt"))
    return found[0].read_text(encoding="utf-8") if found else None


# -- making ---------------------------------------------------------------------------------------------


class Maker:
    """Valid documents of one schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.root = schema

    def resolve(self, node: Any) -> Any:
        while isinstance(node, dict) and "$ref" in node:
            target: Any = self.root
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node

    def maximal(self, node: Any = None) -> Any:
        """Every property there, two items in each array, one entry in each map."""
        return self._make(self.root if node is None else node, None)

    def minimal(self) -> Any:
        return self._make(self.root, "minimal")

    def random(self, rng: random.Random) -> Any:
        return self._make(self.root, rng)

    def _make(self, node: Any, how: Any) -> Any:
        node = self.resolve(node)
        rng = how if isinstance(how, random.Random) else None
        if node is True or node == {}:
            return self._anything(rng)
        if "anyOf" in node:
            return self._make(rng.choice(node["anyOf"]) if rng else node["anyOf"][0], how)
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return rng.choice(node["enum"]) if rng else node["enum"][0]
        kinds = node["type"] if isinstance(node["type"], list) else [node["type"]]
        return getattr(self, "_" + (rng.choice(kinds) if rng else kinds[0]))(node, how, rng)

    def _object(self, node: Any, how: Any, rng: random.Random | None) -> Any:
        made: dict[str, Any] = {}
        required = set(node.get("required", ()))
        for key, child in node.get("properties", {}).items():
            if key in required or how is None or (rng and rng.random() < 0.5):
                made[key] = self._make(child, how)
        others = node.get("additionalProperties", True)
        if isinstance(others, dict) and how != "minimal":
            made["I3|coding|clarity_low"] = self._make(others, how)
        elif others is True and ((how is None and not made) or (rng and rng.random() < 0.2)):
            made[rng.choice(["zz_extra", "𝔘", "a b", "model_config"]) if rng else "zz_extra"] = self._anything(rng)
        return made

    def _array(self, node: Any, how: Any, rng: random.Random | None) -> Any:
        size = 0 if how == "minimal" else rng.choice([0, 1, 1, 2]) if rng else 2
        return [self._make(node.get("items", True), how) for _ in range(size)]

    def _string(self, node: Any, how: Any, rng: random.Random | None) -> str:
        least = node.get("minLength", 0)
        if node.get("format") == "date-time":
            return (
                rng.choice(["2026-05-01T12:00:00Z", "2026-05-01T14:00:00.25+02:00"]) if rng else "2026-05-01T12:00:00Z"
            )
        return rng.choice(["x", "naïve ☃", "日本語", "𝔘𝔫", 'q"\\\n', "" if not least else "y"]) if rng else "x"

    def _integer(self, node: Any, how: Any, rng: random.Random | None) -> int | float:
        low, high = node.get("minimum", -5), node.get("maximum", 2**53)
        value = rng.choice([low, low + 1, min(high, 2**40), min(high, 2**53 + 1)]) if rng else low + 1
        return float(value) if rng and rng.random() < 0.2 and value < 2**53 else value

    def _number(self, node: Any, how: Any, rng: random.Random | None) -> int | float:
        low, high = node.get("minimum", -1), node.get("maximum", 1000)
        return rng.choice([low, high, (low + high) / 2, low + (high - low) * rng.random()]) if rng else (low + high) / 2

    def _boolean(self, node: Any, how: Any, rng: random.Random | None) -> bool:
        return rng.random() < 0.5 if rng else True

    def _null(self, node: Any, how: Any, rng: random.Random | None) -> None:
        return None

    @staticmethod
    def _anything(rng: random.Random | None) -> Any:
        return (
            rng.choice([None, True, 0, -1.5, "zz", [], {}, {"a": [1, {"b": None}]}, 2**60]) if rng else {"a": [1, None]}
        )


# -- breaking -------------------------------------------------------------------------------------------


def places(node: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value in a document, outermost first."""
    yield at
    if isinstance(node, dict):
        for key, child in node.items():
            yield from places(child, (*at, key))
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from places(child, (*at, index))


def get_at(document: Any, at: tuple[Any, ...]) -> Any:
    for part in at:
        document = document[part]
    return document


def changed(document: Any, at: tuple[Any, ...], value: Any) -> Any:
    """A copy with one value replaced, or dropped; only what lies on the way is copied."""
    if not at:
        return copy.deepcopy(value)
    made = dict(document) if isinstance(document, dict) else list(document)
    if len(at) > 1:
        made[at[0]] = changed(document[at[0]], at[1:], value)
    elif value is DROP:
        del made[at[0]]
    else:
        made[at[0]] = copy.deepcopy(value)
    return made


def single_mutations(document: Any) -> Iterator[Any]:
    """Every document that differs in one place: a key dropped, one added, a value of another kind."""
    for at in places(document):
        here = get_at(document, at)
        if at:
            yield changed(document, at, DROP)
        for value in WRONG:
            yield changed(document, at, value)
        if isinstance(here, dict):
            yield changed(document, (*at, "zz_unknown"), 1)


def random_mutation(document: Any, rng: random.Random) -> Any:
    at = rng.choice(list(places(document)))
    here = get_at(document, at)
    if isinstance(here, dict) and rng.random() < 0.5:
        return changed(document, (*at, "zz_unknown"), rng.choice(WRONG))
    if at and rng.random() < 0.3:
        return changed(document, at, DROP)
    return changed(document, at, rng.choice(WRONG))


# -- paths ----------------------------------------------------------------------------------------------

_PART = re.compile(r'\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]')


def path_parts(path: str) -> list[Any]:
    """The parts of a JSONPath such as `$.a[0]["b c"]`; fails on anything else."""
    assert path.startswith("$"), path
    parts, at = [], 1
    while at < len(path):
        match = _PART.match(path, at)
        assert match, path
        name, index, quoted = match.groups()
        parts.append(name if name is not None else int(index) if index is not None else json.loads(quoted))
        at = match.end()
    return parts


def assert_path_stands(document: Any, path: str) -> None:
    """A path names a value of the document, or a key that one of its objects lacks."""
    parts = path_parts(path)
    for depth, part in enumerate(parts):
        last = depth == len(parts) - 1
        if isinstance(document, dict) and last and part not in document:
            return
        document = document[part]
