"""What a build was made from: one row for the turns, found again by a forget, an export and an import."""

from __future__ import annotations

from pathlib import Path

import pytest

import muniment
from muniment.core.ports.engine import Delete, Get, Reader, Select
from muniment.errors import Forgotten
from muniment.handles.memory import Memory
from muniment.store.items import links_from, links_of, put_links

SECRET = "The spare key lies under the third flower pot."


def _links(mem: Memory, item_id: str) -> list[str]:
    return [str(row[0]) for row in mem._ctx.engine.read("default", lambda reader: links_of(reader, item_id))]


def test_the_turns_of_a_build_stand_in_one_row_and_items_are_linked(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    said = [run.observe("user", f"{SECRET} Told {number} times.") for number in range(5)]
    fact = run.remember("key.place", "flower pot", sources=[said[0].id])
    build = run.compose("planner", query="spare key")

    def rows(reader: Reader) -> tuple[object, list[str]]:
        links = reader.do(Select("links", where=(("item_id", "=", build.id),)))
        return reader.do(Get("lineages", (build.id,))), [str(row[0]) for row in links]

    lineage, linked = mem._ctx.engine.read("default", rows)
    assert lineage == (build.id, "ana", "\n".join(sorted(each.id for each in said)))
    assert fact.fact_id in linked
    assert not {each.id for each in said}.intersection(linked)
    assert _links(mem, build.id) == sorted([*linked, *(each.id for each in said)])


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("form", ["a row for all", "a row for each"])
def test_a_forget_reaches_builds_of_either_form(mem: Memory, form: str) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    said = run.observe("user", SECRET)
    build = run.compose("planner", query="spare key")
    other = mem.run(user_id="ben", session_id="s2").compose("planner", query="spare key")
    if form == "a row for each":  # as stores have them that were made before
        mem._ctx.engine.write(
            "default",
            lambda tx: (put_links(tx, build.id, [said.id]), tx.do(Delete("lineages", (("item_id", "=", build.id),)))),
        )
    receipt = mem.forget(event=said.id)
    assert build.id in {each.id for each in receipt.erased}
    assert other.id not in {each.id for each in receipt.erased}
    with pytest.raises(Forgotten):
        mem.replay(build.id)


def items_made(reader: Reader, ids: list[str]) -> set[str]:
    return {link.item_id for link in links_from(reader, ids, ["ana"])}


@pytest.mark.req("LG-02")
def test_only_builds_that_hold_a_turn_are_found(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    said, later = run.observe("user", SECRET), run.observe("user", "I keep two goldfish.")
    first = run.compose("planner", query="spare key")
    mem.run(user_id="ben", session_id="s2").compose("planner", query="goldfish")
    find = mem._ctx.engine.read
    assert find("default", lambda reader: items_made(reader, [said.id, later.id])) == {first.id}
    assert find("default", lambda reader: items_made(reader, [f"{said.id}0", said.id[:-1]])) == set()


@pytest.mark.req("LG-05")
def test_an_export_tells_links_and_an_import_reads_them(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    said = run.observe("user", SECRET)
    build = run.compose("planner", query="spare key")
    lines = list(mem.export())
    assert not sum(mem.import_(lambda: lines).written.values())
    with muniment.open(":memory:") as other:
        other.import_(lambda: lines)
        assert _links(other, build.id) == _links(mem, build.id)
        assert list(other.export())[1:-1] == lines[1:-1]
        assert build.id in {each.id for each in other.forget(event=said.id).erased}


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("what", ["event", "session", "user"])
def test_whatever_is_forgotten_no_build_of_either_form_shows_it(any_mem: Memory, what: str) -> None:
    """The one is written as stores had them before, the other as now; that of another user stays."""
    run = any_mem.run(user_id="ana", session_id="s1")
    said = run.observe("user", SECRET)
    run.remember("key.place", "flower pot", sources=[said.id])
    elsewhere = any_mem.run(user_id="ana", session_id="s2")
    before, now = elsewhere.compose("planner", query="spare key"), elsewhere.compose("planner", query="flower pot")
    others = any_mem.run(user_id="ben", session_id="s1")
    others.observe("user", "The key of ben hangs on a nail.")
    kept = others.compose("planner", query="spare key")
    any_mem._ctx.engine.write(
        "default",
        lambda tx: (put_links(tx, before.id, [said.id]), tx.do(Delete("lineages", (("item_id", "=", before.id),)))),
    )
    asked = {"event": {"event": said.id}, "session": {"user_id": "ana", "session": "s1"}, "user": {"user_id": "ana"}}
    receipt = any_mem.forget(**asked[what])
    assert {before.id, now.id} <= {each.id for each in receipt.erased}
    assert kept.id not in {each.id for each in receipt.erased}
    for build in (before, now):
        with pytest.raises(Forgotten):
            any_mem.replay(build.id)
    assert any_mem.replay(kept.id).packet_bytes == kept.packet_bytes
    assert SECRET not in "".join(map(str, any_mem.export()))
    any_mem.store.rebuild()
    assert SECRET not in "".join(map(str, any_mem.export()))
    assert any_mem.verify().ok


@pytest.mark.req("LG-07")
def test_no_byte_of_a_forgotten_turn_is_left_in_the_file(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "a.db") as mem:
        run = mem.run(user_id="ana", session_id="s1")
        said = run.observe("user", SECRET)
        for query in ("spare key", "flower pot", "where is it?"):
            run.compose("planner", query=query)
        mem.forget(event=said.id)
    for file in tmp_path.iterdir():
        assert b"flower pot" not in file.read_bytes(), file.name
