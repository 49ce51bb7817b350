"""What annotations of the library are resolved with: on newer Pythons too, and no more than they name."""

from __future__ import annotations

import sys

from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.surfaces.operations.rows import OPERATIONS
from muniment.surfaces.operations.signatures import _homes_in, _names_for, _names_in


def test_names_are_held_by_a_plain_dict_that_can_be_copied() -> None:
    """Python 3.14 copies it before it looks a name up, so one that imports when it is asked would come too late."""
    names, used = _names_for(Memory.__module__, Memory.verify)
    assert names is vars(sys.modules[Memory.__module__])
    assert type(used) is dict
    assert dict(used) == used
    assert "VerifyReport" in used


def test_what_the_annotations_do_not_name_is_not_imported() -> None:
    _, used = _names_for(Run.__module__, Run.observe)
    assert set(used) < set(_homes_in(Run.__module__))


def test_names_in_quotes_are_names() -> None:
    assert set(_names_in("Mapping[str, 'Fact'] | None")) == {"Mapping", "str", "Fact"}
    assert set(_names_in("Literal['a b', 'c-d']")) == {"Literal"}


def test_every_operation_has_its_types() -> None:
    assert all(each.signature.parameters is not None for each in OPERATIONS)
