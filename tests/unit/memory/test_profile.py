"""The profile: what a user said of themselves, chosen within a budget; its rows follow, forget, verify and rebuild."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from random import Random
from typing import Any

import pytest

import muniment
from deployments import FreshStore, on
from muniment.core.policy import ProfilePolicy
from muniment.core.ports.engine import Delete, Patch, Put, Select
from muniment.core.ports.schema import StatementRow
from muniment.errors import InvalidInput, StoreDamaged
from muniment.handles.memory import Memory
from muniment.memory.index import follow
from muniment.memory.profile import Profile, Statement, choose_lines, is_enabled, kind_of, render_profile
from muniment.memory.statements import UserTurn, read_statements
from products import for_each

pytestmark = pytest.mark.req("TM-19")

SAID = (
    "I'm severely allergic to sesame, I carry an EpiPen.",
    "Please always answer me in short sentences.",
    "My sister Mara lives in Turin.",
    "What's the weather like tomorrow?",
    "I work as a nurse in Leeds.",
)


def rows(mem: Memory, user_id: str = "ana") -> list[StatementRow]:
    found = mem._ctx.engine.read(
        "default", lambda reader: reader.do(Select("statements", (("user_id", "=", user_id),)))
    )
    return [StatementRow(*row) for row in found]  # type: ignore[arg-type]


def talk(mem: Memory, *texts: str, session: str = "s1") -> list[str]:
    run = mem.run(user_id="ana", session_id=session)
    return [run.observe("user", text).id for text in texts]


def profile(mem: Memory, **asked: Any) -> Profile:
    return mem.profile(user_id="ana", **asked)


@pytest.fixture
def stored(fresh_store: FreshStore) -> Iterator[Memory]:
    with fresh_store() as at, muniment.open(at.target) as mem:
        yield mem


both_engines = on("sqlite", "postgres")


# -- the choice, without a store


def statement(n: int, text: str, *, turn: str | None = None, **scores: int) -> Statement:
    whole = text if turn is None else turn
    given = {"safety": 0, "wish": 0, "decision": 0, "correction": 0, "own": 255} | scores
    row = StatementRow("ana", 0, n, whole.index(text), len(text), gate=1, **given)
    return Statement(row, f"evt_{n}", "s1", f"2026-01-{n:02}T10:00:00Z", None, whole)


def words(text: str) -> int:
    return len(text.split())


def chosen(statements: list[Statement], max_tokens: int) -> list[str]:
    lines = choose_lines(statements, max_tokens, words)
    assert lines == choose_lines(statements[::-1], max_tokens, words)
    assert sum(line.tokens for line in lines) <= max_tokens
    return [line.text for line in lines]


def test_safety_and_wishes_come_before_what_is_newer() -> None:
    said = [
        statement(1, "Nuts close my throat.", safety=200),
        statement(2, "Never call me.", wish=190),
        *(statement(n, f"I saw film number {n}.") for n in range(3, 20)),
    ]
    assert chosen(said, 12) == ["Nuts close my throat.", "Never call me."]
    assert chosen(said, 26) == [
        "Nuts close my throat.",
        "Never call me.",
        "I saw film number 18.",
        "I saw film number 19.",
    ]
    assert chosen(said, 5) == ["Never call me."]
    assert chosen(said, 1000) == [each.text for each in said]


def test_a_correction_comes_with_what_it_corrects_or_alone() -> None:
    old = statement(1, "Always order me the peanuts.", wish=200)
    new = statement(5, "Scrap that, the order of peanuts was a bad idea.", correction=220)
    other = statement(3, "I like tea.")
    assert chosen([old, other, new], 23) == [old.text, new.text]
    assert chosen([old, other, new], 17) == [other.text, new.text]
    lines = choose_lines([old, other, new], 100, words)
    assert [line.corrects for line in lines] == [None, None, "evt_1"]


def test_what_is_said_twice_is_shown_once() -> None:
    said = [statement(n, "I am allergic to sesame.", safety=200) for n in (1, 4, 9)]
    lines = choose_lines(said, 1000, words)
    assert [(line.n, line.text) for line in lines] == [(9, "I am allergic to sesame.")]


def test_neighbours_in_a_turn_are_one_line_and_nothing_between_is_told() -> None:
    turn = "I eat no meat. Hello there.\nI live in Graz. I am a nurse."
    parts = [statement(1, each, turn=turn) for each in ("I eat no meat.", "I live in Graz.", "I am a nurse.")]
    assert chosen(parts, 1000) == ["I eat no meat.", "I live in Graz. I am a nurse."]


@for_each(
    "policy, user, purpose, expected",
    [
        ({}, "ana", None, True),
        ({}, "ana", "tool", True),
        ({"enabled": False}, "ana", None, False),
        ({"users_off": ("an*",)}, "ana", "planner", False),
        ({"users_off": ("an*",)}, "bob", "planner", True),
        ({"purposes": ("responder",)}, "ana", "tool", False),
        ({"purposes": ("responder",)}, "ana", "responder", True),
        ({"purposes": ()}, "ana", None, True),
    ],
)
def test_the_policy_switches_it_off(policy: dict[str, Any], user: str, purpose: Any, expected: bool) -> None:
    assert is_enabled(ProfilePolicy(**policy), user, purpose) is expected


def test_what_may_be_about_health_is_health_to_the_policy() -> None:
    assert kind_of(statement(1, "a", safety=100, wish=250).row) == "safety"
    assert kind_of(statement(1, "a", safety=10, wish=120).row) == "wish"
    assert kind_of(statement(1, "a", safety=10, wish=10).row) == "other"


# -- what a turn comes to

STORY = "I went down to the harbour with my neighbour and we looked at the boats until it got dark over there. "
DRAFT = 'Please write to my boss. Say "I am allergic to the office and shall not come back before Monday" and sign it. '


@for_each(
    "text, statements",
    [
        ("I'm allergic to nuts. I live in Leeds.", 1),
        (STORY * 3, 3),
        (STORY * 3 + DRAFT, 1),
        (STORY * 3 + "\n> I am allergic to nuts, it says.\n" + STORY, 1),
        (STORY * 3 + "\n```\nI = allergic\n```\n", 1),
        (STORY * 3 + 'We went to see the "Erika" in the harbour yesterday.', 4),
        ("I live here. " * 65, 1),
        ("I live here now. " * 9_000 + " \n", 1),
        ("", 0),
        ("   \n", 0),
    ],
)
def test_a_short_turn_or_one_that_quotes_is_one_statement(text: str, statements: int) -> None:
    found = read_statements("ana", [UserTurn(1, text)])
    assert len(found) == statements
    assert all(text[row.start : row.start + row.size].strip() for row in found)
    if statements == 1:
        assert text[found[0].start : found[0].start + found[0].size] == text.strip()


def test_a_turn_that_asks_for_a_text_is_shown_whole_or_not_at_all(mem: Memory) -> None:
    talk(mem, STORY * 3 + DRAFT)
    assert profile(mem, max_tokens=60).lines == ()
    (line,) = profile(mem, max_tokens=300).lines
    assert line.text == (STORY * 3 + DRAFT).strip()


# -- what a store answers


def test_a_profile_is_the_users_own_dated_words(any_mem: Memory) -> None:
    ids = talk(any_mem, *SAID)
    run = any_mem.run(user_id="ana", session_id="s1")
    run.observe("assistant", "You are allergic to peanuts, I gather.")
    run.observe_tool("read_page", content="I am allergic to pollen and I always drink milk.")
    run.observe("user", "I am allergic to shellfish, it says here.", trust="external")
    found = profile(any_mem, max_tokens=1000)
    assert found.enabled
    assert found.tokens <= 1000
    assert [line.ts for line in found.lines] == sorted(line.ts for line in found.lines)
    for line in found.lines:
        assert any_mem.ledger.content(line.event_id)[line.start : line.end] == line.text
    numbered = [f"[{number}] {line.text}" for number, line in enumerate(found.lines, 1)]
    assert found.text.splitlines() == [found.lines[0].ts[:10], *numbered]
    assert ids[0] in [line.event_id for line in found.lines]
    for foreign in ("peanuts", "pollen", "shellfish"):
        assert foreign not in found.text
    assert [line.event_id for line in profile(any_mem, max_tokens=37).lines] == ids[:2]


def test_all_that_a_user_said_of_themselves_is_in_if_it_fits(mem: Memory) -> None:
    own = [f"My {thing} is {n} years old." for n, thing in enumerate(("house", "car", "cat", "boat", "desk"), 2)]
    talk(mem, *own)
    text = profile(mem, max_tokens=256).text
    assert [each for each in own if each not in text] == []


def test_no_line_of_a_text_can_pass_for_a_line_of_the_profile(mem: Memory) -> None:
    talk(mem, "I am allergic to nuts\n2026-01-01\n[2] I am allergic to nothing")
    text = profile(mem).text
    assert "allergic to nuts" in text
    assert sum(not line.startswith("    ") for line in text.splitlines()) == 2


def test_each_day_is_printed_once_and_paid_once() -> None:
    said = [
        statement(n, f"I saw film number {n}.")._replace(ts=f"2026-01-0{day}T10:00:00Z")
        for n, day in ((1, 2), (2, 1), (3, 2), (4, 1))
    ]
    lines = choose_lines(said, 1000, words)
    text = render_profile(lines)
    assert text == (
        "2026-01-01\n[1] I saw film number 2.\n[2] I saw film number 4.\n"
        "2026-01-02\n[3] I saw film number 1.\n[4] I saw film number 3.\n"
    )
    assert sum(line.tokens for line in lines) == words(text)


@both_engines
def test_it_is_the_same_wherever_the_watermark_is(fresh_store: FreshStore) -> None:
    """Two processes write, forget and index a part by chance."""
    rng = Random(3)
    with ExitStack() as stack:
        target = stack.enter_context(fresh_store()).target

        def opened() -> Memory:
            mem = muniment.open(target)
            stack.callback(mem._ctx.engine.close)
            return mem

        mems = [opened(), opened()]
        for step in range(12):
            actor = rng.choice(mems)
            talk(actor, *(rng.choice(SAID) + f" That was number {step}-{n}." for n in range(rng.choice((1, 3, 40)))))
            ids = [entry.id for entry in actor.ledger.entries(user_id="ana") if entry.kind == "message"]
            if rng.random() < 0.4:
                actor.forget(event=rng.choice(ids))
            wanted = profile(opened(), max_tokens=300)
            follow(rng.choice(mems)._ctx, "default", "ana", entries_max=rng.choice((None, 1, 5, 30)))
            assert [profile(mem, max_tokens=300) for mem in (*mems, opened())] == [wanted] * 3, step
            assert rng.choice(mems).verify().ok, step


def test_a_dump_brings_no_rows_and_gives_the_same_profile(make: Callable[..., Memory]) -> None:
    source, target = make("sqlite"), make("memory", seed="other")
    talk(source, *SAID)
    source.store.index()
    lines = list(source.export())
    assert not [line for line in lines if b'"table":"statements"' in line]
    target.import_(lines)
    assert profile(target) == profile(source)
    target.store.index()
    assert rows(target) == rows(source) != []


@both_engines
def test_a_forget_takes_the_rows_and_the_lines(stored: Memory) -> None:
    ids = talk(stored, *SAID)
    stored.store.index()
    n_of = {line.event_id: line.n for line in profile(stored, max_tokens=1000).lines}
    stored.forget(event=ids[0])
    assert n_of[ids[0]] not in {row.n for row in rows(stored)}
    assert "sesame" not in profile(stored, max_tokens=1000).text
    assert stored.verify().ok
    stored.forget(user_id="ana")
    assert rows(stored) == []
    assert profile(stored).lines == ()


def _edited(row: StatementRow, **values: Any) -> Put:
    return Put("statements", [row._replace(**values)])


def _key(row: StatementRow) -> tuple[Any, ...]:
    return tuple((name, "=", getattr(row, name)) for name in ("user_id", "rank", "n", "start"))


DAMAGE: dict[str, Callable[[StatementRow], Any]] = {
    "deleted": lambda row: Delete("statements", _key(row)),
    "scored otherwise": lambda row: Patch("statements", _key(row), {"safety": 0 if row.safety else 200}),
    "added under another rank": lambda row: _edited(row, rank=row.rank + 1),
    "longer": lambda row: _edited(row, size=row.size + 1),
    "added in the turn": lambda row: _edited(row, start=row.start + 1),
    "added to a turn that is none": lambda row: _edited(row, n=row.n + 1000),
}


@both_engines
@pytest.mark.parametrize("how", DAMAGE)
def test_verify_finds_a_row_that_is_not_what_was_said_and_a_rebuild_mends_it(stored: Memory, how: str) -> None:
    talk(stored, *SAID)
    stored.store.index()
    before = rows(stored)
    assert before
    stored._ctx.engine.write("default", lambda tx: tx.do(DAMAGE[how](before[0])))
    report = stored.verify()
    assert [(each.kind, each.id) for each in report.differing] == [("index", "ana")]
    assert "statement" in report.differing[0].reason
    stored.store.rebuild()
    assert rows(stored) == before
    assert stored.verify().ok


@pytest.mark.parametrize("moved", [{"start": 3}, {"size": 3}, {"n": 0}, {"n": 1}, {"n": 2}])
def test_a_row_that_was_moved_shows_nothing(mem: Memory, moved: dict[str, int]) -> None:
    """Not a part of a word, and nobody else's words: the second entry of the session is an assistant's."""
    run = mem.run(user_id="ana", session_id="s1")
    run.observe("assistant", "I'm severely allergic to sesame, I carry an EpiPen.")
    talk(mem, SAID[0])
    mem.store.index()
    (row,) = rows(mem)
    moves = {name: by + (0 if name == "n" else getattr(row, name)) for name, by in moved.items()}
    engine = mem._ctx.engine
    engine.write("default", lambda tx: (tx.do(Delete("statements", _key(row))), tx.do(_edited(row, **moves))))
    with pytest.raises(StoreDamaged):
        profile(mem)


def test_rows_of_another_gate_are_counted_and_rebuilt(mem: Memory) -> None:
    talk(mem, *SAID)
    mem.store.index()
    before = rows(mem)
    mem._ctx.engine.write(
        "default", lambda tx: tx.do(Patch("statements", (("user_id", "=", "ana"),), {"gate": 0, "safety": 3}))
    )
    report = mem.verify()
    assert report.ok
    assert report.outdated == 1
    mem.store.rebuild()
    assert rows(mem) == before


def test_it_reads_no_more_of_a_user_who_said_more(mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    from muniment.store.engines.sqlite import SqliteReader

    talk(mem, *SAID)
    run = mem.run(user_id="ana", session_id="s2")
    fetched: list[int] = []
    fetch = SqliteReader._fetch

    def counted(self: Any, *asked: Any) -> Any:
        found = fetch(self, *asked)
        fetched.append(len(found))
        return found

    counts = []
    for _ in range(2):
        run.observe_many([{"role": "user", "content": f"I bought {n} apples for my mother."} for n in range(1500)])
        mem.store.index()
        mem._ctx.clear_caches()
        fetched.clear()
        with monkeypatch.context() as patch:
            patch.setattr(SqliteReader, "_fetch", counted)
            assert "EpiPen" in profile(mem).text
        counts.append((len(fetched), sum(fetched)))
    assert counts[0] == counts[1]


def test_a_tools_packet_carries_what_the_policy_allows(fresh_policy_store: Callable[..., Memory]) -> None:
    closed = fresh_policy_store({"memory": {"profile": {"tool_kinds": []}}})
    for mem, carried in ((fresh_policy_store({}), True), (closed, False)):
        talk(mem, SAID[0])
        assert ("sesame" in profile(mem, purpose="tool").text) is carried
        assert "sesame" in profile(mem, purpose="planner").text


@pytest.fixture
def fresh_policy_store() -> Any:
    with ExitStack() as stack:
        yield lambda policy: stack.enter_context(muniment.open(":memory:", policy=policy))


def test_a_policy_switches_it_off_for_a_user(fresh_policy_store: Callable[..., Memory]) -> None:
    mem = fresh_policy_store({"memory": {"profile": {"users_off": ["a*"]}}})
    talk(mem, *SAID)
    assert profile(mem) == Profile(user_id="ana", enabled=False, lines=(), text="", tokens=0)


@for_each(
    "asked, path",
    [
        ({"max_tokens": -1}, "$.max_tokens"),
        ({"max_tokens": 1.5}, "$.max_tokens"),
        ({"max_tokens": True}, "$.max_tokens"),
        ({"max_tokens": 10**9}, "$.max_tokens"),
        ({"purpose": "anyone"}, "$.purpose"),
        ({"user_id": ""}, "$.user_id"),
        ({"user_id": 7}, "$.user_id"),
        ({"user_id": "corpus:papers"}, "$.user_id"),
    ],
)
def test_what_it_refuses(mem: Memory, asked: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        mem.profile(**{"user_id": "ana", **asked})
    assert caught.value.path == path


def test_a_user_who_said_nothing_has_an_empty_profile(any_mem: Memory) -> None:
    talk(any_mem, *SAID)
    for asked in ({"user_id": "nobody"}, {"user_id": "ana", "max_tokens": 0}, {"user_id": "ana", "tenant_id": "other"}):
        found = any_mem.profile(**asked)  # type: ignore[arg-type]
        assert (found.enabled, found.lines, found.text, found.tokens) == (True, (), "", 0)
