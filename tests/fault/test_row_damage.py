"""Rows edited at random in every column of every table: no door hands out what was altered (TM-12), and no forget says
that nothing is left where words are. Each fault that was found so is written out as well.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from row_damage import Written, play, secret

import muniment
from dump_lines import plain, resealed
from effort import SOAK
from muniment.errors import ChainBroken, StoreDamaged
from stored_rows import stored_rows

pytestmark = pytest.mark.req("TM-12")

ROUNDS = 2000 if SOAK else 16


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return Written(tmp_path_factory.mktemp("whole") / "whole.db")


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_edited_rows(written: Written, tmp_path: Path, seed: int) -> None:
    outcome = play(written, tmp_path / "damaged.db", seed)
    assert outcome.wrong == {}, f"{outcome.made}; again: python tests/fault/row_damage.py --first {seed} --rounds 1"


def damaged(written: Written, folder: Path, *statements: str) -> Path:
    path = folder / "damaged.db"
    path.write_bytes(written.data)
    with stored_rows(path) as file:
        for statement in statements:
            assert file.execute(statement).rowcount > 0, statement
    return path


def left_in(path: Path, user: str) -> list[str]:
    data = path.read_bytes()
    return [secret(user, number) for number in range(8) if secret(user, number).encode() in data]


@pytest.mark.req("LG-07")
def test_a_user_without_a_session_row_can_be_forgotten_and_is_not_exported_in_part(
    written: Written, tmp_path: Path
) -> None:
    path = damaged(written, tmp_path, "DELETE FROM sessions WHERE user_id = 'ana'")
    with muniment.open(path) as mem:
        for scope in ({}, {"user_id": "ana"}):
            with pytest.raises(StoreDamaged, match="the session 's1' is missing"):
                list(mem.export(**scope))
        with pytest.raises(StoreDamaged):
            mem.run(user_id="ana", session_id="s1", run_id="late").observe("user", "more")
        mem.forget(user_id="ana")
    assert left_in(path, "ana") == []


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("statement", [
    "UPDATE segments SET data = x'00' WHERE user_id = name('ana')",
    "UPDATE segments SET digest = x'00' WHERE user_id = name('ana')",
    "UPDATE entries SET body = CAST(body || x'ff' AS TEXT) WHERE user_id = name('ana') AND seq = 3",
    "UPDATE entries SET kind = CAST(kind || x'ff' AS TEXT) WHERE user_id = name('ana') AND seq = 3",
    "UPDATE items SET body = CAST(body || x'ff' AS TEXT) WHERE user_id = name('ana') AND kind = word('fact')",
    "UPDATE entries SET receipt_id = id('rcp_forged') WHERE user_id = name('ana') AND seq = 3",
    "UPDATE entries SET receipt_id = id('rcp_forged') WHERE user_id = name('ana') AND kind = word('state_patch')",
    "UPDATE entries SET receipt_id = id('rcp_forged'), salt = NULL WHERE user_id = name('ana')",
    "UPDATE items SET receipt_id = id('rcp_forged') WHERE user_id = name('ana')",
])  # fmt: skip
def test_no_damage_keeps_a_forget_or_a_verification_from_its_work(
    written: Written, tmp_path: Path, statement: str
) -> None:
    path = damaged(written, tmp_path, statement)
    with muniment.open(path) as mem:
        assert not mem.verify().ok
        mem.forget(user_id="ana")
    assert left_in(path, "ana") == []


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("kind", ["message", "state_patch"])
def test_an_entry_that_names_a_receipt_and_holds_its_words_goes_with_its_event_or_its_item(
    written: Written, tmp_path: Path, kind: str
) -> None:
    edited = f"UPDATE entries SET receipt_id = id('rcp_forged') WHERE user_id = name('ana') AND kind = word('{kind}')"
    path = damaged(written, tmp_path, edited)
    with muniment.open(path) as mem:
        if kind == "message":
            receipts = [mem.forget(event=written.events[number]) for number in range(4)]
            gone = [secret("ana", number) for number in range(4)]
        else:
            facts = mem.run(user_id="ana", session_id="s1", run_id="run-ana").facts()
            receipts = [mem.forget(fact=fact.fact_id) for fact in facts]
            gone = [secret("ana", 5)]
    assert not any(receipt.scrubbed for receipt in receipts)  # told: what it held may stand elsewhere
    assert not set(gone).intersection(left_in(path, "ana"))


@pytest.mark.req("LG-07")
def test_an_entry_whose_id_was_altered_is_not_told_as_gone(written: Written, tmp_path: Path) -> None:
    altered = "UPDATE entries SET id = CAST(id || x'ff' AS BLOB) WHERE user_id = name('ana') AND seq = 3"
    with muniment.open(damaged(written, tmp_path, altered)) as mem:
        receipt = mem.forget(user_id="ana")
    assert (receipt.status, receipt.counts["left_damaged"]) == ("pending", 1)


@pytest.mark.req("LG-07")
def test_words_that_were_moved_are_not_told_as_gone(written: Written, tmp_path: Path) -> None:
    words = "SELECT body FROM entries WHERE user_id = name('bob') AND seq = 4"
    moved = f"UPDATE entries SET body = ({words}) WHERE user_id = name('ana')"
    gone = "UPDATE entries SET body = '{}' WHERE user_id = name('bob') AND seq = 4"
    path = damaged(written, tmp_path, f"{moved} AND seq = 3", gone)
    with muniment.open(path) as mem:
        receipt = mem.forget(user_id="bob")
    assert (receipt.scrubbed, receipt.counts["left_damaged"]) == (False, 1)
    assert "the store is damaged" in receipt.note


ANAS_FACT = "WHERE kind = word('fact') AND user_id = name('ana')"
UNTOLD = {
    "an item's digest": (f"UPDATE items SET digest = NULL {ANAS_FACT}", "facts"),
    "a receipt of nothing": (
        "UPDATE items SET receipt_id = id('rcp_x') WHERE kind = word('fact') AND user_id = name('ana')",
        "export",
    ),
    "an emptied item": (f"UPDATE items SET body = NULL {ANAS_FACT}", "export"),
    "deleted items": (f"DELETE FROM items {ANAS_FACT}", None),
    "a mark": ("UPDATE marks SET evidence_id = id('evt_other') WHERE user_id = name('ana') AND number = 1", None),
    "a user's count": ("UPDATE users SET tail = tail + 1 WHERE user_id = name('ana')", None),
    "a user that is gone": ("DELETE FROM users WHERE user_id = name('ana')", None),
    "an entry's number": ("UPDATE entries SET n = 1000 WHERE user_id = name('ana') AND n = 2", None),
    "a tenant": ("DELETE FROM tenants", None),
    "a tenant's beginning": ("UPDATE tenants SET created_at = '2020-01-01T00:00:00Z'", None),
    "a tenant's beginning that is no time": ("UPDATE tenants SET created_at = replace(created_at, ':', 'x')", None),
    "a session's beginning": ("UPDATE sessions SET created_at = instant('2020-01-01T00:00:00.000000Z')", "users"),
    "a session's end": ("UPDATE sessions SET head_seq = head_seq + 1 WHERE user_id = 'ana'", "write"),
    "a session's hash": ("UPDATE sessions SET head_hash = x'00' WHERE user_id = 'ana'", "write"),
    "a key's event": (
        "UPDATE idempotency_keys SET entry_id = id('evt_whole00000002') WHERE user_id = name('bob')",
        "export",
    ),
}


@pytest.mark.req("LG-05")
@pytest.mark.parametrize("what", UNTOLD)
def test_verify_and_the_doors_tell(written: Written, tmp_path: Path, what: str) -> None:
    statement, door = UNTOLD[what]
    path = damaged(written, tmp_path, statement)
    with muniment.open(path) as mem:
        assert not mem.verify().ok
        run = lambda: mem.run(user_id="ana", session_id="s1", run_id="run-ana")  # noqa: E731
        doors: dict[str, Any] = {
            "facts": lambda: run().facts(),
            "users": lambda: list(mem.store.users()),
            "write": lambda: run().observe("user", "one more turn"),
            "export": lambda: list(mem.export()),
        }
        if door is not None:
            with pytest.raises(StoreDamaged):
                doors[door]()


@pytest.mark.req("LG-08", "TM-12")
@pytest.mark.parametrize("is_here", [False, True])
def test_an_emptied_entry_comes_with_the_receipt_that_lists_it(written: Written, tmp_path: Path, is_here: bool) -> None:
    """One that somebody emptied, with a receipt that is made up or is another's: no dump of the whole is made of it,
    and a dump in which somebody did so is refused. A part goes without receipts; `verify` counts what lacks one."""
    path = tmp_path / "whole.db"
    path.write_bytes(written.data)
    with muniment.open(path) as mem:
        lines = plain(list(mem.export()))
    receipts = [line["row"]["id"] for line in lines if line.get("row", {}).get("kind") == "receipt"]
    named = receipts[0] if is_here else "rcp_made_up"
    emptied = next(
        line["row"]
        for line in lines
        if line.get("table") == "entries" and (line["row"]["user_id"], line["row"]["seq"]) == ("ana", 3)
    )
    emptied |= {"body": None, "salt": None, "receipt_id": named}
    with muniment.open() as other, pytest.raises(ChainBroken, match="was emptied, and its receipt"):
        other.import_(resealed(lines))
    values = f"body = NULL, salt = NULL, receipt_id = id('{named}')"
    edit = f"UPDATE entries SET {values} WHERE user_id = name('ana') AND seq = 3"
    with muniment.open(damaged(written, tmp_path, edit)) as mem, muniment.open() as other:
        with pytest.raises(StoreDamaged):
            list(mem.export())
        if is_here:
            with pytest.raises(StoreDamaged, match="does not list it"):
                list(mem.export(user_id="ana"))
            return
        other.import_(list(mem.export(user_id="ana")))
        assert other.verify().unreceipted == 1
        told = next(entry for entry in other.ledger.entries(user_id="ana") if entry.is_forgotten)
        assert told.receipt_id is None, "a receipt that is not here proves nothing"
        with pytest.raises(StoreDamaged, match="its receipt is not in this store") as caught:
            list(other.export())
        assert "user by user" in caught.value.hint
