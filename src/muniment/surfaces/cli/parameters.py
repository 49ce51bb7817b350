"""The parameters of the library on the command line: how each is spelled, what it is for, how it is read.

A type says what may be typed (a choice, a number, a switch, several of something); `WORDS` says what a parameter is
called and for, wherever it stands. A command says only what differs.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import click

from muniment.surfaces.cli import reading
from muniment.surfaces.operations.signatures import Parameter

__all__ = ["WORDS", "Choice", "Word", "as_click", "fields_asked", "word_of"]


class Word(NamedTuple):
    """How something is asked for on the command line."""

    help: str = ""
    option: str = ""
    """How it is spelled, without its dashes; by default as the parameter is."""
    metavar: str = ""
    type: click.ParamType[Any, Any] | None = None
    read: Callable[[Any], Any] | None = None
    """Makes of what was typed what the library takes."""
    default: Any = None
    """What it is where nothing was typed; by default what the library says."""
    many: bool | None = None
    flag: bool | None = None
    needed: bool | None = None


_POSITIVE = click.IntRange(1)
_TIME = "TIME"
_ID = "ID"

WORDS: Mapping[str, Word] = {
    # which part of the store
    "db": Word("SQLite file or postgresql:// address (default: muniment.db).", metavar="DB"),
    "tenant_id": Word("The tenant (default: default).", "tenant", _ID),
    "user_id": Word("One user.", "user", _ID),
    "agent_id": Word("The agent (default: the setting `agent`).", "agent", _ID),
    "session_id": Word("One session.", "session", _ID),
    "corpus_id": Word("The corpus.", "corpus", _ID, needed=True),
    "directory": Word("Where its files lie, if they were moved.", "dir", "PATH"),
    # what is asked
    "query": Word(read=reading.text_given),
    "text": Word(read=reading.text_given),
    "k": Word("How many, at most.", metavar="N"),
    "now": Word("When the question is asked (ISO 8601); later turns are not hidden.", metavar=_TIME),
    "min_score": Word("Only what is evidence at least this likely, 0 to 1.", metavar="SHARE"),
    "within": Word(
        'Where to look, such as {"roles": ["user"], "since": "2026-01-01"}.',
        metavar="JSON",
        read=reading.json_given("within", 'write an object, such as {"roles": ["user"]}'),
    ),
    "exclude_session": Word("Without what was said in this session."),
    "exclude": Word("Without this event; may be repeated.", metavar=_ID),
    "in_view": Word("Beside this build, which the model still has before it; may be repeated.", metavar=_ID),
    "since": Word("From then on (ISO 8601).", metavar=_TIME),
    "until": Word("Before then (ISO 8601).", metavar=_TIME),
    "order": Word("Oldest first (asc) or newest first (desc)."),
    "kind": Word("Only of this kind."),
    "q": Word("Only what holds these words, whatever their case.", metavar="WORDS"),
    "around": Word("What stands around this one.", metavar=_ID),
    "limit": Word("How many, at most.", metavar="N"),
    "include_all": Word("Also what is no longer in force.", "all"),
    "sequence": Word("Which snapshot (default: the latest).", metavar="N", type=_POSITIVE),
    "reason": Word("Why.", metavar="TEXT"),
    "run_id": Word("One run.", "run", "RUN"),
    "dry_run": Word("Only say what would be done."),
    # learning
    "intent": Word(
        f"A part of its intent: {reading.INTENT_PARTS}; repeatable, lists with commas.",
        metavar="NAME=VALUE",
        read=reading.intent_given,
        many=True,
    ),
    "state": Word(
        f"A part of its state: {reading.STATE_PARTS}; repeatable, lists with commas.",
        metavar="NAME=VALUE",
        read=reading.state_given,
        many=True,
    ),
    "features": Word(
        "Something known of the task, as NAME=VALUE; repeatable.",
        "feature",
        "NAME=VALUE",
        read=reading.features_given,
        many=True,
    ),
    "bucket_key": Word("Its bucket, such as I2|math|clarity_high.", "bucket", "KEY", read=reading.bucket_given),
    "signed_by": Word("Who answers for it.", metavar="NAME"),
    "timeout_s": Word("Of one call.", "timeout", "SECONDS", type=click.FloatRange(0, min_open=True)),
    "agent": Word(
        "The agent: called with a task, it answers text or an output.",
        metavar="MODULE:FUNCTION",
        read=reading.function_given("agent"),
    ),
    "verifier": Word(
        "The verifier: called with the output and the task, it says whether it passed.",
        metavar="MODULE:FUNCTION",
        read=reading.function_given("verifier"),
    ),
    # research
    "expected_revision": Word(
        "Only if the run is at this revision; else nothing is done.", "revision", "N", type=_POSITIVE
    ),
}
"""What a parameter is called and for, wherever it stands."""


if TYPE_CHECKING:
    _AnyChoice = click.Choice[str]
else:
    _AnyChoice = click.Choice  # a plain class before click 8.2


class Choice(_AnyChoice):
    """One of several words; a slip is answered with the one that was meant."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            close = get_close_matches(str(value), self.choices, n=1)
            meant = f" Did you mean {close[0]!r}?" if close else ""
            raise click.BadParameter(f"{error.message}{meant}", ctx, param) from None


