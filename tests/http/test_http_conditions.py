"""Versions, idempotency, pages, streams, encodings and long work: what HTTP adds to the library."""

from __future__ import annotations

import gzip
import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from http_support import ANA, TENANT, Serve
from starlette.testclient import TestClient

import muniment
from muniment.core.canonical import canonical_bytes, parse_json
from muniment.handles.memory import Memory
from muniment.surfaces.http.compression import choose_encoding
from muniment.surfaces.http.logs import JsonFormatter, configure_logs
from products import for_each

RUN = f"{ANA}/runs/r1"


def said(client: TestClient, content: str = "I live in Oslo.", **headers: str) -> Any:
    return client.post(f"{RUN}/events", json={"role": "user", "content": content}, headers=headers)


# -- answers ------------------------------------------------------------------------------------------


@pytest.mark.req("X-05")
def test_answers_are_canonical_bytes_and_packets_are_the_builds_own(client: TestClient) -> None:
    said(client)
    build = client.post(f"{RUN}/compose", json={"purpose": "responder", "query": "Where?"})
    for path in (f"{RUN}/events", f"{ANA}/builds/{build.json()['id']}", "/v1/policy", f"{ANA}/facts"):
        body = client.get(path).content
        assert canonical_bytes(parse_json(body)) == body
    packet = client.get(f"{ANA}/builds/{build.json()['id']}/packet").content
    assert packet == canonical_bytes(build.json()["packet"])
    event = client.get(f"{RUN}/events").json()["items"][1]
    text = client.get(f"{TENANT}/events/{event['id']}/content")
    assert (text.text, text.headers["content-type"]) == ("I live in Oslo.", "text/plain; charset=utf-8")


def test_a_run_starts_with_its_first_write_or_when_it_is_told_to(client: TestClient) -> None:
    assert client.get(f"{RUN}/events").status_code == 404
    assert said(client).json()["scope"]["session_id"] == "r1"
    assert client.get(f"{RUN}/status").json()["started_at"]
    asked = {"run_id": "r2", "session_id": "s", "agent_id": "a", "objective": "talk", "start": False}
    assert client.post(f"{ANA}/runs", json=asked).status_code == 201
    assert client.get(f"{ANA}/runs/r2").status_code == 404
    assert client.post(f"{ANA}/runs", json=asked | {"start": True}).status_code == 201
    assert client.get(f"{ANA}/runs/r2").json()["objective"] == "talk"
    assert client.post(f"{ANA}/runs", json=asked | {"start": True}).status_code == 201, "taken up again"
    assert client.post(f"{ANA}/runs", json=asked | {"objective": "sing"}).json()["code"] == "conflict"
    other = client.post(f"{ANA}/runs/r2/events?session_id=elsewhere", json={"role": "user", "content": "x"})
    assert other.json()["code"] == "duplicate_id"


# -- versions -----------------------------------------------------------------------------------------


@pytest.mark.req("MP-04")
def test_working_state_has_an_etag_and_a_stale_change_is_refused(client: TestClient) -> None:
    said(client)
    assert client.get(f"{RUN}/state").headers["etag"] == '"0"'
    first = client.patch(f"{RUN}/state", json={"goal": "eat"}, headers={"If-Match": '"0"'})
    assert (first.status_code, first.headers["etag"], first.json()["state_version"]) == (200, '"1"', 1)
    stale = client.patch(f"{RUN}/state", json={"goal": "sleep"}, headers={"If-Match": '"0"'})
    assert (stale.status_code, stale.json()["code"]) == (412, "stale_state")
    assert stale.json()["details"]["current_version"] == 1
    assert client.patch(f"{RUN}/state", json={"goal": "x", "expected_version": 0}).status_code == 409
    assert client.get(f"{RUN}/state").json()["goal"] == "eat"
    for bad in ("1", 'W/"1"', '"1", "2"', '"x"', '"99999999999999999999"'):
        refused = client.patch(f"{RUN}/state", json={"goal": "x"}, headers={"If-Match": bad})
        assert refused.json()["code"] == "invalid_input", bad
    assert client.patch(f"{RUN}/state", json={"goal": "x"}, headers={"If-Match": "*"}).status_code == 200
    assert client.post(f"{RUN}/events", json={}, headers={"If-Match": '"1"'}).status_code == 422


@pytest.mark.soak
def test_of_many_changes_to_one_version_one_is_made(serve: Serve, any_store: Memory) -> None:
    client = serve(any_store)
    said(client)

    def change(n: int) -> int:
        answer = client.patch(f"{RUN}/state", json={"slots": {"n": n}}, headers={"If-Match": '"0"'})
        return int(answer.status_code)

    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(change, range(16)))
    assert sorted(codes) == [200] + [412] * 15
    assert client.get(f"{RUN}/state").json()["state_version"] == 1


