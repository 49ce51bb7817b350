"""A verification in parts, each with bounded work, that come to the same as a whole one; and a sample that says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muniment.core.ports.engine import Delete, Patch
from muniment.errors import InvalidInput
from muniment.handles.memory import Memory
from muniment.store import verify as verifying
from muniment.store.reports import VerifyReport
from products import for_each

pytestmark = pytest.mark.req("LG-05")


def tell(mem: Memory, tenants: tuple[str, ...] = ("t1", "t2")) -> None:
    for tenant in tenants:
        for user in ("ana", "bob"):
            for number in range(3):
                run = mem.run(user_id=user, session_id=f"s{number}", tenant_id=tenant)
                said = run.observe("user", f"{user} says thing {number} of {tenant}").id
                run.remember(f"user.thing{number}", f"thing {number}", sources=[said])


def parts(mem: Memory, entries_max: int, tenant_id: str | None = None) -> list[VerifyReport]:
    found = [mem.verify(entries_max=entries_max, tenant_id=tenant_id)]
    while found[-1].resume is not None:
        found.append(mem.verify(entries_max=entries_max, resume=found[-1].resume, tenant_id=tenant_id))
    return found


def summed(reports: list[VerifyReport]) -> dict[str, int]:
    names = ("sessions", "entries", "derived", "lacking", "outdated", "unproven")
    return {name: sum(getattr(report, name) for report in reports) for name in names}


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_the_parts_come_to_the_whole(make: Callable[..., Memory], engine: str) -> None:
    mem = make(engine)
    tell(mem)
    whole = mem.verify()
    for entries_max, fewest in ((1, 16), (7, 5), (10_000, 1)):
        found = parts(mem, entries_max)
        assert len(found) >= fewest
        assert summed(found) == summed([whole])
        assert all(report.ok for report in found)
        assert max(report.entries for report in found) <= entries_max + 2  # a session is walked whole
    assert summed(parts(mem, 5, "t1")) == summed([mem.verify(tenant_id="t1")])


def test_the_parts_name_what_the_whole_names(mem: Memory) -> None:
    tell(mem, ("t1",))
    mem.store.index(tenant_id="t1")
    mem._ctx.engine.write("t1", lambda tx: tx.do(Patch("items", (("kind", "=", "fact"),), {"status": "deprecated"})))
    mem._ctx.engine.write("t1", lambda tx: tx.do(Delete("segments", (("user_id", "=", "bob"),))))
    whole = {(each.kind, each.id) for each in mem.verify().differing}
    assert ("index", "bob") in whole
    assert {(each.kind, each.id) for report in parts(mem, 3) for each in report.differing} == whole
    first = next(entry.id for entry in mem.ledger.entries(user_id="ana", tenant_id="t1"))
    mem._ctx.engine.write(
        "t1", lambda tx: tx.do(Patch("entries", (("id", "=", first),), {"ts": "2020-01-01T00:00:00.000000Z"}))
    )
    broken = [each for report in parts(mem, 3) for each in report.broken]
    assert [each.id for each in broken] == [first]
    assert sum(report.derived for report in parts(mem, 3)) == 0  # nothing is made again from what does not hold


@for_each("wrong", ["", "x", "WzFd", 7, "WzEsbnVsbCwidDEiLCJjaGFpbnMiLFtdLGZhbHNlXQ=="])
def test_what_is_no_place_is_refused(mem: Memory, wrong: str) -> None:
    tell(mem, ("t1",))
    with pytest.raises(InvalidInput, match="verification") as caught:
        mem.verify(resume=wrong, tenant_id="t1")
    assert caught.value.path == "$.resume"


def test_how_much_is_a_number(mem: Memory) -> None:
    for wrong in (0, -1, True, "many"):
        with pytest.raises(InvalidInput, match="entries_max"):
            mem.verify(entries_max=wrong)  # type: ignore[arg-type]


def test_a_sample_says_what_share_it_is(mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    tell(mem)
    monkeypatch.setattr(verifying, "SAMPLE_SESSIONS", 2)
    quick = mem.verify(quick=True)
    assert (quick.sampled, quick.sessions, quick.sessions_held) == (True, 4, 12)
    assert (mem.verify().sampled, mem.verify().sessions_held) == (False, 0)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize("tenant", ["acme", "zeta", "ä"])
def test_a_tenant_whose_row_was_taken_out_is_not_passed_by(
    make: Callable[..., Memory], engine: str, tenant: str
) -> None:
    """LG-05: a check of the whole store walks the sessions of a tenant that stands in no list, and says so."""
    memory = make(engine)
    for each in ("default", tenant):
        memory.run(user_id="ana", tenant_id=each).observe("user", "I moved to Oslo.")
    sound = memory.verify()
    assert sound.ok
    assert memory._ctx.engine.unlisted_tenants() == []
    memory._ctx.engine.write(tenant, lambda tx: tx.do(Delete("tenants", (("created_at", ">=", ""),))))
    assert memory._ctx.engine.unlisted_tenants() == [tenant]
    report = memory.verify()
    assert [(each.tenant_id, each.kind, each.reason) for each in report.differing] == [
        (tenant, "tenant", "its row is missing")
    ]
    assert not report.ok
    assert (report.tenants, report.sessions, report.entries) == (2, sound.sessions, sound.entries)
    told = parts(memory, 1)
    assert [each.kind for part in told for each in part.differing] == ["tenant"]
    assert sum(part.entries for part in told) == sound.entries
