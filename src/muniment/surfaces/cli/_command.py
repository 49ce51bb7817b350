"""Commands: from the command line to an answer on the terminal.

A `Command` names an operation of the library. Its arguments are read off the operation's signature, `--json` is the
operation's own shape on the wire, and errors go through one handler. People see the `columns` of a table, or the
command's own view.
"""

from __future__ import annotations

import importlib
import re
import shlex
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from difflib import get_close_matches
from functools import cached_property, partial
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import click

from muniment.core.listing import Listing
from muniment.errors import InvalidInput, MunimentError, NotFound, UnknownKind
from muniment.surfaces.cli import _reading as reading
from muniment.surfaces.cli.terminal import echo
from muniment.surfaces.operations.signatures import Parameter, Signature, signature_of
from muniment.surfaces.settings import Settings, load_settings, open_store, shown_db

if TYPE_CHECKING:
    from muniment.handles.bank import Bank
    from muniment.handles.memory import Memory
    from muniment.handles.rulebook import Rulebook
    from muniment.handles.run import Run
    from muniment.handles.runner import Runner
    from muniment.surfaces.operations.table import Operation

__all__ = [
    "EXIT_FAILED",
    "EXIT_USAGE",
    "Call",
    "Choice",
    "Command",
    "OptionSpec",
    "UnreadableInput",
    "emit_json",
    "report_error",
    "run_named",
    "wire",
]

EXIT_FAILED = 1
EXIT_USAGE = 2
_SCOPE = ("tenant_id", "user_id", "agent_id")
_SESSION = "cli"
"""The session that a command reads from unless one is named. It is empty, so all others are earlier."""


class OptionSpec(NamedTuple):
    """The spelling of an argument on the command line, and the reader of its text."""

    help: str = ""
    option: str = ""
    """The spelling without dashes; by default the parameter's name."""
    metavar: str = ""
    type: click.ParamType[Any, Any] | None = None
    read: Callable[[Any], Any] | None = None
    """Converts the typed text into the library's type."""
    default: Any = None
    many: bool | None = None
    flag: bool | None = None
    needed: bool | None = None


