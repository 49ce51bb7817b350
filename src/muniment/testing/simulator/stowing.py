"""Acts on what lies outside: sessions moved into archives and back, contents moved out and in, sweeps; objects that
are lost or altered, and an object store that answers nobody."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from random import Random
from typing import Any

from muniment.core.ports.objects import ARCHIVED
from muniment.core.ports.rows import by_ids
from muniment.core.ports.schema import ENTRIES
from muniment.errors import ObjectsUnavailable
from muniment.handles.memory import Memory
from muniment.store.objects.view import near
from muniment.testing.simulator.act import Act, Args, scope_of
from muniment.testing.simulator.damage import Doors, doors_of, plan_damage
from muniment.testing.simulator.model import Event, Model, must
from muniment.testing.simulator.specimens import Specimen

__all__ = ["ACTS"]


# -- archives


def _plan_session(model: Model, rng: Random, number: int) -> Args | None:
    """One session of somebody, or all sessions of a user or of a tenant."""
    del number
    live = model.live_events()
    if not model.has_objects or not live:
        return None
    event = rng.choice(live)
    width = rng.choice(("session", "session", "user", "tenant"))
    args: Args = {"tenant_id": event.owner.tenant_id}
    if width != "tenant":
        args["user_id"] = event.owner.user_id
    if width == "session":
        args["session"] = event.session_id
    return args | {"ids": [each.id for each in live if _is_meant(each, args)], "at": model.now}


def _is_meant(event: Event, args: Args) -> bool:
    named = (("user_id", event.owner.user_id), ("session", event.session_id))
    own = event.owner.tenant_id == args["tenant_id"]
    return own and all(args.get(name, value) == value for name, value in named)


def _selector(args: Args) -> dict[str, Any]:
    return {name: args[name] for name in ("tenant_id", "user_id", "session") if name in args}


def _archive(mem: Memory, args: Args) -> Any:
    late = {} if "session" in args else {"before": (args["at"] + timedelta(days=1)).isoformat()}
    return mem.store.archive(**_selector(args), **late).to_wire()


def _unarchive(mem: Memory, args: Args) -> Any:
    return mem.store.unarchive(**_selector(args)).to_wire()


def _learn_archive(model: Model, args: Args, answer: Any) -> None:
    if isinstance(answer, list):
        model.archived.update(answer)
        return
    fresh = set(args["ids"]) - model.archived
    must(answer["events"] == len(fresh), "all that was said is archived, once", (answer, fresh))
    model.archived.update(fresh)


def _learn_unarchive(model: Model, args: Args, answer: Any) -> None:
    if isinstance(answer, list):
        model.archived.difference_update(set(args["ids"]) - set(answer))
        return
    there = set(args["ids"]) & model.archived
    must(answer["events"] == len(there), "all that was archived comes back", (answer, there))
    model.archived.difference_update(there)


def _seen_archived(mem: Memory, model: Model, args: Args) -> Any:
    """Which of these lie in archives now. A session goes as a whole."""
    found = _archived_of(mem, args)
    sessions: dict[Any, set[bool]] = {}
    for id_ in set(args["ids"]) - model.archived:
        event = model.events[id_]
        sessions.setdefault((event.owner, event.session_id), set()).add(id_ in found)
    must(all(len(each) == 1 for each in sessions.values()), "no session is half archived", found)
    return found


def _seen_unarchived(mem: Memory, _model: Model, args: Args) -> Any:
    return _archived_of(mem, args)


def _archived_of(mem: Memory, args: Args) -> list[str]:
    rows = mem._ctx.engine.read(args["tenant_id"], lambda reader: list(by_ids(near(reader), ENTRIES, args["ids"])))
    return sorted(row.id for row in rows if (row.body or "").startswith(ARCHIVED))


# -- contents


def _plan_move(model: Model, rng: Random, number: int) -> Args | None:
    del number
    if not model.has_objects or not model.events:
        return None
    return {"tenant_id": rng.choice(model.tenants), "back": rng.random() < 0.6}


def _move(mem: Memory, args: Args) -> Any:
    return mem.store.move_contents(back=args["back"], tenant_id=args["tenant_id"]).to_wire()


def _plan_sweep(model: Model, rng: Random, number: int) -> Args | None:
    del rng, number
    return {} if model.has_objects else None


def _sweep(mem: Memory, _args: Args) -> Any:
    report = mem.store.sweep_objects(grace_hours=0)
    must(report.left == 0 and report.young == 0, "a sweep takes what no row names", report)
    return report.to_wire()


# -- an object store that fails


def _plan_outage(model: Model, rng: Random, number: int) -> Args | None:
    return plan_damage(model, rng, number) if model.has_objects else None


def _outage(specimen: Specimen, model: Model, args: Args) -> None:
    """What does not lie outside is answered as ever; the rest is said to be out of reach, and is no damage."""
    doors = Doors(model, args, specimen.handle())
    with specimen.objects_down():
        for name, door in doors_of(model, args).items():
            try:
                answer = door(specimen.handle())
            except ObjectsUnavailable:
                continue
            must(answer == doors.given[name], f"an object store that is down is no damage ({name})", answer)


def _damage_object(specimen: Specimen, model: Model, args: Args) -> None:
    """Lose or alter one object, ask every door, and bring it back."""
    objects = specimen.objects
    assert objects is not None
    outside = specimen.mem._ctx.outside
    assert outside is not None
    rng = Random(args["chance"])
    keys = [key for key in objects.names() if key.startswith(outside.tenant_folder(args["scope"]["tenant_id"]))]
    if not keys:
        return
    key = rng.choice(keys)
    kept = objects.peek(key)
    assert kept is not None
    how, spoilt = _spoilt(kept, [objects.peek(other) for other in keys if other != key], rng)
    doors = Doors(model, args, specimen.handle())
    objects.replace(key, spoilt)
    try:
        doors.check(specimen.handle, f"an object that is {how}")
    finally:
        objects.replace(key, kept)
        specimen.mem = specimen.handle()


def _spoilt(kept: bytes, others: Collection[bytes | None], rng: Random) -> tuple[str, bytes | None]:
    at = rng.randrange(max(1, len(kept)))
    ways: dict[str, bytes | None] = {
        "lost": None,
        "empty": b"",
        "cut": kept[:at],
        "altered": kept[:at] + bytes([(kept[at] if kept else 0) ^ 1]) + kept[at + 1 :],
        "longer": kept + b"x",
    }
    if others:
        ways["another's"] = rng.choice(list(others))
    how = rng.choice(list(ways))
    return how, ways[how]


# -- a content that does not fit while the object store answers nobody


def _plan_unheard(model: Model, rng: Random, number: int) -> Args | None:
    owners = model.owners()
    if not model.has_objects or not owners:
        return None
    return {"scope": scope_of(model, rng.choice(owners), "s1"), "word": model.new_word(number, "unheard")}


def _unheard(specimen: Specimen, _model: Model, args: Args) -> None:
    with specimen.objects_down():
        outcome = specimen.attempt(
            lambda mem: mem.run(**args["scope"]).observe("user", f"{args['word']} at length. " * 60).id
        )
    must(outcome.how == "error" and outcome.answer[0] == "objects_unavailable", "what was not kept is said", outcome)


ACTS = (
    Act("archive", 6, _plan_session, _archive, _learn_archive, _seen_archived, is_outside=True),
    Act("unarchive", 3, _plan_session, _unarchive, _learn_unarchive, _seen_unarchived, is_outside=True),
    Act("move_contents", 2, _plan_move, _move, is_outside=True),
    Act("sweep", 1, _plan_sweep, _sweep, is_struck=False, is_outside=True),
    Act("outage", 1, _plan_outage, visit=_outage, is_struck=False, is_outside=True),
    Act("unheard", 1, _plan_unheard, visit=_unheard, is_struck=False, is_outside=True),
    Act("damage_object", 2, _plan_outage, visit=_damage_object, is_struck=False, is_outside=True),
)
