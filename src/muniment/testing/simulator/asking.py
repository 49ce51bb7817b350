"""Acts that read: searches, packets and their replay, evidence behind a pointer, and forbidden access."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from muniment.errors import MunimentError
from muniment.handles.memory import Memory
from muniment.testing.simulator.act import SESSIONS, Act, Args, draw_owner, owner_of, run_of, scope_of
from muniment.testing.simulator.model import BrokenPromise, HeldBuild, Model, Owner, must

__all__ = ["ACTS", "check_build"]

_QUESTIONS = ("where does she live now?", "what about the cat and the order?", "what did we say last week?")
_PURPOSES = ("responder", "planner", "tool")


# -- search


def _plan_search(model: Model, rng: Random, number: int) -> Args:
    del number
    owner = draw_owner(model, rng)
    own = model.events_of(owner)
    args: Args = {"scope": scope_of(model, owner, rng.choice(SESSIONS)), "query": rng.choice(_QUESTIONS)}
    others = [word for word, each in model.words.items() if each.owner != owner or each.is_gone]
    if own and rng.random() < 0.7:
        event = rng.choice(own)
        args |= {"query": f"what about {event.word}?", "wanted": event.id}
    elif others:
        args["query"] = f"what about {rng.choice(others)}?"
    return args


def _search(mem: Memory, args: Args) -> Any:
    hits = run_of(mem, args).search(args["query"], k=12)
    return [(hit.id, hit.kind, hit.text, hit.score, hit.sources) for hit in hits]


def _learn_search(model: Model, args: Args, answer: Any) -> None:
    owner = owner_of(args)
    for id_, kind, text, _, sources in answer:
        model.check_words(text, "a search", *owner)
        if kind == "event":
            event = model.events.get(id_)
            must(event is not None and event.owner == owner, "a search finds what was said in its scope", id_)
        check_sources(model, owner, sources, "a hit")
    if "wanted" in args:
        must(args["wanted"] in [hit[0] for hit in answer], "what was acknowledged is found", (args["query"], answer))


def check_sources(model: Model, owner: Owner, sources: Any, what: str) -> None:
    """Check that evidence is this owner's, and not forgotten."""
    must(sources, f"{what} leads to evidence")
    for source in sources:
        event = model.events.get(source)
        must(event is not None and event.owner == owner, f"{what} leads to evidence of its own scope", source)
        assert event is not None
        must(not event.is_gone, f"{what} leads to evidence that was forgotten", source)


# -- packets


def _plan_compose(model: Model, rng: Random, number: int) -> Args:
    del number
    owner = draw_owner(model, rng)
    own = model.events_of(owner)
    args: Args = {"scope": scope_of(model, owner, rng.choice(SESSIONS)), "query": rng.choice(_QUESTIONS)}
    if own and rng.random() < 0.5:
        args["query"] = f"what about {rng.choice(own).word}?"
    args["purpose"] = rng.choice(_PURPOSES)
    args["max_tokens"] = rng.choice((None, 256, 512))
    return args


def _compose(mem: Memory, args: Args) -> Any:
    build = run_of(mem, args).compose(args["purpose"], query=args["query"], max_tokens=args["max_tokens"])
    return build.id, build.packet_bytes, build.text, build.tokens, dict(build.marks)


def _learn_build(model: Model, args: Args, answer: Any) -> None:
    if answer is None:
        return
    id_, packet_bytes, text, tokens, marks = answer
    owner = owner_of(args)
    build = HeldBuild(id_, owner, args["scope"]["session_id"], args["purpose"], packet_bytes, text)
    model.builds[id_] = build
    check_build(model, build, text, packet_bytes.decode())
    must(args["max_tokens"] is None or tokens <= args["max_tokens"], "a packet keeps its budget", tokens)
    known = {*model.events, *model.facts}
    for evidence in marks.values():
        if evidence in known:
            check_sources(model, owner, (evidence,) if evidence in model.events else (), "a mark")


def check_build(model: Model, build: HeldBuild, text: str, packet: str) -> None:
    """Check that a build has no words of others or forgotten ones, and no hypothesis for a responder."""
    model.check_words(text, f"a {build.purpose}'s packet", *build.owner)
    model.check_words(packet, f"a {build.purpose}'s packet", *build.owner)
    if build.purpose == "responder":
        for word, each in model.words.items():
            must(not each.is_supposed or word not in text, "nothing supposed is told as known", word)


# -- replay


