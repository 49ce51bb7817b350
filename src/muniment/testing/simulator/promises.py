"""Invariants of a store after a step, checked against the model. Each function is one promise, and checks one store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Literal, NamedTuple

from muniment.core.ports.engine import Select
from muniment.core.ports.schema import TABLES
from muniment.errors import Forgotten, NotFound
from muniment.testing.simulator.asking import check_build, check_sources
from muniment.testing.simulator.model import Model, Owner, must
from muniment.testing.simulator.specimens import Specimen

__all__ = ["PROMISES", "Promise"]


def nothing_lost(specimen: Specimen, model: Model, owner: Owner, _rng: Random) -> None:
    """Check that acknowledged events are there, in order, with content, or forgotten by a receipt; sessions are
    chains.
    """
    mem = specimen.mem
    there: dict[str, list[str]] = {}
    last: dict[str, tuple[int, str, str]] = {}
    for entry in mem.ledger.entries(user_id=owner.user_id, tenant_id=owner.tenant_id):
        session_id = entry.scope.session_id
        seq, hash_, recorded_at = last.get(session_id, (-1, entry.prev_hash, ""))
        must(entry.seq > seq and entry.prev_hash == hash_, "a session is a chain", entry)
        must(entry.recorded_at >= recorded_at, "no session's time goes back", entry)
        last[session_id] = (entry.seq, entry.hash, entry.recorded_at)
        model.check_words(str(entry.body), "the ledger", *owner)
        if entry.kind not in ("message", "tool_result"):
            continue
        there.setdefault(session_id, []).append(entry.id)
        event = model.events.get(entry.id)
        must(event is not None, "nothing unacknowledged is half there", entry)
        assert event is not None
        must(entry.is_forgotten == event.is_gone, "what was acknowledged is there, what was forgotten is not", event)
        if event.is_gone:
            must(entry.receipt_id, "what is gone went by a receipt", entry)
            continue
        must(entry.trust == event.trust, "trust travels", entry)
        content = entry.content
        if content is None:
            content = mem.ledger.content(entry.id, tenant_id=owner.tenant_id)
        must(content == event.content, "what was acknowledged is there, word for word", (content, event.content))
    wanted: dict[str, list[str]] = {}
    for event in model.events_of(owner, live=False):
        wanted.setdefault(event.session_id, []).append(event.id)
    must(there == wanted, "nothing acknowledged is lost", (there, wanted))


def facts_on_evidence(specimen: Specimen, model: Model, owner: Owner, _rng: Random) -> None:
    """Check that every acknowledged fact exists, and every existing fact leads to evidence of its own scope."""
    run = specimen.mem.run(tenant_id=owner.tenant_id, user_id=owner.user_id, session_id="asking")
    listed = {fact.fact_id: fact for fact in run.facts(include_all=True)}
    for fact in listed.values():
        model.check_words(str(fact.to_wire()), "a fact", *owner)
        check_sources(model, owner, fact.sources, "a fact")
        held = model.facts.get(fact.fact_id)
        if held is not None:
            must(not held.is_gone, "a fact without evidence is gone", fact)
            must((fact.fact_key, fact.value) == (held.key, held.value), "a fact says what it was told", fact)
    for held in model.live_facts(owner):
        must(held.id in listed, "no acknowledged fact is lost", held)


def builds_replay(specimen: Specimen, model: Model, owner: Owner, rng: Random) -> None:
    """Check that a packet is recomposed to the byte, or reports the receipt that forgot part of it."""
    builds = [build for build in model.builds.values() if build.owner == owner]
    for build in rng.sample(builds, min(2, len(builds))):
        try:
            again = specimen.mem.replay(build.id, tenant_id=owner.tenant_id)
        except Forgotten as error:
            must(build.may_be_gone, "a build falls only with something it held", build.id)
            must(error.details.get("receipt_id"), "what is gone went by a receipt", error)
            continue
        must(again.packet_bytes == build.packet_bytes and again.text == build.text, "builds replay to the byte", build)
        check_build(model, build, again.text, "")


def nothing_crosses(specimen: Specimen, model: Model, owner: Owner, rng: Random) -> None:
    """Check that another tenant finds neither an event nor a build by its exact id."""
    for tenant_id in model.tenants:
        if tenant_id == owner.tenant_id:
            continue
        ids = [event.id for event in model.events_of(owner)]
        for id_ in rng.sample(ids, min(2, len(ids))):
            try:
                specimen.mem.ledger.get(id_, tenant_id=tenant_id)
            except NotFound:
                continue
            must(False, "nothing crosses a scope", (tenant_id, id_))


def words_found(specimen: Specimen, model: Model, owner: Owner, rng: Random) -> None:
    """Check that an event is found by its unique word, and that a forgotten word finds no event that holds it."""
    run = specimen.mem.run(tenant_id=owner.tenant_id, user_id=owner.user_id, session_id="asking")
    own = model.events_of(owner)
    if own:
        event = rng.choice(own)
        hits = run.search(event.word, k=12)
        must(event.id in [hit.id for hit in hits], "what was acknowledged is found", (event, hits))
    gone = model.gone_words()
    for hit in run.search(rng.choice(gone), k=12) if gone else ():
        model.check_words(hit.text, "a search", *owner)


def words_gone(specimen: Specimen, model: Model, owner: Owner, _rng: Random) -> None:
    """Check that no row of the tenant holds a forgotten word, another tenant's or a secret."""
    with specimen.engine.snapshot(owner.tenant_id) as reader:
        for spec in TABLES:
            for row in reader.stream(Select(spec.name)):
                for value in row:
                    text = value.decode("latin-1") if isinstance(value, bytes) else value
                    if isinstance(text, str):
                        model.check_words(text, f"a row of {spec.name}", owner.tenant_id)


