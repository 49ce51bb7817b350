"""`/metrics`: what Prometheus is told, who is told it, and that several workers tell it as one."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
from exposition import read
from http_support import ANA, Serve, bearer, running
from starlette.testclient import TestClient

import muniment
from muniment.errors import InvalidInput
from muniment.handles.memory import Memory
from muniment.surfaces.http._calls import routes_of
from muniment.surfaces.http._keys import KeyFile
from muniment.surfaces.http._metrics import CELLS_MAX, FAMILIES, VARIABLE, Cells, Counted, Metrics, WorkerFiles, written
from muniment.surfaces.http.app import create_app
from muniment.surfaces.http.settings import ServerSettings, load_server_settings, networks_of
from muniment.surfaces.http.telemetry import BUCKETS_S, Done
from muniment.surfaces.operations.rows import OPERATIONS
from muniment.surfaces.operations.works import Works
from muniment.testing.postgres import PostgresProcess, fresh_schema

EVENTS = "/v1/tenants/{tenant_id}/users/{user_id}/runs/{run_id}/events"
TALK = {"role": "user", "content": "the words that were said"}


def test_requests_are_told_by_their_template_and_nobody_by_name(serve: Serve) -> None:
    client = serve()
    for _ in range(3):
        assert client.post(f"{ANA}/runs/r1/events", json=TALK).status_code == 201
    assert client.post(f"{ANA}/runs/r1/events", json={"role": "king", "content": "x"}).status_code == 422
    assert client.get("/nothing/ana").status_code == 404
    assert client.request("BREW\N{LATIN SMALL LETTER E WITH ACUTE}".encode("ascii", "ignore").decode(), "/v1/health")
    answer = client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    page = read(answer.text)
    assert page.of("muniment_http_requests_total", route=EVENTS, method="POST", status="201") == 3
    assert page.of("muniment_http_requests_total", route=EVENTS, status="422") == 1
    assert page.of("muniment_http_request_duration_seconds_count", route=EVENTS) == 4
    assert page.of("muniment_http_request_duration_seconds_sum", route=EVENTS) > 0
    assert page.of("muniment_http_errors_total", code="invalid_record") == 1
    assert page.of("muniment_http_errors_total", code="unknown_route") == 1
    assert page.of("muniment_http_requests_in_flight") == 1, "the one that reads the page"
    assert page.labels("method") == {"GET", "POST", "other"}
    assert page.of("muniment_store_entries") == 4, "the run's beginning, and three events"
    assert page.of("muniment_store_tenants") == 1
    assert page.of("muniment_store_up") == 1
    assert page.of("muniment_workers") == 1
    assert page.of("muniment_build_info", engine="memory") == 1
    assert page.of("process_resident_memory_bytes") > 1_000_000
    assert page.of("process_cpu_seconds_total") > 0
    assert set(page.kinds) == {each.name for each in FAMILIES}, "every family has a number from the first page on"
    for word in ("ana", "words that were said", "r1", "default"):
        assert word not in answer.text.replace("default", "" if word != "default" else "default")


def test_what_is_due_is_told_on_every_engine(any_store: Memory, serve: Serve) -> None:
    client = serve(any_store)
    client.post(f"{ANA}/runs/r1/events", json=TALK)
    sizes = any_store._ctx.engine.sizes()
    assert (sizes.size_bytes > 0) == (any_store.info.name != "memory")
    page = read(client.get("/metrics").text)
    assert page.of("muniment_store_tenants") == 1
    assert page.of("muniment_store_scrubs_due") == 0
    assert page.of("muniment_operations", status="running") == 0


def test_turns_without_a_vector_are_the_lag_of_the_index(tmp_path: Path, serve: Serve) -> None:
    path = tmp_path / "store.db"
    with muniment.open(path) as mem:
        run = mem.run(user_id="ana")
        for number in range(7):
            run.observe("user", f"turn {number}")
    with muniment.open(path, embedder="hash") as mem:
        page = read(serve(mem).get("/metrics").text)
        assert page.of("muniment_index_lag_turns") == 7
        mem.store.reembed()
        page = read(serve(mem).get("/metrics").text)
        assert page.of("muniment_index_lag_turns") == 0


def test_a_store_that_is_gone_is_down_and_the_page_is_still_there(tmp_path: Path, serve: Serve) -> None:
    mem = muniment.open(tmp_path / "store.db")
    client = serve(mem)
    mem.close()
    page = read(client.get("/metrics").text)
    assert page.of("muniment_store_up") == 0
    assert "muniment_store_entries" not in page.kinds, "no figure rather than a wrong one"


def test_a_stream_is_counted_and_its_length_is_no_latency(tmp_path: Path) -> None:
    """It stays open for as long as somebody looks: minutes, which would be the slowest route of all."""
    with muniment.open() as mem, running(mem, tmp_path) as url:
        mem.run(user_id="ana", run_id="r1").observe("user", "x")
        with httpx2.stream("GET", f"{url}{ANA}/changes", headers={"Accept": "text/event-stream"}) as stream:
            lines = stream.iter_lines()  # held: whoever lets go of it hangs up
            assert next(lines)
            page = read(httpx2.get(f"{url}/metrics").text)
            assert page.of("muniment_http_streams_open") == 1
            assert page.of("muniment_http_requests_in_flight") == 2, "the stream, and the one that reads the page"
        route = "/v1/tenants/{tenant_id}/users/{user_id}/changes"
        while page.of("muniment_http_requests_total", route=route) < 1:
            page = read(httpx2.get(f"{url}/metrics").text)
        assert page.of("muniment_http_request_duration_seconds_count", route=route) == 0
        assert page.of("muniment_http_streams_open") == 0


# -- who may read it ----------------------------------------------------------------------------------


def asked(app: Any, address: str, headers: dict[str, str] | None = None, host: str = "localhost") -> int:
    with TestClient(app, base_url=f"http://{host}", client=(address, 5000)) as client:
        return client.get("/metrics", headers=headers or {}).status_code


@pytest.mark.parametrize(
    ("setting", "address", "headers", "status"),
    [
        ("loopback", "127.0.0.1", {}, 200),
        ("loopback", "::1", {}, 200),
        ("loopback", "::ffff:127.0.0.1", {}, 200),
        ("loopback", "127.0.0.1", {"X-Forwarded-For": "203.0.113.9"}, 401),
        ("loopback", "10.1.2.3", {}, 401),
        ("10.1.0.0/16, 192.0.2.7", "10.1.2.3", {}, 200),
        ("10.1.0.0/16, 192.0.2.7", "192.0.2.7", {}, 200),
        ("10.1.0.0/16", "10.2.2.3", {}, 401),
        ("10.1.0.0/16", "127.0.0.1", {}, 401),
        ("key", "127.0.0.1", {}, 401),
        ("open", "203.0.113.9", {}, 200),
        ("open", "2001:db8::1", {}, 200),
        ("off", "127.0.0.1", {}, 404),
        ("loopback", "not an address", {}, 401),
    ],
)
def test_who_is_let_in(setting: str, address: str, headers: dict[str, str], status: int, tmp_path: Path) -> None:
    with muniment.open() as mem:
        app = create_app(mem, ServerSettings(auth="on", metrics=setting, keys=str(tmp_path / "keys.json")))
        assert asked(app, address, headers) == status


def test_a_key_of_one_tenant_does_not_read_it(tmp_path: Path, keys: KeyFile, serve: Serve) -> None:
    client = serve(auth="on", metrics="key")
    of_all = keys.create("ops", tenant="*", access="admin").token
    for tenant, user, access in (("*", None, "write"), ("acme", None, "admin"), ("*", "ana", "admin")):
        token = keys.create("other", tenant=tenant, user=user, access=access).token
        assert client.get("/metrics", headers=bearer(token)).status_code == 403
    assert client.get("/metrics", headers=bearer(of_all)).status_code == 200
    assert client.get("/metrics/more", headers=bearer(of_all)).status_code == 404
    assert client.post("/metrics", headers=bearer(of_all)).status_code == 405
    assert client.head("/metrics", headers=bearer(of_all)).status_code == 200


def test_no_page_of_another_site_reads_it(serve: Serve) -> None:
    """A name of somebody's own that leads to this machine, and a page that asks across sites."""
    client = serve()
    assert client.get("/metrics", headers={"Host": "evil.example"}).status_code == 403
    assert client.get("/metrics", headers={"Origin": "https://evil.example"}).status_code == 403


