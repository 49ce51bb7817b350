"""A request record refuses in its own words: code, path, hint and message are those that a check by hand would give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import pytest

from muniment.core.requests import ByRule, Expect, FromOne, ObjectOrNone, Request, TextOrNone, Words, checked, one_of
from muniment.errors import Forbidden, InvalidInput, InvalidRecord


def read_even(given: Any, path: str) -> int:
    if given == "secret":
        raise Forbidden("not yours", path=path)
    if given % 2:
        raise InvalidInput("wanted an even one", path=f"{path}[0]", hint="add one")
    return int(given) // 2


class Asked(Request):
    colour: Annotated[str, one_of(("red", "blue"), "{given!r:.5} is not a colour")] = "red"
    name: Annotated[
        str, Expect("a name is text, not {kind}"), Expect("a name is short", lambda given: len(given) < 4, hint="cut")
    ] = "n"
    note: TextOrNone = None
    ids: Annotated[Sequence[Words] | None, Expect("wanted a list of ids")] = None
    nth: Annotated[FromOne | None, Expect("{name} counts from 1")] = None
    cues: ObjectOrNone = None
    half: Annotated[int, ByRule(read_even)] = 0
    bare: bool = False


@pytest.mark.parametrize(
    ("given", "message", "path", "hint"),
    [
        ({"colour": "greenish"}, "'gree is not a colour", "$.colour", "one of red, blue"),
        ({"colour": ["red"]}, "['red is not a colour", "$.colour", "one of red, blue"),
        ({"name": 3}, "a name is text, not int", "$.name", InvalidInput.usual_hint),
        ({"name": "Johanna"}, "a name is short", "$.name", "cut"),
        ({"note": 3}, "note should be a string", "$.note", InvalidInput.usual_hint),
        ({"ids": "abc"}, "wanted a list of ids", "$.ids", InvalidInput.usual_hint),
        ({"ids": ["a", " "]}, "wanted a non-empty string", "$.ids[1]", InvalidInput.usual_hint),
        ({"nth": 0}, "nth counts from 1", "$.nth", InvalidInput.usual_hint),
        ({"nth": True}, "nth counts from 1", "$.nth", InvalidInput.usual_hint),
        ({"nth": 1.5}, "nth counts from 1", "$.nth", InvalidInput.usual_hint),
        ({"cues": [1]}, "cues should be an object, found list", "$.cues", InvalidInput.usual_hint),
        ({"half": 3}, "wanted an even one", "$.half[0]", "add one"),
        ({"half": 3, "note": 3}, "note should be a string", "$.note", InvalidInput.usual_hint),
    ],
)
def test_what_does_not_hold_is_refused_in_the_words_of_its_field(
    given: dict[str, Any], message: str, path: str, hint: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        checked(Asked, **given)
    assert caught.value.to_dict() == {"code": "invalid_input", "message": message, "path": path, "hint": hint}


def test_what_holds_comes_back_as_it_is_meant() -> None:
    asked = checked(Asked, colour="blue", nth=2.0, half=8, note="", ids=["a"], cues={"a": 1})
    assert (asked.colour, asked.nth, asked.half, asked.note, asked.cues) == ("blue", 2, 4, "", {"a": 1})
    assert type(asked.nth) is int


def test_a_text_with_a_lone_surrogate_is_still_a_text() -> None:
    """Where such a text may not stand is said by what reads it."""
    assert checked(Asked, note="\ud800").note == "\ud800"


def test_an_error_of_another_kind_keeps_its_kind() -> None:
    with pytest.raises(Forbidden) as caught:
        checked(Asked, half="secret")
    assert caught.value.path == "$.half"


def test_a_field_without_words_is_refused_as_a_record_is() -> None:
    with pytest.raises(InvalidRecord) as caught:
        checked(Asked, bare="yes", more=1)
    assert [issue.path for issue in caught.value.issues] == ["$.bare", "$.more"]
