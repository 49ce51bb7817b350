"""Acts with concurrent callers: threads, other connections and, where the store outlives a process, another process.
Also a store without free space, and one whose tables are being rebuilt.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from random import Random
from typing import Any, NamedTuple

from muniment.core.outside.system import TickingClock
from muniment.errors import MunimentError
from muniment.handles.memory import Memory
from muniment.testing.simulator.act import SESSIONS, Act, Args, draw_owner, run_of, scope_of
from muniment.testing.simulator.faults import Child
from muniment.testing.simulator.model import Model, must
from muniment.testing.simulator.specimens import Specimen, StepIds

__all__ = ["ACTS"]

_CALLS = ("say", "say", "same_key", "same_id", "fact", "read")


class Told(NamedTuple):
    """One racer's results: (call, answer or the error's code)."""

    racer: int
    calls: list[tuple[str, Any]]


def _plan_race(model: Model, rng: Random, number: int) -> Args:
    scope = {"tenant_id": f"t3-{model.seed}", "user_id": f"racer{number}", "session_id": "s1"}
    racers = [[rng.choice(_CALLS) for _ in range(rng.randint(2, 4))] for _ in range(3)]
    racers[0].insert(rng.randrange(len(racers[0]) + 1), "forget")
    return {"scope": scope, "racers": racers, "number": number}


def _race(specimen: Specimen, model: Model, args: Args) -> None:
    """Run one thread on the store's own engine, one on another, and a process if possible."""
    base = [
        specimen.mem.run(**args["scope"], run_id=_run_id(args, 9)).observe("user", f"said before {at}").id
        for at in range(2)
    ]
    child = None
    if specimen.is_durable:
        child = Child(lambda: _run_racer(specimen, model, args, 2, base))
    with ThreadPoolExecutor(3) as pool:
        racers = range(2 if child else 3)
        told = list(pool.map(lambda racer: _run_racer(specimen, model, args, racer, base), racers))
    if child is not None:
        answered = child.answer()
        must(answered is not None, "a process that nobody killed answers")
        told += [answered] if answered else []
    _check_race(specimen, args, base, told)


def _run_id(args: Args, racer: int) -> str:
    return f"race-{args['scope']['tenant_id']}-{args['number']}-{racer}"


def _run_racer(specimen: Specimen, model: Model, args: Args, racer: int, base: list[str]) -> Told:
    engine = specimen.another_engine() if racer else None
    ids = StepIds(specimen.seed, f"r{racer}")
    ids.begin(args["number"])
    clock = TickingClock(model.now)
    mem = specimen.handle(ids=ids, clock=clock, engine=engine)
    calls = []
    try:
        for place, call in enumerate(args["racers"][racer]):
            try:
                calls.append((call, _call(mem, args, racer, place, call, base)))
            except MunimentError as error:
                calls.append((call, f"error {error.code}"))
    finally:
        if engine is not None and racer == 1 and specimen.files():
            with closing(mem):
                pass
    return Told(racer, calls)


def _call(mem: Memory, args: Args, racer: int, place: int, call: str, base: list[str]) -> Any:
    run = mem.run(**args["scope"], run_id=_run_id(args, racer))
    number, tenant_id = args["number"], args["scope"]["tenant_id"]
    match call:
        case "say":
            return run.observe("user", f"racer {racer} says {place}").id
        case "same_key":
            return run.observe("user", "all say this once", idempotency_key=f"race-{number}").id
        case "same_id":
            return run.observe("user", "one of us says this", id=f"race-{tenant_id}-{number}-id").id
        case "fact":
            return run.remember("race.won", f"by {racer} at {place}", sources=[base[1]]).fact_id
        case "forget":
            return mem.forget(event=base[0], tenant_id=tenant_id).receipt_id
        case _:
            return len(list(mem.ledger.entries(user_id=args["scope"]["user_id"], tenant_id=tenant_id)))


def _check_race(specimen: Specimen, args: Args, base: list[str], told: list[Told]) -> None:
    scope = args["scope"]
    mem = specimen.handle()
    where = {"tenant_id": scope["tenant_id"], "user_id": scope["user_id"]}
    entries = {entry.id: entry for entry in mem.ledger.entries(**where) if entry.kind == "message"}
    answers = [(call, answer) for each in told for call, answer in each.calls]
    errors = Counter(answer for _, answer in answers if str(answer).startswith("error"))
    must(not errors.keys() - {"error duplicate_id"}, "a race ends in no other error", errors)
    said = [answer for call, answer in answers if call == "say"]
    keyed = {answer for call, answer in answers if call == "same_key"}
    named = [answer for call, answer in answers if call == "same_id"]
    won = [answer for answer in named if not str(answer).startswith("error")]
    must(len(keyed) <= 1, "one key is one entry, whoever comes first", keyed)
    must(len(won) == min(1, len(named)), "one id is given once", named)
    wanted = [*base, *said, *keyed, *won]
    must(sorted(wanted) == sorted(entries), "nothing acknowledged is lost in a race, nothing is there twice", answers)
    must(entries[base[0]].is_forgotten, "what was forgotten in a race is gone", base)
    facts = mem.run(**where, session_id="asking").facts(include_all=True)
    told_facts = {answer for call, answer in answers if call == "fact"}
    must(told_facts == {fact.fact_id for fact in facts}, "no acknowledged fact is lost in a race", answers)
    report = mem.verify(tenant_id=scope["tenant_id"])
    must(report.ok and not report.lacking, "verify finds nothing wrong after a race", report)


# -- no space left


def _plan_fill(model: Model, rng: Random, number: int) -> Args | None:
    del number
    return {"scope": scope_of(model, draw_owner(model, rng), rng.choice(SESSIONS))}


def _fill(specimen: Specimen, model: Model, args: Args) -> None:
    """Check that a write that does not fit is refused as such, and leaves nothing; existing data can be read."""
    before = {tenant_id: _count(specimen.mem, tenant_id) for tenant_id in model.tenants}
    with specimen.without_space() as size:
        outcome = specimen.attempt(lambda mem: run_of(mem, args).observe("user", "full " * (size // 5)).id)
        must(outcome.how == "error" and outcome.answer[0] == "storage_full", "a full disk is told", outcome)
        after = {tenant_id: _count(specimen.mem, tenant_id) for tenant_id in model.tenants}
        must(after == before, "what does not fit leaves nothing", (before, after))


def _count(mem: Memory, tenant_id: str) -> int:
    return sum(user.events for user in mem.store.users(tenant_id=tenant_id))


ACTS = (
    Act("race", 3, _plan_race, visit=_race, is_struck=False),
    Act("fill", 2, _plan_fill, visit=_fill, is_struck=False),
)