def test_facts_have_etags(client: TestClient) -> None:
    event = said(client).json()["id"]
    fact = client.post(f"{RUN}/facts", json={"key": "city", "value": "Oslo", "sources": [event]}).json()
    where = f"{ANA}/facts/{fact['fact_id']}"
    assert (client.get(where).json(), client.get(where).headers["etag"]) == (fact, '"1"')
    assert client.get(where, headers={"If-None-Match": '"1"'}).status_code == 304
    path = f"{RUN}/facts/{fact['fact_id']}/dispute"
    assert client.post(path, json={}, headers={"If-Match": '"7"'}).status_code == 412
    assert client.post(path, json={}, headers={"If-Match": '"1"'}).json()["status"] == "disputed"
    assert client.get(where).headers["etag"] == '"2"'


def test_plans_have_etags(client: TestClient) -> None:
    bank = f"{TENANT}/banks/user:ana"
    added = client.post(f"{bank}/lessons", json={"text": "Ask for the order number first", "when": "a refund"}).json()
    plan_id = client.post(f"{bank}/lessons/{added['lesson_id']}/sign", json={"signed_by": "rosa"}).json()["plan_id"]
    undo = f"{bank}/plans/{plan_id}/undo"
    assert client.post(undo, json={}, headers={"If-Match": '"9"'}).status_code == 412
    assert client.post(undo, json={}, headers={"If-Match": '"1"'}).status_code == 200


