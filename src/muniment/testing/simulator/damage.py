"""Damage: a row is changed directly, or bytes of a file are. Reads must return what was written, or a typed error;
`verify` must notice missing data.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from muniment.core.ports.engine import Delete, Insert, Select, Transaction, Value
from muniment.core.ports.schema import Column, Table, column_names, table
from muniment.errors import DuplicateId, IntegrityFailure, MunimentError, NotADatabase, NotFound, SchemaMismatch
from muniment.handles.memory import Memory
from muniment.store.engines.codec import decode_instant, encode_instant
from muniment.store.reports import VerifyReport
from muniment.testing.simulator.act import Act, Args, scope_of
from muniment.testing.simulator.model import Model, must
from muniment.testing.simulator.specimens import Specimen
from muniment.testing.simulator.upkeep import shown_dump

__all__ = ["ACTS", "Doors", "doors_of", "plan_damage"]

_HEADER_BYTES = 100
_TYPED = (IntegrityFailure, NotADatabase, SchemaMismatch)
_DAMAGED = ("entries", "entries", "items", "blobs", "segments", "statements")
"""Tables whose rows are read back verbatim."""
_WORDS = re.compile(r"[^\W_]+")


class Doors:
    """The results of an undamaged store."""

    def __init__(self, model: Model, args: Args, mem: Memory) -> None:
        self._doors = doors_of(model, args)
        self.given = {name: door(mem) for name, door in self._doors.items()}
        self._words = set(_WORDS.findall(str(list(self.given.values()))))

    def check(self, opened: Callable[[], Memory], what: str) -> None:
        """Check that every result is unchanged, or a typed error, and that missing data was noticed."""
        missing: list[str] = []
        is_noticed = False
        for name, door in self._doors.items():
            try:
                answer = door(opened())
            except _TYPED:
                is_noticed = is_noticed or name == "verify"
                continue
            except (NotFound, DuplicateId):
                missing.append(name)
                continue
            except MunimentError as error:
                must(False, f"damage is told by one typed error ({name}, {what})", f"{error.code}: {error}")
            if name == "verify":
                is_noticed = answer != self.given[name]
            elif answer != self.given[name]:
                fresh = set(_WORDS.findall(str(answer))) - self._words
                must(not fresh, f"nothing altered is told ({name}, {what})", sorted(fresh)[:8])
                missing.append(name)
        must(is_noticed or not missing, f"verify notices what is missing ({what})", missing)


def doors_of(model: Model, args: Args) -> dict[str, Callable[[Memory], Any]]:
    where = {"tenant_id": args["scope"]["tenant_id"]}
    owner_id = args["scope"]["user_id"]
    now = model.now.isoformat()

    def run(mem: Memory) -> Any:
        return mem.run(**args["scope"])

    doors: dict[str, Callable[[Memory], Any]] = {
        "verify": lambda mem: _noticed(mem.verify(**where)),
        "entries": lambda mem: [str(entry) for entry in mem.ledger.entries(user_id=owner_id, **where)],
        "search": lambda mem: [(hit.id, hit.text) for hit in run(mem).search(args["query"], now=now)],
        "profile": lambda mem: mem.profile(user_id=owner_id, **where).text,
        "facts": lambda mem: [fact.to_wire() for fact in run(mem).facts()],
        "export": lambda mem: shown_dump(list(mem.export(**where))),
    }
    for id_ in args["ids"]:
        doors[f"content {id_}"] = lambda mem, id_=id_: mem.ledger.content(id_, **where)  # type: ignore[misc]
    if args["build"]:
        doors["replay"] = lambda mem: mem.replay(args["build"], **where).text
    return doors


def _noticed(report: VerifyReport) -> tuple[bool, int, int]:
    return report.ok, report.lacking, report.unreceipted


def damage_row(specimen: Specimen, model: Model, args: Args) -> str | None:
    """Change one column of one row, check every read, and restore the row."""
    rng = Random(args["chance"])
    tenant_id = args["scope"]["tenant_id"]
    spec = table(rng.choice(_DAMAGED))
    rows = specimen.engine.read(tenant_id, lambda reader: reader.do(Select(spec.name)))
    if not rows:
        return None
    row, place = _aimed(spec, rows, args["scope"]["user_id"], rng)
    changed = (*row[:place], _altered(spec.columns[place], row[place], rng), *row[place + 1 :])
    if changed == row or _is_taken(spec, changed, [each for each in rows if each != row]):
        return None
    what = f"{spec.name}.{column_names(spec)[place]}"
    doors = Doors(model, args, specimen.handle())
    specimen.engine.write(tenant_id, lambda tx: _swap(tx, spec, row, changed))
    try:
        doors.check(specimen.handle, what)
    finally:
        specimen.engine.write(tenant_id, lambda tx: _swap(tx, spec, changed, row))
        specimen.mem = specimen.handle()
    return what


def _aimed(spec: Table[Any], rows: list[tuple[Value, ...]], user_id: str, rng: Random) -> tuple[tuple[Value, ...], int]:
    """Pick a row and one of its columns: any, or as often one that holds the words of the owner being read."""
    names = column_names(spec)
    contents = [place for place, column in enumerate(spec.columns) if column.content]
    own = [row for row in rows if "user_id" not in names or row[names.index("user_id")] == user_id]
    if contents and own and rng.random() < 0.5:
        return rng.choice(own), rng.choice(contents)
    return rng.choice(rows), rng.randrange(len(names))


def _is_taken(spec: Table[Any], row: tuple[Value, ...], others: list[tuple[Value, ...]]) -> bool:
    """Return whether the row would clash with another's key, which no damage can bring about."""
    for columns in (spec.key, *spec.unique):
        places = [column_names(spec).index(name) for name in columns]
        if any(all(row[place] == other[place] for place in places) for other in others):
            return True
    return False


