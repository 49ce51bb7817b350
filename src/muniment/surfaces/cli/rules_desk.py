"""What the commands on rules share: which rulebook, rules and rates for the eye, hints that name commands."""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from muniment.errors import MunimentError, WrongStage
from muniment.surfaces.cli.asking import one_line
from muniment.surfaces.cli.documents import LINE_SUFFIXES
from muniment.surfaces.cli.learning_desk import bank_options, check_named, in_words_of_commands, spelled
from muniment.surfaces.cli.options import db_option, tenant_option
from muniment.surfaces.cli.tables import Cell, bar, show_table, spanned
from muniment.surfaces.settings import Settings, load_settings, open_store

if TYPE_CHECKING:
    from muniment.core.stats.counts import Tally
    from muniment.handles.memory import Memory
    from muniment.handles.rulebook import Rulebook
    from muniment.learning.stored_memory import StoredMemory
    from muniment.rules.promotion.records import GateReport, LintFinding
    from muniment.rules.rulebook.statistics import RuleStats

__all__ = [
    "STAGES",
    "Where",
    "arms_of",
    "as_is",
    "book_of",
    "book_options",
    "check_there",
    "is_file",
    "labelled",
    "next_command",
    "opened_book",
    "opened_rule",
    "opened_store",
    "place_text",
    "rate_line",
    "rate_text",
    "said",
    "show_checks",
    "show_findings",
    "signed_text",
    "span_of",
    "standing",
    "store_options",
    "tally_with",
    "timeout_option",
    "way_back",
    "whose_book",
]

F = TypeVar("F", bound=Callable[..., Any])

STAGES = {
    "drafted": "bright_black",
    "gated": "yellow",
    "replayed": "yellow",
    "canary": "cyan",
    "active": "green",
    "retired": "red",
    "pruned": "red",
    "user": "magenta",
}
"""Where a rule stands, and its colour; `user` are those that a person wrote."""
_WITH = ("canary", "active")
_LABEL_CELLS = 13
_WIDTH_ELSEWHERE = 140


class Where(NamedTuple):
    """Which rulebook of which store."""

    db: str | None
    tenant: str | None
    user: str | None = None
    agent: str | None = None

    @property
    def settings(self) -> Settings:
        return load_settings({"db": self.db, "tenant": self.tenant})

    def spelled(self, *words: str) -> str:
        """A command on rules, to be typed as it stands."""
        return spelled("rules", *words, db=self.db, tenant=self.tenant)


# -- which rulebook -----------------------------------------------------------------------------------


def book_options(command: F) -> F:
    """--db, --tenant, --user and --agent, handed over as `where`."""

    @functools.wraps(command)
    def packed(*args: Any, db: str | None, tenant: str | None, user: str | None, agent: str | None, **more: Any) -> Any:
        return command(*args, where=Where(db, tenant, user, agent), **more)

    packed_: Any = packed
    return bank_options(packed_)  # type: ignore[no-any-return]


def store_options(command: F) -> F:
    """--db and --tenant, handed over as `where`: for commands in which --agent is a function."""

    @functools.wraps(command)
    def packed(*args: Any, db: str | None, tenant: str | None, **more: Any) -> Any:
        return command(*args, where=Where(db, tenant), **more)

    packed_: Any = packed
    return db_option(tenant_option(packed_))  # type: ignore[no-any-return]


def timeout_option(command: F) -> F:
    seconds = click.FloatRange(0, min_open=True)
    return click.option("--timeout", "timeout_s", type=seconds, metavar="SECONDS", help="Of one call.")(command)


@contextmanager
def opened_store(where: Where, record_id: str | None = None, *, must_exist: bool = True) -> Iterator[Memory]:
    check_named(where.user, where.agent)
    with (
        _in_words_of_rules(record_id),
        in_words_of_commands(),
        open_store(where.settings, must_exist=must_exist) as mem,
    ):
        yield mem


@contextmanager
def opened_book(where: Where, record_id: str | None = None, *, must_exist: bool = True) -> Iterator[Rulebook]:
    """The rulebook that was named; where none was, the one that holds the rule or draft."""
    with opened_store(where, record_id, must_exist=must_exist) as mem:
        yield book_of(mem, where, record_id)


