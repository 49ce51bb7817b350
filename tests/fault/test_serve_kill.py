"""kill -9 of `muniment serve` under concurrent writes: what was answered 2xx is there after a restart, whole and once.

MUNIMENT_KILL_ROUNDS sets the number of rounds (a twentieth of it; default 40, so 2).
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from benchmarks.serve import Server, serving

import muniment
from deployments import FreshStore, on

ROUNDS = max(2, int(os.environ.get("MUNIMENT_KILL_ROUNDS", "40")) // 20)
CALLERS = 6
CALLS_MAX = 3000
ACKNOWLEDGED_MIN = 40
"""Answers of a round before its server is killed."""
BATCH = 7


class Asked(NamedTuple):
    """A request; its key is the mark by which what it wrote is known."""

    user: str
    path: str
    body: str
    key: str


def asked_for(user: str, path: str, plain: Any, key: str) -> Asked:
    return Asked(user, path, json.dumps(plain), key)


def requests_of(caller: int, round_: int) -> Iterator[Asked]:
    """Events one by one and in batches, small and as blobs; facts on the first of them; packets."""
    chance, user = random.Random(f"{round_}/{caller}"), f"user{caller % 3}"
    for number in range(CALLS_MAX):
        key = f"r{round_}c{caller}n{number}"
        content = f"{key} " + "x" * chance.choice([0, 0, 40, 3000, 70_000])
        kind = chance.choice(["events", "events", "events/batch", "facts", "compose"])
        if kind == "events" or not number:
            yield asked_for(user, "events", {"role": "user", "content": content}, key)
        elif kind == "events/batch":
            yield asked_for(user, kind, [{"role": "user", "content": f"{key}/{at} x"} for at in range(BATCH)], key)
        elif kind == "facts":
            yield asked_for(user, kind, {"key": key, "value": number, "sources": [f"first-{user}"]}, key)
        else:
            yield asked_for(user, kind, {"purpose": "responder", "query": key}, key)


def send(connection: http.client.HTTPConnection, asked: Asked) -> tuple[int, Any]:
    path = f"/v1/tenants/default/users/{asked.user}/runs/run-{asked.user}/{asked.path}"
    headers = {"Content-Type": "application/json"}
    if asked.path != "compose":  # which needs no key, and takes none
        headers["Idempotency-Key"] = asked.key
    connection.request("POST", path, asked.body, headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


class Callers:
    """What they asked for, and what they were answered."""

    def __init__(self) -> None:
        self.acknowledged: dict[Asked, Any] = {}
        self.unknown: list[Asked] = []

    def ask(self, port: int, caller: int, round_: int) -> None:
        """Until the server is gone: then what was asked last may have happened or not."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        for asked in requests_of(caller, round_):
            try:
                status, body = send(connection, asked)
            except (OSError, http.client.HTTPException, ValueError):
                self.unknown.append(asked)
                break
            assert status in (200, 201), body
            self.acknowledged[asked] = body
        connection.close()


def killed_under_load(server: Server, callers: Callers, round_: int, delay_s: float) -> None:
    before = len(callers.acknowledged)
    with ThreadPoolExecutor(CALLERS) as pool:
        jobs = [pool.submit(callers.ask, server.port, caller, round_) for caller in range(CALLERS)]
        while len(callers.acknowledged) < before + ACKNOWLEDGED_MIN and not any(job.done() for job in jobs):
            time.sleep(0.002)
        time.sleep(delay_s)
        os.kill(server.pid, signal.SIGKILL)
        for job in jobs:
            job.result()


def ask_again(server: Server, callers: Callers) -> int:
    """What nobody knows the end of is asked for again under its key: it is done now, or it was done before."""
    asked, callers.unknown = callers.unknown, []
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    was_done = 0
    for each in asked:
        status, body = send(connection, each)
        assert status in (200, 201) or (status, body["code"]) == (409, "conflict"), body
        was_done += status == 409
        if status != 409:
            callers.acknowledged[each] = body
    connection.close()
    return was_done


def check(mem: muniment.Memory, callers: Callers) -> None:
    """All that was acknowledged is there with its content; nothing is there twice or by half; chains hold."""
    report = mem.verify()
    assert report.ok, report.broken
    users = sorted({asked.user for asked in callers.acknowledged})
    there = {entry.id: entry for user in users for entry in mem.ledger.entries(user_id=user) if entry.kind == "message"}
    marks = Counter((entry.content or mem.ledger.content(entry.id)).partition(" ")[0] for entry in there.values())
    assert not [mark for mark, count in marks.items() if count > 1], "written twice"
    batches = Counter(mark.partition("/")[0] for mark in marks if "/" in mark)
    assert set(batches.values()) <= {BATCH}, "half a batch"
    facts = {
        fact.fact_id: fact
        for user in users
        for fact in mem.run(user_id=user, session_id=f"run-{user}", run_id=f"run-{user}").facts()
    }
    for asked, answer in callers.acknowledged.items():
        body = json.loads(asked.body)
        if asked.path == "events":
            assert mem.ledger.content(answer["id"]) == body["content"]
        elif asked.path == "events/batch":
            assert [mem.ledger.content(each["id"]) for each in answer["items"]] == [each["content"] for each in body]
        elif asked.path == "facts":
            assert facts[answer["fact_id"]].value == body["value"]
        else:
            assert mem.replay(answer["id"]).text == answer["text"]


@pytest.mark.slow
@pytest.mark.req("LG-06")
@on("sqlite")
def test_a_server_is_killed_under_load(
    deployment: str, fresh_store: FreshStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with fresh_store() as store:
        told = serve_and_kill(tmp_path / "server", store.target)
    with capsys.disabled():
        print(f"\n  {told} ({deployment})")


def serve_and_kill(log: Path, store: str) -> str:
    chance, callers = random.Random(20261115), Callers()
    with muniment.open(store) as mem:
        for user in ("user0", "user1", "user2"):
            run = mem.run(user_id=user, session_id=f"run-{user}", run_id=f"run-{user}")
            run.observe("user", f"first-{user}", id=f"first-{user}")
    doubtful = done = 0
    for round_ in range(ROUNDS):
        with serving(log, store) as server:
            done += ask_again(server, callers)
            killed_under_load(server, callers, round_, chance.uniform(0, 0.2))
        doubtful += len(callers.unknown)
        with muniment.open(store) as mem:
            check(mem, callers)
    with serving(log, store) as server:
        done += ask_again(server, callers)
    with muniment.open(store) as mem:
        check(mem, callers)
    kinds = Counter(asked.path for asked in callers.acknowledged)
    assert len(kinds) == 4, "not every kind of write was acknowledged: the test tests too little"
    words = f"{ROUNDS} rounds of kill -9 of a server: {len(callers.acknowledged)} acknowledged writes, none lost"
    return f"{words}; {doubtful} in doubt, asked again, {done} of them had been done"