def _swap(tx: Transaction, spec: Table[Any], old: tuple[Value, ...], new: tuple[Value, ...]) -> None:
    places = [column_names(spec).index(name) for name in spec.key]
    tx.do(Delete(spec.name, tuple((column_names(spec)[place], "=", old[place]) for place in places)))
    tx.do(Insert(spec.name, [new]))


def _altered(column: Column, value: Value, rng: Random) -> Value:
    """Return a slightly different value of the same kind."""
    if column.form == "instant" and isinstance(value, str) and value:  # the only other values that a file can hold
        return decode_instant(encode_instant(value) ^ 1 << rng.randrange(40))
    if isinstance(value, bytes) and value:
        at = rng.randrange(len(value))
        return value[:at] + bytes([value[at] ^ rng.randrange(1, 256)]) + value[at + 1 :]
    if isinstance(value, str) and value:
        at = rng.randrange(len(value))
        return value[:at] + ("x" if value[at] != "x" else "y") + value[at + 1 :]
    return value + 1 if isinstance(value, int) else value


def damage_bytes(specimen: Specimen, model: Model, args: Args) -> str | None:
    """Flip bytes in a copy of the store's file, and check every read of the copy."""
    from muniment.store.engines.sqlite import SqliteEngine

    if not specimen.files():
        return None
    rng = Random(args["chance"])
    doors = Doors(model, args, specimen.handle())
    specimen.mem.store.scrub()  # all of it into one file
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.db"
        data = bytearray(specimen.files()[0].read_bytes())
        for _ in range(rng.choice((1, 1, 4, 24))):
            data[rng.randrange(_HEADER_BYTES, len(data))] ^= rng.randrange(1, 256)
        shutil.copyfile(specimen.files()[0], path)
        path.write_bytes(data)
        opened: list[Memory] = []

        def fresh() -> Memory:
            opened.append(specimen.handle(engine=SqliteEngine(path)))
            return opened[-1]

        try:
            doors.check(fresh, "bytes of a file")
        finally:
            for mem in opened:
                with closing(mem):
                    pass
    return "bytes"


def plan_damage(model: Model, rng: Random, number: int) -> Args | None:
    live = model.live_events()
    if not live:
        return None
    event = rng.choice(live)
    builds = [build.id for build in model.builds.values() if build.owner == event.owner and not build.may_be_gone]
    ids = [each.id for each in model.events_of(event.owner)]
    return {
        "scope": scope_of(model, event.owner, event.session_id),
        "query": f"what about {event.word}?",
        "ids": rng.sample(ids, min(3, len(ids))),
        "build": rng.choice(builds) if builds else "",
        "chance": f"{model.seed}/{number}",
    }


ACTS = (
    Act("damage_row", 2, plan_damage, visit=damage_row, is_struck=False),
    Act("damage_bytes", 1, plan_damage, visit=damage_bytes, is_struck=False),
)
