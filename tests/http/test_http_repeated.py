"""What is asked again: lists that have not changed, and packets under an Idempotency-Key."""

from __future__ import annotations

import pytest
from http_support import ANA, TENANT, Serve, running
from starlette.testclient import TestClient

import muniment
from muniment.handles.memory import Memory
from muniment.surfaces.operations.naming import addresses
from muniment.surfaces.operations.rows import OPERATIONS

ASKED = {"purpose": "responder", "query": "Where do I live?", "now": "2026-05-01T12:00:00Z"}


def said(client: TestClient, words: str = "I moved to Berlin in May.") -> str:
    event_id: str = client.post(f"{ANA}/runs/r1/events", json={"role": "user", "content": words}).json()["id"]
    return event_id


def test_a_list_that_has_not_changed_is_not_sent_again(client: TestClient) -> None:
    said(client)
    for path in (f"{ANA}/events", f"{ANA}/facts", f"{ANA}/builds", f"{ANA}/episodes", f"{TENANT}/users",
                 f"{TENANT}/runs", f"{ANA}/runs/r1/events"):  # fmt: skip
        first = client.get(path)
        etag = first.headers["etag"]
        again = client.get(path, headers={"If-None-Match": f'"x", {etag}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag), path
        assert client.get(path, headers={"If-None-Match": '"x"'}).content == first.content
    etag = client.get(f"{ANA}/events").headers["etag"]
    said(client, "And I like it.")
    changed = client.get(f"{ANA}/events", headers={"If-None-Match": etag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != etag
    assert "etag" not in client.get(f"{ANA}/events", headers={"Accept": "application/x-ndjson"}).headers


def test_the_document_says_of_etags_what_is_so(client: TestClient) -> None:
    """Every GET without further names that answers 200 has the header that the document gives it, and no other has."""
    said(client)
    paths = client.get("/v1/openapi.json").json()["paths"]
    names = {"tenant_id": "default", "user_id": "ana", "run_id": "r1", "agent_id": "agent", "corpus_id": "notes"}
    names["owner"] = "user:ana"
    seen = 0
    for operation in OPERATIONS:
        for _, template in addresses(operation):
            if operation.method != "GET" or set(operation.named_in(template)) - names.keys():
                continue
            if operation.media == "application/x-ndjson":
                continue
            answer = client.get(template.format(**names))
            if answer.status_code == 200:
                seen += 1
                told = paths[template]["get"]["responses"]["200"]["headers"]
                assert ("etag" in answer.headers) == ("ETag" in told), template
    assert seen > 35


@pytest.mark.req("LG-06")
def test_compose_takes_a_key(client: TestClient) -> None:
    event_id = said(client)
    for path in (f"{ANA}/runs/r1/compose", f"{ANA}/compose"):
        headers = {"Idempotency-Key": f"key of {path}".replace(" ", "_")}
        first = client.post(path, json=ASKED, headers=headers)
        said(client, "I live in Lisbon now.")
        again = client.post(path, json=ASKED, headers=headers)
        assert (first.status_code, again.status_code) == (200, 200)
        assert again.content == first.content
        in_body = client.post(path, json=ASKED | {"idempotency_key": headers["Idempotency-Key"]})
        assert in_body.content == first.content
        other = client.post(path, json=ASKED | {"query": "Who?"}, headers=headers)
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_mismatch")
        assert client.post(path, json=ASKED).json()["id"] != first.json()["id"]
    assert client.post(f"{ANA}/forget", json={"event": event_id}).status_code == 200
    anew = client.post(
        f"{ANA}/runs/r1/compose", json=ASKED, headers={"Idempotency-Key": f"key_of_{ANA}/runs/r1/compose"}
    )
    assert anew.status_code == 200
    assert "Berlin" not in anew.json()["text"]


def test_a_key_holds_over_the_client_and_on_every_engine(any_store: Memory, tmp_path: object, serve: Serve) -> None:
    with running(any_store, tmp_path) as url, muniment.connect(url) as mem:  # type: ignore[arg-type]
        run = mem.run(user_id="ana")
        run.observe("user", "I moved to Berlin in May.")
        first = run.compose("responder", query="Where?", idempotency_key="k")
        run.observe("user", "I live in Lisbon now.")
        assert run.compose("responder", query="Where?", idempotency_key="k") == first
        with pytest.raises(muniment.errors.IdempotencyMismatch):
            run.compose("planner", query="Where?", idempotency_key="k")
