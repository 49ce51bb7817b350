"""Acts on the store: forgetting, dumps, rebuilding, verifying."""

from __future__ import annotations

from random import Random
from typing import Any

from muniment.core.outside.system import TickingClock
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.store.engines.sqlite import SqliteEngine
from muniment.store.ledger import Receipt
from muniment.testing.simulator.act import Act, Args
from muniment.testing.simulator.model import Model, Owner, must
from muniment.testing.simulator.specimens import POLICY, StepIds

__all__ = ["ACTS", "shown_dump"]


def shown_dump(lines: list[bytes]) -> list[bytes]:
    """Return a dump in comparable form: without a receipt's remarks about files, which depend on the engine, and the
    last line's digest.
    """
    return [line for line in lines[:-1] if b'"kind":"receipt"' not in line]


# -- forgetting


_BROKEN_OFF: tuple[str, list[str], dict[str, int], dict[str, str]] = ("", [], {}, {})
"""The result of a forget that was done and never acknowledged."""


def _shown(receipt: Receipt) -> Any:
    return receipt.receipt_id, sorted(each.id for each in receipt.erased), receipt.counts, receipt.selector


def _plan_forget_event(model: Model, rng: Random, number: int) -> Args | None:
    del number
    live = model.live_events()
    if not live:
        return None
    event = rng.choice(live)
    return _forgetting(model, {"event": event.id}, event.owner.tenant_id, [event.id], [])


def _plan_forget_session(model: Model, rng: Random, number: int) -> Args | None:
    del number
    live = model.live_events()
    if not live:
        return None
    event = rng.choice(live)
    ids = [each.id for each in model.events_of(event.owner, event.session_id)]
    selector = {"session": event.session_id, "user_id": event.owner.user_id}
    return _forgetting(model, selector, event.owner.tenant_id, ids, [(event.owner, event.session_id)])


def _plan_forget_user(model: Model, rng: Random, number: int) -> Args | None:
    del number
    live = model.live_events()
    if not live:
        return None
    owner = rng.choice(live).owner
    sessions = [(owner, session_id) for session_id in _sessions_of(model, owner)]
    ids = [each.id for each in model.events_of(owner)]
    return _forgetting(model, {"user_id": owner.user_id}, owner.tenant_id, ids, sessions)


def _sessions_of(model: Model, owner: Owner) -> list[str]:
    """Return every session that may hold something of a user: derived items may be in sessions without messages."""
    said = [event.session_id for event in model.events_of(owner, live=False)]
    told = [each.session_id for fact in model.live_facts(owner) for each in fact.assertions]
    derived = [each.session_id for each in model.derived if each.owner == owner]
    return list(dict.fromkeys([*said, *told, *derived, "s1", "s2"]))


def _forgetting(
    model: Model, selector: dict[str, str], tenant_id: str, ids: list[str], sessions: list[tuple[Owner, str]]
) -> Args:
    words = [model.events[id_].word for id_ in ids]
    return {"selector": selector, "tenant_id": tenant_id, "ids": ids, "sessions": sessions, "words": words}


def _forget(mem: Memory, args: Args) -> Any:
    return _shown(mem.forget(**args["selector"], tenant_id=args["tenant_id"]))


def _learn_forget(model: Model, args: Args, answer: Any) -> None:
    model.forget(args["ids"], args["sessions"])
    if answer == _BROKEN_OFF:
        model.is_scrub_due = True
    else:
        receipt_id, erased, counts, _ = answer
        model.receipts[receipt_id] = args["tenant_id"]
        must(set(args["ids"]) <= set(erased), "a receipt names what it erased", erased)
        must(not counts.get("left_damaged"), "a forget meets no damage", counts)


def _seen_forgotten(mem: Memory, model: Model, args: Args) -> Any:
    """Return whether all of it was erased, or nothing."""
    del model
    entries = [mem.ledger.get(id_, tenant_id=args["tenant_id"]) for id_ in args["ids"]]
    gone = [entry.is_forgotten for entry in entries]
    must(all(gone) or not any(gone), "nothing is half forgotten", gone)
    return _BROKEN_OFF if all(gone) else None


