"""A command carried out: what was typed is read, the handle opened, the operation called, its answer shown.

One way for all commands: the arguments come from the operation's own signature, `--json` from its own shape on the
wire, errors go through one handler. What a command brings itself is how a person reads the answer.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property, partial
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args

import click

from muniment.core.listing import Listing
from muniment.errors import InvalidInput, MunimentError
from muniment.surfaces.cli.hints import in_words_of_commands
from muniment.surfaces.cli.openings import OPENINGS, Opening
from muniment.surfaces.cli.output import EXIT_FAILED, EXIT_USAGE, Unreadable, emit_json, fail
from muniment.surfaces.cli.parameters import Word, as_click, word_of
from muniment.surfaces.cli.terminal import echo
from muniment.surfaces.operations.signatures import Parameter, Signature, signature_of
from muniment.surfaces.settings import Settings, load_settings, open_store, shown_db

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.surfaces.operations.table import Operation

__all__ = ["Call", "Command", "operation_named", "wire"]

_SCOPE = ("tenant_id", "user_id", "agent_id")


@dataclass
class Call:
    """A command as it is carried out: what was typed, what was opened for it, and what came of it."""

    typed: Mapping[str, Any]
    """The values that were typed, as they were read, by the name of the parameter; what was not typed is not there."""
    as_json: bool = False
    memory: Memory = field(init=False)
    handle: Any = None
    answer: Any = None

    @cached_property
    def settings(self) -> Settings:
        names = {"db": "db", "tenant": "tenant_id", "user": "user_id", "agent": "agent_id"}
        return load_settings({setting: self.typed.get(name) for setting, name in names.items()})

    @property
    def user(self) -> str:
        """Whose memory it is about; an error where neither an option nor a setting says so."""
        if not self.settings.user:
            raise InvalidInput("whose memory is not said", path="$.user", hint="give --user, or set MUNIMENT_USER")
        return self.settings.user

    @property
    def tenant(self) -> str:
        return self.settings.tenant

    def spelled(self, *words: str) -> str:
        """A command on the same store, to be typed as it stands; a password is left out."""
        named = {"--db": "db", "--tenant": "tenant_id", "--dir": "directory"}
        said = {**self.typed, **({"db": shown_db(self.typed["db"])} if "db" in self.typed else {})}
        more = [word for option, name in named.items() if name in said for word in (option, said[name])]
        return shlex.join(["muniment", *words, *more])


View = Callable[[Call], Iterable[str]]


@dataclass(frozen=True)
class Command:
    """One command: the operation it calls, what of that is asked for and how, and how a person reads the answer."""

    operation: str = ""
    """The operation of the table, such as `run.claims`."""
    view: View | None = None
    """The answer for a person, line by line. The store is still open; without one, the function shows it itself."""
    around: Callable[[Call, Callable[..., Any]], Any] | None = None
    """What goes before or after: called with the operation, its arguments filled in, it answers for the command."""
    function: Callable[..., Any] | None = None
    """What is called in the operation's place; first argument what the command is called on, then as its own."""
    extends: Callable[[], Iterable[Parameter]] | None = None
    """What the operation's further keywords may be."""
    calls: tuple[str, ...] = ()
    """Further operations that the function or the view calls."""
    on: str = ""
    """What the operation is called on (`OPENINGS`); by default the operation's own handle."""
    arguments: Mapping[str, str] | None = None
    """The parameters that are told by their place, with what stands for each in the help; by default those of the
    function that are not by keyword alone.
    """
    words: Mapping[str, Word] = field(default_factory=dict)
    """What differs from `WORDS`."""
    more: Mapping[str, Word] = field(default_factory=dict)
    """What else may be typed, for the view alone."""
    left_out: tuple[str, ...] = ()
    """Parameters that are not asked for."""
    document: str | Callable[[Call], Any] | None = None
    """The JSON document: a name under which the answer stands, or what makes it (an iterator makes JSON lines); else
    the answer's shape on the wire. Nothing is written for None.
    """
    check: Callable[[Call], None] | None = None
    """What is wrong with what was typed, before anything is opened."""
    holds: Callable[[Any], bool] | None = None
    """Whether the answer is a good one; else the exit code is 1."""
    code: Callable[[Call], int] | None = None
    """The exit code, where there are more than two."""
    creates: bool | Callable[[Call], bool] = False
    """May it make the store that it is called on?"""
    takes_user: bool = False
    """Is a user that is not named the one of the settings?"""
    about: str = ""
    """What its help says below the summary; by default what the library says of the operation."""

    @cached_property
    def row(self) -> Operation | None:
        return operation_named(self.operation) if self.operation else None

    @cached_property
    def signature(self) -> Signature:
        if self.function is not None:
            return signature_of(self.function)
        assert self.row is not None
        own = self.row.signature
        return own if self.extends is None else own._replace(parameters=(*own.parameters, *self.extends()))

    @cached_property
    def opening(self) -> Opening:
        if self.on:
            return OPENINGS[self.on]
        assert self.row is not None
        is_for_nobody = self.row.handle == "run" and self.row.without_run is not None
        return OPENINGS["user" if is_for_nobody else self.row.handle]

    @cached_property
    def positional(self) -> Mapping[str, str]:
        if self.arguments is not None:
            return self.arguments
        if self.function is None:
            return {}
        plain = [each for each in self.signature.parameters if not each.is_keyword]
        return {each.name: word_of(each, self.words).metavar or each.name.upper() for each in plain}

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """All that may be typed: what names the handle, the arguments of the operation, what the view asks for."""
        wanted = [each for each in self.signature.parameters if each.name not in (*self.left_out, "cursor")]
        own = [each._replace(is_required=False) if each.name in _SCOPE else each for each in wanted]
        taken = {each.name for each in own}
        placed = self.opening.arguments
        beside = [Parameter(name, str | None, name in placed) for name in self.opening.asks if name not in taken]
        more = [Parameter(name, str | None, False) for name in self.more]
        return (*beside, *own, *more)

    # -- the click command ----------------------------------------------------------------------------

    def made(self, path: tuple[str, ...], summary: str) -> click.Command:
        """The command as click has it."""

        def carry_out(**typed: Any) -> None:
            self.carry_out(path[0], typed)

        about = self.about or (self.signature.doc if self.function is None else "")
        return click.Command(
            path[-1],
            callback=carry_out,
            params=self._params(),
            help=f"{summary}\n\n{about}" if about else summary,
            context_settings={"allow_interspersed_args": self.on != "sandbox"},
        )

    def _params(self) -> list[click.Parameter]:
        places = {**self.opening.arguments, **self.positional}
        known = {each.name: each for each in self.parameters}
        scope = self.opening.asks
        words = {**scope, **self.more, **self.words}
        ordered = dict.fromkeys([*places, *(name for name in known if name not in scope), *known])
        made = [as_click(known[name], word_of(known[name], words), places.get(name)) for name in ordered]
        return [*made, click.Option(["--json", "as_json"], is_flag=True, help="Machine-readable output.")]

    # -- carrying it out ------------------------------------------------------------------------------

    def carry_out(self, group: str, typed: dict[str, Any]) -> None:
        """Read, open, call, show; whatever fails is shown, and the program ends with its code."""
        as_json = bool(typed.pop("as_json", False))
        call = Call({}, as_json)
        try:
            call = Call(self._read(typed), as_json)
            if self.check is not None:
                self.check(call)
            with self._opened(call):
                call.answer = self._called(call)
                self._show(call)
        except Unreadable as unreadable:
            fail(unreadable.error, as_json)
            sys.exit(EXIT_USAGE)
        except MunimentError as error:
            named = typed.get("rule_id") or typed.get("run_id") or typed.get("rule") or typed.get("draft")
            error.hint = in_words_of_commands(group, error.hint, error.message, named)
            sys.exit(fail(error, as_json))
        code = 0 if self.code is None else self.code(call)
        if code or (self.holds is not None and not self.holds(call.answer)):
            sys.exit(code or EXIT_FAILED)

    def _read(self, typed: Mapping[str, Any]) -> dict[str, Any]:
        words = {**self.opening.asks, **self.more, **self.words}
        read = {}
        piped = [each for each in self.parameters if typed.get(each.name) == "-"]
        if len(piped) > 1:
            name = word_of(piped[-1], words).option or piped[-1].name
            raise InvalidInput("stdin can be read once", path=f"$.{name}", hint="give one of them as a file")
        for each in self.parameters:
            value = typed.get(each.name)
            if value is None or value == ():
                continue
            reader = word_of(each, words).read
            read[each.name] = value if reader is None else reader(value)
        return read

    @contextmanager
    def _opened(self, call: Call) -> Iterator[None]:
        if not self.opening.needs_store:
            call.handle = self.opening.open(call)
            yield
            return
        if "user_id" in self.opening.needs or self._takes_a_user():
            _ = call.user  # before a store is looked for
        creates = self.creates(call) if callable(self.creates) else self.creates
        with open_store(call.settings, must_exist=not creates) as memory:
            call.memory = memory
            call.handle = self.opening.open(call)
            yield

    def _takes_a_user(self) -> bool:
        return any(each.name == "user_id" and each.is_required for each in self.signature.parameters)

    def _called(self, call: Call) -> Any:
        taken = {each.name: each for each in self.signature.parameters}
        arguments = {name: value for name, value in call.typed.items() if name in taken}
        for name in _SCOPE:
            if name in taken and name not in self.left_out and name not in self.opening.own:
                self._settle(call, taken[name], arguments)
        target = self.function if self.function is not None else operation_named(self.operation).target
        ask = partial(target, call.handle, **arguments)
        return ask() if self.around is None else self.around(call, ask)

    def _settle(self, call: Call, parameter: Parameter, arguments: dict[str, Any]) -> None:
        """Take from the settings what was not typed: the tenant, and the user where there has to be one."""
        if parameter.name == "tenant_id" and NoneType not in get_args(parameter.hint):
            arguments["tenant_id"] = call.tenant
        elif parameter.name == "user_id" and parameter.is_required:
            arguments["user_id"] = call.user
        elif parameter.name == "user_id" and self.takes_user and call.settings.user:
            arguments["user_id"] = call.settings.user

    def _show(self, call: Call) -> None:
        if self.view is None:
            return
        if call.as_json:
            document = self._document(call)
            for each in document if isinstance(document, Iterator) else (document,):
                if each is not None:
                    emit_json(each)
            return
        for line in self.view(call):
            echo(line)

    def _document(self, call: Call) -> Any:
        if callable(self.document):
            return self.document(call)
        is_whole = self.row is not None and self.function is None and self.around is None
        plain = self.row.shape.encode(call.answer) if is_whole and self.row else wire(call.answer)
        return plain if self.document is None else {self.document: plain}


def wire(value: Any) -> Any:
    """What a command made of several answers, as those cross the wire: records as they are, tuples by their names."""
    if hasattr(value, "to_wire"):
        return value.to_wire()
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: wire(each) for name, each in value._asdict().items()}
    if is_dataclass(value):
        return {each.name: wire(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: wire(each) for name, each in value.items()}
    if isinstance(value, list | tuple | Listing):
        return [wire(each) for each in value]
    return value


def operation_named(name: str) -> Operation:
    """The operation of the table that has this name; of several, the first."""
    from muniment.surfaces.operations.rows import OPERATIONS

    return next(each for each in OPERATIONS if each.id == name)
