"""What annotations of the library are resolved with: on newer Pythons too, and no more than they name."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.handles.study import Study
from muniment.surfaces.operations.rows import OPERATIONS
from muniment.surfaces.operations.signatures import _hints, _homes_in


def test_what_the_annotations_do_not_name_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.14 copies what names are looked up in, so each is put there when resolving stumbles over it."""
    asked: list[str] = []
    real = importlib.import_module

    def counted(name: str, *more: Any) -> Any:
        asked.append(name)
        return real(name, *more)

    monkeypatch.setattr(importlib, "import_module", counted)
    assert _hints(Memory.verify, Memory.__module__)["return"].__name__ == "VerifyReport"
    assert len(asked) == 1
    asked.clear()
    _hints(Run.observe, Run.__module__)
    assert set(asked) < set(_homes_in(Run.__module__).values())


def test_names_within_an_alias_of_the_module_are_found() -> None:
    """`Agent` of a study is a name of its module, and what it is made of stands in quotes."""
    assert "Perspective" in repr(_hints(Study.collect, Study.__module__)["agent"])


def test_a_name_that_is_nowhere_is_said() -> None:
    def unknown(given: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
        del given

    with pytest.raises(NameError, match="Nowhere"):
        _hints(unknown, Run.__module__)


def test_every_operation_has_its_types() -> None:
    assert all(each.signature.parameters is not None for each in OPERATIONS)