def test_what_has_not_changed_is_not_sent_again(client: TestClient) -> None:
    said(client)
    first = client.get("/v1/policy")
    again = client.get("/v1/policy", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.head("/v1/policy").headers["etag"] == first.headers["etag"]


# -- idempotency --------------------------------------------------------------------------------------


@pytest.mark.req("LG-06")
def test_a_key_writes_once_and_the_same_request_is_answered_alike(client: TestClient) -> None:
    event = said(client, **{"Idempotency-Key": "k1"})
    assert said(client, **{"Idempotency-Key": "k1"}).content == event.content
    other = said(client, "something else", **{"Idempotency-Key": "k1"})
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_mismatch")
    fact = {"key": "city", "value": "Oslo", "sources": [event.json()["id"]]}
    first = client.post(f"{RUN}/facts", json=fact, headers={"Idempotency-Key": "k2"})
    again = client.post(f"{RUN}/facts", json=fact, headers={"Idempotency-Key": "k2"})
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["idempotency-replayed"] == "true"
    assert client.patch(f"{RUN}/state", json={"goal": "x"}, headers={"Idempotency-Key": "k2"}).status_code == 409
    change, keyed = {"goal": "x", "expected_version": 0}, {"Idempotency-Key": "k3"}
    patched = [client.patch(f"{RUN}/state", json=change, headers=keyed) for _ in range(2)]
    assert [each.status_code for each in patched] == [200, 200]
    assert client.get(f"{RUN}/state").json()["state_version"] == 1
    kinds = [entry["kind"] for entry in client.get(f"{RUN}/events").json()["items"]]
    assert kinds == ["system", "message", "state_patch", "state_patch"]


@pytest.mark.req("LG-06")
def test_a_batch_under_a_key_is_written_once(client: TestClient) -> None:
    events = [{"role": "user", "content": str(n)} for n in range(3)]
    answers = [client.post(f"{RUN}/events/batch", json=events, headers={"Idempotency-Key": "b"}) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert len(client.get(f"{RUN}/events").json()["items"]) == 4


@pytest.mark.req("LG-06")
def test_a_key_holds_in_another_process_and_under_concurrency(serve: Serve, any_store: Memory) -> None:
    """Two servers over one store share nothing but the ledger: of all requests one writes, the rest are told so."""
    clients = [serve(any_store), serve(any_store)]
    event = said(clients[0]).json()["id"]
    fact = {"key": "city", "value": "Oslo", "sources": [event]}

    def post(n: int) -> Any:
        return clients[n % 2].post(f"{RUN}/facts", json=fact, headers={"Idempotency-Key": "k"})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(post, range(16)))
    written = [each for each in answers if each.status_code == 201]
    told = [each.json() for each in answers if each.status_code != 201]
    assert len({each.content for each in written}) == 1
    assert {each["code"] for each in told} <= {"conflict"}
    assert all(each["details"]["event_id"] for each in told)
    assert len(clients[0].get(f"{RUN}/events").json()["items"]) == 3


@pytest.mark.req("LG-06", "LG-07")
def test_what_a_key_wrote_and_was_forgotten_is_not_answered_again(client: TestClient) -> None:
    event = said(client).json()["id"]
    fact = {"key": "city", "value": "Oslo", "sources": [event]}
    client.post(f"{RUN}/facts", json=fact, headers={"Idempotency-Key": "k"})
    assert client.post(f"{ANA}/forget", json={"event": event}).status_code == 200
    again = client.post(f"{RUN}/facts", json=fact, headers={"Idempotency-Key": "k"})
    assert (again.status_code, again.json()["code"]) == (410, "forgotten")
    assert "Oslo" not in again.text


def test_keys_that_are_none_and_requests_that_need_none(client: TestClient) -> None:
    for bad in ("", " ", "x" * 257):
        assert said(client, **{"Idempotency-Key": bad}).status_code == 422
    assert client.post(f"{ANA}/search", json={"query": "x"}, headers={"Idempotency-Key": "k"}).status_code == 422
    body = {"role": "user", "content": "x", "idempotency_key": "one"}
    assert client.post(f"{RUN}/events", json=body, headers={"Idempotency-Key": "two"}).status_code == 422


# -- lists --------------------------------------------------------------------------------------------


def test_pages_hold_all_once_while_others_write(client: TestClient) -> None:
    client.post(f"{RUN}/events/batch", json=[{"role": "user", "content": str(n)} for n in range(25)])
    seen, cursor, written = [], None, 0
    while True:
        asked = f"{ANA}/events?limit=4" + (f"&cursor={cursor}" if cursor else "")
        page = client.get(asked).json()
        seen += [entry["seq"] for entry in page["items"]]
        cursor = page.get("next")
        if cursor is None:
            break
        if written < 5:
            said(client, "meanwhile")
            written += 1
    assert seen == list(range(1, 26 + written + 1))


def test_pages_of_lists_that_shrink(client: TestClient) -> None:
    for n in range(9):
        client.post(f"{ANA}/runs", json={"run_id": f"r{n}", "session_id": f"s{n}"})
    first = client.get(f"{ANA}/runs?limit=3").json()
    client.post(f"{ANA}/forget", json={"session": "s0"})
    rest = client.get(f"{ANA}/runs?limit=100&cursor={first['next']}").json()["items"]
    assert [each["run_id"] for each in rest] == [f"r{n}" for n in range(3, 9)]
    for bad in ("x", "WzFd", first["next"][:-3], "%00", "é"):
        assert client.get(f"{ANA}/runs?cursor={bad}").json()["code"] == "invalid_input"
    assert client.get(f"{ANA}/events?cursor={first['next']}").json()["code"] == "invalid_input"
    for limit in ("0", "1001", "-1", "x", "1e3", "٣"):
        assert client.get(f"{ANA}/runs?limit={limit}").status_code == 422


def test_long_lists_stream_as_lines(client: TestClient) -> None:
    client.post(f"{RUN}/events/batch", json=[{"role": "user", "content": "x" * 1000} for n in range(300)])
    answer = client.get(f"{ANA}/events", headers={"Accept": "application/x-ndjson"})
    assert answer.headers["content-type"] == "application/x-ndjson"
    entries = [json.loads(line) for line in answer.text.splitlines()]
    assert [each["seq"] for each in entries] == list(range(1, 302))
    assert client.get(f"{TENANT}/users/nobody/export").json()["code"] == "unknown_scope", "told before it begins"


# -- encodings ----------------------------------------------------------------------------------------


@for_each(
    ("accepted", "chosen"),
    [("gzip", "gzip"), ("zstd, gzip", "zstd"), ("gzip;q=1, zstd;q=0.5", "gzip"), ("identity", None), ("", None),
     ("zstd;q=0, gzip;q=0", None), ("br", None), ("gzip;q=x", None)],
)  # fmt: skip
def test_the_encoding_is_the_callers_choice(accepted: str, chosen: str | None) -> None:
    assert choose_encoding(accepted) == chosen


def test_answers_are_encoded_and_read_the_same(client: TestClient) -> None:
    zstandard = pytest.importorskip("zstandard")
    plain = client.get("/v1/openapi.json", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    for name, opened in (
        ("gzip", gzip.decompress),
        ("zstd", lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data)),
    ):
        with client.stream("GET", "/v1/openapi.json", headers={"Accept-Encoding": name}) as answer:
            raw = b"".join(answer.iter_raw())
        assert answer.headers["content-encoding"] == name
        assert len(raw) < len(plain.content) / 4
        assert opened(raw) == plain.content
    assert "content-encoding" not in client.get("/v1/health", headers={"Accept-Encoding": "gzip"}).headers


# -- long work ----------------------------------------------------------------------------------------


def test_long_work_runs_beside_and_tells_its_progress(client: TestClient) -> None:
    said(client)
    begun = client.post(f"{TENANT}/rebuild", headers={"Prefer": "respond-async"})
    assert (begun.status_code, begun.headers["preference-applied"]) == (202, "respond-async")
    events = client.get(begun.headers["location"] + "/events")
    assert events.headers["content-type"].startswith("text/event-stream")
    assert "event: done" in events.text
    done = client.get(begun.headers["location"]).json()
    assert (done["status"], done["result"]["items"]) == ("done", 1)
    assert done["operation_id"] in {each["operation_id"] for each in client.get(f"{TENANT}/operations").json()["items"]}
    assert client.get(f"/v1/tenants/acme/operations/{done['operation_id']}").json()["code"] == "not_found"
    assert client.get(f"{ANA}/operations/{done['operation_id']}").status_code == 404, "begun for the tenant"
    failed = client.post(f"{TENANT}/upkeep", json={"kinds": ["x"]}, headers={"Prefer": "respond-async"})
    assert "event: failed" in client.get(failed.headers["location"] + "/events").text
    assert client.get(failed.headers["location"]).json()["error"]["code"] == "invalid_input"
    assert client.post(f"{TENANT}/rebuild").json()["items"] == 1, "and waits for it otherwise"


def test_a_dump_goes_from_one_server_to_another(serve: Serve) -> None:
    here, there = serve(), serve()
    said(here)
    dump = here.get(f"{TENANT}/export").content
    lines = {"Content-Type": "application/x-ndjson"}
    done = there.post(f"{TENANT}/import", content=dump, headers=lines)
    assert done.json()["written"]["entries"] == 2
    assert there.get(f"{TENANT}/export").content == dump
    crossed = there.post("/v1/tenants/acme/import", content=dump, headers=lines)
    assert (crossed.status_code, crossed.json()["code"]) == (403, "forbidden")
    begun = there.post(f"{TENANT}/import", content=dump, headers=lines | {"Prefer": "respond-async"})
    assert '"skipped"' in there.get(begun.headers["location"] + "/events").text


# -- logs ---------------------------------------------------------------------------------------------


def test_what_a_driver_says_is_one_line_of_json_too(capfd: pytest.CaptureFixture[str]) -> None:
    """A pool that cannot connect says so in several lines, of which a collector of logs would make several entries."""
    names = ("muniment", "uvicorn", "uvicorn.error", "uvicorn.access", "psycopg.pool")
    loggers = [logging.getLogger(name) for name in names]
    before = [(each, list(each.handlers), each.propagate, each.level) for each in loggers]
    try:
        configure_logs()
        logging.getLogger("psycopg.pool").warning("error connecting in %r: %s", "muniment", "refused\n\tIs it up?")
        logging.getLogger("psycopg.pool").info("connection requested")
    finally:
        for logger, handlers, propagate, level in before:
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)
    (line,) = capfd.readouterr().err.splitlines()
    told = json.loads(line)
    assert (told["logger"], told["level"]) == ("psycopg.pool", "warning")
    assert told["message"].endswith("Is it up?")