def bytes_gone(specimen: Specimen, model: Model, _owner: Owner, _rng: Random) -> None:
    """Check that the store's files hold no forgotten word and no secret."""
    gone = [*model.gone_words(), *model.secrets]
    if model.is_scrub_due and specimen.files():
        must(specimen.mem.store.scrub().clean, "a scrub settles what a forget had no time for")
    for path in specimen.files() if gone else ():
        data = path.read_bytes()
        for word in gone:
            must(word.encode() not in data, f"forgetting is real: a word is left in {path.suffix}", word)


def chains_hold(specimen: Specimen, _model: Model, owner: Owner, _rng: Random) -> None:
    """Check that `verify` finds no faults and nothing lacking."""
    report = specimen.mem.verify(tenant_id=owner.tenant_id)
    must(report.ok and not report.lacking and not report.unreceipted, "verify finds nothing wrong", report)


class Promise(NamedTuple):
    """A check, and the share of steps after which it runs; after the last step all of them do."""

    check: Callable[[Specimen, Model, Owner, Random], None]
    share: float
    level: Literal["user", "tenant", "store"] = "user"
    """The scope of one check."""

    @property
    def name(self) -> str:
        return self.check.__name__

    def asked_of(self, owners: Sequence[Owner]) -> list[Owner]:
        """Return the owners to check, so that all are covered."""
        if self.level == "user":
            return list(owners)
        return list({owner.tenant_id if self.level == "tenant" else "": owner for owner in owners}.values())


PROMISES = (
    Promise(nothing_lost, 1.0),
    Promise(facts_on_evidence, 1.0),
    Promise(nothing_crosses, 0.5),
    Promise(words_gone, 0.25, "tenant"),
    Promise(bytes_gone, 0.5, "store"),
    Promise(builds_replay, 0.2),
    Promise(words_found, 0.15),
    Promise(chains_hold, 0.1, "tenant"),
)
"""Expensive checks run on a sample of the steps: over ten thousand stories each follows every kind of step."""