def _plan_forget_fact(model: Model, rng: Random, number: int) -> Args | None:
    del number
    facts = model.live_facts()
    if not facts:
        return None
    fact = rng.choice(facts)
    return {"fact": fact.id, "tenant_id": fact.owner.tenant_id, "owner": fact.owner, "key": fact.key}


def _forget_fact(mem: Memory, args: Args) -> Any:
    return _shown(mem.forget(fact=args["fact"], tenant_id=args["tenant_id"]))


def _learn_forget_fact(model: Model, args: Args, answer: Any) -> None:
    fact = model.facts[args["fact"]]
    model.drop_fact(fact)
    if answer == _BROKEN_OFF:
        model.is_scrub_due = True
    else:
        model.receipts[answer[0]] = args["tenant_id"]
        must(args["fact"] in answer[1], "a receipt names what it erased", answer[1])


def _seen_fact_forgotten(mem: Memory, model: Model, args: Args) -> Any:
    owner = args["owner"]
    scope = {"tenant_id": owner.tenant_id, "user_id": owner.user_id, "session_id": "s1"}
    run = mem.run(**scope, run_id=model.run_of(owner, "s1"))
    here = [fact.fact_id for fact in run.facts(args["key"], include_all=True)]
    return None if args["fact"] in here else _BROKEN_OFF


# -- dumps


def _plan_transfer(model: Model, rng: Random, number: int) -> Args | None:
    del number
    tenants = sorted({event.owner.tenant_id for event in model.events.values()})
    return {"tenant_id": rng.choice(tenants), "seed": model.seed} if tenants else None


def _transfer(mem: Memory, args: Args) -> Any:
    """Check that a dump imported into an empty store comes out the same, and adds nothing to its own."""
    lines = list(mem.export(tenant_id=args["tenant_id"]))
    written = mem.import_(lines).written
    must(not any(written.values()), "importing one's own dump writes nothing", written)
    ctx = new_context(engine=SqliteEngine(":memory:"), policy=POLICY, clock=TickingClock(), ids=StepIds(args["seed"]))
    with Memory(ctx) as fresh:
        fresh.import_(lines)
        must(list(fresh.export(tenant_id=args["tenant_id"])) == lines, "a dump comes out as it went in")
        report = fresh.verify()
        must(report.ok, "a store that was imported verifies", report)
    return shown_dump(lines)


def _learn_transfer(model: Model, args: Args, answer: Any) -> None:
    for line in answer:
        model.check_words(line.decode(), "a dump", args["tenant_id"])


# -- rebuilding, verifying


def _rebuild(mem: Memory, args: Args) -> Any:
    report = mem.store.rebuild(tenant_id=args["tenant_id"])
    must(report.repaired == (), "a rebuild finds nothing to repair", report)
    return report.to_wire()


def _verify(mem: Memory, args: Args) -> Any:
    """Ignore the number of versions of a receipt, which depends on the engine: an interrupted forget is completed by
    the scrub.
    """
    report = mem.verify(tenant_id=args["tenant_id"])
    must(report.ok and not report.lacking, "every chain holds, and what was derived is what the ledger gives", report)
    return {name: value for name, value in report.to_wire().items() if name != "derived"}


ACTS = (
    Act("forget_event", 7, _plan_forget_event, _forget, _learn_forget, _seen_forgotten),
    Act("forget_session", 3, _plan_forget_session, _forget, _learn_forget, _seen_forgotten),
    Act("forget_user", 3, _plan_forget_user, _forget, _learn_forget, _seen_forgotten),
    Act("forget_fact", 4, _plan_forget_fact, _forget_fact, _learn_forget_fact, _seen_fact_forgotten),
    Act("transfer", 2, _plan_transfer, _transfer, _learn_transfer, is_struck=False),
    Act("rebuild", 2, _plan_transfer, _rebuild),
    Act("verify", 3, _plan_transfer, _verify, is_struck=False),
)
