"""Patterns that are compiled late are right all the same."""

from __future__ import annotations

import importlib
import pkgutil
import re

import muniment.core.text
from muniment.core.text.patterns import _Lazy, lazy_pattern


def test_it_is_compiled_when_it_is_used_and_then_does_what_a_pattern_does() -> None:
    late = lazy_pattern(r"(?P<n>\d+)")
    assert vars(late).keys() == {"_source"}
    assert late.findall("1 and 22") == ["1", "22"]
    found = late.search("no 7")
    assert found is not None
    assert found["n"] == "7"
    assert late.sub("x", "1 and 22") == "x and x"
    assert late.search == re.compile(r"(?P<n>\d+)").search


def test_every_late_pattern_compiles() -> None:
    modules = [
        importlib.import_module(f"muniment.core.text.{found.name}")
        for found in pkgutil.iter_modules(muniment.core.text.__path__)
    ]
    late = [value for module in modules for value in vars(module).values() if isinstance(value, _Lazy)]
    assert len(late) > 10
    for pattern in late:
        re.compile(pattern.pattern)
