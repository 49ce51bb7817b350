"""The hash chain: no bit of a row can change unnoticed (LG-05). Its bytes are frozen in tests/goldens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.policy import LedgerPolicy
from muniment.core.ports.engine import Delete, Insert, Patch, Row, Select, Transaction
from muniment.core.ports.schema import ENTRIES, EntryRow, column_names
from muniment.core.scope import Scope
from muniment.handles.memory import Memory, open
from muniment.store.admission import admit
from muniment.store.chain import Head, genesis, header_hash, link_fault, seal
from muniment.store.ledger import EntryDraft
from muniment.store.reports import BrokenLink

NAMES = column_names(ENTRIES)
SCOPE_NAMES = ("user_id", "agent_id", "session_id", "run_id")
SCOPE = Scope(tenant_id="default", user_id="ana", agent_id="support", session_id="s1", run_id="run_1")


def sealed(count: int = 3, scope: Scope = SCOPE, start: Head | None = None) -> tuple[list[EntryRow], Head]:
    drafts = [EntryDraft(role="user", content=f"word {number}") for number in range(count)]
    admitted = [admit(draft, LedgerPolicy()) for draft in drafts]
    ids = CountingIds()
    head = start or genesis(scope.tenant_id, scope.user_id, scope.session_id)
    return seal(
        scope, head, admitted, [ids.new("evt") for _ in drafts], ids.salts(count), "2026-01-01T00:00:00.000000Z"
    )


def flipped(value: object) -> Iterator[object]:
    """Every value that differs from this one in a single bit (of its text, for a text, at first, middle and last)."""
    if isinstance(value, bytes):
        for bit in range(len(value) * 8):
            yield bytes([byte ^ (1 << (bit % 8)) if at == bit // 8 else byte for at, byte in enumerate(value)])
    elif isinstance(value, str):
        data = value.encode()
        for bit in range(len(data) * 8):
            try:
                changed = bytes([b ^ (1 << (bit % 8)) if at == bit // 8 else b for at, b in enumerate(data)]).decode()
            except UnicodeDecodeError:
                continue
            yield changed
        yield value + "x"
    elif isinstance(value, int):
        yield from (value ^ (1 << bit) for bit in range(8))
    elif value is None:
        yield "rcp_x"


@pytest.mark.req("LG-05")
def test_every_bit_of_every_column_is_covered() -> None:
    rows, _ = sealed(1)
    row, start = rows[0], genesis("default", "ana", "s1")
    assert link_fault("default", row, start) is None
    for name in [name for name in NAMES if name != "n"]:  # a store's own number: `verify` counts them
        changes = list(flipped(getattr(row, name)))
        assert changes, name
        for value in changes:
            changed = row._replace(**{name: value})
            assert link_fault("default", changed, start) is not None, (name, value)
    assert link_fault("other", row, start) is not None


@pytest.mark.req("LG-05")
@pytest.mark.parametrize("skipped", [1, 2, 1000])
def test_a_gap_in_seq_is_a_fault_though_every_hash_is_right(skipped: int) -> None:
    """Mutation: a seq need only be larger than the one before. Whoever seals the chain himself can leave one out."""
    (first,), head = sealed(1)
    (row,), _ = sealed(1, start=Head(head.seq + skipped, head.hash, head.recorded_at))
    assert link_fault("default", first, genesis("default", "ana", "s1")) is None
    assert (row[13], row[14]) == (first[14], header_hash("default", row))
    assert link_fault("default", row, head) == f"expected seq 2, found {2 + skipped}"
    repeated = sealed(1, start=Head(head.seq - 1, head.hash, head.recorded_at))[0][0]
    assert link_fault("default", repeated, head) == "expected seq 2, found 1"


@pytest.mark.req("LG-05", "LG-07")
@pytest.mark.parametrize("left", ["body", "salt"])
def test_a_forgotten_entry_holds_neither_body_nor_salt(left: str) -> None:
    """Mutation: a tombstone is sound if its body is gone. With the salt left, guesses of the content can be checked."""
    (row, *_), _ = sealed(1)
    at = dict(zip(NAMES, row, strict=True)) | {"receipt_id": "rcp_1"}
    start = genesis("default", "ana", "s1")
    assert link_fault("default", EntryRow(**at | {"body": None, "salt": None}), start) is None
    kept = at | {name: None for name in ("body", "salt") if name != left}
    assert link_fault("default", EntryRow(**kept), start) == "a forgotten entry still holds content"
    assert link_fault("default", EntryRow(**at), start) == "a forgotten entry still holds content"


@pytest.mark.req("LG-05")
def test_genesis_names_the_session() -> None:
    seen = {
        genesis(*name).hash
        for name in [("t", "u", "s"), ("u", "t", "s"), ("t", "us", ""), ("t", "u", "s2"), ("t2", "u", "s")]
    }
    assert len(seen) == 5


def test_the_parts_of_a_header_cannot_be_shifted_into_each_other() -> None:
    """`a","b` as a name is not two names: the header is JSON, not joined text."""
    one = Scope(user_id='a","b', agent_id="c", session_id="s", run_id="r")
    two = Scope(user_id="a", agent_id='b","c', session_id="s", run_id="r")
    first, second = sealed(1, one)[0][0], sealed(1, two)[0][0]
    shifted = second._replace(**{name: getattr(first, name) for name in NAMES if name not in SCOPE_NAMES})
    assert header_hash("default", shifted) != first.hash


# -- the same through the store: verify names what broke


@pytest.fixture
def mem() -> Iterator[Memory]:
    with open(":memory:", clock=TickingClock(), ids=CountingIds()) as memory:
        for user in ("ana", "bob"):
            run = memory.run(user_id=user, session_id="s1")
            run.observe_many([{"role": "user", "content": f"{user} {number}"} for number in range(4)])
            run.observe("user", "x" * 70_000)
        assert memory.verify().ok
        yield memory


def tamper(mem: Memory, work: object) -> tuple[BrokenLink, ...]:
    mem._ctx.engine.write("default", work)  # type: ignore[arg-type]
    return mem.verify().broken


def rows_of(mem: Memory, user_id: str = "ana") -> list[Row]:
    select = Select("entries", where=(("user_id", "=", user_id),), order=("user_id", "session_id", "seq"))
    return mem._ctx.engine.read("default", lambda reader: reader.do(select))


def put_instead(row: Row, changed: Row) -> object:
    def work(tx: Transaction) -> None:
        tx.do(Delete("entries", (("id", "=", row[0]),)))
        tx.do(Insert("entries", [changed]))

    return work


@pytest.mark.soak
@pytest.mark.req("LG-05")
@pytest.mark.parametrize("name", NAMES)
def test_verify_names_the_row_whose_column_was_altered(mem: Memory, name: str) -> None:
    place, row = NAMES.index(name), rows_of(mem)[2]
    value = list(flipped(row[place]))[-1]
    broken = tamper(mem, put_instead(row, (*row[:place], value, *row[place + 1 :])))
    assert broken
    ours = [link for link in broken if (link.user_id, link.session_id) == ("ana", "s1")]
    assert ours, broken
    assert ours[0].seq == (4 if name == "seq" else 3) or name in ("user_id", "session_id")
    assert ours[0].reason


@pytest.mark.req("LG-05")
@pytest.mark.parametrize("gone", range(6))
def test_a_deleted_row_is_missed(mem: Memory, gone: int) -> None:
    rows = rows_of(mem)
    (broken,) = tamper(mem, lambda tx: tx.do(Delete("entries", (("id", "=", rows[gone][0]),))))
    assert (broken.user_id, broken.seq) == ("ana", gone + 2 if gone < 5 else 6)


@pytest.mark.req("LG-05")
@pytest.mark.parametrize("place", [0, 2, 5])
def test_a_number_left_out_is_found_though_all_behind_it_was_sealed_anew(mem: Memory, place: int) -> None:
    """Mutation: `verify` takes any chain whose hashes are right, whether or not its numbers follow each other."""
    rows = [EntryRow(*row) for row in rows_of(mem)]  # type: ignore[arg-type]
    before = rows[place - 1]
    head = Head(before.seq, before.hash, "") if place else genesis("default", "ana", "s1")
    moved: list[EntryRow] = []
    for row in rows[place:]:
        changed = row._replace(seq=row.seq + 1, prev_hash=head.hash)
        changed = changed._replace(hash=header_hash("default", changed))
        moved.append(changed)
        head = Head(changed.seq, changed.hash, changed.recorded_at)

    def work(tx: Transaction) -> None:
        tx.do(Delete("entries", (("id", "in", tuple(row.id for row in moved)),)))
        tx.do(Insert("entries", moved))
        tx.do(Patch("sessions", (("user_id", "=", "ana"),), {"head_seq": head.seq, "head_hash": head.hash}))

    (broken,) = tamper(mem, work)
    assert (broken.seq, broken.reason) == (place + 2, f"expected seq {place + 1}, found {place + 2}")


@pytest.mark.req("LG-05", "LG-07")
def test_a_salt_put_back_beside_a_tombstone_is_found(mem: Memory) -> None:
    """Mutation: `verify` asks of a forgotten entry only that its body is gone."""
    row = rows_of(mem)[1]
    mem.forget(event=str(row[0]))
    assert mem.verify().ok
    (broken,) = tamper(mem, lambda tx: tx.do(Patch("entries", (("id", "=", row[0]),), {"salt": row[15]})))
    assert (broken.seq, broken.reason) == (2, "a forgotten entry still holds content")


@pytest.mark.req("LG-05")
def test_swapped_rows_are_found(mem: Memory) -> None:
    rows = rows_of(mem)
    one, two = rows[2], rows[3]
    swapped = [(*one[:5], two[5], *one[6:]), (*two[:5], one[5], *two[6:])]

    def work(tx: Transaction) -> None:
        tx.do(Delete("entries", (("id", "in", (one[0], two[0])),)))
        tx.do(Insert("entries", swapped))

    (broken,) = tamper(mem, work)
    assert broken.seq == 3


@pytest.mark.req("LG-05")
def test_a_chain_cannot_be_moved_to_another_session(mem: Memory) -> None:
    def work(tx: Transaction) -> None:
        for row in rows_of_in(tx):
            tx.do(Delete("entries", (("id", "=", row[0]),)))
            tx.do(Insert("entries", [(row[0], "eve", *row[2:])]))
        head = tx.do(Select("sessions", where=(("user_id", "=", "ana"),)))[0]
        tx.do(Delete("sessions", (("user_id", "=", "ana"),)))
        tx.do(Insert("sessions", [("eve", *head[1:])]))

    (broken,) = tamper(mem, work)
    assert (broken.user_id, broken.seq, broken.reason) == ("eve", 1, "does not point to its predecessor")


def rows_of_in(tx: Transaction) -> list[Row]:
    return tx.do(Select("entries", where=(("user_id", "=", "ana"),), order=("user_id", "session_id", "seq")))


@pytest.mark.req("LG-05")
@pytest.mark.parametrize(
    "values", [{"head_seq": 9}, {"head_hash": b"\0" * 32}, {"head_recorded_at": "2030-01-01T00:00:00.000000Z"}]
)
def test_an_altered_head_is_found(mem: Memory, values: dict[str, object]) -> None:
    where = (("user_id", "=", "ana"),)
    (broken,) = tamper(mem, lambda tx: tx.do(Patch("sessions", where, values)))  # type: ignore[arg-type]
    assert broken.user_id == "ana"


@pytest.mark.req("LG-05")
def test_every_session_that_lost_its_row_is_named(mem: Memory) -> None:
    broken = tamper(mem, lambda tx: tx.do(Delete("sessions", (("session_id", "=", "s1"),))))
    assert [(link.user_id, link.reason) for link in broken] == [
        ("ana", "entries without a session"),
        ("bob", "entries without a session"),
    ]
    assert mem.verify().entries == 12


@pytest.mark.req("LG-05")
def test_only_the_first_broken_link_of_a_session_is_named_and_other_sessions_go_on(mem: Memory) -> None:
    for user in ("ana", "bob"):
        for row in rows_of(mem, user)[2:4]:
            mem._ctx.engine.write(
                "default", lambda tx, id_=row[0]: tx.do(Patch("entries", (("id", "=", id_),), {"body": "{}"}))
            )
    assert [(link.user_id, link.seq) for link in mem.verify().broken] == [("ana", 3), ("bob", 3)]


@pytest.mark.req("LG-05", "LG-09")
@pytest.mark.parametrize("data", [None, b"", b"x" * 69_999 + b"y"])
def test_an_altered_blob_is_found(mem: Memory, data: bytes | None) -> None:
    blob = rows_of(mem)[-1]
    broken = tamper(mem, lambda tx: tx.do(Patch("blobs", (("entry_id", "=", blob[0]),), {"data": data})))
    assert [(link.id, "blob" in link.reason) for link in broken] == [(blob[0], True)]


@pytest.mark.req("LG-05")
def test_content_that_vanished_without_a_receipt_is_found(mem: Memory) -> None:
    row = rows_of(mem)[1]
    (broken,) = tamper(mem, lambda tx: tx.do(Patch("entries", (("id", "=", row[0]),), {"body": None, "salt": None})))
    assert broken.reason == "the content is missing and no receipt says why"