class UnreadableInput(Exception):
    """An error raised when the request itself cannot be read; the exit code is `EXIT_USAGE`."""

    def __init__(self, error: MunimentError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass
class Call:
    """One execution of a command: the typed values, the opened handle, and the answer."""

    typed: Mapping[str, Any]
    """The values after reading, by parameter. Values not typed are absent."""
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
        """The user whose memory is used; an error if neither an option nor a setting names one."""
        if not self.settings.user:
            raise InvalidInput("no user is named", path="$.user", hint="pass --user, or set MUNIMENT_USER")
        return self.settings.user

    @property
    def tenant(self) -> str:
        return self.settings.tenant

    def spell_command(self, *words: str) -> str:
        """Spell a command on the same store, ready to be typed. A password is left out."""
        named = {"--db": "db", "--tenant": "tenant_id", "--dir": "directory"}
        typed = {**self.typed, **({"db": shown_db(self.typed["db"])} if "db" in self.typed else {})}
        more = [word for option, name in named.items() if name in typed for word in (option, typed[name])]
        return shlex.join(["muniment", *words, *more])


View = Callable[[Call], Iterable[str]]


@dataclass(frozen=True)
class Command:
    """A command: the operation it calls, the spelling of its arguments, and the view of its answer."""

    operation: str = ""
    """The operation's name, such as `run.claims`."""
    view: View | None = None
    """The answer as lines. The store is still open. Without a view, the answer is a table or a list of fields."""
    columns: str = ""
    """The fields of a table's columns, separated by blanks, such as `run_id started_at scope.user_id`."""
    noun: str = ""
    """The plural noun of the listed items, for an empty answer and for the document's key."""
    around: Callable[[Call, Callable[..., Any]], Any] | None = None
    """Called with the operation, its arguments filled in, in place of the operation."""
    function: Callable[..., Any] | None = None
    """Called in place of an operation; its first argument is what the command is called on."""
    prints: bool = False
    """True if the function prints its own answer."""
    on: str = ""
    """The handle that has the operation: a name in `OPENINGS`, by default the operation's own."""
    arguments: Mapping[str, str] | None = None
    """Parameters without an option, known by their position, with their metavars; by default the positional
    parameters of the function.
    """
    options: Mapping[str, OptionSpec] = field(default_factory=dict)
    """Differences from `COMMON_OPTIONS`; a name that is no parameter is an option for the view or `around`."""
    left_out: tuple[str, ...] = ()
    document: Callable[[Call], Any] | None = None
    """Makes the JSON document; an iterator makes JSON lines. By default the answer's shape on the wire, below `noun`
    if there is one.
    """
    check: Callable[[Call], None] | None = None
    """Validates the typed values before anything is opened."""
    holds: Callable[[Any], bool] | None = None
    """True for a good answer; otherwise the exit code is 1."""
    code: Callable[[Call], int] | None = None
    creates: bool | Callable[[Call], bool] = False
    """True if the command may create the store."""
    about: str = ""
    """The help below the summary; by default the operation's docstring."""

    @cached_property
    def row(self) -> Operation | None:
        from muniment.surfaces.operations.rows import operation_named

        return operation_named(self.operation) if self.operation else None

    @cached_property
    def signature(self) -> Signature:
        if self.function is not None:
            return signature_of(self.function)
        assert self.row is not None
        return self.row.signature

    @cached_property
    def opening(self) -> Opening:
        if self.on:
            return OPENINGS[self.on]
        assert self.row is not None
        needs_no_run = self.row.handle == "run" and self.row.without_run is not None
        return OPENINGS["user" if needs_no_run else self.row.handle]

    @cached_property
    def positional(self) -> Mapping[str, str]:
        if self.arguments is not None:
            return self.arguments
        if self.function is None:
            return {}
        plain = [each for each in self.signature.parameters if not each.is_keyword]
        return {each.name: _merge_specs(each, self.options).metavar or each.name.upper() for each in plain}

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters: the handle's names, the operation's arguments, the command's own options."""
        wanted = [each for each in self.signature.parameters if each.name not in (*self.left_out, "cursor")]
        own = [each._replace(is_required=False) if each.name in _SCOPE else each for each in wanted]
        taken = {each.name for each in own}
        opening = [
            Parameter(name, str | None, name in self.opening.arguments)
            for name in self.opening.options
            if name not in taken
        ]
        taken |= self.opening.options.keys()
        return (*opening, *own, *(Parameter(name, str | None, False) for name in self.options if name not in taken))

    # -- the click command ----------------------------------------------------------------------------

    def to_click(self, name: str, summary: str) -> click.Command:
        """Build the click command."""
        about = self.about or (self.signature.doc if self.function is None else "")
        return click.Command(
            name,
            callback=lambda **typed: self.execute(typed),
            params=self._click_params(),
            help=f"{summary}\n\n{about}" if about else summary,
            context_settings={"allow_interspersed_args": self.on != "program"},
        )

    def _click_params(self) -> list[click.Parameter]:
        places = {**self.opening.arguments, **self.positional}
        known = {each.name: each for each in self.parameters}
        scope = self.opening.options
        specs = {**scope, **self.options}
        ordered = dict.fromkeys([*places, *(name for name in known if name not in scope), *known])
        params = [_as_click(known[name], _merge_specs(known[name], specs), places.get(name)) for name in ordered]
        return [*params, click.Option(["--json", "as_json"], is_flag=True, help="Machine-readable output.")]

    # -- execution ------------------------------------------------------------------------------------

    def execute(self, typed: dict[str, Any]) -> None:
        """Read, open, call and show; a failure is reported and ends the program with its exit code."""
        as_json = bool(typed.pop("as_json", False))
        call = Call({}, as_json)
        try:
            call = Call(self._read(typed), as_json)
            if self.check is not None:
                self.check(call)
            with self._open(call):
                call.answer = self._ask(call)
                self._show(call)
        except UnreadableInput as unreadable:
            report_error(unreadable.error, as_json)
            sys.exit(EXIT_USAGE)
        except MunimentError as error:
            sys.exit(report_error(error, as_json))
        code = 0 if self.code is None else self.code(call)
        if code or (self.holds is not None and not self.holds(call.answer)):
            sys.exit(code or EXIT_FAILED)

    def _read(self, typed: Mapping[str, Any]) -> dict[str, Any]:
        specs = {**self.opening.options, **self.options}
        piped = [each for each in self.parameters if typed.get(each.name) == "-"]
        if len(piped) > 1:
            name = _merge_specs(piped[-1], specs).option or piped[-1].name
            raise InvalidInput("stdin can be read once", path=f"$.{name}", hint="give one of them as a file")
        read = {}
        for each in self.parameters:
            value = typed.get(each.name)
            if value is not None and value != ():
                reader = _merge_specs(each, specs).read
                read[each.name] = value if reader is None else reader(value)
        return read

    @contextmanager
    def _open(self, call: Call) -> Iterator[None]:
        if not self.opening.needs_store:
            call.handle = self.opening.open(call)
            yield
            return
        if self.opening.needs_user or self._requires_user():
            _ = call.user  # raise before looking for a store
        creates = self.creates(call) if callable(self.creates) else self.creates
        with open_store(call.settings, must_exist=not creates) as memory:
            call.memory = memory
            call.handle = self.opening.open(call)
            yield

    def _requires_user(self) -> bool:
        return any(each.name == "user_id" and each.is_required for each in self.signature.parameters)

    def _ask(self, call: Call) -> Any:
        taken = {each.name: each for each in self.signature.parameters}
        arguments = {name: value for name, value in call.typed.items() if name in taken}
        for name in _SCOPE:
            if name in taken and name not in self.left_out and name not in self.opening.own:
                self._take_from_settings(call, taken[name], arguments)
        target = self.function
        if target is None:
            assert self.row is not None
            target = self.row.target
        ask = partial(target, call.handle, **arguments)
        return ask() if self.around is None else self.around(call, ask)

    def _take_from_settings(self, call: Call, parameter: Parameter, arguments: dict[str, Any]) -> None:
        if parameter.name == "tenant_id" and NoneType not in get_args(parameter.hint):
            arguments["tenant_id"] = call.tenant
        elif parameter.name == "user_id" and parameter.is_required:
            arguments["user_id"] = call.user

    def _show(self, call: Call) -> None:
        if self.prints:
            return
        if call.as_json:
            document = self._document(call)
            for each in document if isinstance(document, Iterator) else (document,):
                if each is not None:
                    emit_json(each)
            return
        if self.view is not None:
            lines = self.view(call)
        else:
            from muniment.surfaces.cli._views import show_plain

            lines = show_plain(self._plain(call), self.columns, self.noun)
        for line in lines:
            echo(line)

    def _document(self, call: Call) -> Any:
        if self.document is not None:
            return self.document(call)
        return {self.noun.replace(" ", "_"): self._plain(call)} if self.noun else self._plain(call)

    def _plain(self, call: Call) -> Any:
        is_operation = self.row is not None and self.function is None and self.around is None
        return self.row.shape.encode(call.answer) if is_operation and self.row else wire(call.answer)


def wire(value: Any) -> Any:
    """Convert records, named tuples and data classes to plain data."""
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


# -- results and errors -------------------------------------------------------------------------------


def emit_json(value: Any) -> None:
    """Print one canonical JSON line on stdout."""
    from muniment.core.canonical import canonical_text

    echo(canonical_text(value))


def report_error(error: MunimentError, as_json: bool) -> int:
    """Write an error to stderr; returns its exit code."""
    error.hint = _spell_hint(error.hint)
    if as_json:
        from muniment.core.canonical import canonical_text

        echo(canonical_text(error.to_dict()), err=True)
    else:
        echo(f"error[{error.code}]: {MunimentError.__str__(error)}", err=True)
        for issue in error.details.get("issues", ()):
            echo(f"  {issue['path']}: {issue['message']}", err=True)
        for reason in error.details.get("reasons", ()):
            if reason not in error.message:
                echo(f"  {reason}", err=True)
        if error.hint:
            echo(f"hint: {error.hint}", err=True)
    return EXIT_USAGE if type(error) in (InvalidInput, UnknownKind) else EXIT_FAILED


_SETTING = re.compile(r"\bopen\([^()]*?\b([a-z_]+)=[^()]*\)")
_CALL = re.compile(r"\b(mem|run|book|study|bank)\.(?:[a-z]+\.)?([a-z_]+)\([^()]*\)")
_HANDLES = {"mem": "memory", "book": "rulebook"}


def _spell_hint(hint: str) -> str:
    """A library hint for the command line: `mem.runs()` becomes `muniment run list`, and `open(…=…)` a setting."""
    hint = _SETTING.sub(lambda found: f"set MUNIMENT_{found[1].upper()}, or {found[1]} in muniment.toml", hint)
    if not _CALL.search(hint):
        return hint
    from muniment.surfaces.cli.main import TREE, list_commands

    known: dict[str, str] = {}
    for path, entry in list_commands(TREE).items():
        module, _, name = entry.home.partition(":")
        known.setdefault(getattr(importlib.import_module(module), name).operation, f"`muniment {' '.join(path)}`")

    def spell(found: re.Match[str]) -> str:
        return known.get(f"{_HANDLES.get(found[1], found[1])}.{found[2]}", found[0])

    return _CALL.sub(spell, hint)


# -- parameters as options ----------------------------------------------------------------------------

_POSITIVE = click.IntRange(1)
_TIME = "TIME"
_ID = "ID"

COMMON_OPTIONS: Mapping[str, OptionSpec] = {
    # which part of the store
    "db": OptionSpec("SQLite file or postgresql:// address (default: muniment.db).", metavar="DB"),
    "tenant_id": OptionSpec("The tenant (default: default).", "tenant", _ID),
    "user_id": OptionSpec("One user.", "user", _ID),
    "agent_id": OptionSpec("The agent (default: the setting `agent`).", "agent", _ID),
    "session_id": OptionSpec("One session.", "session", _ID),
    "corpus_id": OptionSpec("The corpus.", "corpus", _ID, needed=True),
    "directory": OptionSpec("Where its files are, if they were moved.", "dir", "PATH"),
    # queries
    "query": OptionSpec(read=reading.text_given),
    "text": OptionSpec(read=reading.text_given),
    "k": OptionSpec("At most this many.", metavar="N"),
    "now": OptionSpec("When the question is asked (ISO 8601); later turns are not hidden.", metavar=_TIME),
    "min_score": OptionSpec("Only what is evidence with at least this probability, 0 to 1.", metavar="SHARE"),
    "within": OptionSpec(
        'Where to look, such as {"roles": ["user"], "since": "2026-01-01"}.',
        metavar="JSON",
        read=reading.json_given("within", 'write an object, such as {"roles": ["user"]}'),
    ),
    "exclude_session": OptionSpec("Leave out this session's own messages."),
    "exclude": OptionSpec("Leave out this event; may be repeated.", metavar=_ID),
    "in_view": OptionSpec("A build that the model still has before it; may be repeated.", metavar=_ID),
    "since": OptionSpec("From this time on (ISO 8601).", metavar=_TIME),
    "until": OptionSpec("Before this time (ISO 8601).", metavar=_TIME),
    "order": OptionSpec("Oldest first (asc) or newest first (desc)."),
    "kind": OptionSpec("Only this kind."),
    "q": OptionSpec("Only what contains these words, in any case.", metavar="WORDS"),
    "around": OptionSpec("The neighbours of this one.", metavar=_ID),
    "limit": OptionSpec("At most this many.", metavar="N"),
    "include_all": OptionSpec("Also what is no longer in force.", "all"),
    "sequence": OptionSpec("Which snapshot (default: the latest).", metavar="N", type=_POSITIVE),
    "reason": OptionSpec("Why.", metavar="TEXT"),
    "run_id": OptionSpec("One run.", "run", "RUN"),
    "dry_run": OptionSpec("Only print what would be done."),
    # learning
    "intent": OptionSpec(
        f"A part of its intent: {reading.INTENT_PARTS}; repeatable, lists with commas.",
        metavar="NAME=VALUE",
        read=reading.intent_given,
        many=True,
    ),
    "state": OptionSpec(
        f"A part of its state: {reading.STATE_PARTS}; repeatable, lists with commas.",
        metavar="NAME=VALUE",
        read=reading.state_given,
        many=True,
    ),
    "features": OptionSpec(
        "Something known of the task, as NAME=VALUE; repeatable.",
        "feature",
        "NAME=VALUE",
        read=reading.features_given,
        many=True,
    ),
    "bucket_key": OptionSpec("Its bucket, such as I2|math|clarity_high.", "bucket", "KEY", read=reading.bucket_given),
    "signed_by": OptionSpec("The person who answers for it.", metavar="NAME"),
    "timeout_s": OptionSpec("The limit of one call.", "timeout", "SECONDS", type=click.FloatRange(0, min_open=True)),
    "agent": OptionSpec(
        "The agent: called with a task, it answers text or an output.",
        metavar="MODULE:FUNCTION",
        read=reading.function_given("agent"),
    ),
    "verifier": OptionSpec(
        "The verifier: called with the output and the task, it judges whether it passed.",
        metavar="MODULE:FUNCTION",
        read=reading.function_given("verifier"),
    ),
    # research
    "expected_revision": OptionSpec(
        "Only if the run is at this revision; otherwise nothing is done.", "revision", "N", type=_POSITIVE
    ),
}
"""The options of parameters that several commands share."""


if TYPE_CHECKING:
    _AnyChoice = click.Choice[str]
else:
    _AnyChoice = click.Choice  # a plain class before click 8.2


class Choice(_AnyChoice):
    """A choice of several words; a misspelling is answered with the nearest one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            close = get_close_matches(str(value), self.choices, n=1)
            meant = f" Did you mean {close[0]!r}?" if close else ""
            raise click.BadParameter(f"{error.message}{meant}", ctx, param) from None


def _merge_specs(parameter: Parameter, given: Mapping[str, OptionSpec]) -> OptionSpec:
    """Merge the command's spec, the annotation's and the common one, earlier ones first."""
    noted = get_args(parameter.hint)[1:] if get_origin(parameter.hint) is Annotated else ()
    specs = [given.get(parameter.name), *noted, COMMON_OPTIONS.get(parameter.name)]
    known = [each for each in specs if isinstance(each, OptionSpec)]
    blank = OptionSpec()
    merged = {}
    for name in OptionSpec._fields:
        empty = getattr(blank, name)
        merged[name] = next((found for each in known if (found := getattr(each, name)) != empty), empty)
    return OptionSpec(**merged)


def _as_click(parameter: Parameter, spec: OptionSpec, metavar: str | None) -> click.Parameter:
    """The argument (if there is a metavar) or the option for a parameter."""
    inner, many = _plain_hint(parameter.hint)
    many = many if spec.many is None else spec.many
    kind, flag = _click_type(inner)
    kind, flag = (kind if spec.type is None else spec.type), (flag if spec.flag is None else spec.flag)
    needed = parameter.is_required if spec.needed is None else spec.needed
    if metavar is not None:
        return click.Argument([parameter.name], type=kind, required=needed, nargs=-1 if many else 1, metavar=metavar)
    spelled = f"--{spec.option or parameter.name.replace('_', '-')}"
    if flag:
        return click.Option([spelled, parameter.name], is_flag=True, default=None, help=spec.help)
    default = spec.default if spec.default is not None else parameter.default
    is_plain = isinstance(default, str | int | float) and not isinstance(default, bool) and default != ""
    return click.Option(
        [spelled, parameter.name],
        type=kind,
        required=needed,
        multiple=many,
        metavar=spec.metavar or None,
        help=spec.help,
        **({} if spec.default is None else {"default": spec.default}),
        show_default=str(default) if is_plain and not many and "default" not in spec.help else False,
    )


def _plain_hint(hint: Any) -> tuple[Any, bool]:
    """The type of one value, and whether several are accepted."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, types.UnionType):
        rest = [each for each in get_args(hint) if each is not types.NoneType]
        hint = rest[0] if len(rest) == 1 else str if set(rest) <= {str, datetime} else Any
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Sequence, Iterable, list, tuple, frozenset) and inner[0] is not Any:
        return _plain_hint(inner[0])[0], True
    return hint, False