def word_of(parameter: Parameter, given: Mapping[str, Word]) -> Word:
    """What is said of a parameter by the command, its annotation and `WORDS`; each adds what the one before left."""
    noted = [each for each in _noted(parameter.hint) if isinstance(each, Word)]
    known = [each for each in (given.get(parameter.name), *noted, WORDS.get(parameter.name)) if each is not None]
    blank = Word()
    fields = {
        name: next(
            (got for each in known if (got := getattr(each, name)) != getattr(blank, name)), getattr(blank, name)
        )
        for name in Word._fields
    }
    return Word(**fields)


def fields_asked(record: type[Any]) -> list[Parameter]:
    """The fields of a record as parameters, for an operation that takes them as further keywords."""
    fields: Mapping[str, Any] = record.model_fields
    return [Parameter(name, each.annotation, False, each.default, True) for name, each in fields.items()]


def _noted(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def as_click(parameter: Parameter, word: Word, metavar: str | None) -> click.Parameter:
    """The argument (where a metavar says that it is one) or the option that asks for a parameter."""
    inner, many = _plain_hint(parameter.hint)
    many = many if word.many is None else word.many
    kind, flag = _type_of(inner)
    kind, flag = (kind if word.type is None else word.type), (flag if word.flag is None else word.flag)
    needed = parameter.is_required if word.needed is None else word.needed
    if metavar is not None:
        return click.Argument([parameter.name], type=kind, required=needed, nargs=-1 if many else 1, metavar=metavar)
    spelled = f"--{word.option or parameter.name.replace('_', '-')}"
    default = word.default if word.default is not None else parameter.default
    shown = not flag and not many and isinstance(default, str | int | float) and not isinstance(default, bool)
    shown = shown and default != "" and "default" not in word.help
    if flag:
        return click.Option([spelled, parameter.name], is_flag=True, default=None, help=word.help)
    return click.Option(
        [spelled, parameter.name],
        type=kind,
        required=needed,
        multiple=many,
        metavar=word.metavar or None,
        help=word.help,
        **({} if word.default is None else {"default": word.default}),
        show_default=str(default) if shown else False,
    )


def _plain_hint(hint: Any) -> tuple[Any, bool]:
    """The type of one value, and whether several are taken."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, types.UnionType):
        rest = [each for each in get_args(hint) if each is not types.NoneType]
        hint = rest[0] if len(rest) == 1 else str if set(rest) <= {str, datetime} else Any
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Sequence, Iterable, list, tuple, frozenset) and inner[0] is not Any:
        return _plain_hint(inner[0])[0], True
    return hint, False


def _type_of(hint: Any) -> tuple[click.ParamType[Any, Any], bool]:
    """What click takes for a type, and whether it is a switch."""
    if get_origin(hint) is Literal:
        return Choice([str(each) for each in get_args(hint)]), False
    if hint is bool:
        return click.BOOL, True
    if hint is int:
        return click.INT, False
    return (click.FLOAT if hint is float else click.STRING), False
