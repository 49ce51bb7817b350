"""A model behind OpenAI's chat completions: the protocol against a server of our own, and a small real model."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import muniment
from muniment.errors import InvalidInput, ModelMalformed, ModelRefused, ModelUnreachable
from muniment.memory.outside.model_http import HttpModel

TS = "2026-05-01T12:00:00Z"
TEXT = "I moved to Berlin in May."
FACT = {"key": "user.city", "value": "Berlin", "quote": "I moved to Berlin", "confidence": 0.95}


class Desk:
    """What the server answers in turn, and what it was asked."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, bytes]] = []
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.url = ""

    def say(self, facts: Any, status: int = 200) -> None:
        content = facts if isinstance(facts, str) else json.dumps({"facts": facts})
        self.answers.append((status, json.dumps({"choices": [{"message": {"content": content}}]}).encode()))


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            made.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            made.asked[-1]["path"] = self.path
            made.keys.append(self.headers.get("Authorization"))
            status, body = made.answers.pop(0)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_port}/v1"
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


def model(desk: Desk, **more: Any) -> HttpModel:
    return HttpModel(desk.url, "small", sleep=lambda _s: None, **more)


def test_what_it_reads_are_proposals(desk: Desk) -> None:
    desk.say([FACT])
    (found,) = model(desk, api_key="secret").propose(TEXT, "user", TS)
    assert (found.key, found.value, found.quote) == ("user.city", "Berlin", "I moved to Berlin")
    assert found.confidence == 0.7  # its own 0.95 is capped below what is promoted unasked
    asked = desk.asked[0]
    assert (asked["path"], asked["model"], asked["temperature"]) == ("/v1/chat/completions", "small", 0)
    assert asked["response_format"]["json_schema"]["strict"] is True
    assert TEXT in asked["messages"][-1]["content"]
    assert desk.keys == ["Bearer secret"]


def test_nothing_is_asked_about_nothing(desk: Desk) -> None:
    assert model(desk).propose("  ", "user", TS) == []
    assert desk.asked == []


@pytest.mark.soak
@pytest.mark.parametrize(
    "odd",
    [{}, None, "text", {**FACT, "key": ""}, {**FACT, "quote": ""}, {**FACT, "confidence": "high"}, {**FACT, "key": 3}],
)
def test_what_is_no_proposal_is_left_out(desk: Desk, odd: Any) -> None:
    desk.say([odd, FACT])
    assert [found.key for found in model(desk).propose(TEXT, "user", TS)] == ["user.city"]


@pytest.mark.soak
@pytest.mark.parametrize("odd", ["", "not json", '{"facts": 3}', '{"other": []}', '{"facts": [', "[]", "[" * 3000])
def test_an_answer_that_is_no_list_of_facts(desk: Desk, odd: str) -> None:
    desk.say(odd)
    with pytest.raises(ModelMalformed):
        model(desk).propose(TEXT, "user", TS)


def test_what_may_pass_is_tried_again(desk: Desk) -> None:
    desk.say("", 503)
    desk.say("", 429)
    desk.say([FACT])
    assert len(model(desk).propose(TEXT, "user", TS)) == 1
    for _ in range(3):
        desk.say("", 500)
    with pytest.raises(ModelUnreachable, match="500"):
        model(desk).propose(TEXT, "user", TS)


def test_a_refusal_is_said_at_once(desk: Desk) -> None:
    desk.say("", 401)
    with pytest.raises(ModelRefused, match="401"):
        model(desk).propose(TEXT, "user", TS)
    assert len(desk.asked) == 1


@pytest.mark.parametrize("url", ["", "ftp://host/v1", "http://", "http://user:pw@host/v1", "http://host/v1?key=1"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(InvalidInput):
        HttpModel(url, "small")


@pytest.mark.soak
def test_a_quote_that_does_not_stand_there_is_declined(desk: Desk) -> None:
    may = {**FACT, "key": "user.moved_in", "value": "May", "quote": "I moved to Berlin in May"}
    desk.say([{**FACT, "value": "Rome", "quote": "I moved to Rome", "turn": "t1"}, {**may, "turn": "t1"}])
    with muniment.open(":memory:") as mem:
        run = mem.run(user_id="ana")
        run.observe("user", TEXT)
        made = {each.key: each for each in run.extract(model=model(desk)) if each.proposed_by == "model:small"}
        assert made["user.city"].status == "declined"
        assert made["user.moved_in"].status == "proposed"  # it waits: the policy promotes from 0.8
        assert run.memory.decide(made["user.moved_in"].candidate_id, True).status == "promoted"


# -- a small real model -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_small_real_model_proposes_and_nothing_is_taken_on_trust(smollm: str) -> None:
    """Its answers are weak; the shape and the check of its quotes are what is tested."""
    small = HttpModel(smollm, "smollm2", facts_max=1, tokens_max=200, timeout_s=240, attempts_max=1)
    with muniment.open(":memory:") as mem:
        run = mem.run(user_id="ana")
        said = run.observe("user", TEXT)
        found = [each for each in run.extract([said.id], model=small) if each.proposed_by == "model:smollm2"]
        assert found, "the schema asks for a list that it fills"
        for each in found:
            assert each.status != "promoted"
            assert each.status == "declined" or (each.quote is not None and each.quote in TEXT)
            assert each.sources == (said.id,)