def _click_type(hint: Any) -> tuple[click.ParamType[Any, Any], bool]:
    """The click type of a hint, and whether it is a switch."""
    if get_origin(hint) is Literal:
        return Choice([str(each) for each in get_args(hint)]), False
    if hint is bool:
        return click.BOOL, True
    if hint is int:
        return click.INT, False
    return (click.FLOAT if hint is float else click.STRING), False


# -- openings -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Opening:
    """How a handle is opened, and the options that name it."""

    open: Callable[[Call], Any]
    options: Mapping[str, OptionSpec] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Positional parameters with their metavars."""
    own: tuple[str, ...] = ()
    """Parameters that belong to the handle and are not passed to the operation."""
    needs_user: bool = False
    needs_store: bool = True


def run_named(mem: Memory, run_id: str, tenant: str) -> Run:
    """A handle to read an existing run, under the run's own scope, finished or not."""
    scope = mem.log.run_state(run_id, tenant_id=tenant).scope
    return mem.run(
        user_id=scope.user_id,
        agent_id=scope.agent_id,
        session_id=scope.session_id,
        run_id=scope.run_id,
        tenant_id=scope.tenant_id,
    )


def _user_run(call: Call, **more: Any) -> Run:
    """A run for reading a user's memory; it writes nothing."""
    names = {"session_id": _SESSION, "run_id": _SESSION, **more}
    return call.memory.run(user_id=call.user, agent_id=call.settings.agent, tenant_id=call.tenant, **names)


