"""The OTLP receiver: what an exporter sends by itself becomes memory, for whom the key says (MV-07)."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from http_support import ANA, Serve, bearer, running
from starlette.testclient import TestClient

import muniment
from muniment.handles.memory import Memory
from muniment.surfaces.http._keys import KeyFile

CAPTURED = Path(__file__).parents[1] / "unit" / "traces" / "captured"
STRANDS = (CAPTURED / "strands.traces.json").read_bytes()  # names ana in each span
OPENAI = (CAPTURED / "openai-v2-chat.logs.json").read_bytes()  # names nobody
JSON = {"Content-Type": "application/json"}
PROTOBUF = {"Content-Type": "application/x-protobuf"}


def packed(data: bytes) -> bytes:
    """The same request as protobuf."""
    service = pytest.importorskip(
        "opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="needs opentelemetry-proto"
    )
    import base64

    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    def ids(held: Any) -> Any:
        if isinstance(held, dict):
            return {
                key: base64.b64encode(bytes.fromhex(value)).decode() if key.endswith("Id") else ids(value)
                for key, value in held.items()
            }
        return [ids(each) for each in held] if isinstance(held, list) else held

    held = json.loads(data)
    made = ExportLogsServiceRequest() if "resourceLogs" in held else service.ExportTraceServiceRequest()
    return bytes(ParseDict(ids(held), made).SerializeToString())


def told(client: TestClient, user: str = "ana", **headers: str) -> list[str]:
    answer = client.get(f"/v1/tenants/default/users/{user}/events", headers=headers)
    return [each["body"]["content"] for each in answer.json()["items"] if each["kind"] == "message"]


@pytest.mark.req("MV-07")
def test_traces_are_taken_in_every_form_once(client: TestClient) -> None:
    forms: list[tuple[bytes, dict[str, str]]] = [
        (STRANDS, JSON),
        (packed(STRANDS), PROTOBUF),
        (gzip.compress(STRANDS), JSON | {"Content-Encoding": "gzip"}),
        (gzip.compress(packed(STRANDS)), PROTOBUF | {"Content-Encoding": "gzip"}),
        (zlib.compress(packed(STRANDS)), PROTOBUF | {"Content-Encoding": "deflate"}),
    ]
    for data, headers in forms:
        answer = client.post("/v1/traces", content=data, headers=headers)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == headers["Content-Type"]
        assert answer.content == (b"{}" if headers["Content-Type"] == JSON["Content-Type"] else b"")
    assert told(client) == [
        "My sister Ana moved to Lisbon in March.",
        "Noted: your sister Ana moved to Lisbon in March.",
        "What is the weather there?",
        "It is 21 degrees and sunny in Lisbon.",
    ]


def test_what_is_not_kept_is_a_partial_success(client: TestClient) -> None:
    answer = client.post("/v1/logs", content=OPENAI, headers=JSON).json()
    assert answer["partialSuccess"]["rejectedLogRecords"] == "15"
    assert "muniment-user" in answer["partialSuccess"]["errorMessage"]
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

    binary = client.post("/v1/logs", content=packed(OPENAI), headers=PROTOBUF).content
    parsed = ExportLogsServiceResponse.FromString(binary).partial_success
    assert parsed.rejected_log_records == 15
    assert parsed.error_message == answer["partialSuccess"]["errorMessage"]


def test_a_header_or_a_setting_says_whose_it_is(serve: Serve) -> None:
    client = serve()
    assert client.post("/v1/logs", content=OPENAI, headers=JSON | {"muniment-user": "bo"}).json() == {}
    assert len(told(client, "bo")) == 4
    other = serve(trace_user="cy", trace_user_attributes="")
    assert other.post("/v1/logs", content=OPENAI, headers=JSON).json() == {}
    assert other.post("/v1/traces", content=STRANDS, headers=JSON).json() == {}  # what its spans say is not asked for
    assert len(told(other, "cy")) == 8
    assert told(other) == []


@pytest.mark.req("MV-07")
def test_the_key_decides_for_whom_it_is_written(serve: Serve, keys: KeyFile) -> None:
    client = serve(auth="on")
    bo = bearer(keys.create("k", tenant="default", user="bo", access="write").token)
    acme = bearer(keys.create("k", tenant="acme", access="write").token)
    reader = bearer(keys.create("k", tenant="default", access="read").token)
    admin = bearer(keys.create("k", tenant="*", access="admin").token)
    assert client.post("/v1/traces", content=STRANDS, headers=JSON).status_code == 401
    assert client.post("/v1/traces", content=STRANDS, headers=JSON | reader).status_code == 403
    refused = client.post("/v1/traces", content=STRANDS, headers=JSON | bo).json()  # ana's, by a key of bo's
    assert refused["partialSuccess"]["rejectedSpans"] == "6"
    for headers in ({"muniment-user": "ana"}, {"muniment-tenant": "acme"}):
        assert client.post("/v1/traces", content=STRANDS, headers=JSON | bo | headers).status_code == 403
    assert client.post("/v1/logs", content=OPENAI, headers=JSON | bo).json() == {}
    assert client.post("/v1/traces", content=STRANDS, headers=JSON | acme).json() == {}
    assert (
        client.post("/v1/traces", content=STRANDS, headers=JSON | acme | {"muniment-tenant": "default"}).status_code
        == 403
    )
    users = {
        tenant: [each["user_id"] for each in client.get(f"/v1/tenants/{tenant}/users", headers=admin).json()["items"]]
        for tenant in ("default", "acme")
    }
    assert users == {"default": ["bo"], "acme": ["ana"]}


@pytest.mark.parametrize("kind", [JSON, PROTOBUF])
def test_a_refusal_is_told_as_otlp_has_it(serve: Serve, keys: KeyFile, kind: dict[str, str]) -> None:
    client = serve(auth="on")
    own = bearer(keys.create("k", tenant="default", access="write", body_bytes_max=5_000).token)
    bomb = gzip.compress(b"\x00" * 1_000_000)
    broken = {"Content-Encoding": "gzip"}
    for data, headers, status, code in (
        (b"\xff\xff", own, 400, 3),
        (b"{", {}, 401, 16),
        (b" " * 6_000, own, 413, 8),
        (bomb, own | broken, 413, 8),
        (gzip.compress(b"x" * 40)[:15], own | broken, 400, 3),
        (b"x", own | {"Content-Encoding": "br"}, 415, 3),
    ):
        answer = client.post("/v1/traces", content=data, headers=kind | headers)
        assert answer.status_code == status, answer.content
        assert answer.headers["content-type"] == kind["Content-Type"]
        if kind is JSON:
            assert answer.json()["code"] == code
            assert answer.json()["details"][0]["value"]["status"] in (status, 422)
        else:
            assert answer.content[:3] == bytes([0x08, code, 0x12])  # a `google.rpc.Status`: its code, its message


def test_who_sends_too_often_is_told_when_to_come_back(serve: Serve, keys: KeyFile) -> None:
    client = serve(auth="on")
    own = bearer(keys.create("k", tenant="default", access="write", requests_per_minute=1).token)
    answers = [client.post("/v1/traces", content=b"", headers=PROTOBUF | own) for _ in range(2)]
    assert [each.status_code for each in answers] == [200, 429]
    assert int(answers[1].headers["Retry-After"]) >= 1


def test_metrics_are_taken_and_not_kept(client: TestClient) -> None:
    answer = client.post("/v1/metrics", content=b"{}", headers=JSON)
    assert answer.json() == {"partialSuccess": {"rejectedDataPoints": "0", "errorMessage": "metrics are not kept here"}}
    assert client.get("/v1/traces").status_code == 405
    assert client.get("/v1/traces").headers["Allow"] == "POST"


def test_the_operation_itself_stands_at_the_users_address(client: TestClient) -> None:
    report = client.post(f"{ANA}/traces", json={"data": json.loads(STRANDS)}).json()
    assert (report["messages"], report["results"]) == (4, 1)
    other = client.post("/v1/tenants/default/users/bo/traces", json={"data": json.loads(STRANDS)}).json()
    assert other["left_out"]["another_user"] == 6
    bad = client.post(f"{ANA}/traces", json={"data": {"resourceSpans": 7}})
    assert (bad.status_code, bad.json()["path"]) == (422, "$.resourceSpans")


def test_over_a_connection_it_is_the_librarys_own(tmp_path: Path) -> None:
    pytest.importorskip("httpx2", reason="the client extra is not installed")
    with muniment.open() as mem, running(mem, tmp_path) as url, muniment.connect(url) as there:
        report = there.ledger.ingest_otel(json.loads(STRANDS))
        assert (report.messages, report.sessions[0].session_id) == (4, "conv-7")


def _exported(url: str, count: int) -> None:
    """Spans of an SDK, through its own exporter."""
    exporting = pytest.importorskip(
        "opentelemetry.exporter.otlp.proto.http.trace_exporter",
        reason="opentelemetry-exporter-otlp-proto-http is not installed",
    )
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    exporter = exporting.OTLPSpanExporter(
        endpoint=f"{url}/v1/traces", headers={"muniment-user": "ana"}, compression=Compression.Gzip
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("agent")
    for number in range(count):
        sent = json.dumps([{"role": "user", "parts": [{"type": "text", "content": f"My locker is number {number}."}]}])
        held = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": sent, "gen_ai.conversation.id": "c"}
        with tracer.start_as_current_span("chat m", attributes=held):
            pass
    provider.shutdown()


@pytest.mark.req("MV-07")
def test_the_sdks_own_exporter_sends_to_a_real_server(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "a.db") as mem, running(mem, tmp_path) as url:
        _exported(url, 30)
        _exported(url, 1)
        words = [entry.content for entry in mem.ledger.entries(user_id="ana", kind="message")]
    assert words[:2] == ["My locker is number 0.", "My locker is number 1."]
    assert len(words) == 30


def test_on_every_engine(any_store: Memory, serve: Serve) -> None:
    client = serve(any_store)
    for _ in range(2):
        assert client.post("/v1/traces", content=STRANDS, headers=JSON).json() == {}
    assert len(told(client)) == 4
    assert any_store.verify().ok