def test_logs_are_json_and_hold_no_content(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "muniment.http"):
        said(client, "a secret of mine")
        client.get(f"{TENANT}/users/ana-the-user/fact-history?key=private")
    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records]
    assert [line["status"] for line in lines] == [201, 200]
    assert lines[0]["route"].endswith("/runs/{run_id}/events")
    assert all(line["request_id"] and line["ms"] >= 0 for line in lines)
    told = json.dumps(lines)
    assert not any(word in told for word in ("secret", "private", "ana-the-user"))


def test_closing_waits_for_what_is_under_way(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A work that has begun ends before the store is closed."""
    from muniment.store import verify as verifying

    entered, release, real = threading.Event(), threading.Event(), verifying.rebuild

    def slow(*args: Any) -> Any:
        entered.set()
        release.wait(10)
        return real(*args)

    monkeypatch.setattr(verifying, "rebuild", slow)
    client = serve()
    said(client)
    begun = client.post(f"{TENANT}/rebuild", headers={"Prefer": "respond-async"})
    assert entered.wait(10)
    assert client.get(begun.headers["location"]).json()["status"] == "running"
    threading.Timer(0.2, release.set).start()
    client.__exit__(None, None, None)
    assert release.is_set()


def test_a_server_that_is_being_stopped_says_when_to_come_back(serve: Serve) -> None:
    client = serve()
    said(client)
    client.app.state.live.end()  # type: ignore[attr-defined]
    work = client.post(f"{TENANT}/rebuild", headers={"Prefer": "respond-async"})
    for answer in (said(client), client.get("/v1/info"), work):
        assert (answer.status_code, answer.json()["code"]) == (503, "closed")
        assert answer.headers["content-type"] == "application/problem+json"
        assert int(answer.headers["retry-after"]) > 0
        assert answer.json()["detail"] == "the server is closing"
    assert client.get("/v1/health").status_code == 200


def test_a_store_that_was_closed_is_not_there_for_now(serve: Serve) -> None:
    memory = muniment.open()
    client = serve(memory)
    memory.close()
    answer = said(client)
    assert (answer.status_code, answer.json()["code"]) == (503, "closed")
    assert int(answer.headers["retry-after"]) > 0
