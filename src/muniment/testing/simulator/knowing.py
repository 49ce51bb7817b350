"""Acts on knowledge: facts asserted, corrected and retracted, hypotheses, claims, summaries, snapshots."""

from __future__ import annotations

from random import Random
from typing import Any

from muniment.handles.memory import Memory
from muniment.testing.simulator.act import SESSIONS, Act, Args, draw_owner, owner_of, run_of, scope_of
from muniment.testing.simulator.model import Assertion, Derived, HeldFact, Model, Owner, must

__all__ = ["ACTS"]

_KEYS = ("user.city", "user.cat", "order.state")
_MENTIONS_MAX = 8
"""Maximum number of repeated mentions on a fact; a check of it would miss later ones."""


def _draw_sources(model: Model, rng: Random, most: int = 2) -> tuple[Owner, list[str]] | None:
    """Draw an owner with messages, and some of those."""
    live = model.live_events()
    if not live:
        return None
    owner = rng.choice(live).owner
    own = model.events_of(owner)
    return owner, [event.id for event in rng.sample(own, min(len(own), rng.randint(1, most)))]


# -- facts


def _plan_remember(model: Model, rng: Random, number: int) -> Args | None:
    drawn = _draw_sources(model, rng)
    if drawn is None:
        return None
    owner, sources = drawn
    scope = scope_of(model, owner, rng.choice(SESSIONS))
    event = model.events[sources[0]]
    if rng.random() < 0.3:  # quoting the event itself, which must contain it
        value = event.word
        return {"scope": scope, "key": f"quote.{number}", "value": value, "sources": sources[:1], "quote": value}
    word = model.new_word(number, "fact")
    return {"scope": scope, "key": rng.choice(_KEYS), "value": f"at {word}", "sources": sources, "word": word}


def _plan_correct(model: Model, rng: Random, number: int) -> Args | None:
    """Plan another value for a known key, or the same on further evidence."""
    facts = [fact for fact in model.live_facts() if fact.key in _KEYS]
    if not facts:
        return None
    fact = rng.choice(facts)
    told = {source for each in fact.assertions for source in each.sources}
    fresh = [event.id for event in model.events_of(fact.owner) if event.id not in told]
    if not fresh:
        return None
    scope = scope_of(model, fact.owner, rng.choice(SESSIONS))
    args: Args = {"scope": scope, "key": fact.key, "value": fact.value, "sources": [rng.choice(fresh)]}
    if rng.random() < 0.6 or len(fact.assertions) >= _MENTIONS_MAX:
        word = model.new_word(number, "fact")
        args |= {"value": f"rather {word}", "word": word}
    return args


def _remember(mem: Memory, args: Args) -> Any:
    given = {name: args[name] for name in ("key", "value", "sources", "quote") if name in args}
    fact = run_of(mem, args).remember(**given)
    return fact.fact_id, fact.status, fact.sources


def _learn_fact(model: Model, args: Args, answer: Any) -> None:
    owner = owner_of(args)
    if "word" in args:
        model.say(args["word"], owner)
    fact_id = answer[0]
    assertion = Assertion(tuple(args["sources"]), args["scope"]["session_id"])
    if fact_id in model.facts:
        model.facts[fact_id].assertions.append(assertion)
    else:
        model.facts[fact_id] = HeldFact(fact_id, owner, args["key"], args["value"], [assertion])


def _seen_fact(mem: Memory, model: Model, args: Args) -> Any:
    for fact in run_of(mem, args).facts(args["key"], include_all=True):
        if fact.value == args["value"] and set(args["sources"]) <= set(fact.sources):
            known = fact.fact_id in model.facts
            must(known or set(fact.sources) == set(args["sources"]), "a fact is on its own evidence", fact)
            return fact.fact_id, fact.status, fact.sources
    return None


def _plan_retract(model: Model, rng: Random, number: int) -> Args | None:
    del number
    facts = model.live_facts()
    if not facts:
        return None
    fact = rng.choice(facts)
    how = rng.choice(("retract", "dispute"))
    return {"scope": scope_of(model, fact.owner, rng.choice(SESSIONS)), "fact": fact.id, "how": how}


def _retract(mem: Memory, args: Args) -> Any:
    memory = run_of(mem, args).memory
    fact = (memory.retract if args["how"] == "retract" else memory.dispute)(args["fact"], reason="it was wrong")
    return fact.fact_id, fact.status


