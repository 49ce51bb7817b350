"""What the commands on learned memory share: which bank, parts of keys, records for the eye, words of commands."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from muniment.errors import InvalidInput, MunimentError
from muniment.surfaces.cli.asking import one_line
from muniment.surfaces.cli.options import db_option, tenant_option
from muniment.surfaces.cli.tables import Cell, show_table
from muniment.surfaces.settings import load_settings, open_store

if TYPE_CHECKING:
    from muniment.contracts.folding import MemoryActionRecord
    from muniment.handles.bank import Bank
    from muniment.learning.stored_memory import StoredMemory, Tally

__all__ = [
    "STANDINGS",
    "bank_options",
    "bucket_given",
    "bucket_option",
    "check_named",
    "features_given",
    "in_words_of_commands",
    "key_options",
    "opened",
    "opened_at",
    "parts_given",
    "show_actions",
    "spelled",
    "tally_text",
    "told",
    "whose",
]

F = TypeVar("F", bound=Callable[..., Any])

STANDINGS = {"active": "green", "pinned": "cyan", "temporary": "yellow", "retired": "red", "pruned": "bright_black"}
_FATES = {"APPLIED": "green", "SKIPPED": "yellow", "FAILED": "red"}
_PARTS: Mapping[str, Mapping[str, str]] = {
    "intent": {
        "domain": "domain_tag",
        "family": "task_family",
        "tools": "required_tools",
        "format": "output_format",
        "constraints": "constraint_profile",
    },
    "state": {
        "mode": "mode",
        "tier": "budget_tier",
        "policy": "policy_profile",
        "tools": "tool_availability",
        "verifier": "verifier_profile",
        "sandbox": "sandbox_flags",
    },
}
"""The parts of a key by the name they have in it; the contract's own names are read as well."""
_LISTS = ("required_tools", "tool_availability", "sandbox_flags")
_SWITCHES = {"true": True, "false": False}


# -- which bank ---------------------------------------------------------------------------------------


def bank_options(command: F) -> F:
    """Which bank: --db, --tenant, --user, --agent."""
    command = click.option("--agent", metavar="ID", help="The bank of an agent.")(command)
    command = click.option("--user", metavar="ID", help="The bank of a user (default: the tenant's own).")(command)
    return db_option(tenant_option(command))


@contextmanager
def opened(
    db: str | None, tenant: str | None, user: str | None, agent: str | None, *, must_exist: bool = True
) -> Iterator[Bank]:
    """The bank that was named."""
    check_named(user, agent)
    settings = load_settings({"db": db, "tenant": tenant})
    with in_words_of_commands(), open_store(settings, must_exist=must_exist) as mem:
        yield mem.bank(user_id=user, agent_id=agent, tenant_id=settings.tenant)


@contextmanager
def opened_at(
    record_id: str, db: str | None, tenant: str | None, user: str | None = None, agent: str | None = None
) -> Iterator[Bank]:
    """The bank that was named; where none was, the one that holds the record or plan."""
    check_named(user, agent)
    settings = load_settings({"db": db, "tenant": tenant})
    with in_words_of_commands(), open_store(settings, must_exist=True) as mem:
        if user is None and agent is None:
            yield mem.learning.bank_of(record_id, tenant_id=settings.tenant)
        else:
            yield mem.bank(user_id=user, agent_id=agent, tenant_id=settings.tenant)


def check_named(user: str | None, agent: str | None) -> None:
    if user is not None and agent is not None:
        raise InvalidInput("a bank is a user's or an agent's", path="$.agent", hint="give --user or --agent")


def whose(bank: Bank) -> str:
    """`the bank of user ana`, `the tenant's bank`."""
    kind, _, name = bank.name.partition(":")
    return f"the bank of {kind} {one_line(name, 60)}" if name else "the tenant's bank"


def spelled(*words: str, db: str | None, tenant: str | None) -> str:
    """A command, to be typed as it stands."""
    named = {"--db": db, "--tenant": tenant}
    more = [word for option, value in named.items() if value is not None for word in (option, value)]
    return shlex.join(["muniment", *words, *more])


# -- keys ---------------------------------------------------------------------------------------------


def key_options(command: F) -> F:
    """--intent, --state and --feature: what kind of work, under which conditions, what else is known."""
    for name, text in (
        ("feature", "Something known of the task, as NAME=VALUE; repeatable."),
        ("state", f"A part of its state: {', '.join(_PARTS['state'])}; repeatable, lists with commas."),
        ("intent", f"A part of its intent: {', '.join(_PARTS['intent'])}; repeatable, lists with commas."),
    ):
        command = click.option(f"--{name}", f"{name}s", multiple=True, metavar="NAME=VALUE", help=text)(command)
    return command


