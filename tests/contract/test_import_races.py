"""An import beside a forget or a scrub: what was forgotten does not come back, nobody waits for ever.

Each race is told by hand, both ways round, on every engine: one side is held in the middle of its work while the other
one does all of its own (LG-07).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import muniment
from deployments import url_of
from dump_lines import dump_of
from muniment.core.ports.engine import ScrubReport
from muniment.handles.memory import Memory
from muniment.store import transfer
from muniment.store.forget import SCRUB_DUE
from muniment.store.items import latest

Opened = Callable[[], Memory]
WAIT_S = 60
WORD = "Xyzzyville"


@pytest.fixture(params=("sqlite", "postgres"))
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Opens the store once more, as another process does."""
    with ExitStack() as stack:

        def open_() -> Memory:
            target = str(tmp_path / "store.db")
            if request.param == "postgres":
                schema = request.getfixturevalue("kept_postgres_schema")
                target = url_of(request.getfixturevalue("postgres_dsn"), schema)
            return stack.enter_context(muniment.open(target))

        yield open_


class Story:
    """A store that took in the first part of another's memory, and that one's whole memory since."""

    def __init__(self, target: Memory) -> None:
        with muniment.open(":memory:") as source:
            run = source.run(user_id="ana", session_id="s1", run_id="r1")
            said = run.observe("user", f"I live in {WORD}")
            target.import_(dump_of(source))
            run.remember("user.city", WORD, sources=[said.id])
            other = source.run(user_id="ben", session_id="s1").observe("user", "The ferry leaves at nine.")
            source.run(user_id="ben", session_id="s1").remember("ferry.time", "nine", sources=[other.id])
            self.whole = dump_of(source)
            self.said = said.id


def status(mem: Memory, receipt_id: str) -> str:
    found = mem._ctx.engine.read("default", lambda reader: latest(reader, receipt_id))
    assert found is not None
    return found.status


def words(mem: Memory) -> bytes:
    return b"".join(dump_of(mem))


def leaves_something(_needles: Sequence[bytes], *, thorough: bool = False) -> ScrubReport:
    return ScrubReport(clean=thorough, vacuumed=thorough, note="played", due=not thorough)


