"""kill -9 at random moments: what was acknowledged is there, no batch is half there, chains hold, the run goes on.

MUNIMENT_KILL_ROUNDS sets the number of rounds (default 8).
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import muniment
from deployments import FreshStore, on
from muniment.handles.memory import Memory
from warm_commands import start_script

WRITER = Path(__file__).parent / "kill_writer.py"
ROUNDS = int(os.environ.get("MUNIMENT_KILL_ROUNDS", "8"))


def acks_of(path: Path) -> Iterator[dict[str, Any]]:
    """What was promised. The last line may be cut: then its promise was not made."""
    if path.exists():
        for line in path.read_bytes().split(b"\n")[:-1]:
            yield json.loads(line)


def killed(place: str | None, arguments: list[str], acks: Path, told: int, delay_s: float) -> None:
    """Start the writer, wait until it is ready and has told so much, let it go on for a moment, kill it."""
    process = start_script(place, WRITER, *arguments)
    try:
        deadline = time.monotonic() + 240
        while process.poll() is None and not (acks.exists() and acks.read_bytes().count(b"\n") > told):
            assert time.monotonic() < deadline, "the writer did not start"
            time.sleep(0.002)
        time.sleep(delay_s)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    assert process.returncode == -signal.SIGKILL, f"the writer ended by itself: {process.returncode}"


def check(mem: Memory, promised: dict[str, str]) -> int:
    """Everything promised is there with its content; batches are whole; chains hold. Answers how many entries."""
    report = mem.verify()
    assert report.ok, report.broken
    there: dict[str, Any] = {entry.id: entry for entry in mem.ledger.entries(user_id="ana") if entry.kind == "message"}
    missing = promised.keys() - there.keys()
    assert not missing, f"{len(missing)} acknowledged events are gone"
    for id_, content in promised.items():
        assert (there[id_].content if there[id_].content is not None else mem.ledger.content(id_)) == content
    sizes = Counter((entry.metadata["batch"], entry.metadata["of"]) for entry in there.values())
    assert all(count == of for (_, of), count in sizes.items()), "half a batch"
    return report.entries


def rounds(place: str | None, target: str, tmp_path: Path, count: int) -> tuple[int, int]:
    chance = random.Random(20260501)
    total, entries, fruitful = 0, 0, 0
    for number in range(count):
        acks = tmp_path / f"acks{number}"
        killed(place, [target, str(acks), str(number), "write"], acks, number % 4, chance.uniform(0, 0.12))
        promised = {
            id_: content
            for ack in acks_of(acks)
            if "ids" in ack
            for id_, content in zip(ack["ids"], ack["contents"], strict=True)
        }
        total += len(promised)
        fruitful += bool(promised)
        with muniment.open(target) as mem:
            entries = check(mem, promised)
            run = mem.run(user_id="ana", session_id="s1")
            run.observe("user", "and it goes on", metadata={"batch": f"after {number}", "of": 1})
    assert fruitful > count // 2, "most rounds were killed before they wrote anything: the test tests nothing"
    return total, entries


@pytest.mark.slow
@pytest.mark.req("LG-06", "LG-09")
@on("sqlite", "postgres")
def test_a_writer_is_killed(
    deployment: str,
    fresh_store: FreshStore,
    tmp_path: Path,
    warm_place: str | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    count = ROUNDS if deployment == "sqlite" else max(3, ROUNDS // 8)
    with fresh_store() as store:
        muniment.open(store.target).close()
        total, entries = rounds(warm_place, store.target, tmp_path, count)
    with capsys.disabled():
        words = f"{total} acknowledged events, none lost; {entries} entries, chains hold"
        print(f"\n  {count} rounds of kill -9 ({deployment}): {words}")


@pytest.mark.slow
@pytest.mark.req("LG-07")
@on("sqlite")
def test_a_forget_is_killed_and_has_happened_or_has_not(
    deployment: str,
    fresh_store: FreshStore,
    tmp_path: Path,
    warm_place: str | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fresh_store() as store:
        outcomes, count = forgets_killed(warm_place, store.target, tmp_path, is_file=deployment == "sqlite")
    with capsys.disabled():
        print(f"\n  {count} rounds of kill -9 in the middle of a forget ({deployment}): {outcomes}, none half")


def forgets_killed(place: str | None, path: str, tmp_path: Path, *, is_file: bool) -> tuple[dict[str, int], int]:
    users, per_user = 40, 120
    with muniment.open(path) as mem:
        for number in range(users):
            mem.run(user_id=f"u{number}", session_id="s1").observe_many(
                [{"role": "user", "content": f"m{number:03d}k{at} " + "y" * (at % 7 * 200)} for at in range(per_user)]
            )
    chance, outcomes = random.Random(7), Counter[str]()
    count = max(3, ROUNDS // 4)
    for number in range(count):
        acks = tmp_path / f"acks{number}"
        killed(place, [path, str(acks), "0", "forget"], acks, 1 + number % 2, chance.uniform(0, 0.05))
        told = list(acks_of(acks))
        done = {ack["forgotten"] for ack in told if "forgotten" in ack}
        begun = {ack["begun"] for ack in told if "begun" in ack} - done
        with muniment.open(path) as mem:
            assert mem.verify().ok
            for user in done | begun:
                bodies = [entry.body is not None for entry in mem.ledger.entries(user_id=user)]
                assert len(bodies) == per_user + 1
                assert all(bodies) or not any(bodies), f"{user} is half forgotten"
                outcomes["forgotten" if not any(bodies) else "untouched"] += 1
                assert not (user in done and any(bodies)), "an acknowledged forget was lost"
                if not any(bodies):
                    receipts = {entry.receipt_id for entry in mem.ledger.entries(user_id=user)}
                    assert len(receipts) == 1
                mem.forget(user_id=user)  # and again, or for the first time: now it is complete
                assert not any(entry.body for entry in mem.ledger.entries(user_id=user))
            left = Path(path).read_bytes() if is_file else b""  # what lies in a server's files is its operator's
            for user in done | begun:
                assert f"m{int(user[1:]):03d}k".encode() not in left
    return dict(outcomes), count
