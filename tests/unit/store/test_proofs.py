"""Builds and receipts have a link in a chain of proofs: what was edited, taken away or given to another shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.core.ports.engine import Delete, Patch
from muniment.core.ports.rows import select
from muniment.core.ports.schema import ITEMS, PROOFS, ProofRow
from muniment.errors import InvalidInput, StoreDamaged
from muniment.handles.memory import Memory
from muniment.packets.builds import list_readables
from muniment.store.items import Item, row_digest
from muniment.surfaces.operations.parts import builds
from stored_rows import stored_rows

pytestmark = pytest.mark.req("TM-12")

KEY = "07" * 32
"""A key as it stands in a file."""


def tell(mem: Memory) -> list[str]:
    """Two users with two builds each, and a receipt."""
    builds = []
    for user, city in (("ana", "Lisbon"), ("bob", "Oslo")):
        run = mem.run(user_id=user, session_id="s1", run_id=f"run-{user}")
        run.observe("user", f"I live in {city} and I like to cook at home.")
        builds += [
            run.compose("responder", query=query).id for query in ("Where does the user live?", "What about home?")
        ]
    mem.forget(event=mem.run(user_id="eve", session_id="s1").observe("user", "nothing to keep of this").id)
    return builds


def links(mem: Memory) -> list[ProofRow]:
    return mem._ctx.engine.read("default", lambda reader: select(reader, PROOFS))


def alter(mem: Memory, table: str, id_: str, values: dict[str, Any], column: str = "id") -> None:
    count = mem._ctx.engine.write("default", lambda tx: tx.do(Patch(table, ((column, "=", id_),), values)))
    assert count == 1


def redone(mem: Memory, id_: str, **values: Any) -> None:
    """An edit by somebody who knows the form of a row's digest."""
    (row,) = mem._ctx.engine.read("default", lambda reader: select(reader, ITEMS, (("id", "=", id_),)))
    row = row._replace(**values)
    alter(mem, "items", id_, {**values, "digest": row_digest(row)})


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_each_version_has_a_link_and_the_chains_hold(make: Callable[..., Memory], engine: str) -> None:
    mem = make(engine)
    builds = tell(mem)
    mem.store.scrub()
    held = {(row.user_id, row.number): row.item_id for row in links(mem) if row.number}
    assert [held[user, number] for user in ("ana", "bob") for number in (1, 2)] == builds
    assert held["", 1] == held["", 2]  # a receipt, before and after the files were scrubbed
    assert mem.verify().ok
    mem.forget(user_id="ana")
    assert [row.salt is None for row in links(mem) if row.user_id == "ana"] == [True] * 3
    assert mem.verify().ok
    assert mem.replay(builds[2]).id == builds[2]


EDITS: dict[str, Callable[[Memory, str], Any]] = {
    "reworded": lambda mem, id_: redone(mem, id_, body=_body(mem, id_).replace("Lisbon", "Madrid")),
    "given to another": lambda mem, id_: redone(mem, id_, user_id="bob"),
    "its time": lambda mem, id_: redone(mem, id_, created_at="2020-01-01T00:00:00.000000Z"),
    "its seal": lambda mem, id_: redone(mem, id_, checked=1),
    "no digest": lambda mem, id_: alter(mem, "items", id_, {"digest": None}),
    "no proof": lambda mem, id_: _delete(mem, "proofs", "item_id", id_),
    "another digest in its proof": lambda mem, id_: alter(mem, "proofs", id_, {"digest": b"x" * 32}, "item_id"),
    "another hash in its proof": lambda mem, id_: alter(mem, "proofs", id_, {"hash": b"x" * 32}, "item_id"),
    "no lineage": lambda mem, id_: _delete(mem, "lineages", "item_id", id_),
}


def _body(mem: Memory, id_: str) -> str:
    (row,) = mem._ctx.engine.read("default", lambda reader: select(reader, ITEMS, (("id", "=", id_),)))
    assert row.body is not None
    return row.body


def _delete(mem: Memory, table: str, column: str, id_: str) -> None:
    mem._ctx.engine.write("default", lambda tx: tx.do(Delete(table, ((column, "=", id_),))))


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_build_is_told_by_no_door_and_named(mem: Memory, edit: str) -> None:
    told = tell(mem)
    build = told[0]
    EDITS[edit](mem, build)
    assert build in {each.id for each in mem.verify().differing}
    owner = "bob" if edit == "given to another" else "ana"
    doors: list[Callable[[], Any]] = [
        lambda: mem.replay(build),
        lambda: list(mem.export()),
        lambda: mem.why("Madrid" if edit == "reworded" else "Lisbon"),
        lambda: builds(mem),
        lambda: list_readables(mem._ctx, "default", owner, None, 10),
        lambda: mem.run(user_id=owner, session_id="s1", run_id=f"run-{owner}").observe("assistant", "So.", build=build),
    ]
    for door in doors:
        with pytest.raises(StoreDamaged, match=r"the build bld_.* is not as it was written") as caught:
            door()
        assert caught.value.details["id"] in told[:2]  # itself, or the one whose proof follows its own