# -- a scrub and an import ----------------------------------------------------------------------------


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("waits", [True, False])
def test_what_an_import_empties_during_a_scrub_waits_for_the_next(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    """The files were rebuilt before the import left words in them: the receipt does not say that it is done."""
    mem, other = opened(), opened()
    story = Story(mem)
    engines = {id(each._ctx.engine): each._ctx.engine for each in (mem, other)}.values()
    scrub = next(engine.scrub for engine in engines)
    if waits:
        for engine in engines:
            monkeypatch.setattr(engine, "scrub", leaves_something)
    receipt = mem.forget(event=story.said)
    assert (status(mem, receipt.receipt_id) == SCRUB_DUE) is (waits or mem._ctx.engine.info.name == "postgres")

    def meanwhile(needles: Sequence[bytes], *, thorough: bool = False) -> ScrubReport:
        done = scrub(needles, thorough=thorough)
        monkeypatch.setattr(mem._ctx.engine, "scrub", leaves_something)
        other.import_(story.whole)
        return done

    monkeypatch.setattr(mem._ctx.engine, "scrub", meanwhile)
    if other is not mem:
        monkeypatch.setattr(other._ctx.engine, "scrub", leaves_something)
    mem.store.scrub()
    assert status(mem, receipt.receipt_id) == SCRUB_DUE
    assert len(mem.store.attention(kind="scrub_due")) == 1
    assert WORD.encode() not in words(mem)
    monkeypatch.undo()
    assert mem.store.scrub().receipts == 1
    assert status(mem, receipt.receipt_id) == "issued"
    assert mem.verify().ok


@pytest.mark.req("LG-07")
def test_a_scrub_during_an_import_ends_and_leaves_its_receipt_whole(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The import holds its batch open, having looked at the receipt; the scrub comes to write it."""
    mem, other = opened(), opened()
    story = Story(mem)
    for each in {id(mem): mem, id(other): other}.values():
        monkeypatch.setattr(each._ctx.engine, "scrub", leaves_something)
    receipt = mem.forget(event=story.said)
    is_there, may_go = threading.Event(), threading.Event()
    change = transfer.receipt_change

    def held_up(*given: Any) -> Any:
        is_there.set()
        may_go.wait(2)  # a store of one writer at a time lets nobody else come so far
        return change(*given)

    monkeypatch.setattr(transfer, "receipt_change", held_up)
    with ThreadPoolExecutor(2) as pool:
        importing = pool.submit(mem.import_, story.whole)
        assert is_there.wait(WAIT_S)
        scrubbing = pool.submit(other.store.scrub)
        scrubbing.exception(timeout=0.3) if _ends(scrubbing) else None
        may_go.set()
        importing.result(WAIT_S)
        scrubbing.result(WAIT_S)
    stored = mem._ctx.engine.read("default", lambda reader: latest(reader, receipt.receipt_id))
    assert stored is not None
    assert len(stored.plain()["erased"]) > len(receipt.erased), "what the import emptied is listed"
    assert WORD.encode() not in words(mem)
    mem.store.scrub()
    assert status(mem, receipt.receipt_id) == "issued"
    assert mem.verify().ok


def _ends(going: Any) -> bool:
    threading.Event().wait(0.3)
    return bool(going.done())


@pytest.mark.req("LG-07")
def test_an_import_while_a_forget_scrubs_keeps_the_receipt_due(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """The forget has rebuilt its files and is about to say so."""
    mem, other = opened(), opened()
    story = Story(mem)
    scrub = mem._ctx.engine.scrub

    def meanwhile(needles: Sequence[bytes], *, thorough: bool = False) -> ScrubReport:
        done = scrub(needles, thorough=thorough)
        for each in {id(mem): mem, id(other): other}.values():
            monkeypatch.setattr(each._ctx.engine, "scrub", leaves_something)
        other.import_(story.whole)
        return done

    monkeypatch.setattr(mem._ctx.engine, "scrub", meanwhile)
    receipt = mem.forget(event=story.said)
    assert status(mem, receipt.receipt_id) == SCRUB_DUE
    monkeypatch.undo()
    assert WORD.encode() not in words(mem)
    mem.store.scrub()
    assert status(mem, receipt.receipt_id) == "issued"
    assert mem.verify().ok


# -- a forget and an import ---------------------------------------------------------------------------


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("how", ["event", "user"])
@pytest.mark.parametrize("at", range(8))
def test_a_forget_between_two_batches_is_kept_to_by_the_next(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, how: str, at: int
) -> None:
    """The dump has the event whole; it is forgotten here when so many batches are in."""
    mem, other = opened(), opened()
    story = Story(mem)
    monkeypatch.setattr(transfer, "BATCH_ROWS", 2)
    batches: list[int] = []

    def progress(rows: int) -> None:
        batches.append(rows)
        if len(batches) == at + 1:
            other.forget(**({"event": story.said} if how == "event" else {"user_id": "ana"}))

    mem.import_(story.whole, progress=progress)
    assert len(batches) > at, "it came to it"
    assert WORD.encode() not in words(mem)
    assert not mem.run(user_id="ana", session_id="s1").facts(key="user.city")
    assert mem.run(user_id="ben", session_id="s1").facts(key="ferry.time"), "what others said is here"
    assert mem.verify().ok
    assert mem.store.rebuild().repaired == ()


@pytest.mark.req("LG-07")
def test_a_forget_in_the_middle_of_a_batch_waits_for_it(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch has looked which of its sources were forgotten, and has not written what derives from them."""
    mem, other = opened(), opened()
    story = Story(mem)
    is_there, may_go = threading.Event(), threading.Event()
    write_item = transfer._write_item

    def held_up(*given: Any) -> Any:
        found = write_item(*given)
        if not is_there.is_set():
            is_there.set()
            may_go.wait(2)
        return found

    monkeypatch.setattr(transfer, "_write_item", held_up)
    with ThreadPoolExecutor(2) as pool:
        importing = pool.submit(mem.import_, story.whole)
        assert is_there.wait(WAIT_S)
        forgetting = pool.submit(lambda: other.forget(event=story.said))
        _ends(forgetting)
        may_go.set()
        importing.result(WAIT_S)
        forgetting.result(WAIT_S)
    assert WORD.encode() not in words(mem)
    assert not mem.run(user_id="ana", session_id="s1").facts(key="user.city")
    assert mem.verify().ok
