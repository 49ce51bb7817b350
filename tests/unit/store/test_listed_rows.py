"""A list of an owner without a status is read status by status: the same rows in the same order, page by page."""

from __future__ import annotations

from random import Random

import pytest

from muniment.core.ports.engine import Insert, Reader
from muniment.core.ports.schema import ListingRow
from muniment.handles.memory import Memory
from muniment.store.lists.owners import each_owner
from muniment.store.lists.seeking import rows_listed

STATUSES = ("active", "gone", "made", "open", "é", "")


def _rows(random: Random, count: int) -> list[ListingRow]:
    return [
        ListingRow(f"i{n:03}", 1, random.choice("kl"), random.choice("abc"), random.choice(STATUSES), f"c{n % 7}")
        for n in range(count)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_pages_are_those_of_the_whole_list(any_mem: Memory, seed: int) -> None:
    random = Random(seed)
    rows = _rows(random, 60)
    any_mem._ctx.engine.write("default", lambda tx: tx.do(Insert("listings", rows)))

    def walk(reader: Reader, owner: str, descending: bool, since: str, size: int) -> list[ListingRow]:
        where = (("kind", "=", "k"), ("owner", "=", owner), ("placed_at", ">=", since))
        found: list[ListingRow] = []
        while True:
            after = (found[-1].placed_at, found[-1].id) if found else None
            page = rows_listed(reader, where, after=after, descending=descending, limit=size)  # type: ignore[arg-type]
            found += page
            if len(page) < size:
                return found

    for owner in "abc":
        for descending in (False, True):
            since, size = random.choice(("c0", "c3")), random.choice((1, 4, 100))
            found = any_mem._ctx.engine.read(
                "default", lambda reader, asked=(owner, descending, since, size): walk(reader, *asked)
            )
            own = [row for row in rows if (row.kind, row.owner) == ("k", owner) and row.placed_at >= since]
            assert found == sorted(own, key=lambda row: (row.placed_at, row.id), reverse=descending)


def test_owners_are_stepped_through_once_each(any_mem: Memory) -> None:
    rows = _rows(Random(5), 80)
    any_mem._ctx.engine.write("default", lambda tx: tx.do(Insert("listings", rows)))
    found = any_mem._ctx.engine.read("default", lambda reader: list(each_owner(reader, "k")))
    assert found == ["a", "b", "c"]


def test_a_list_of_runs_goes_by_when_they_began_whatever_became_of_them(any_mem: Memory) -> None:
    begun = []
    for number in range(6):
        run = any_mem.run(user_id="ana", agent_id="agent")
        run.observe("user", f"Find a table for {number}.")
        begun.append(run)
    for run in begun[::2]:
        run.finish()
    assert [state.run_id for state in any_mem.runs(user_id="ana")] == [run.run_id for run in begun]
