"""Messages that stand in an attribute each, by number: `gen_ai.prompt.0.content`, `llm.input_messages.0.message.role`.

So write OpenLLMetry (before it took to the GenAI conventions) and OpenInference. A name is a path: numbers are places
in a list, words are keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["unflattened"]

_PLACES_MAX = 10_000
_DEPTH_MAX = 16


def unflattened(attributes: Mapping[str, Any], prefix: str) -> list[Any]:
    """What stands below a prefix, in the order of its numbers; without what is no list."""
    root: dict[str, Any] = {}
    for name, value in attributes.items():
        if not name.startswith(f"{prefix}."):
            continue
        *way, last = name[len(prefix) + 1 :].split(".")[:_DEPTH_MAX]
        node = root
        for key in way:
            inner = node.setdefault(key, {})
            if not isinstance(inner, dict):
                break
            node = inner
        else:
            node.setdefault(last, value)
    return [_listed(each) for each in _places(root)]


def _places(node: Mapping[str, Any]) -> Iterable[Any]:
    numbers = sorted(int(key) for key in node if key.isascii() and key.isdigit() and len(key) < 6)
    return [node[key] for key in map(str, numbers[:_PLACES_MAX]) if key in node]


def _listed(node: Any) -> Any:
    """Objects whose keys are all numbers, as lists."""
    if not isinstance(node, dict):
        return node
    if node and all(key.isascii() and key.isdigit() for key in node):
        return [_listed(each) for each in _places(node)]
    return {key: _listed(each) for key, each in node.items()}
