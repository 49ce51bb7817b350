"""A chat model that proposes what a test plants, turn by turn, and remembers what it was asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Fact = tuple[str, Any, str] | Mapping[str, Any]
HOLDS = dict.fromkeys(("negated", "hypothetical", "quoted", "temporary"), False)


def fact(key: str, value: Any, quote: str, **more: Any) -> dict[str, Any]:
    """A proposal of the turn it is planted in; `more` says otherwise, and None leaves a part out."""
    whole = {"key": key, "value": value, "quote": quote, **HOLDS, **more}
    return {name: part for name, part in whole.items() if part is not None}


class PlantedModel:
    """Proposes what `of` makes of a turn's text: facts, or tuples of key, value and quote."""

    name = "planted"

    def __init__(self, of: Callable[[str], Iterable[Fact]] = lambda _text: ()) -> None:
        self.of = of
        self.asked: list[list[str]] = []
        self.context: list[list[str]] = []

    def __call__(self, messages: list[dict[str, str]]) -> str:
        lines = [json.loads(line) for line in messages[1]["content"].split("\n")]
        self.asked.append([line["text"] for line in lines if "turn" in line])
        self.context.append([line["text"] for line in lines if "turn" not in line])
        found: list[dict[str, Any]] = []
        for line in lines:
            if "turn" in line:
                for each in self.of(line["text"]):
                    plain = each if isinstance(each, Mapping) else fact(*each)
                    found.append({"turn": line["turn"], "speaker": line["who"], **plain})
        return json.dumps({"facts": found})

    @property
    def texts(self) -> list[str]:
        return [text for batch in self.asked for text in batch]
