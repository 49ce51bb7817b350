"""Acts that write many events at once: bulk loads and their repetition; and catching up the index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest import mock

from muniment.handles.memory import Memory
from muniment.memory.index import follow
from muniment.testing.simulator.act import SESSIONS, Act, Args, draw_owner
from muniment.testing.simulator.model import Model, Owner, must
from muniment.testing.simulator.saying import acknowledge, message, plain, shown, stored

__all__ = ["ACTS"]

_PORTION = 3
"""Events of one transaction: a story's load is interrupted between some of them, as large ones are."""


def _plan_load(model: Model, rng: Random, number: int) -> Args:
    tenant_id = draw_owner(model, rng).tenant_id
    events: list[Args] = []
    for _ in range(rng.randint(1, 3)):
        owner = Owner(tenant_id, draw_owner(model, rng).user_id)
        session_id = rng.choice((*SESSIONS, f"load{number}"))
        for _ in range(rng.randint(1, 4)):
            said = message(model, rng, number, len(events))
            events.append({"user_id": owner.user_id, "session_id": session_id, "message": said})
    return {"tenant_id": tenant_id, "events": events, "index": rng.random() < 0.5}


def _plan_again(model: Model, rng: Random, number: int) -> Args | None:
    del number
    if not model.loads:
        return None
    return rng.choice(model.loads) | {"index": rng.random() < 0.5}


@contextmanager
def _small_portions() -> Iterator[None]:
    with mock.patch("muniment.store.load.PORTION_EVENTS", _PORTION):
        yield


def _load(mem: Memory, args: Args) -> Any:
    events = [
        {"user_id": each["user_id"], "session_id": each["session_id"], **plain(each["message"])}
        for each in args["events"]
    ]
    with _small_portions():
        report = mem.store.load(events, index=args["index"], tenant_id=args["tenant_id"])
    return report.to_wire(), _written(mem, args)


def _written(mem: Memory, args: Args) -> list[Any]:
    """Return which events of a load are stored: each has a unique word."""
    there: dict[str, Any] = {}
    tenant_id = args["tenant_id"]
    for user_id, session_id in dict.fromkeys((each["user_id"], each["session_id"]) for each in args["events"]):
        for entry in mem.ledger.entries(user_id=user_id, session_id=session_id, tenant_id=tenant_id):
            if entry.kind == "message" and not entry.is_forgotten:
                there[mem.ledger.content(entry.id, tenant_id=tenant_id)] = shown(entry)
    return [there.get(stored(each["message"])) for each in args["events"]]


def _learn_load(model: Model, args: Args, answer: Any) -> None:
    report, written = answer
    tenant_id = args["tenant_id"]
    known = [model.event_of_word(each["message"]["word"]) for each in args["events"]]
    if report is not None:
        gone = sum(event is not None and event.is_gone for event in known)
        live = sum(event is not None for event in known) - gone
        must(
            (report["written"], report["already_present"], report["forgotten"])
            == (len(known) - gone - live, live, gone),
            "a load writes what is not there, and nothing that was forgotten",
            report,
        )
    for each, event, told in zip(args["events"], known, written, strict=True):
        if event is not None:
            continue
        must(report is None or told is not None, "what a load acknowledged is there", each)
        if told is not None:
            acknowledge(model, Owner(tenant_id, each["user_id"]), each["session_id"], each["message"], told)
    if report is not None and args["index"]:
        must(report["waiting"] == 0, "a load that indexes leaves nothing to be indexed", report)
    if not any(load["events"] is args["events"] for load in model.loads):
        model.loads.append(args)


def _seen_load(mem: Memory, model: Model, args: Args) -> Any:
    """Return the part of an interrupted load that was written: the first events of each session, in whole portions."""
    written = _written(mem, args)
    ended: set[tuple[str, str]] = set()
    for each, told in zip(args["events"], written, strict=True):
        place = (each["user_id"], each["session_id"])
        if model.event_of_word(each["message"]["word"]) is not None:
            continue
        must(told is None or place not in ended, "of a load that was broken off the first events are there", written)
        if told is None:
            ended.add(place)
    return None, written


# -- the index


def _plan_index(model: Model, rng: Random, number: int) -> Args | None:
    """Plan to bring a user's index up to the end of the ledger, or to any place before it."""
    del number
    owners = sorted({event.owner for event in model.events.values()})
    if not owners:
        return None
    owner = rng.choice(owners)
    return {"tenant_id": owner.tenant_id, "user_id": owner.user_id, "entries_max": rng.choice((None, 1, 2, 5))}


def _index(mem: Memory, args: Args) -> Any:
    return follow(mem._ctx, args["tenant_id"], args["user_id"], entries_max=args["entries_max"])


def _learn_index(model: Model, args: Args, answer: Any) -> None:
    """Record nothing: no content changes."""


ACTS = (
    Act("load", 4, _plan_load, _load, _learn_load, _seen_load),
    Act("load_again", 2, _plan_again, _load, _learn_load, _seen_load),
    Act("index", 3, _plan_index, _index, _learn_index),
)