def _composing_run(call: Call) -> Run:
    """The run of a continuing session, whose working state counts."""
    run_id, session = call.typed.get("run_id"), call.typed.get("session_id")
    if run_id is not None and session is None:
        raise InvalidInput("a run is named within a session", path="$.session", hint="give --session as well")
    task_type = call.typed.get("task_type", "generic")
    return _user_run(call, session_id=_SESSION if session is None else session, run_id=run_id, task_type=task_type)


def _run_or_user(call: Call) -> Run:
    """The named run, resumed; a user or agent named with it must be its own."""
    run_id = call.typed.get("run_id")
    if run_id is None:
        return _user_run(call)
    run = call.memory.resume(run_id, tenant_id=call.tenant).run
    for name, own in (("user", run.scope.user_id), ("agent", run.scope.agent_id)):
        wanted = call.typed.get(f"{name}_id")
        if wanted is not None and wanted != own:
            raise NotFound(f"no run {run_id!r:.80} of {name} {wanted!r:.80}", path=f"$.{name}")
    return run


def _runner(call: Call) -> Runner:
    typed = call.typed
    return call.memory.runner(
        typed["agent"],
        typed["verifier"],
        {"recall": "no_recall" not in typed},
        router=True if "router" in typed else None,
        user_id=call.user,
        agent_id=call.settings.agent,
        tenant_id=call.tenant,
    )