def _plan_replay(model: Model, rng: Random, number: int) -> Args | None:
    del number
    if not model.builds:
        return None
    build = rng.choice(list(model.builds.values()))
    return {"build": build.id, "tenant_id": build.owner.tenant_id}


def _replay(mem: Memory, args: Args) -> Any:
    build = mem.replay(args["build"], tenant_id=args["tenant_id"])
    return build.packet_bytes, build.text


def _refuse_replay(model: Model, args: Args) -> tuple[str, ...]:
    return ("forgotten", "") if model.builds[args["build"]].may_be_gone else ()


def _learn_replay(model: Model, args: Args, answer: Any) -> None:
    build = model.builds[args["build"]]
    must(answer == (build.packet_bytes, build.text), "a build replays to the byte", answer)


# -- evidence


def _plan_resolve(model: Model, rng: Random, number: int) -> Args | None:
    del number
    if not model.events:
        return None
    event = rng.choice(list(model.events.values()))
    return {"id": event.id, "word": event.word, "tenant_id": event.owner.tenant_id}


def _resolve(mem: Memory, args: Args) -> Any:
    where = {"tenant_id": args["tenant_id"]}
    found = mem.ledger.resolve({"event_id": args["id"], "quote": args["word"]}, **where)  # type: ignore[arg-type]
    return found.text, mem.ledger.content(args["id"], **where)


def _refuse_resolve(model: Model, args: Args) -> tuple[str, ...]:
    return ("forgotten",) if model.events[args["id"]].is_gone else ()


def _learn_resolve(model: Model, args: Args, answer: Any) -> None:
    event = model.events[args["id"]]
    must(answer[1] == event.content and event.word in answer[0], "evidence is what was said, to the byte", answer)


# -- doors that stay shut


def _plan_trespass(model: Model, rng: Random, number: int) -> Args | None:
    """Plan access to another tenant's or user's data by their exact names."""
    live = model.live_events()
    if not live:
        return None
    event = rng.choice(live)
    others = [tenant for tenant in model.tenants if tenant != event.owner.tenant_id]
    builds = [build.id for build in model.builds.values() if build.owner == event.owner]
    fact = next((fact.id for fact in model.live_facts(event.owner)), "fct_none")
    user = rng.choice([user for user in ("ana", "bob", "cy") if user != event.owner.user_id])
    scope = scope_of(model, Owner(event.owner.tenant_id, user), rng.choice(SESSIONS))
    build = rng.choice(builds) if builds else "bld_none"
    names = {"event": event.id, "build": build, "fact": fact}
    return {"tenant_id": rng.choice(others), "scope": scope, "number": number, "names": names}


def _trespass(mem: Memory, args: Args) -> Any:
    tenant_id, names = args["tenant_id"], args["names"]
    event, build, fact = names["event"], names["build"], names["fact"]
    doors: dict[str, Callable[[], object]] = {
        "get": lambda: mem.ledger.get(event, tenant_id=tenant_id),
        "content": lambda: mem.ledger.content(event, tenant_id=tenant_id),
        "resolve": lambda: mem.ledger.resolve(event, tenant_id=tenant_id),
        "replay": lambda: mem.replay(build, tenant_id=tenant_id),
        "forget an event": lambda: mem.forget(event=event, tenant_id=tenant_id),
        "forget a fact": lambda: mem.forget(fact=fact, tenant_id=tenant_id),
        "forget as another": lambda: mem.forget(event=event, user_id=args["scope"]["user_id"]),
        "remember on another's": lambda: run_of(mem, args).remember("user.city", "x", sources=[event]),
        "claim on another's": lambda: run_of(mem, args).log.claim("x", evidence=[event]),
        "retract another's": lambda: run_of(mem, args).memory.retract(fact),
    }
    told = {}
    for name, door in doors.items():
        try:
            door()
        except MunimentError as error:
            told[name] = error.code
        else:
            raise BrokenPromise(f"nothing crosses a scope: {name} was answered")
    return told


def _learn_trespass(_model: Model, _args: Args, answer: Any) -> None:
    must(set(answer.values()) == {"not_found"}, "what is another's does not exist", answer)


ACTS = (
    Act("search", 7, _plan_search, _search, _learn_search, is_struck=False),
    Act("compose", 11, _plan_compose, _compose, _learn_build),
    Act("replay", 5, _plan_replay, _replay, _learn_replay, refusals=_refuse_replay, is_struck=False),
    Act("resolve", 4, _plan_resolve, _resolve, _learn_resolve, refusals=_refuse_resolve, is_struck=False),
    Act("trespass", 3, _plan_trespass, _trespass, _learn_trespass, is_struck=False),
)
