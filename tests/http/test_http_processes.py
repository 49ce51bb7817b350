"""Several processes, one store: each answers for all. Here as two applications over handles of their own on one store;
`tests/fault/test_workers_kill.py` has real processes, and kills them."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from http_support import ANA, TENANT, bearer
from starlette.testclient import TestClient

import muniment
from deployments import DEPLOYMENTS, EVERYWHERE, Stores
from effort import one_in
from muniment.core.outside.system import SystemIds, system_clock
from muniment.core.policy import Policy
from muniment.core.ports.engine import Select
from muniment.core.ports.schema import SERVER, TABLES
from muniment.errors import Conflict, Interrupted, RateLimited
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.store.engines.opening import open_engine
from muniment.store.engines.sqlite import SqliteEngine
from muniment.surfaces.http._keys import FRESH_S, StoredKeys, are_stored
from muniment.surfaces.http.app import create_app
from muniment.surfaces.http.settings import ServerSettings
from muniment.surfaces.operations.rows import OPERATIONS
from muniment.surfaces.operations.works import TRIES_MAX, Works
from muniment.surfaces.processes.rates import SharedRates, block_of
from muniment.surfaces.processes.replies import Replies
from muniment.surfaces.processes.restarting import is_restartable
from products import for_each

RUN = f"{ANA}/runs/r1"
FACT = {"key": "user.city", "value": "Berlin"}
Open = Callable[[], Memory]


@pytest.fixture(params=DEPLOYMENTS if EVERYWHERE else ("sqlite", "postgres"))
def opened(request: pytest.FixtureRequest, stores: Stores) -> Iterator[Open]:
    """Handles of one store, each as a process of its own would have it."""
    with ExitStack() as stack:
        place = stack.enter_context(stores(request.param))

        def handle() -> Memory:
            engine = open_engine(place.target)
            memory = Memory(new_context(engine=engine, policy=Policy(), clock=system_clock, ids=SystemIds()))
            stack.callback(memory.close)
            return memory

        yield handle


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., TestClient]]:
    with ExitStack() as stack:

        def client(memory: Memory, **settings: Any) -> TestClient:
            places = {"keys": str(tmp_path / "keys.json"), "research_dir": str(tmp_path / "research")}
            app = create_app(memory, ServerSettings(**places | settings))
            return stack.enter_context(
                TestClient(app, base_url="http://localhost", raise_server_exceptions=False, follow_redirects=False)
            )

        yield client


def rows_of(memory: Memory, tenant_id: str = "default") -> str:
    """All that any table answers for a tenant."""
    return repr(
        memory._ctx.engine.read(
            tenant_id, lambda reader: [row for spec in TABLES for row in reader.do(Select(spec.name))]
        )
    )


def bytes_of(folder: Path) -> bytes:
    """Read by another process: to close a file that SQLite has open in this one would drop its locks."""
    return subprocess.run(
        ["find", folder, "-type", "f", "-name", "store*", "-exec", "cat", "{}", ";"], stdout=subprocess.PIPE, check=True
    ).stdout


def source_of(client: TestClient) -> str:
    return str(client.post(f"{RUN}/events", json={"role": "user", "content": "I live in Berlin."}).json()["id"])


# -- idempotent replies -------------------------------------------------------------------------------


@pytest.mark.req("LG-06")
def test_another_process_answers_with_the_same_bytes(opened: Open, served: Callable[..., TestClient]) -> None:
    here, there = served(opened()), served(opened())
    body, key = FACT | {"sources": [source_of(here)]}, {"Idempotency-Key": "k1"}
    first = here.post(f"{RUN}/facts", json=body, headers=key)
    assert first.status_code == 201, first.text
    assert "idempotency-replayed" not in first.headers
    later = served(opened())  # as after a restart
    for client in (there, here, later):
        again = client.post(f"{RUN}/facts", json=body, headers=key)
        assert (again.status_code, again.content) == (201, first.content)
        assert again.headers["idempotency-replayed"] == "true"
        kept = {name: value for name, value in again.headers.items() if name != "idempotency-replayed"}
        assert kept | {"x-request-id": ""} == dict(first.headers) | {"x-request-id": ""}
    other = there.post(f"{RUN}/facts", json=body | {"value": "Bonn"}, headers=key)
    assert other.json()["code"] == "idempotency_mismatch"
    assert len(here.get(f"{RUN}/facts").json()["items"]) == 1


def test_a_reply_runs_out_and_there_are_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    from muniment.surfaces.processes import replies

    now = [datetime(2026, 5, 1, tzinfo=UTC)]
    monkeypatch.setattr(replies, "COUNT_MAX", 3)
    monkeypatch.setattr(replies, "_CLEANED_AFTER", 1)
    memory = Memory(
        new_context(engine=SqliteEngine(":memory:"), policy=Policy(), clock=lambda: now[0], ids=SystemIds())
    )
    with closing(memory), TestClient(create_app(memory), base_url="http://localhost") as client:
        source = source_of(client)

        def post(number: int) -> int:
            now[0] += timedelta(seconds=1)
            body = {"key": f"user.k{number}", "value": number, "sources": [source]}
            return client.post(f"{RUN}/facts", json=body, headers={"Idempotency-Key": f"k{number}"}).status_code

        assert [post(number) for number in range(5)] == [201] * 5
        assert [post(number) for number in range(5)] == [409, 409, 201, 201, 201], "the newest three are kept"
        assert '"value":0' not in rows_of(memory).partition("ReplyRow")[2]
        now[0] += replies.KEPT
        assert post(4) == 409, "it was done, and its answer is a day old"


@pytest.mark.req("LG-07")
def test_a_forget_takes_the_replies_and_results_of_the_tenant(
    opened: Open, served: Callable[..., TestClient], tmp_path: Path
) -> None:
    word, memory = "mkZanzibarQuagga77", opened()
    here, there = served(memory), served(opened())
    source = source_of(here)
    body = {"key": "user.city", "value": word, "sources": [source]}
    for number in range(3):  # so that rows come and go, and cells of the table move
        keyed = {"Idempotency-Key": f"k{number}"}
        assert here.post(f"{RUN}/facts", json=body | {"key": f"user.k{number}"}, headers=keyed).status_code == 201
    engine = memory._ctx.engine
    with closing(Works(engine, system_clock, SystemIds())) as works:
        begun = works.start("memory.verify", {"tenant_id": "default"}, lambda _: {"said": word})
    assert there.get(f"{TENANT}/operations/{begun.operation_id}").json()["result"] == {"said": word}
    other = served(opened())
    assert other.post("/v1/tenants/acme/users/ana/runs/r9/events", json={"role": "user", "content": "stays"}).is_success
    receipt = there.post(f"{ANA}/forget", json={})
    assert receipt.status_code in (200, 201), receipt.text
    assert {"replies": 3, "works": 1}.items() <= receipt.json()["counts"].items()
    assert word not in rows_of(memory)
    assert word.encode() not in bytes_of(tmp_path)
    left = here.get(f"{TENANT}/operations/{begun.operation_id}").json()
    assert (left["status"], "result" in left) == ("done", False)
    assert "no longer kept" in left["note"]
    again = here.post(f"{RUN}/facts", json=body | {"key": "user.k0"}, headers={"Idempotency-Key": "k0"})
    assert again.json()["code"] == "forgotten"


@pytest.mark.req("LG-07")
def test_what_is_answered_after_a_forget_was_asked_before_it_is_not_kept(opened: Open) -> None:
    """Mutation: the number of clearings is not compared, and an answer that holds forgotten words is kept after all."""
    from starlette.responses import Response

    from muniment.surfaces.http._calls import KeyedRequest

    memory, word = opened(), "mkLateAnswer"
    run = memory.run(user_id="ana", session_id="s1")
    said = run.observe("user", "hello")
    engine = memory._ctx.engine
    request = KeyedRequest("default", "ana", "k", b"asked")

    def forgets() -> bytes:
        memory.forget(event=said.id)
        return word.encode()

    def answers() -> bytes:
        return word.encode()

    for call, is_kept in ((forgets, False), (answers, True)):
        assert Replies(engine, system_clock, SystemIds()).answer(request, call, Response).body == word.encode()
        assert (word in rows_of(memory)) is is_kept
    second = run.observe("user", "hello again")
    begun, release = threading.Event(), threading.Event()

    def work(_: Any) -> str:
        begun.set()
        release.wait(10)
        return word

    with closing(Works(engine, system_clock, SystemIds())) as works:
        started = works.start("memory.verify", {"tenant_id": "default"}, work)
        begun.wait(10)
        memory.forget(event=second.id)
        release.set()
    assert word not in rows_of(memory)
    assert works.get(started.operation_id).note is not None


def test_no_dump_has_what_processes_share(opened: Open, served: Callable[..., TestClient]) -> None:
    memory = opened()
    client = served(memory, workers=2)
    body = FACT | {"sources": [source_of(client)]}
    assert client.post(f"{RUN}/facts", json=body, headers={"Idempotency-Key": "k"}).status_code == 201
    assert client.post(f"{TENANT}/rebuild", headers={"Prefer": "respond-async"}).status_code == 202
    StoredKeys(memory._ctx.engine, system_clock).create("k", tenant="default")
    dump = b"".join(memory.export(tenant_id="default"))
    tables = {line["table"] for line in map(json.loads, dump.splitlines()) if "table" in line}
    assert "entries" in tables
    assert not tables & {"works", "leases", "replies", "clearings", "rates", "keys"}
    assert SERVER not in memory.store.tenants()
    assert memory.verify().ok
    with muniment.open() as other:
        other.import_(dump.splitlines(keepends=True))
        assert other._ctx.engine.read("default", lambda reader: reader.do(Select("replies"))) == []
    memory.import_(dump.splitlines(keepends=True))
    assert memory._ctx.engine.read("default", lambda reader: reader.do(Select("replies"))) == [], "an import clears"


# -- works --------------------------------------------------------------------------------------------


def until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it does not come to that"
        time.sleep(0.01)


@pytest.mark.soak
def test_any_process_tells_of_a_work(opened: Open, served: Callable[..., TestClient]) -> None:
    engine = opened()._ctx.engine
    there = served(opened())
    begun, release = threading.Event(), threading.Event()

    def work(progress: Callable[[int], None]) -> dict[str, int]:
        progress(7)
        begun.set()
        release.wait(30)
        return {"counted": 7}

    works = Works(engine, system_clock, SystemIds(), lease_s=0.2)
    with closing(works):
        started = works.start("memory.rebuild", {"tenant_id": "default"}, work)
        begun.wait(10)
        path = f"{TENANT}/operations/{started.operation_id}"
        assert there.get(path).json()["status"] == "running"
        until(lambda: there.get(path).json()["progress"] == 7)
        assert [each["operation_id"] for each in there.get(f"{TENANT}/operations").json()["items"]] == [
            started.operation_id
        ]
        assert there.get(f"/v1/operations/{started.operation_id}").json()["tenant_id"] == "default"
        assert there.get(f"/v1/tenants/acme/operations/{started.operation_id}").status_code == 404
        assert there.get(f"{ANA}/operations/{started.operation_id}").status_code == 404
        threading.Timer(0.1, release.set).start()
        events = there.get(f"{path}/events").text
        assert "event: running" in events
        assert events.rstrip().splitlines()[-2] == "event: done"
        assert there.get(path).json()["result"] == {"counted": 7}
        assert [work.status for work in works.events(started.operation_id)] == ["done"]


class Gone(Works):
    """The works of a process that was killed: begun, and never heard of again."""

    def _carry_on(self, running: Any) -> None:
        del running


@pytest.mark.soak
def test_the_works_of_a_process_that_ended_are_taken_up(opened: Open, served: Callable[..., TestClient]) -> None:
    memory = opened()
    engine, scope = memory._ctx.engine, {"tenant_id": "default"}
    memory.run(user_id="ana", session_id="s1").observe("user", "hello")
    gone = Gone(engine, system_clock, SystemIds())
    asked = {"operation": "memory.rebuild", "names": scope, "own": {}, "run": {}}
    ours = {**asked, "template": "/v1/tenants/{tenant_id}/rebuild"}
    rebuilt = gone.start("memory.rebuild", scope, lambda _: None, ours)
    imported = gone.start("memory.import_", scope, lambda _: None)
    older = gone.start("memory.rebuild", scope, lambda _: None, {**asked, "template": "/v0/rebuild"})
    cleared = gone.start("memory.rebuild", {"tenant_id": "acme"}, lambda _: None, ours)
    memory.run(tenant_id="acme", user_id="bo", session_id="s1").observe("user", "hello")
    memory.forget(tenant="acme")
    here, there = served(opened(), lease_seconds=1), served(opened(), lease_seconds=1)
    assert here.get(f"{TENANT}/operations/{rebuilt.operation_id}").json()["status"] == "running"

    def state(work: Any, tenant: str = TENANT) -> dict[str, Any]:
        return dict(there.get(f"{tenant}/operations/{work.operation_id}").json())

    until(lambda: state(rebuilt)["status"] != "running")
    assert state(rebuilt)["result"]["turns"] == 1
    for work, tenant in ((imported, TENANT), (older, TENANT), (cleared, "/v1/tenants/acme")):
        until(lambda work=work, tenant=tenant: state(work, tenant)["status"] != "running")  # type: ignore[misc]
        told = state(work, tenant)
        assert (told["status"], told["error"]["code"]) == ("interrupted", Interrupted.code)
        assert told["error"]["hint"]
    assert "lay with that process" in state(imported)["error"]["message"]
    assert here.get(f"{TENANT}/operations/{imported.operation_id}/events").text.startswith("event: interrupted")
    until(lambda: not gone._rows.leases())


def test_a_work_that_ends_its_process_is_not_begun_for_ever() -> None:
    engine = SqliteEngine(":memory:")
    begun: list[str] = []

    def restart(_: Any) -> Any:
        begun.append("again")
        return lambda progress: None

    owner: Works = Gone(engine, system_clock, SystemIds())
    work = owner.start("memory.verify", {}, lambda _: None, {"operation": "x"})
    for _ in range(TRIES_MAX):
        owner = Gone(engine, system_clock, SystemIds(), lease_s=0.0)
        owner._restart = restart
        owner._look_after()
    told = owner.get(work.operation_id)
    assert (told.status, len(begun)) == ("interrupted", TRIES_MAX - 1)
    assert "3 times over" in str(told.error)


def test_which_works_can_be_begun_again() -> None:
    """Whoever adds long work decides whether another process can begin it again."""
    named = {each.id: is_restartable(each) for each in OPERATIONS if each.is_long}
    assert {name for name, can in named.items() if not can} == {
        "memory.import_", "memory.import_memory", "study.pack", "study.check",
    }  # fmt: skip
    assert {name for name, can in named.items() if can} == {
        "memory.verify", "memory.extract_pending", "memory.rebuild", "memory.upkeep",
    }  # fmt: skip


# -- limits -------------------------------------------------------------------------------------------


LIMITS = [(number % 4 + 1, (1, 7, 60, 300, 900)[number % 5]) for number in range(20)]


@for_each(("processes", "per_minute"), one_in(4, LIMITS))
def test_all_processes_together_keep_to_the_limit(processes: int, per_minute: int) -> None:
    """Over every window: a bucket and what fills it up again, and at most a block more for each process; and under
    steady demand nearly all of it is had."""
    chance, now, engine = Random(f"{processes} {per_minute}"), [0.0], SqliteEngine(":memory:")
    skews = [chance.uniform(0, 2) for _ in range(processes)]
    each = [
        SharedRates(engine, lambda: now[0], lambda skew=skew: int((now[0] + skew) * 1000))  # type: ignore[misc]
        for skew in skews
    ]
    let_in: list[float] = []
    waits = {1}
    step = 60 / per_minute / 3
    while now[0] < 180:
        try:
            while not (rates := chance.choice(each)).take("k", per_minute):
                rates.fetch("k", per_minute)
            let_in.append(now[0])
        except RateLimited as error:
            waits.add(error.details["retry_after_s"])
        now[0] += step * chance.uniform(0.5, 1.5)
    assert min(waits) >= 1
    slack = processes * block_of(per_minute) + per_minute * 2 / 60 + 1
    for window in (20, 60, 120):
        starts = range(0, 180 - window, 10)
        most = max(bisect_left(let_in, start + window) - bisect_left(let_in, start) for start in starts)
        assert most <= per_minute + per_minute * window / 60 + slack
    assert len(let_in) >= 0.9 * (per_minute + per_minute * 170 / 60) - slack


@pytest.mark.parametrize("ahead_s", [30, 90, 3_600, 86_400, 10**9])
@pytest.mark.parametrize("is_same_process", [True, False])
def test_a_clock_that_was_ahead_shuts_nobody_out(ahead_s: int, is_same_process: bool) -> None:
    wall, steady, engine = [1_800_000_000.0], [0.0], SqliteEngine(":memory:")

    def start() -> SharedRates:
        return SharedRates(engine, lambda: steady[0], lambda: int(wall[0] * 1000))

    def take(rates: SharedRates, count: int) -> int:
        taken = 0
        for _ in range(count):
            with suppress(RateLimited):
                while not rates.take("k", 60):
                    rates.fetch("k", 60)
                taken += 1
        return taken

    rates = start()
    assert take(rates, 100) == 60
    wall[0] += ahead_s
    steady[0] += 10
    assert take(rates, 100) == 10, "a clock that was set forward refills nothing"
    wall[0] -= ahead_s
    rates = rates if is_same_process else start()
    wall[0] += 60
    steady[0] += 60
    assert take(rates, 100) >= 30


def test_two_processes_share_a_limit(opened: Open, served: Callable[..., TestClient]) -> None:
    memory = opened()
    keys = StoredKeys(memory._ctx.engine, system_clock)
    token = keys.create("k", tenant="default", requests_per_minute=6).token
    clients = [served(opened(), auth="on", keys="store", workers=2) for _ in range(2)]
    codes = [client.get(f"{ANA}/runs", headers=bearer(token)).status_code for client in clients * 6]
    assert (codes.count(200), codes.count(429)) == (6, 6)
    refused = clients[0].get(f"{ANA}/runs", headers=bearer(token))
    assert int(refused.headers["retry-after"]) >= 1


# -- keys ---------------------------------------------------------------------------------------------


def test_a_revocation_holds_everywhere_within_a_second(opened: Open) -> None:
    now = [100.0]
    one, other = (StoredKeys(opened()._ctx.engine, system_clock, lambda: now[0]) for _ in range(2))
    made = one.create("laptop", tenant="acme", user="ana", lasts=timedelta(days=1))
    assert other.find(made.token) == made.key
    assert other.find(made.token[:-1] + "x") is None
    rotated = other.rotate(made.key.key_id, timedelta(hours=1))
    now[0] += FRESH_S
    assert one.find(made.token) == one.find(rotated.token) == rotated.key
    assert other.find(rotated.token) == rotated.key
    one.revoke(made.key.key_id)
    assert one.find(made.token) is None, "at once where it was done"
    assert other.find(rotated.token) is not None, "the second is not over: the test tests the bound"
    now[0] += FRESH_S
    assert other.find(made.token) is other.find(rotated.token) is None
    assert [key.revoked_at is not None for key in other.list()] == [True]


def test_of_two_changes_at_once_one_is_told(opened: Open) -> None:
    one, other = (StoredKeys(opened()._ctx.engine, system_clock) for _ in range(2))

    def change() -> None:
        with one._changing() as keys:
            made = other.create("first", tenant="acme").key
            keys["another"] = made

    with pytest.raises(Conflict):
        change()
    assert [key.name for key in one.list()] == ["first"]


@pytest.mark.req("LG-07")
def test_keys_in_the_store_are_nobodys(opened: Open, served: Callable[..., TestClient], tmp_path: Path) -> None:
    memory = opened()
    made = StoredKeys(memory._ctx.engine, system_clock).create("k", tenant="default", access="admin")
    client = served(opened(), auth="on", keys="store")
    assert client.get(f"{ANA}/runs").status_code == 401
    assert client.post(f"{RUN}/events", json={"role": "user", "content": "x"}, headers=bearer(made.token)).is_success
    dump = client.get(f"{TENANT}/export", headers=bearer(made.token)).text
    assert made.key.secrets[0].hash not in dump
    assert client.delete(TENANT, headers=bearer(made.token)).is_success
    assert client.get(f"{ANA}/runs", headers=bearer(made.token)).is_success, "no forget takes a key"
    assert made.token.split("_", 2)[2].encode() not in bytes_of(tmp_path)


@pytest.mark.parametrize(
    ("named", "is_shared", "exists", "stored"),
    [("store", False, False, True), ("store", True, True, True), ("muniment.keys.json", True, False, True),
     ("muniment.keys.json", True, True, False), ("muniment.keys.json", False, False, False),
     ("other.json", True, False, False)],
)  # fmt: skip
def test_where_keys_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, is_shared: bool, exists: bool, stored: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    if exists:
        (tmp_path / named).write_text("{}")
    assert are_stored(named, is_shared=is_shared) is stored