def _bank_names(call: Call) -> dict[str, str]:
    """The named user or agent whose bank is meant; an error if both are given."""
    named = {name: call.typed[name] for name in ("user_id", "agent_id") if name in call.typed}
    if len(named) > 1:
        raise InvalidInput("a bank is a user's or an agent's", path="$.agent", hint="give --user or --agent")
    return named


def _bank(call: Call) -> Bank:
    """The named bank; without a name, the one that holds the lesson or plan."""
    named = _bank_names(call)
    record_id = next((call.typed[name] for name in ("plan_id", "lesson_id") if name in call.typed), None)
    if record_id is not None and not named:
        return call.memory.learning.bank_of(record_id, tenant_id=call.tenant)
    return call.memory.bank(**named, tenant_id=call.tenant)


def _rulebook(call: Call) -> Rulebook:
    """The named rulebook; without a name, the one that holds the rule or draft."""
    named = _bank_names(call)
    record_id = next((call.typed[name] for name in ("rule_id", "draft") if name in call.typed), None)
    if isinstance(record_id, str) and not named:
        kind, _, name = call.memory.learning.bank_of(record_id, tenant_id=call.tenant).name.partition(":")
        named = {f"{kind}_id": name} if name else {}
    return call.memory.rulebook(**named, tenant_id=call.tenant)