@contextmanager
def opened_rule(where: Where, rule_id: str) -> Iterator[Rulebook]:
    """The rulebook that holds a rule which is there, and still says something."""
    with opened_book(where, rule_id) as book:
        check_there(book, rule_id)
        yield book


def check_there(book: Rulebook, rule_id: str) -> None:
    if book.get(rule_id).status == "pruned":
        raise WrongStage(
            f"{rule_id} was pruned: what it said is gone", hint="`muniment rules list --all` has the others"
        )


def book_of(mem: Memory, where: Where, record_id: str | None = None) -> Rulebook:
    tenant = where.settings.tenant
    if record_id is None or where.user is not None or where.agent is not None:
        return mem.rulebook(user_id=where.user, agent_id=where.agent, tenant_id=tenant)
    kind, _, name = mem.learning.bank_of(record_id, tenant_id=tenant).name.partition(":")
    held: dict[str, Any] = {f"{kind}_id": name} if name else {}
    return mem.rulebook(**held, tenant_id=tenant)


def whose_book(book: Rulebook) -> str:
    """`the rulebook of user ana`, `the tenant's rulebook`."""
    kind, _, name = book.name.partition(":")
    return f"the rulebook of {kind} {one_line(name, 60)}" if name else "the tenant's rulebook"


def way_back(where: Where, book: Rulebook, to: int) -> str:
    """The command that puts an earlier revision in force again. It names the rulebook, whether or not this one did."""
    kind, _, name = book.name.partition(":")
    named = (f"--{kind}", name) if name else ()
    return where.spelled("rollback", "--to", str(to), *named, "--signed-by", "NAME")


def is_file(given: str) -> bool:
    """Is a file meant, and not an id?"""
    return given == "-" or given.endswith((".json", *LINE_SUFFIXES)) or "/" in given or Path(given).is_file()


# -- for the eye --------------------------------------------------------------------------------------


def labelled(label: str, text: str) -> None:
    """What it is, and what is said, over as many lines as that takes; without a label, the line before goes on."""
    head = f"{label + ':' if label else '':<{_LABEL_CELLS}} "
    said(text, first=head, rest=" " * len(head))


def as_is(label: str, text: str) -> None:
    """What it is, and a picture or a command, on one line however long."""
    click.echo(f"{label + ':':<{_LABEL_CELLS}} {text}")


def said(text: str, *, first: str = "", rest: str = "", most: int = 1_000) -> None:
    """A text within the width of the terminal."""
    from rich.console import Console
    from rich.text import Text

    columns = max(40, shutil.get_terminal_size((_WIDTH_ELSEWHERE, 1)).columns)
    lines = Text(one_line(text, most)).wrap(Console(), columns - max(len(first), len(rest)))
    for number, line in enumerate(lines):
        click.echo(f"{rest if number else first}{line.plain}".rstrip())


# -- rules for the eye --------------------------------------------------------------------------------


def standing(memory: StoredMemory) -> str:
    if memory.status in ("retired", "pruned"):
        return memory.status
    return "user" if memory.layer == "user" else memory.stage or "drafted"


def place_text(record: Mapping[str, Any]) -> str:
    """Where a rule applies, in one line."""
    where = record.get("applicability") or {}
    told = [
        f"{name} {where[key]}" for name, key in (("domain", "domain_tag"), ("family", "task_family")) if where.get(key)
    ]
    same = {f'{key} == "{where[key]}"' for key in ("domain_tag", "task_family") if where.get(key)}
    told += [str(each) for each in where.get("predicates") or () if each not in same]
    if where.get("bucket_keys"):
        told.append(f"buckets {', '.join(where['bucket_keys'])}")
    return "; ".join(told) or "everywhere"


def signed_text(signed_by: str | None, allowed_by: str | None = None) -> str:
    if signed_by:
        return one_line(signed_by, 40)
    return f"policy {one_line(allowed_by, 30)}" if allowed_by else "–"


def show_findings(findings: tuple[LintFinding, ...]) -> None:
    rows: list[list[Cell]] = [
        [(each.severity, "red" if each.severity == "error" else "yellow"), each.code, each.path, each.message]
        for each in findings
    ]
    show_table(("", "code", "at", "what"), rows)


