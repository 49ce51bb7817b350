"""Facts and summaries that come in: by the rules that every fact goes by, on evidence that came in before them.

A fact that rests on imported evidence says so and has no more trust than an assistant's word, so that what the user
says here overrules it whenever that was said. What was said already is not said twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple

from muniment.contracts.portable import PortableFact, PortableSummary
from muniment.core.ports.engine import Lock, Reader, Transaction
from muniment.errors import MunimentError
from muniment.memory.fact_reading import facts_of_level
from muniment.memory.fact_writing import FactRequest, dispute_fact, plan_fact, request_fact, retract_fact
from muniment.memory.facts.records import StoredFact
from muniment.memory.facts.rules import same_value
from muniment.memory.patches import Decided, Writer, append_decided, read_evidence
from muniment.memory.summary_writing import newest_given, summarize
from muniment.moving.records import LeftOut
from muniment.store.items import latest, lock_memory
from muniment.store.reading import content_in

__all__ = ["FactImport"]

BATCH_FACTS = 200
_IMPORTED = "imported from "


class _Saying(NamedTuple):
    """A fact to be said: by whom it was found, and in which order it was said there."""

    path: str
    order: int
    fact_id: str
    request: FactRequest


class FactImport:
    """The facts and summaries of one user, collected until all that they rest on has come in."""

    def __init__(
        self,
        writer: Writer,
        dry_run: bool,
        id_here: Callable[[str], str | None],
        leave: Callable[[LeftOut], None],
        written: Counter[str],
        known: Counter[str],
    ) -> None:
        """`id_here` gives the id that an event of the source has here; counts are added to `written` and `known`."""
        self._writer = writer
        self._dry_run = dry_run
        self._id_here = id_here
        self._leave = leave
        self._written = written
        self._known = known
        self._facts: list[tuple[str, PortableFact]] = []
        self._summaries: list[tuple[str, PortableSummary]] = []

    def add(self, path: str, item: PortableFact | PortableSummary) -> None:
        if isinstance(item, PortableFact):
            self._facts.append((path, item))
        else:
            self._summaries.append((path, item))

    def finish(self) -> None:
        """Write them all, in the order in which they were said."""
        sayings = sorted(self._given_facts(), key=lambda each: each.order)
        for start in range(0, len(sayings), BATCH_FACTS):
            self._write(sayings[start : start + BATCH_FACTS])
        if not self._dry_run:
            for path, fact in self._facts:
                self._object(path, fact)
        for path, summary in self._summaries:
            self._summarize(path, summary)

    # -- facts ----------------------------------------------------------------------------------------

    def _given_facts(self) -> Iterable[_Saying]:
        for path, fact in self._facts:
            for number, assertion in enumerate(fact.assertions):
                sources = self._sources(assertion.sources)
                if not sources:
                    self._leave(LeftOut(path, "facts", "what it rests on is not here", is_loss=number == 0))
                    continue
                try:
                    request = request_fact(
                        key=fact.key, value=fact.value, sources=sources, confidence=assertion.confidence,
                        valid_from=assertion.valid_from, valid_to=assertion.valid_to, notes=assertion.notes,
                        quote=assertion.quote, is_preference=fact.is_preference,
                    )  # fmt: skip
                except MunimentError as error:
                    self._leave(LeftOut(path, "facts", error.message))
                    continue
                yield _Saying(path, assertion.order, fact.id, request)

    def _sources(self, named: Sequence[str]) -> tuple[str, ...]:
        return tuple(here for source in named if (here := self._id_here(source)) is not None)

    def _write(self, sayings: Sequence[_Saying]) -> None:
        """Say facts in one transaction; each sees what the one before it did."""
        writer, ctx = self._writer, self._writer.ctx
        tally: Counter[str] = Counter()
        if self._dry_run:
            ctx.engine.read(writer.scope.tenant_id, lambda reader: self._count(reader, sayings, tally))
        else:
            ctx.engine.write(writer.scope.tenant_id, lambda tx: self._say(tx, sayings, tally))
        self._written["facts"] += tally["written"]
        self._known["facts"] += tally["known"]

    def _count(self, reader: Reader, sayings: Sequence[_Saying], tally: Counter[str]) -> None:
        tally.clear()
        for each in sayings:
            tally["known" if self._is_said(reader, each) else "written"] += 1

    def _say(self, tx: Transaction, sayings: Sequence[_Saying], tally: Counter[str]) -> None:
        scope = self._writer.scope
        tally.clear()
        tx.do(Lock(("session", scope.user_id, scope.session_id)))
        lock_memory(tx, scope.user_id)
        for each in sayings:
            if self._is_said(tx, each):
                tally["known"] += 1
                continue
            request = each.request
            evidence = read_evidence(tx, scope, request.sources)
            if request.quote is not None and not self._stands(tx, request):
                request = request.model_copy(update={"quote": None})
            fact_id = each.fact_id if latest(tx, each.fact_id) is None else self._writer.ctx.ids.new("fct")
            planned = plan_fact(tx, self._writer, request, fact_id, evidence)
            append_decided(tx, self._writer, Decided([planned.draft], planned.after))
            tally["written"] += 1

    def _stands(self, reader: Reader, request: FactRequest) -> bool:
        """Does the quote stand in a source as it is kept here, where secrets were taken out?"""
        scope = self._writer.scope
        texts = (content_in(reader, scope.tenant_id, source, scope.user_id) for source in request.sources)
        return any((request.quote or "") in text for text in texts)

    def _is_said(self, reader: Reader, each: _Saying) -> bool:
        """Was this said before on the same evidence, whatever became of it since, forgetting included?"""
        item = latest(reader, each.fact_id)
        if item is not None and item.kind == "fact" and item.body is None:
            return True
        return any(
            _holds(fact.fact, each) for fact in facts_of_level(reader, self._writer.scope, "user", each.request.key)
        )

    def _object(self, path: str, fact: PortableFact) -> None:
        """A fact that was taken back or disputed there is so here."""
        item = self._writer.ctx.engine.read(self._writer.scope.tenant_id, lambda reader: latest(reader, fact.id))
        if item is None or item.kind != "fact" or item.body is None or item.status == fact.status:
            return
        objections = [(self._sources(each.sources), each.reason) for each in fact.objections or ()]
        sources, reason = objections[-1] if objections else ((), None)
        try:
            if fact.is_retracted and item.status in ("active", "disputed"):
                retract_fact(self._writer, fact.id, sources, reason)
            elif fact.status == "disputed" and item.status == "active" and objections:
                dispute_fact(self._writer, fact.id, sources, reason)
        except MunimentError as error:
            self._leave(LeftOut(path, "facts", f"that it was objected to: {error.message}"))

    # -- summaries ------------------------------------------------------------------------------------

    def _summarize(self, path: str, summary: PortableSummary) -> None:
        sources = self._sources(summary.sources)
        if not sources:
            self._leave(LeftOut(path, "summaries", "what it rests on is not here"))
            return
        scope = self._writer.scope.model_copy(
            update={"session_id": summary.session_id, "run_id": _run_id(self._writer, summary.session_id)}
        )
        there = self._writer.ctx.engine.read(
            scope.tenant_id, lambda reader: newest_given(reader, scope.user_id, summary.session_id)
        )
        text = summary.text if summary.text.startswith(_IMPORTED) else f"{_IMPORTED}muniment: {summary.text}"
        if there is not None and there.text in (summary.text, text):
            self._known["summaries"] += 1
            return
        if not self._dry_run:
            writer = Writer(self._writer.ctx, scope, self._writer.opening, frozenset())
            try:
                summarize(writer, text, sources)
            except MunimentError as error:
                self._leave(LeftOut(path, "summaries", error.message))
                return
        self._written["summaries"] += 1


def _run_id(writer: Writer, session_id: str) -> str:
    named = "\x00".join((writer.scope.user_id, writer.scope.agent_id, session_id, "summary"))
    return "import-" + sha256(named.encode()).hexdigest()[:24]


def _holds(fact: StoredFact, each: _Saying) -> bool:
    """Is this one of the assertions of the fact?"""
    sources = set(each.request.sources)
    return same_value(fact.value, each.request.value) and any(
        set(assertion.sources) == sources and assertion.valid_from == each.request.valid_from
        for assertion in fact.assertions
    )