def bucket_option(command: F) -> F:
    return click.option("--bucket", metavar="KEY", help="Its bucket, such as I2|math|clarity_high.")(command)


def bucket_given(key: str | None) -> str | None:
    """A bucket as it was given, if it is one."""
    from muniment.verify.buckets import parse_bucket_key

    if key is not None:
        with in_words_of_commands():
            parse_bucket_key(key)
    return key


def parts_given(given: Sequence[str], key: str) -> dict[str, Any] | None:
    """`family=booking` and `tools=book,search` as the parts of an intent or a state; None where nothing was said."""
    parts: dict[str, Any] = {}
    names = _PARTS[key]
    for each in given:
        name, value = _named(each, key)
        field = names.get(name, name)
        if field not in names.values():
            said = f"{key} has no part {name!r:.40}"
            raise InvalidInput(said, path=f"$.{key}", hint=f"--{key} NAME=VALUE, NAME one of {', '.join(names)}")
        if field in parts:
            raise InvalidInput(f"the {name} of {key} is said twice", path=f"$.{key}", hint="once, lists with commas")
        if field in _LISTS:
            parts[field] = [part.strip() for part in value.split(",") if part.strip()]
        else:
            parts[field] = _said(value, each, key)
    return parts or None


def features_given(given: Sequence[str]) -> dict[str, Any] | None:
    """`strategy=backward`, `steps=3`, `checked=true`: text, a number or a boolean by name."""
    features: dict[str, Any] = {}
    for each in given:
        name, value = _named(each, "feature")
        if name in features:
            raise InvalidInput(f"the feature {name!r:.40} is said twice", path="$.feature", hint="once is enough")
        features[name] = _value(_said(value, each, "feature"))
    return features or None


def _named(given: str, option: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    return _said(name.strip() if equals else "", given, option), value.strip()


def _said(text: str, given: str, option: str) -> str:
    """The text, where there is one."""
    if not text:
        raise InvalidInput(
            f"{given!r:.80} is not a name and a value", path=f"$.{option}", hint=f"write --{option} NAME=VALUE"
        )
    return text


def _value(text: str) -> str | int | float | bool:
    if text.lower() in _SWITCHES:
        return _SWITCHES[text.lower()]
    if text.isascii() and len(text) <= _DIGITS_MAX:
        for kind in (int, float):
            try:
                number = kind(text)
            except ValueError:
                continue
            return number if number - number == 0 else text  # neither infinite nor NaN
    return text


_DIGITS_MAX = 18


# -- for the eye --------------------------------------------------------------------------------------


def told(memory: StoredMemory) -> str:
    """What a record says, in its own words."""
    if memory.status == "pruned":
        return "pruned: what it said is gone"
    record = memory.record
    said = next((record[name] for name in ("summary", "seed_summary", "title", "body") if record.get(name)), None)
    return str(said) if said is not None else f"run {', '.join(memory.sources) or memory.id}, in references"


def tally_text(tally: Tally) -> str:
    return f"{tally.passes} of {tally.n}" if tally.n else "–"


def show_actions(records: Sequence[MemoryActionRecord]) -> None:
    """What was done of a plan, action by action."""
    rows: list[list[Cell]] = []
    for number, each in enumerate(records, 1):
        ids = each.produced_ids or each.target_ids or ()
        why = f"{each.error}  " if each.error else ""
        reasons = f"({', '.join(each.reason_keys)})" if each.reason_keys else ""
        fate = (each.status, _FATES[each.status])
        rows.append([str(number), each.op, fate, each.target_store, ", ".join(ids), f"{why}{reasons}"])
    show_table(("", "op", "status", "store", "records", "why"), rows)


# -- hints that name commands -------------------------------------------------------------------------

_PHRASES = {
    "mem.runs() lists those there are": "`muniment run list` names the runs of this store",
    "make a plan that says what should be now": "`muniment plan make` a plan that says what should be now",
    "give it another id": "give it another plan_id, or leave it out",
    "documents are added through mem.corpus(…)": "`muniment corpus` and `muniment bank` are for those",
    "as bucket_key() writes it": "impact 1 to 3, domain, clarity low, med or high",
}


@contextmanager
def in_words_of_commands() -> Iterator[None]:
    """Hints of the library, said for who types commands."""
    try:
        yield
    except MunimentError as error:
        for phrase, said in _PHRASES.items():
            error.hint = error.hint.replace(phrase, said)
        raise