def show_checks(report: GateReport) -> None:
    """What a gate asked for and found; what fails first."""
    rows: list[list[Cell]] = [
        [("ok", "green") if each.ok else ("no", "red"), each.name, f"{each.found} (needed: {each.needed})"]
        for each in sorted(report.checks, key=lambda each: each.ok)
    ]
    show_table(("", "check", "found"), rows)


def next_command(where: Where, memory: StoredMemory) -> str | None:
    """What comes next for a rule, to be typed."""
    steps: dict[str, tuple[str, ...]] = {
        "drafted": ("gate", memory.id, "--agent", "MODULE:FUNCTION"),
        "gated": ("replay", memory.id, "--agent", "MODULE:FUNCTION", "--verifier", "MODULE:FUNCTION"),
        "replayed": ("canary", memory.id),
        "canary": ("report", memory.id),
    }
    words = steps.get(standing(memory))
    if words is not None and words[0] == "gate" and not _is_tested(memory):
        words = ("tests", memory.id, "--make")
    return None if words is None else where.spelled(*words)


def _is_tested(memory: StoredMemory) -> bool:
    tests: Any = memory.record.get("tests") or {}
    return bool(tests.get("regression_tests") and tests.get("counterexample_tests"))


# -- rates for the eye --------------------------------------------------------------------------------


def tally_with(tallies: Mapping[Any, Tally], *, had_it: bool) -> Tally:
    """Of the runs that had a rule, or of those that left it out."""
    from muniment.core.stats.counts import Tally

    found = Tally()
    for arm, tally in tallies.items():
        if (arm in _WITH) == had_it:
            found = found.merge(tally)
    return found


def rate_text(tally: Tally) -> str:
    return f"{tally.passes}/{tally.n}" if tally.n else "–"


def span_of(tally: Tally, thin_n: int) -> tuple[str, str]:
    """A pass rate as a picture, and its 95 % bounds; unknown where there are few runs."""
    from muniment.core.stats.bounds import wilson_bounds

    if tally.n < thin_n:
        return " " * 20, f"unknown: under {thin_n} runs"
    bounds = wilson_bounds(tally.passes, tally.n)
    return spanned(bounds.lower, tally.passes / tally.n, bounds.upper), f"{bounds.lower:.0%} to {bounds.upper:.0%}"


def rate_line(tally: Tally, thin_n: int) -> str:
    """`21 of 25  ████████▍   84 %, 95 % bounds 65 % to 94 %`."""
    counted = f"{tally.passes} of {tally.n}"
    if tally.n < thin_n:
        return f"{counted}, which says nothing yet: fewer than {thin_n} runs"
    rate = tally.passes / tally.n
    return f"{counted}  {bar(rate)} {rate:.0%}, 95 % bounds {span_of(tally, thin_n)[1]}"


def arms_of(stats: RuleStats) -> Mapping[Any, Tally]:
    return {arm: counts.runs for arm, counts in stats.arms.items()}


# -- hints that name commands -------------------------------------------------------------------------

_PHRASES = {
    "`status` says what comes next": "`muniment rules show RULE` says where it stands",
    "`gates` says what would help": "`muniment rules report RULE` says what is missing",
    "the details hold every reason": "`muniment rules report RULE` has every reason",
    "gate it, replay it, and try it first": "`muniment rules gate`, `replay` and `canary` come first",
    "gate it first": "`muniment rules gate` comes first",
    "test it again": "`muniment rules gate` it again",
}
_BESIDE = re.compile(r"gate\('([^']+)', agent, beside='([^']+)'\)")


@contextmanager
def _in_words_of_rules(rule_id: str | None) -> Iterator[None]:
    """Hints of the library, said for who types commands."""
    try:
        yield
    except MunimentError as error:
        for phrase, words in _PHRASES.items():
            error.hint = error.hint.replace(phrase, words.replace("RULE", rule_id or "RULE"))
        if "no one has signed" in error.message:
            error.hint = "--signed-by NAME says who answers for it"
        error.hint = _BESIDE.sub(r"`muniment rules gate \1 --beside \2 --agent MODULE:FUNCTION`", error.hint)
        raise
