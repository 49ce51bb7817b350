"""Every error says what to do: its class has a hint for the usual case, and every shape shows one."""

from __future__ import annotations

import pickle

import pytest

from muniment import errors
from muniment.errors import InvalidRecord, Issue, MunimentError

CLASSES = sorted(
    (
        each
        for name in errors.__all__
        if isinstance(each := getattr(errors, name), type) and issubclass(each, MunimentError)
    ),
    key=lambda each: each.__name__,
)


def made(cls: type[MunimentError]) -> MunimentError:
    return cls("it failed", [Issue("$.a", "wrong")]) if cls is InvalidRecord else cls("it failed")  # type: ignore[call-arg, arg-type]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_each_error_has_a_hint_in_every_shape(cls: type[MunimentError]) -> None:
    error = made(cls)
    assert error.to_dict()["hint"] == error.hint == cls.usual_hint
    assert pickle.loads(pickle.dumps(error)).to_dict() == error.to_dict()
    if cls is not MunimentError:
        assert cls.usual_hint != MunimentError.usual_hint, "a hint of its own, or of its branch"


def test_what_an_instance_says_is_better() -> None:
    assert errors.NotFound("no build", hint="list them").to_dict()["hint"] == "list them"
