"""Every error says what to do: its class has a hint for the usual case, and every shape shows one."""

from __future__ import annotations

import copy
import pickle
import traceback
from pathlib import Path

import pytest
from click.testing import CliRunner

import muniment
from muniment import errors
from muniment.errors import InvalidRecord, Issue, MunimentError
from muniment.surfaces.cli.main import cli
from products import for_each

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


@for_each("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_each_error_has_a_hint_in_every_shape(cls: type[MunimentError]) -> None:
    error = made(cls)
    assert error.to_dict()["hint"] == error.hint == cls.usual_hint
    assert pickle.loads(pickle.dumps(error)).to_dict() == error.to_dict()
    if cls is not MunimentError:
        assert cls.usual_hint != MunimentError.usual_hint, "a hint of its own, or of its branch"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_traceback_shows_code_and_hint_once(cls: type[MunimentError]) -> None:
    error = made(cls)
    note = f"{cls.code}: {cls.usual_hint}"
    for same in (error, copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert "".join(traceback.format_exception(same)).count(note) == 1
        assert same.__notes__ == [note]
        assert cls.usual_hint not in str(same)


def test_what_an_instance_says_is_better() -> None:
    error = errors.NotFound("no build", hint="list them")
    assert (error.to_dict()["hint"], error.__notes__) == ("list them", ["not_found: list them"])
    assert errors.NotFound("no build", hint="").__notes__ == ["not_found"]


def test_the_command_shows_a_hint_once(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["replay", "bld_none", "--db", str(tmp_path / "a.db")])
    assert done.exit_code != 0
    (hint,) = [line for line in done.output.splitlines() if line.startswith("hint: ")]
    assert done.output.count(hint.removeprefix("hint: ")) == 1


def test_an_invalid_record_printed_alone_says_what_is_wrong() -> None:
    issues = [Issue(f"$.parts[{number}]", f"wanted a string,\nfound {number}", "string_type") for number in range(5)]
    told = "not a valid Thing: $.parts[0]: wanted a string, found 0; $.parts[1]: wanted a string, found 1; "
    told += "$.parts[2]: wanted a string, found 2"
    assert str(InvalidRecord("not a valid Thing", issues[:3])) == told
    assert str(InvalidRecord("not a valid Thing", issues)) == f"{told}; and 2 more"
    assert str(pickle.loads(pickle.dumps(InvalidRecord("not a valid Thing", issues)))) == f"{told}; and 2 more"
    assert str(InvalidRecord("not a valid Thing", [])) == "not a valid Thing"
    assert str(InvalidRecord("no", [Issue("$.a", 'found "\ud800"')])) == 'no: $.a: found "\\ud800"', "it can be printed"


def test_what_an_invalid_record_prints_is_bounded() -> None:
    error = InvalidRecord("not a valid Thing", [Issue("$." + "k" * 1000, "x" * 100_000)] * 1000)
    assert len(str(error)) < 700
    assert len(error.issues[0].message) == 100_000, "the issues themselves are whole"


def test_what_the_library_refuses_says_why_and_quotes_little() -> None:
    with muniment.open() as mem, pytest.raises(InvalidRecord) as caught:
        mem.run(user_id="ana").observe("king" * 1000, "the words that were said")
    assert str(caught.value).startswith("this cannot be recorded: $.role: wanted 'user', 'assistant'")
    assert "the words that were said" not in str(caught.value)
    assert len(str(caught.value)) < 300