def test_a_setting_that_names_no_network_is_refused() -> None:
    for wrong in ("everybody", "10.1.0.0/40", "10.1.2.3/16", "loopback;key"):
        with pytest.raises(InvalidInput):
            load_server_settings({"metrics": wrong}, {})
    assert networks_of("key") == networks_of("off") == ()


# -- numbers ------------------------------------------------------------------------------------------


def test_labels_are_escaped_and_numbers_are_whole() -> None:
    odd = 'a "quoted" \\ back\nslash'
    page = read(
        written(
            [
                Counted("muniment_http_errors_total", (odd,), (2.0,)),
                Counted("process_cpu_seconds_total", (), (0.1 + 0.2,)),
                Counted("muniment_store_bytes", (), (float(1 << 40),)),
            ]
        ).decode()
    )
    assert page.of("muniment_http_errors_total", code=odd) == 2
    assert page.of("process_cpu_seconds_total") == 0.1 + 0.2
    assert page.of("muniment_store_bytes") == 1 << 40


def test_every_route_with_every_status_has_room() -> None:
    """Labels are bounded by what the server is made of, so that nothing is ever dropped."""
    statuses = 24
    kinds = {(route.operation.method, route.template) for route in routes_of(OPERATIONS)}
    assert len(kinds) > 200
    assert len(kinds) * (len(BUCKETS_S) + 2 + statuses) + 500 < CELLS_MAX


