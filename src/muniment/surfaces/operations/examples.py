"""An example for each operation of the core: what was asked of a real server, and what it answered."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

__all__ = ["EXAMPLES", "Example", "example_of", "with_examples"]

EXAMPLES = files("muniment.surfaces.operations").joinpath("data/examples.json")


class Example(NamedTuple):
    """One exchange."""

    method: str
    path: str
    params: dict[str, Any]
    headers: dict[str, str]
    body: Any
    status: int
    answer: Any


@cache
def _told() -> dict[str, Any]:
    held: dict[str, Any] = json.loads(EXAMPLES.read_text("utf-8"))["examples"] if EXAMPLES.is_file() else {}
    return held


def example_of(name: str) -> Example | None:
    """The example of an operation, by its name in the document."""
    told = _told().get(name)
    if told is None:
        return None
    asked = told["request"]
    params, headers = asked.get("params", {}), asked.get("headers", {})
    return Example(asked["method"], asked["path"], params, headers, asked.get("body"), told["status"], told["answer"])


def with_examples(told: dict[str, Any]) -> dict[str, Any]:
    """An operation of the document with its example, where it has one."""
    example = example_of(told["operationId"])
    if example is None:
        return told
    made = dict(told)
    if example.body is not None:
        made["requestBody"] = _shown(told["requestBody"], example.body)
    answered = str(example.status)
    made["responses"] = {
        status: _shown(answer, example.answer) if status == answered else answer
        for status, answer in told["responses"].items()
    }
    return made


def _shown(part: dict[str, Any], value: Any) -> dict[str, Any]:
    """A body or an answer with an example of its JSON."""
    shown = part["content"]["application/json"] | {"examples": {"story": {"value": value}}}
    return part | {"content": part["content"] | {"application/json": shown}}