@pytest.mark.parametrize("what", ["build", "proof", "both", "the end"])
def test_nothing_is_taken_off_a_chain_unnoticed(mem: Memory, what: str) -> None:
    one, last, *_ = tell(mem)
    end = next(row for row in links(mem) if row.user_id == "ana" and row.number == 0)
    if what in ("build", "both"):
        _delete(mem, "items", "id", last)
    if what in ("proof", "both"):
        _delete(mem, "proofs", "item_id", last)
    if what == "the end":
        _delete(mem, "proofs", "item_id", end.item_id)
    report = mem.verify()
    assert {each.id for each in report.differing} & {one if what == "the end" else last, end.item_id}
    if what != "build":
        with pytest.raises(StoreDamaged, match="the chain of proofs"):
            mem.run(user_id="ana", session_id="s1", run_id="run-ana").compose("responder", query="home?")
    mem.forget(user_id="ana")  # which a damaged chain does not keep from going


def test_who_writes_the_file_cannot_make_a_proof_without_the_key(tmp_path: Path) -> None:
    """Somebody redoes row, digest and the whole chain of a session, as the library would without a key."""
    for key in (None, KEY):
        path = tmp_path / f"{key is None}.db"
        with muniment.open(path, proof_key=None if key is None else lambda: KEY) as mem:
            build = tell(mem)[0]
            assert (mem.verify().ok, mem.verify().unproven) == (True, 0)
        with stored_rows(path) as file:
            file.execute("DELETE FROM proofs WHERE user_id = name('ana')")
        with muniment.open(path) as forger:
            items = forger._ctx.engine.read("default", lambda reader: select(reader, ITEMS, (("kind", "=", "build"),)))
            redone(forger, build, body=_body(forger, build).replace("Lisbon", "Madrid"))
            from muniment.store.proofs import prove

            own = [row.id for row in items if row.user_id == "ana"]
            rows = forger._ctx.engine.read("default", lambda reader: select(reader, ITEMS, (("id", "in", tuple(own)),)))  # noqa: B023
            forger._ctx.engine.write("default", lambda tx: prove(forger._ctx, tx, [Item(*row) for row in rows]))  # noqa: B023
        with muniment.open(path, proof_key=None if key is None else lambda: KEY) as mem:
            report = mem.verify()
            # without a key the packet's own hash tells; with one every link of the forger's is counted too
            assert build in {each.id for each in report.differing}
            assert report.unproven == (0 if key is None else 2)


def test_a_store_with_a_key_is_read_without_it_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with muniment.open(path, proof_key=lambda: KEY) as mem:
        build = tell(mem)[0]
        lines = list(mem.export())
    with muniment.open(path) as mem:
        assert mem.replay(build).id == build
        assert (mem.verify().ok, mem.verify().unproven) == (True, 6)
    with muniment.open(path, proof_key=lambda: bytes(32)) as mem:
        assert len(mem.verify().differing) >= 6
        with pytest.raises(StoreDamaged, match="its proof was altered"):
            mem.replay(build)
    with muniment.open(proof_key=lambda: KEY) as mem:
        mem.import_(lines)
        assert (mem.verify().ok, mem.verify().unproven) == (True, 0)
    for wrong in (b"short", KEY, "file:", f"file:{tmp_path / 'none'}", "env:NO_SUCH_KEY", lambda: b"short", list):
        with pytest.raises(InvalidInput, match="proof_key") as refused:
            muniment.open(proof_key=wrong)  # type: ignore[arg-type]
        assert refused.value.path == "$.proof_key"
        assert KEY not in str(refused.value)


def test_a_key_of_proofs_lies_in_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, key = tmp_path / "store.db", tmp_path / "key"
    key.write_text(f"{KEY}  # of proofs\n")
    with muniment.open(path, proof_key=f"file:{key}") as mem:
        tell(mem)
        assert (mem.verify().ok, mem.verify().unproven) == (True, 0)
    monkeypatch.setenv("PROOFS", KEY)
    with muniment.open(path, proof_key="env:PROOFS") as mem:
        assert (mem.verify().ok, mem.verify().unproven) == (True, 0)
