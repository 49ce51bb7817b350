"""`mem.store.users`: who is in a tenant, in order, page by page; who was forgotten is not, who came back is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

import muniment
from muniment import aio
from muniment.core.scope import RESERVED_PREFIXES, is_reserved
from muniment.errors import InvalidInput
from muniment.handles.memory import Memory
from muniment.store import users as user_reading
from muniment.store.reports import UserState


def say(mem: Memory, user_id: str, session_id: str = "s1", count: int = 1, tenant_id: str = "default") -> list[str]:
    run = mem.run(user_id=user_id, session_id=session_id, tenant_id=tenant_id)
    return [run.observe("user", f"turn {number}").id for number in range(count)]


def names(mem: Memory, tenant_id: str = "default") -> list[str]:
    return [user.user_id for user in mem.store.users(tenant_id=tenant_id)]


def test_a_user_is_counted_and_dated(any_mem: Memory) -> None:
    assert list(any_mem.store.users()) == []
    say(any_mem, "ana", "s1", 3)
    say(any_mem, "bob", "s9")
    say(any_mem, "ana", "s2")
    any_mem.run(user_id="ana", session_id="s2").observe("user", "a second run in it")
    ana, bob = any_mem.store.users()
    first, *_, last = [
        entry for session in ("s1", "s2") for entry in any_mem.ledger.entries(user_id="ana", session_id=session)
    ]
    assert ana == UserState(
        user_id="ana",
        sessions=2,
        runs=3,
        events=(1 + 3) + (2 + 2),
        first_seen_at=first.recorded_at,
        last_seen_at=last.recorded_at,
    )
    assert (bob.sessions, bob.runs, bob.events) == (1, 1, 2)


@pytest.mark.req("LG-02")
def test_another_tenant_has_its_own(any_mem: Memory) -> None:
    say(any_mem, "ana", "s1", 2)
    say(any_mem, "ana", "s1", tenant_id="acme")
    say(any_mem, "zoe", "s1", tenant_id="acme")
    assert names(any_mem) == ["ana"]
    assert names(any_mem, "acme") == ["ana", "zoe"]
    assert names(any_mem, "nobody") == []
    assert [user.events for user in any_mem.store.users()] == [3]
    any_mem.forget(tenant="default")
    assert names(any_mem) == []
    assert names(any_mem, "acme") == ["ana", "zoe"]


def test_what_stands_under_the_name_of_a_corpus_or_a_bank_is_no_user(any_mem: Memory) -> None:
    like_reserved = ["bank", "bank9", "bank;", "banks", "corpor", "corpus", "corpus;x", "corpusä"]
    people = sorted(["Ana", "ana", "Ünal", "ünal", "日向", "\U0001f600", "~", "zoe", *like_reserved])
    for name in reversed(people):
        say(any_mem, name)
    any_mem.corpus("notes").add("# A\n\ntext", document_id="a")
    any_mem.corpus("notes", user_id="ana").add("# B\n\ntext", document_id="b")
    any_mem.corpus("own", user_id="only documents").add("# C\n\ntext", document_id="c")
    assert names(any_mem) == people, "by code point, on every engine"


def test_reserved_names_are_exactly_what_is_stepped_over() -> None:
    ranges = list(user_reading._between(RESERVED_PREFIXES))
    for name in (
        "",
        "a",
        "bank",
        "bank:",
        "bank:user:x",
        "bank:\U0010ffff",
        "bank;",
        "corpus:",
        "corpus:é:ü",
        "d",
        "~",
    ):
        inside = any(low <= name and (high is None or name < high) for low, high in ranges)
        assert inside == (not is_reserved(name)), name


@pytest.mark.soak
def test_pages_follow_each_other_without_loss(any_mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_reading, "PAGE_USERS", 3)
    people = [f"u{number:02}" for number in range(13)]
    for name in people:
        for session in ("s1", "s2"):
            say(any_mem, name, session)
    gone = people[3:7]
    for name in gone:  # a page of nobody
        any_mem.forget(user_id=name)
    left = [name for name in people if name not in gone]
    assert names(any_mem) == left
    for place in ("", "u00", "u05", "u055", "u12", "z"):
        listed = [user.user_id for user in user_reading.list_users(any_mem._ctx, "default", place)]
        assert listed == [name for name in left if name > place]


def test_a_list_of_a_file_goes_on_while_one_writes(
    make: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_reading, "PAGE_USERS", 3)
    mem = make("sqlite")
    for number in range(7):
        say(mem, f"u{number}")
    first = mem.store.users(limit=1).page()
    assert [user.user_id for user in first.items] == ["u0"]
    say(mem, "u9")
    assert [user.user_id for user in mem.store.users(cursor=first.next)] == ["u1", "u2", "u3", "u4", "u5", "u6", "u9"]


@pytest.mark.req("LG-07")
def test_who_was_forgotten_is_gone_and_who_comes_back_is_there(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana", session_id="s1")
    run.observe("user", "x")
    say(any_mem, "ana", "s2", 4)
    say(any_mem, "bob")
    any_mem.forget(user_id="ana", session="s2")
    ana, _ = any_mem.store.users()
    assert (ana.sessions, ana.runs, ana.events) == (1, 1, 2)
    any_mem.forget(user_id="ana")
    assert names(any_mem) == ["bob"]
    back = [run.observe("user", "the same handle goes on").id, run.observe("user", "again").id]
    ana, _ = any_mem.store.users()
    assert (ana.user_id, ana.sessions, ana.runs, ana.events) == ("ana", 1, 0, 4)
    any_mem.forget(event=back[1])
    assert names(any_mem) == ["ana", "bob"], "one event of two is left"
    any_mem.forget(event=back[0])
    assert names(any_mem) == ["bob"]
    say(any_mem, "ana", "s3")
    assert names(any_mem) == ["ana", "bob"]


def test_an_event_forgotten_by_itself_takes_nobody_away(any_mem: Memory) -> None:
    (said,) = say(any_mem, "ana")
    first = next(iter(any_mem.ledger.entries(user_id="ana")))
    any_mem.forget(event=first.id)
    any_mem.forget(event=said)
    (ana,) = any_mem.store.users()
    assert (ana.sessions, ana.runs, ana.events) == (1, 1, 2)


def test_an_import_brings_its_users_along(any_mem: Memory, tmp_path: Path) -> None:
    say(any_mem, "ana", "s1", 2)
    lines = list(any_mem.export())
    before = list(any_mem.store.users())
    with muniment.open(tmp_path / "other.db") as other:
        other.import_(lambda: lines)
        assert list(other.store.users()) == before


def test_bad_input_is_refused(mem: Memory) -> None:
    with pytest.raises(InvalidInput):
        user_reading.list_users(mem._ctx, "default", 5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        list(mem.store.users(tenant_id=""))


def test_with_await(tmp_path: Path) -> None:
    async def main() -> list[str]:
        async with await aio.open(tmp_path / "a.db") as mem:
            for name in ("bob", "ana"):
                await (await mem.run(user_id=name)).observe("user", "x")
            return [user.user_id async for user in mem.store.users()]

    assert asyncio.run(main()) == ["ana", "bob"]