def test_what_finds_no_room_is_counted_as_dropped() -> None:
    with muniment.open() as mem:
        metrics = Metrics(mem, Works(mem._ctx.engine, mem._ctx.clock, mem._ctx.ids), None, None)
        metrics.cells.take("muniment_http_queue_waiting", ("all",), CELLS_MAX - 100)
        for number in range(200):
            with metrics.request("GET", {}) as span:
                span.end(f"/{number}", Done(200, 0.01))
        page = read(metrics.page().decode())
        counted = page.of("muniment_http_requests_total")
        assert counted + page.of("muniment_metrics_dropped_total") == 200
        assert page.of("muniment_metrics_dropped_total") > 0


def test_a_request_costs_few_steps() -> None:
    """Counted in lines that Python runs, not in time."""
    with muniment.open() as mem:
        metrics = Metrics(mem, Works(mem._ctx.engine, mem._ctx.clock, mem._ctx.ids), None, None)

        def one() -> None:
            with metrics.request("GET", {}) as span:
                span.end("/v1/x", Done(200, 0.01))

        one()
        lines = 0

        def count(frame: Any, event: str, argument: Any) -> Any:
            nonlocal lines
            lines += event == "line"
            return count

        before = sys.gettrace()
        sys.settrace(count)
        try:
            one()
        finally:
            sys.settrace(before)
        assert lines <= 30


# -- several workers ----------------------------------------------------------------------------------

WORKER = """
import json, sys, time
import muniment
from pathlib import Path
from muniment.surfaces.http._metrics import Metrics
from muniment.surfaces.http.telemetry import Done
from muniment.surfaces.operations.works import Works
from muniment.testing.postgres import PostgresProcess
from muniment.testing.postgres import fresh_schema
mem = muniment.open()
metrics = Metrics(mem, Works(mem._ctx.engine, mem._ctx.clock, mem._ctx.ids), None, Path(sys.argv[1]))
for number in range(int(sys.argv[2])):
    with metrics.request("GET", {}) as span:
        span.end("/v1/x", Done(200, 0.01))
metrics.begin()
print("counted", flush=True)
sys.stdin.read()
"""


def worker(folder: Path, count: int) -> subprocess.Popen[str]:
    started = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(folder), str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "counted\n"
    return started


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()