def _refuse_retract(_model: Model, _args: Args) -> tuple[str, ...]:
    return ("conflict", "")  # a historical fact cannot be retracted again


def _learn_retract(_model: Model, args: Args, answer: Any) -> None:
    if answer is not None:
        wanted = "deprecated" if args["how"] == "retract" else "disputed"
        must(answer[1] in (wanted, "deprecated"), "a fact that was taken back is history", answer)


# -- hypotheses, claims, summaries


def _plan_derived(model: Model, rng: Random, number: int) -> Args | None:
    drawn = _draw_sources(model, rng)
    if drawn is None:
        return None
    owner, sources = drawn
    word = model.new_word(number, "derived")
    return {"scope": scope_of(model, owner, rng.choice(SESSIONS)), "sources": sources, "word": word}


def _suppose(mem: Memory, args: Args) -> Any:
    return run_of(mem, args).insight("hypothesis", f"She may like {args['word']}", sources=args["sources"]).to_wire()


def _claim(mem: Memory, args: Args) -> Any:
    claim = run_of(mem, args).log.claim(f"It is about {args['word']}", evidence=args["sources"])
    return claim.claim_id, claim.status


def _summarize(mem: Memory, args: Args) -> Any:
    return run_of(mem, args).summarize(f"They spoke of {args['word']}.", sources=args["sources"]).to_wire()


def _learn_derived(model: Model, args: Args, _answer: Any) -> None:
    owner = owner_of(args)
    model.say(args["word"], owner)
    model.derived.append(Derived(args["word"], owner, tuple(args["sources"]), args["scope"]["session_id"]))


def _learn_supposed(model: Model, args: Args, answer: Any) -> None:
    _learn_derived(model, args, answer)
    model.words[args["word"]].is_supposed = True


def _learn_summary(model: Model, args: Args, answer: Any) -> None:
    _learn_derived(model, args, answer)
    model.derived[-1].falls_with_any = True


# -- the run


def _plan_run(model: Model, rng: Random, number: int) -> Args | None:
    del number
    live = model.live_events()
    if not live:
        return None
    event = rng.choice(live)
    return {"scope": scope_of(model, event.owner, event.session_id)}


def _patch(mem: Memory, args: Args) -> Any:
    return run_of(mem, args).patch(goal="book dinner", slots={"city": "Berlin"}).to_wire()


def _compact(mem: Memory, args: Args) -> Any:
    """Take a snapshot; the run resumed from it must equal the run in the ledger."""
    run = run_of(mem, args)
    if run.state() is None:
        return None
    snapshot = run.log.compact()
    resumed = mem.resume(args["scope"]["run_id"], tenant_id=args["scope"]["tenant_id"])
    told = run.log.read()
    must(resumed.log.claims == told.claims, "a restart is the same as a replay of the ledger", resumed.log)
    return None if snapshot is None else snapshot.snapshot_id


def _finish(mem: Memory, args: Args) -> Any:
    state = run_of(mem, args).finish("OBJECTIVE_ACHIEVED")
    return state.to_wire()


def _learn_finish(model: Model, args: Args, _answer: Any) -> None:
    model.end_run(owner_of(args), args["scope"]["session_id"])


def _extract(mem: Memory, args: Args) -> Any:
    return [candidate.to_wire() for candidate in run_of(mem, args).extract()]


def _plan_state(model: Model, rng: Random, number: int) -> Args:
    del number
    return {"scope": scope_of(model, draw_owner(model, rng), rng.choice(SESSIONS))}


ACTS = (
    Act("remember", 13, _plan_remember, _remember, _learn_fact, _seen_fact),
    Act("correct", 10, _plan_correct, _remember, _learn_fact, _seen_fact),
    Act("retract", 4, _plan_retract, _retract, _learn_retract, refusals=_refuse_retract),
    Act("suppose", 3, _plan_derived, _suppose, _learn_supposed),
    Act("claim", 4, _plan_derived, _claim, _learn_derived),
    Act("summarize", 3, _plan_derived, _summarize, _learn_summary),
    Act("patch", 3, _plan_state, _patch),
    Act("compact", 4, _plan_run, _compact),
    Act("finish", 3, _plan_run, _finish, _learn_finish),
    Act("extract", 2, _plan_run, _extract),
)
