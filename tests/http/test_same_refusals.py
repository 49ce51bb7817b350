"""The same wrong input is the same error over the library, the client and plain HTTP: code, path and hint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from http_support import ANA, Serve, running
from starlette.testclient import TestClient

import muniment
from muniment.core.canonical import canonical_text
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.policy import Policy
from muniment.errors import InvalidInput, MunimentError
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from products import for_each

SURROGATE = "te\ud800a"
REVERSED = {"time_range": {"start": "2026-06-02T00:00:00Z", "end": "2026-06-01T00:00:00Z"}}


@pytest.fixture
def doors(tmp_path: Path) -> Iterator[tuple[Memory, Memory]]:
    """A store and a connection to another like it."""
    with (
        muniment.open(clock=TickingClock(), ids=CountingIds()) as home,
        muniment.open(clock=TickingClock(), ids=CountingIds()) as there,
        running(there, tmp_path) as url,
        muniment.connect(url) as far,
    ):
        yield home, far


def refused(mem: Memory, ask: Callable[[Memory, Run, str], Any]) -> tuple[str, str | None, str | None]:
    run = mem.run(user_id="ana", session_id="s1", run_id="r1")
    said = run.observe("user", "I live in Rome and I like tea.")
    with pytest.raises(MunimentError) as caught:
        ask(mem, run, said.id)
    error = caught.value
    return error.code, error.path, error.hint


def compared(policy: Any) -> Callable[[Memory, Run, str], Any]:
    return lambda mem, run, _: mem.compare(run.compose("responder", query="tea").id, policy)


@pytest.mark.parametrize(
    ("ask", "code", "path"),
    [
        (compared("nope"), "not_found", "$.policy"),
        (compared(None), "invalid_input", "$.policy"),
        (compared(5), "invalid_input", "$.policy"),
        (compared({"compose": {"max_tokens": "many"}}), "invalid_record", "$.policy.compose.max_tokens"),
        (compared({"nothing": 1}), "invalid_record", "$.policy.nothing"),
        (lambda _, run, __: run.compose("tool", policy={"nothing": 1}), "invalid_record", "$.policy.nothing"),
        (lambda _, run, __: run.compose("tool", policy="nope"), "not_found", "$.policy"),
        (lambda _, run, __: run.compose("tool", policy=7), "invalid_input", "$.policy"),
        (lambda _, run, __: run.search(SURROGATE), "invalid_json", "$.query"),
        (lambda _, run, __: run.compose("tool", query=SURROGATE), "invalid_json", "$.query"),
        (lambda _, run, __: run.compose("tool", cues=REVERSED), "invalid_input", "$.cues.time_range.end"),
        (lambda _, run, __: run.search("tea", k=2.5), "invalid_input", "$.k"),
        (lambda _, run, __: run.search("tea", k=True), "invalid_input", "$.k"),
        (lambda _, run, __: run.search("tea", min_score=1.5), "invalid_input", "$.min_score"),
        (lambda _, run, __: run.search("tea", min_score="much"), "invalid_input", "$.min_score"),
        (
            lambda _, run, source: run.remember("user.x", "y", sources=[source], confidence=float("nan")),
            "invalid_record",
            "$.confidence",
        ),
        (lambda _, run, __: run.remember("user.x", "y"), "invalid_input", "$.sources"),
        (lambda _, run, __: run.remember("user.x", "y", sources=[]), "invalid_input", "$.sources"),
        (lambda _, run, source: run.remember("user.x", {1, 2}, sources=[source]), "invalid_record", "$.value"),
        (lambda _, run, source: run.remember("user.x", {"a": {1}}, sources=[source]), "invalid_record", "$.value.a"),
        (lambda _, run, source: run.propose("user.x", float("inf"), sources=[source]), "invalid_record", "$.value"),
    ],
)
def test_library_and_client_refuse_alike(
    doors: tuple[Memory, Memory], ask: Callable[[Memory, Run, str], Any], code: str, path: str
) -> None:
    home, far = (refused(mem, ask) for mem in doors)
    assert home == far
    assert home[:2] == (code, path)


@for_each(
    ("what", "body", "code", "path"),
    [
        ("compare", '{"policy": "nope"}', "not_found", "$.policy"),
        ("compare", '{"policy": null}', "invalid_input", "$.policy"),
        ("compare", '{"policy": []}', "invalid_input", "$.policy"),
        ("search", '{"query": "te\\ud800a"}', "invalid_json", "$.query"),
        ("compose", '{"purpose": "tool", "query": "te\\ud800a"}', "invalid_json", "$.query"),
        ("facts", '{"key": "user.x", "value": "y"}', "invalid_input", "$.sources"),
    ],
)
def test_plain_http_refuses_as_they_do(client: TestClient, what: str, body: str, code: str, path: str) -> None:
    place = f"{ANA}/runs/r1"
    build = client.post(f"{place}/compose", json={"purpose": "tool", "query": "tea"}).json()["id"]
    address = f"{ANA}/builds/{build}/compare" if what == "compare" else f"{place}/{what}"
    answer = client.post(address, content=body, headers={"Content-Type": "application/json"})
    assert (answer.json()["code"], answer.json()["path"]) == (code, path)
    assert answer.status_code < 500


def test_a_policy_may_be_given_as_an_object_at_every_door(doors: tuple[Memory, Memory]) -> None:
    told = []
    for mem in doors:
        run = mem.run(user_id="ana", session_id="s1", run_id="r1")
        run.observe("user", "I live in Rome and I like tea.")
        given = {"policy_id": "lean", "compose": {"quotes_max": 0}}
        build = run.compose("responder", query="Where do I live?", policy=given)
        assert build.policy == Policy.from_wire(given)
        usual = run.compose("responder", query="Where do I live?")
        assert mem.compare(usual.id, given) == mem.compare(usual.id, Policy.from_wire(given))
        assert not mem.compare(usual.id, given).is_same
        assert mem.compare(usual.id, "default").changes == ()
        told.append(mem.compare(usual.id, given))
    assert told[0] == told[1]


def test_open_takes_a_policy_by_the_same_rule() -> None:
    for given in ("nope", 5, [("a", 1)]):
        with pytest.raises(InvalidInput) as caught:
            muniment.open(policy=given)  # type: ignore[arg-type]
        assert caught.value.path == "$.policy"
    with pytest.raises(InvalidInput) as caught:
        muniment.open(policy={"compose": {"max_tokens": "many"}})
    assert caught.value.path == "$.policy.compose.max_tokens"


def test_a_number_is_kept_as_the_same_at_every_door(doors: tuple[Memory, Memory]) -> None:
    numbers = [2.0, -0.0, 0.1, 1e20, 1e21, -1e21, 1.5e300, 5e-324]
    told = []
    for mem in doors:
        run = mem.run(user_id="ana", session_id="s1", run_id="r1")
        told.append(canonical_text(run.patch(slots={"numbers": numbers}).slots))
    assert told[0] == told[1] == canonical_text({"numbers": numbers})


def test_an_integral_float_is_an_integer_at_every_door(doors: tuple[Memory, Memory], serve: Serve) -> None:
    for mem in doors:
        run = mem.run(user_id="ana", session_id="s1", run_id="r1")
        for _ in range(3):
            run.observe("user", "I live in Rome and I like tea.")
        assert len(run.search("tea", k=2.0)) == 2  # type: ignore[arg-type]
        build = run.compose("tool", query="tea", max_tokens=256.0, per_section={"facts": 1e2})  # type: ignore[arg-type,dict-item]
        assert (build.request.budget.max_tokens, build.request.budget.per_section.facts) == (256, 100)
        assert type(build.request.budget.max_tokens) is int
    client = serve()
    client.post(f"{ANA}/runs/r1/events", json={"role": "user", "content": "tea"})
    json = {"Content-Type": "application/json"}
    answer = client.post(
        f"{ANA}/runs/r1/compose", content='{"purpose": "tool", "max_tokens": 1e3, "query": "tea"}', headers=json
    )
    assert answer.json()["request"]["budget"]["max_tokens"] == 1000
    assert client.post(f"{ANA}/runs/r1/search", content='{"query": "tea", "k": 5.0}', headers=json).status_code == 200