_DB = {"db": OptionSpec()}
_STORE = _DB | {"tenant_id": OptionSpec()}
_USER = {"user_id": OptionSpec("Whose memory (default: the setting `user`).")}
_AGENT = {"agent_id": OptionSpec("For which agent (default: the setting `agent`).")}
_BANK = {
    "user_id": OptionSpec("The bank of a user (default: the tenant's own)."),
    "agent_id": OptionSpec("The bank of an agent."),
}
_RUN = {"run_id": "RUN"}

OPENINGS: Mapping[str, Opening] = {
    "nothing": Opening(lambda call: call, needs_store=False),
    "program": Opening(lambda call: call, needs_store=False),
    "store or nothing": Opening(lambda call: call, _STORE, needs_store=False),
    "user settings": Opening(lambda call: call, _STORE | _USER | _AGENT, needs_store=False),
    "settings": Opening(lambda call: call, _DB, needs_store=False),
    "call": Opening(lambda call: call, _STORE),
    "user call": Opening(lambda call: call, _STORE | _USER, needs_user=True),
    "memory": Opening(lambda call: call.memory, _DB),
    "user": Opening(_user_run, _STORE | _USER, own=("user_id",), needs_user=True),
    "user or run": Opening(_run_or_user, _STORE | _USER | _AGENT, own=("user_id", "agent_id")),
    "rollout": Opening(
        _runner,
        _STORE | _USER | {"agent_id": OptionSpec("The agent's id (default: the setting `agent`).", "agent-id")},
        own=("user_id", "agent_id"),
        needs_user=True,
    ),
    "composing": Opening(
        _composing_run,
        {
            **_STORE,
            **_USER,
            "agent_id": OptionSpec(),
            "session_id": OptionSpec("The session that goes on (default: a fresh one)."),
            "run_id": OptionSpec("The run whose working state counts (default: a new one).", metavar="ID"),
            "task_type": OptionSpec("Which procedures apply (default: generic).", metavar="NAME"),
        },
        own=("user_id", "agent_id", "session_id", "run_id", "task_type"),
        needs_user=True,
    ),
    "run": Opening(
        lambda call: run_named(call.memory, call.typed["run_id"], call.tenant),
        {"run_id": OptionSpec(), **_STORE},
        _RUN,
        own=("run_id",),
    ),
    "repaired run": Opening(
        lambda call: call.memory.resume(call.typed["run_id"], repair=True, tenant_id=call.tenant).run,
        {"run_id": OptionSpec(), **_STORE},
        _RUN,
        own=("run_id",),
    ),
    "bank": Opening(_bank, _STORE | _BANK, own=("user_id", "agent_id")),
    "rulebook": Opening(_rulebook, _STORE | _BANK, own=("user_id", "agent_id")),
    "rulebook call": Opening(lambda call: call, _STORE | _BANK, own=("user_id", "agent_id")),
    "rulebook advanced": Opening(
        _rulebook,
        _STORE | _BANK | {"agent_id": OptionSpec("The rulebook of an agent.", "agent-id")},
        own=("user_id", "agent_id"),
    ),
    "corpus": Opening(
        lambda call: call.memory.corpus(
            call.typed["corpus_id"], tenant_id=call.tenant, user_id=call.typed.get("user_id")
        ),
        {
            **_STORE,
            "corpus_id": OptionSpec(),
            "user_id": OptionSpec("The user who owns it (default: shared by the tenant)."),
        },
        own=("user_id", "corpus_id"),
    ),
    "study": Opening(
        lambda call: call.memory.open_research(
            call.typed["run_id"], directory=call.typed.get("directory"), tenant_id=call.tenant
        ),
        {"run_id": OptionSpec(), **_STORE, "directory": OptionSpec()},
        _RUN,
        own=("run_id", "directory"),
    ),
}
"""The openings by name; a handle of the table of operations has its name there."""