@pytest.mark.soak
def test_whichever_worker_answers_tells_of_all_and_the_killed_stay_counted(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    client = serve()
    client.get("/v1/health")

    def told() -> tuple[float, float, float]:
        page = read(client.get("/metrics").text)
        names = ("muniment_http_requests_total", "muniment_workers", "muniment_http_requests_in_flight")
        return page.of(names[0]), page.of(names[1]), page.of(names[2])

    first, second = worker(tmp_path, 5), worker(tmp_path, 7)
    try:
        assert told() == (13, 3, 2)
        end(first)
        assert told() == (13, 2, 1), "what it counted stays; what it had open is gone"
        third = worker(tmp_path, 11)  # folds what the killed one left
        try:
            assert len(list(tmp_path.glob("*.numbers"))) == 3
            assert told() == (24, 3, 2)
        finally:
            end(third)
        again = WorkerFiles(tmp_path)
        assert told() == (24, 3, 1)
        again.cells.close()
        assert told() == (24, 2, 1)
    finally:
        end(second)


def test_a_fold_that_was_broken_off_counts_nothing_twice(tmp_path: Path) -> None:
    process = worker(tmp_path, 9)
    end(process)
    assert len(list(tmp_path.glob("*.numbers"))) == 1
    left = [(path, path.read_bytes()) for path in tmp_path.glob("metrics-*")]
    WorkerFiles(tmp_path).cells.close()
    for path, data in left:  # as if it had ended after the sum was written, before the files were removed
        path.write_bytes(data)
    for _ in range(2):
        files = WorkerFiles(tmp_path)
        counted, _ = files.others()
        files.cells.close()
        assert [each.numbers for each in counted if each.name == "muniment_http_requests_total"] == [(9.0,)]


def test_cells_of_a_file_are_read_while_they_are_written(tmp_path: Path) -> None:
    files = WorkerFiles(tmp_path)
    reader = WorkerFiles(tmp_path)
    at = files.cells.take("muniment_http_errors_total", ("x",))
    assert at is not None
    for number in range(1, 50):
        files.cells.numbers[at] += 1
        counted, alive = reader.others()
        assert alive == 1
        assert counted == [Counted("muniment_http_errors_total", ("x",), (float(number),))]
    for each in (files, reader):
        each.cells.close()


def test_one_process_alone_leaves_no_files(tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    before = set(tmp_path.rglob("*"))
    serve().get("/metrics")
    assert {path for path in tmp_path.rglob("*") if "metrics" in path.name} <= before
    assert isinstance(Cells().numbers[0], float)


def replica_state(client: TestClient, state: str) -> str:
    """The state `/v1/info` reports, once it is `state`, or the last one if that takes too long."""
    for _ in range(600):
        if (found := client.get("/v1/info").json()["replica"]) == state:
            break
        time.sleep(0.05)
    return str(found)


@pytest.mark.soak
def test_replica_state_metric(pair: tuple[PostgresProcess, PostgresProcess], serve: Serve) -> None:
    primary, replica = pair
    with fresh_schema(primary.dsn) as schema:
        target = f"{primary.dsn}?schema={schema}"
        for address, state in ((replica.address, "follows"), ("127.0.0.1:1", "away")):
            with muniment.open(f"{target}&replica={address}") as mem:
                client = serve(mem)
                assert client.post(f"{ANA}/runs/r1/events", json=TALK).status_code == 201
                assert replica_state(client, state) == state
                page = read(client.get("/metrics").text)
                assert page.of("muniment_store_replica", state="none") == 0
                assert page.of("muniment_store_replica", state=state) == 1
        with muniment.open(target) as mem:
            page = read(serve(mem).get("/metrics").text)
            assert page.of("muniment_store_replica", state="none") == 1


def test_replica_that_caught_up_is_reported_without_a_read(
    pair: tuple[PostgresProcess, PostgresProcess], serve: Serve
) -> None:
    primary, replica = pair
    with (
        fresh_schema(primary.dsn) as schema,
        muniment.open(f"{primary.dsn}?schema={schema}&replica={replica.address}") as mem,
    ):
        client = serve(mem)
        replica.execute("SELECT pg_wal_replay_pause()")
        try:
            assert client.post(f"{ANA}/runs/r1/events", json=TALK).status_code == 201
            assert client.get(f"{ANA}/runs/r1/status").status_code == 200
            assert client.get("/v1/info").json()["replica"] == "behind"
        finally:
            replica.execute("SELECT pg_wal_replay_resume()")
        assert replica_state(client, "follows") == "follows"
