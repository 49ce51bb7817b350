"""One shape for every error, the codes of the library, nothing of the inside told."""

from __future__ import annotations

from typing import Any

import pytest
from http_support import ANA, Serve, address
from starlette.testclient import TestClient

import muniment
from muniment import errors
from muniment.errors import InvalidRecord, Issue, MunimentError
from muniment.surfaces.http._calls import routes_of
from muniment.surfaces.operations.problems import error_of, problem_of
from muniment.surfaces.operations.rows import OPERATIONS
from products import for_each

ROUTES = list(routes_of(OPERATIONS))
JSON = {"Content-Type": "application/json"}


def problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    """The answer is a problem of this status and code, whole."""
    assert answer.headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = answer.json()
    assert (answer.status_code, told["status"], told["code"]) == (status, status, code), told
    assert told["type"] == f"urn:muniment:error:{code}"
    assert told["title"]
    assert told["detail"]
    assert told["request_id"] == answer.headers["x-request-id"]
    return told


def test_unknown_addresses_and_wrong_methods(client: TestClient) -> None:
    for path in ("/", "/v1", "/v1/", "/nothing", f"{ANA}/nothing", f"{ANA}/runs/", f"{ANA}//runs", "/v2/info"):
        problem(client.get(path), 404, "unknown_route")
    problem(client.get("/v1/tenants/a%0Ab/nothing"), 404, "unknown_route")
    told = problem(client.put("/v1/info"), 405, "wrong_method")
    assert told["details"]["allowed"] == ["GET", "HEAD"]
    assert client.options(f"{ANA}/runs").headers["allow"] == "GET, HEAD, POST"
    problem(client.post("/v1/health"), 405, "wrong_method")
    problem(client.request("BREW", "/v1/info"), 405, "wrong_method")


@for_each("route", [each for each in ROUTES if each.operation.takes_body], ids=lambda r: r.template)
def test_bad_bodies_at_every_route(client: TestClient, route: Any) -> None:
    def send(content: bytes, **headers: str) -> Any:
        return client.request(route.operation.method, address(route), content=content, headers=headers)

    if route.operation.takes == "lines":
        problem(send(b"{}", **JSON), 415, "unsupported_media")
        problem(send(b"{", **{"Content-Type": "application/x-ndjson"}), 400, "invalid_json")
        return
    problem(send(b"{", **JSON), 400, "invalid_json")
    problem(send(b'{"a": NaN}', **JSON), 400, "invalid_json")
    problem(send(b'{"a": 1, "a": 2}', **JSON), 400, "invalid_json")
    problem(send(b"\xff", **JSON), 400, "invalid_json")
    problem(send(b"[" * 5000, **JSON), 400, "invalid_json")
    problem(send(b"{}", **{"Content-Type": "text/plain"}), 415, "unsupported_media")
    problem(send(b"{}", **JSON, **{"Content-Encoding": "gzip"}), 415, "unsupported_media")
    told = send(b'"text"', **JSON).json()
    assert told["status"] in (404, 422)
    if route.operation.signature.extra is None and route.operation.body is None:
        problem(send(b'{"no_such_argument": 1}', **JSON), 422, "invalid_input")


@for_each("route", ROUTES, ids=lambda r: f"{r.operation.method}-{r.template}")
def test_a_query_that_nobody_takes_is_refused(client: TestClient, route: Any) -> None:
    answer = client.request(route.operation.method, f"{address(route)}?no_such_parameter=1")
    assert answer.status_code in (415, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_body_over_the_limit_is_not_read(serve: Serve) -> None:
    client = serve(body_bytes_max=1000)
    told = problem(client.post(f"{ANA}/search", json={"query": "x" * 2000}), 413, "too_large")
    assert told["details"] == {"bytes_max": 1000}

    parts = iter([b" " * 500] * 10)  # no Content-Length tells of it beforehand
    problem(client.post(f"{ANA}/search", content=parts, headers=JSON), 413, "too_large")


def test_the_librarys_errors_come_through_with_code_path_and_hint(client: TestClient) -> None:
    told = problem(client.post(f"{ANA}/compose", json={"purpose": "poet"}), 422, "invalid_input")
    assert (told["path"], told["hint"]) == ("$.purpose", "one of planner, tool, responder")
    told = problem(client.post(f"{ANA}/runs/r1/events", json={"role": "root", "content": 5}), 422, "invalid_record")
    assert {issue["path"] for issue in told["details"]["issues"]} == {"$.role", "$.content"}
    problem(client.get(f"{ANA}/builds/nope"), 404, "not_found")
    client.post(f"{ANA}/runs/r1/events", json={"role": "user", "content": "x"})
    client.post(f"{ANA}/runs/r1/finish")
    problem(client.post(f"{ANA}/runs/r1/events", json={"role": "user", "content": "y"}), 409, "run_finished")


def test_what_nobody_foresaw_says_nothing_of_the_inside(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("the secret inside")

    monkeypatch.setattr("muniment.runs.snapshots.page_runs", broken)
    answer = serve().get(f"{ANA}/runs", headers={"X-Request-Id": "mine-1"})
    assert answer.status_code == 500
    assert answer.json()["code"] == "error"
    assert answer.json()["request_id"] == "mine-1"
    assert "secret" not in answer.text


def test_request_ids_are_taken_where_they_are_harmless(client: TestClient) -> None:
    assert client.get("/v1/info", headers={"X-Request-Id": "abc-1"}).headers["x-request-id"] == "abc-1"
    for bad in ("", "a b", "x" * 65, '"', "é".encode()):
        assert client.get("/v1/info", headers={"X-Request-Id": bad}).headers["x-request-id"].startswith("req_")


CLASSES = [
    each
    for name in errors.__all__
    if isinstance(each := getattr(errors, name), type) and issubclass(each, MunimentError)
]


@for_each("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_survives_the_way_there_and_back(cls: type[MunimentError]) -> None:
    if cls is InvalidRecord:
        error: MunimentError = InvalidRecord("it failed", [Issue("$.a", "wrong")], hint="do it")
    else:
        error = cls("it failed", path="$.a", hint="do it", details={"n": 1})
    back = error_of(problem_of(error, "req_1"))
    assert type(back) is cls
    assert back.to_dict() == error.to_dict() or cls is MunimentError
    assert error_of({"code": "of_a_newer_server", "detail": "no"}).details == {"code": "of_a_newer_server"}


@for_each("issues", [7, {"a": 1}, ["no issue"], [{"path": "$"}], [{"path": 1, "message": [], "code": ""}]])
def test_issues_of_another_form_are_left_out(issues: Any) -> None:
    problem = {"code": "invalid_record", "detail": "no", "path": "$.x", "details": {"issues": issues, "more": 1}}
    error = error_of(problem)
    assert (str(error), error.details) == ("no (at $.x)", {"more": 1})


def test_codes_are_unique_so_that_each_names_its_class() -> None:
    assert len({cls.code for cls in CLASSES}) == len(CLASSES)
    assert muniment.errors.Refused("x").to_dict()["code"] == "refused"
