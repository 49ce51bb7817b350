"""The sample that a quick verification walks: whole where there are few sessions, spread over the names where not."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.core.ports.engine import Delete, Insert, Reader
from muniment.core.ports.schema import SessionRow
from muniment.handles.memory import Memory
from muniment.store.engines.sqlite import SqliteEngine
from muniment.store.sampling import middle, sampled_sessions
from muniment.store.turns import names_of

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=12) | st.from_regex(
    r"user-[0-9]{1,5}", fullmatch=True
)
SESSIONS = st.tuples(NAMES, NAMES)


def rows_of(names: list[tuple[str, str]]) -> list[SessionRow]:
    return [SessionRow(user_id, session_id, 1, b"h", "", "") for user_id, session_id in names]


def sample(names: list[tuple[str, str]], count: int) -> list[tuple[str, str]]:
    engine = SqliteEngine(":memory:")
    engine.write("t", lambda tx: tx.do(Insert("sessions", rows_of(names))))

    def read(reader: Reader) -> list[tuple[str, str]]:
        return [(row.user_id, row.session_id) for row in sampled_sessions(reader, count)]

    return engine.read("t", read)


@given(SESSIONS, SESSIONS)
def test_the_middle_lies_between(one: tuple[str, str], other: tuple[str, str]) -> None:
    low, high = min(one, other), max(one, other)
    found = middle(low, high)
    assert found is None or low < found < high


@given(st.sets(SESSIONS, max_size=30), st.integers(1, 40))
@settings(max_examples=examples(40), deadline=None)
def test_a_sample_has_as_many_as_were_asked_for_or_all(names: set[tuple[str, str]], count: int) -> None:
    found = sample(sorted(names), count)
    assert found == sorted(set(found))
    assert set(found) <= names
    assert len(found) == min(count, len(names))


NEAR = st.text(st.sampled_from([*"abz09-: !é\U0010ffff𝒳"]), min_size=1, max_size=3)


@pytest.mark.soak
@given(st.sets(st.tuples(NEAR, NEAR), max_size=12), st.booleans())
@settings(max_examples=examples(100), deadline=None)
def test_few_are_sampled_whole_however_near_their_names_are(names: set[tuple[str, str]], is_one_user: bool) -> None:
    named = {("u", session_id) for _, session_id in names} if is_one_user else names
    assert sample(sorted(named), 64) == sorted(named)


@pytest.mark.parametrize(
    "names",
    [
        [
            (" \U0010ffff:", "!é"),
            ("!", "0"),
            ("!", "9"),
            ("!\U0010ffff", "𝒳9\U0010ffff"),
            ("- ", " -"),
            ("0", "z-𝒳"),
            ("9a𝒳", "zé"),
            ("b!", "𝒳 b"),
            ("z  ", " 𝒳"),
            ("\U0010ffffzb", "- "),
        ],
        [
            ("!", " "),
            ("9\U0010ffffé", "\U0010ffff"),
            (":", " "),
            (":", "z"),
            (":𝒳", "𝒳"),
            ("a", ":\U0010ffff0"),
            ("b0 ", "09"),
            ("z!0", " 0-"),
            ("é 𝒳", " b "),
        ],
        [
            ("!", ":b"),
            ("-é", "\U0010ffff9a"),
            ("0", "é0b"),
            ("9 !", "!"),
            ("ab𝒳", "b"),
            ("a\U0010ffffz", "𝒳"),
            ("b", "-é"),
            ("b", "bza"),
            ("𝒳z!", "𝒳"),
            ("\U0010ffff", "b:!"),
        ],
    ],
)
def test_names_without_a_middle_have_one_between_them(names: list[tuple[str, str]]) -> None:
    assert sample(names, 64) == names


@pytest.mark.parametrize(
    "names",
    [
        [(f"user-{n:05}", "s") for n in range(2_000)],
        [("one", f"s{n:05}") for n in range(2_000)],
        [(f"user-{n // 50:03}", f"2026-{n % 50:02}") for n in range(2_000)],
        [*((f"user-{n:05}", "s") for n in range(1_990)), *((f"zz{n}", "s") for n in range(10))],
    ],
    ids=["users", "one user", "both", "two forms"],
)
def test_a_sample_is_spread(names: list[tuple[str, str]]) -> None:
    names = sorted(names)
    places = [names.index(name) for name in sample(names, 64)]
    assert len(places) == 64
    gaps = [after - before for before, after in pairwise(places)]
    assert (places[0], places[-1]) == (0, len(names) - 1)
    assert max(gaps) <= 4 * len(names) / 64


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_what_is_a_users_is_found_among_what_is_others(make: Callable[..., Memory], engine: str) -> None:
    """Names that come before, between and behind those of a corpus that others have too."""
    mem = make(engine)
    for user in ("ana", "bob", "zoë"):
        mem.run(user_id=user, session_id="s").observe("user", "I live in Lisbon.")
        for corpus in ("notes", "notes-2", "notes.old", "x"):
            mem.corpus(corpus, user_id=user).add("The ferry leaves at nine.", document_id="d")
    mem.corpus("notes").add("The ferry leaves at ten.", document_id="d")
    mem.corpus("only", user_id="bob").add("The ferry leaves at ten.", document_id="d")
    found = mem._ctx.engine.read("default", lambda reader: names_of(reader, "ana"))
    assert found == ("ana", "corpus:notes-2:ana", "corpus:notes.old:ana", "corpus:notes:ana", "corpus:x:ana")
    assert mem._ctx.engine.read("default", lambda reader: names_of(reader, "nobody")) == ("nobody",)
    assert mem._ctx.engine.read("default", lambda reader: names_of(reader, "corpus:only:bob")) == ("corpus:only:bob",)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_every_tenant_with_a_session_is_found(make: Callable[..., Memory], engine: str) -> None:
    mem = make(engine)
    tenants = ["a", "a1", "b", "c:d", "ä", "𝒳"]
    for tenant in tenants:
        for user in ("ana", "bob"):
            mem.run(tenant_id=tenant, user_id=user).observe("user", "I live in Lisbon.")
    assert mem._ctx.engine.unlisted_tenants() == []
    for tenant in tenants[::2]:
        mem._ctx.engine.write(tenant, lambda tx: tx.do(Delete("tenants", (("created_at", ">=", ""),))))
    engine = mem._ctx.engine
    assert (engine.unlisted_tenants(), engine.tenants()) == (tenants[::2], tenants[1::2])
    assert (engine.tenants("a1", 1), engine.tenants("c:d"), engine.tenants(limit=2)) == (["c:d"], ["𝒳"], ["a1", "c:d"])
