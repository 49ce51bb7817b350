"""The lists that a page is read of: for each, how it goes on from a place, what a place is made of, and its count.

An operation that answers a list and is not named here is read whole and cut; a test names those, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from muniment.contracts.rules import DistillDraft
from muniment.contracts.runs import EventLog
from muniment.core.listing import Listing, Placed, listing_given
from muniment.handles.attention import WAITING_KINDS, page_waiting
from muniment.handles.bank import Bank, kinds_asked
from muniment.handles.memory import Memory
from muniment.handles.rulebook import Rulebook
from muniment.handles.run import Run
from muniment.learning._lesson_writing import LessonReport
from muniment.learning.lessons import page_bodies, page_lessons, page_memories, page_plans
from muniment.memory.corpus import Corpus
from muniment.memory.lists.candidates import page_candidates, page_documents
from muniment.memory.lists.episodes import list_episodes
from muniment.memory.lists.facts import page_fact_history, page_facts
from muniment.packets.build_listing import page_answers, page_builds
from muniment.packets.turns import TURN_KINDS, count_turns, page_turns
from muniment.rules.rulebook import page_history, page_reports, page_revisions, page_rules, page_tests
from muniment.runs.snapshots import page_claims, page_conflicts, page_questions, page_runs, page_snapshots
from muniment.store.lists.entries import ENTRY_KINDS, count_entries, list_placed
from muniment.store.lists.seeking import count_listed
from muniment.store.users import page_users
from muniment.surfaces.operations.parts import build_line
from muniment.verify.verify import page_results

__all__ = ["SOUGHT", "SoughtList", "listing_of"]

Names = Mapping[str, str]
Own = Mapping[str, Any]
_ASKED = ("order", "since", "until", "q", "around")


class SoughtList(NamedTuple):
    """A list that goes on from a place by index, however far in it lies."""

    kinds: tuple[type, ...]
    """What a place is made of."""
    begin: Callable[[Any, Names, Own, Listing], Iterator[Placed[Any]]]
    """The list from where it is asked for, given the handle, the address and the arguments."""
    order: str = "asc"
    """How it goes where nobody says."""
    total: Callable[[Any, Names, Own, Listing], int | None] | None = None
    """How many there are, where that can be said."""
    is_taken: Callable[[Own], bool] = lambda _own: True
    """Whether it goes by place with these arguments."""
    also: tuple[str, ...] = ()
    """What else of the arguments is asked of a list."""
    kinds_named: tuple[str, ...] = ENTRY_KINDS
    """What `kind` may be, where it is asked."""


def listing_of(sought: SoughtList, own: Own) -> Listing:
    """What the arguments of a request ask of a list."""
    given = {name: own[name] for name in (*_ASKED, *sought.also) if own.get(name) is not None}
    return listing_given(**{"order": sought.order} | given, kinds=sought.kinds_named)


# -- the store --------------------------------------------------------------------------------------------


def _tenants(memory: Memory, _names: Names, _own: Own, asked: Listing) -> Iterator[Placed[str]]:
    after = None if asked.after is None else asked.after[0]
    for name in memory._ctx.engine.tenants(after, None if asked.limit is None else asked.limit + 1):
        yield Placed((name,), name)


def _users(memory: Memory, names: Names, _own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return page_users(memory._ctx, names["tenant_id"], asked)


def _waiting(memory: Memory, names: Names, _own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return page_waiting(memory._ctx, names["tenant_id"], names.get("user_id"), asked)


# -- a user, or a tenant ----------------------------------------------------------------------------------


def _entries(handle: Memory | Run, names: Names, own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return list_placed(handle._ctx, names["tenant_id"], *_whose(handle, names, own), asked)


def _entry_count(handle: Memory | Run, names: Names, own: Own, asked: Listing) -> int | None:
    return count_entries(handle._ctx, names["tenant_id"], *_whose(handle, names, own), asked)


def _whose(handle: Memory | Run, names: Names, own: Own) -> tuple[str, str | None, str | None]:
    if isinstance(handle, Run):
        return handle.scope.user_id, handle.scope.session_id, handle.scope.run_id
    return names["user_id"], own.get("session_id"), None


def _episodes(memory: Memory, names: Names, own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return list_episodes(memory._ctx, names["tenant_id"], names["user_id"], own.get("session_id"), asked)


def _runs(memory: Memory, names: Names, _own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return page_runs(memory._ctx, names["tenant_id"], names.get("user_id"), asked)


def _builds(memory: Memory, names: Names, _own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    for each in page_builds(memory._ctx, names["tenant_id"], names.get("user_id"), asked):
        yield each if each.value is None else Placed(each.place, build_line(each.value))


def _counted(kind: str) -> Callable[[Any, Names, Own, Listing], int | None]:
    def count(memory: Memory, names: Names, _own: Own, asked: Listing) -> int | None:
        return count_listed(memory._ctx, names["tenant_id"], kind, names.get("user_id"), asked)

    return count


def _answers(memory: Memory, names: Names, _own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return page_answers(memory._ctx, names["tenant_id"], names["build_id"], asked)


def _snapshots(memory: Memory, names: Names, _own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return page_snapshots(memory._ctx, names["tenant_id"], names["run_id"], asked)


def _turns(memory: Memory, names: Names, own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return page_turns(memory._ctx, names["tenant_id"], *_talk_of(names, own), asked)


def _turn_count(memory: Memory, names: Names, own: Own, asked: Listing) -> int | None:
    return count_turns(memory._ctx, names["tenant_id"], *_talk_of(names, own), asked)


def _talk_of(names: Names, own: Own) -> tuple[str | None, str | None, str | None]:
    """The user, the session and the run whose turns are asked for."""
    return names.get("user_id"), own.get("session_id"), own.get("run_id")


# -- a run ------------------------------------------------------------------------------------------------


def _facts(run: Run, _names: Names, own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    include_all = own.get("include_all", False)
    return page_facts(run._writer(), own.get("key"), own.get("at"), asked, include_all=include_all)


def _fact_history(run: Run, _names: Names, own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return page_fact_history(run._writer(), own["key"], asked)


def _candidates(run: Run, _names: Names, own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return page_candidates(run._writer(), own.get("status"), asked)


def _claims(run: Run, _names: Names, own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return page_claims(run._ctx, run.scope, own.get("status"), asked)


def _conflicts(run: Run, _names: Names, _own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return page_conflicts(run._ctx, run.scope, asked)


def _questions(run: Run, _names: Names, _own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return page_questions(run._ctx, run.scope, asked)


def _verifications(run: Run, _names: Names, _own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return page_results(run._ctx, run.scope, asked)


# -- corpora, banks, rulebooks ----------------------------------------------------------------------------


def _documents(corpus: Corpus, _names: Names, own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return page_documents(corpus._ctx, corpus._corpus_scope, asked, include_all=own.get("include_all", False))


def _records(bank: Bank, _names: Names, own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    kinds = kinds_asked(own.get("store"), own.get("kind"))
    include_all = own.get("include_all", False)
    return page_memories(bank._ctx, bank._scope.tenant_id, bank._owner, kinds, asked, include_all=include_all)


def _lessons(bank: Bank, _names: Names, own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return page_lessons(bank._lessons, own.get("stage"), asked)


def _event_logs(bank: Bank, _names: Names, _own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return _bodies(bank, "event_log", lambda body: EventLog.from_wire(body["event_log"]), asked)


def _drafts(bank: Bank, _names: Names, _own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return _bodies(bank, "draft", lambda body: DistillDraft.from_wire(body["draft"]), asked)


def _lesson_reports(bank: Bank, _names: Names, _own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return _bodies(bank, "lesson_report", lambda body: LessonReport.from_wire(body["report"]), asked)


def _bodies(bank: Bank, kind: str, read: Callable[[Any], Any], asked: Listing) -> Iterator[Placed[Any]]:
    for each in page_bodies(bank._ctx, bank._scope.tenant_id, bank._owner, kind, asked):
        yield each if each.value is None else Placed(each.place, read(each.value))


def _plans(bank: Bank, _names: Names, _own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return page_plans(bank._ctx, bank._scope.tenant_id, bank._owner, asked)


def _revisions(book: Rulebook, _names: Names, _own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return page_revisions(book._book, asked)


def _rules(book: Rulebook, _names: Names, own: Own, asked: Listing) -> Iterator[Placed[Any]]:
    return page_rules(book._book, own.get("stage"), asked, include_all=own.get("include_all", False))


def _of_rule(page: Callable[..., Iterator[Placed[Any]]]) -> Callable[..., Iterator[Placed[Any]]]:
    def begin(book: Rulebook, names: Names, _own: Own, asked: Listing) -> Iterator[Placed[Any]]:
        return page(book._book, book.get(names["rule_id"]).id, asked)

    return begin


_BY_TIME = (str, str)
_BY_NAME = (str, str, int)
_BY_NUMBER = (int,)

SOUGHT: Mapping[str, SoughtList] = {
    "memory.tenants": SoughtList((str,), _tenants),
    "memory.users": SoughtList((str,), _users),
    "memory.attention": SoughtList((int, str, str), _waiting, also=("kind",), kinds_named=WAITING_KINDS),
    "memory.runs": SoughtList(_BY_TIME, _runs, total=_counted("run")),
    "memory.snapshots": SoughtList(_BY_NUMBER, _snapshots),
    "memory.turns": SoughtList((str, int, str, str), _turns, total=_turn_count, also=("kind",), kinds_named=TURN_KINDS),
    "memory.entries": SoughtList((str, int), _entries, total=_entry_count, also=("kind",)),
    "memory.episodes": SoughtList((str, int), _episodes),
    "memory.builds": SoughtList(_BY_TIME, _builds, "desc", total=_counted("build")),
    "memory.answers": SoughtList(_BY_NAME, _answers),
    "run.entries": SoughtList((str, int), _entries, total=_entry_count, also=("kind",)),
    "run.facts": SoughtList(_BY_TIME, _facts, is_taken=lambda own: own.get("key") is None),
    "run.candidates": SoughtList(_BY_TIME, _candidates),
    "run.fact_history": SoughtList(_BY_NAME, _fact_history),
    "run.claims": SoughtList(_BY_TIME, _claims),
    "run.conflicts": SoughtList(_BY_TIME, _conflicts),
    "run.questions": SoughtList(_BY_TIME, _questions),
    "run.verifications": SoughtList(_BY_TIME, _verifications),
    "corpus.documents": SoughtList(_BY_TIME, _documents, is_taken=lambda own: own.get("document_ids") is None),
    "bank.records": SoughtList(_BY_TIME, _records),
    "bank.lessons": SoughtList(_BY_TIME, _lessons),
    "bank.event_logs": SoughtList(_BY_TIME, _event_logs, "desc", is_taken=lambda own: own.get("newest") is None),
    "bank.lesson_reports": SoughtList(
        _BY_TIME, _lesson_reports, "desc", is_taken=lambda own: own.get("newest") is None
    ),
    "bank.drafts": SoughtList(_BY_TIME, _drafts),
    "bank.plans": SoughtList(_BY_TIME, _plans),
    "rulebook.revisions": SoughtList(_BY_NUMBER, _revisions),
    "rulebook.rules": SoughtList(_BY_TIME, _rules),
    "rulebook.history": SoughtList(_BY_NUMBER, _of_rule(page_history)),
    "rulebook.tests": SoughtList(_BY_NAME, _of_rule(page_tests)),
    "rulebook.reports": SoughtList(_BY_NAME, _of_rule(page_reports)),
}
"""By the operation that answers them."""
