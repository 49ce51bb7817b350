"""A model behind OpenAI's chat completions: the protocol against a server of our own, and a small real model."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import muniment
from muniment.core.policy import ExtractionPolicy
from muniment.errors import InvalidInput, ModelFailure, ModelRefused, ModelUnreachable
from muniment.memory._extract_checks import SourceTurn
from muniment.memory._extract_model import TurnModel, answer_schema, load_turn_model, prompt_messages
from planted_model import HOLDS

TURN = SourceTurn("e1", "user", "user", "2026-05-01T12:00:00Z", "I moved to Berlin in May.")
FACT = {"turn": "t1", "speaker": "user", "key": "user.city", "value": "Berlin", "quote": "I moved to Berlin", **HOLDS}


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


def model(desk: Desk, **options: Any) -> TurnModel:
    return load_turn_model(f"{desk.url}#small", ExtractionPolicy(answer_tokens_max=200), **options)


def test_what_is_asked_and_answered(desk: Desk) -> None:
    desk.say([FACT])
    reply = model(desk, api_key="secret").ask(prompt_messages([TURN], ()), answer_schema([TURN], 8), 999)
    assert json.loads(reply.text) == {"facts": [FACT]}
    asked = desk.asked[0]
    assert (asked["path"], asked["model"], asked["temperature"]) == ("/v1/chat/completions", "small", 0)
    assert (asked["max_tokens"], asked["response_format"]["json_schema"]["strict"]) == (200, True)
    assert TURN.text in asked["messages"][-1]["content"]
    assert desk.keys == ["Bearer secret"]


@pytest.mark.parametrize(("status", "error"), [(503, ModelUnreachable), (429, ModelUnreachable), (401, ModelRefused)])
def test_a_call_that_fails_is_made_once_and_says_how(desk: Desk, status: int, error: type[ModelFailure]) -> None:
    desk.say("", status)
    with pytest.raises(error, match=str(status)):
        model(desk).ask(prompt_messages([TURN], ()), answer_schema([TURN], 8), 99)
    assert len(desk.asked) == 1


@pytest.mark.parametrize("url", ["", "ftp://host/v1", "http://", "http://user:pw@host/v1", "http://host/v1?key=1"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(InvalidInput):
        load_turn_model(url, ExtractionPolicy())


def test_what_a_server_proposes_is_checked(desk: Desk) -> None:
    may = {**FACT, "key": "user.moved_in", "value": "May", "quote": "I moved to Berlin in May"}
    desk.say([{**FACT, "value": "Rome", "quote": "I moved to Rome"}, may])
    with muniment.open(":memory:") as mem:
        run = mem.run(user_id="ana")
        run.observe("user", TURN.text)
        made = {each.key: each.status for each in run.extract(model=f"{desk.url}#small")}
        assert made == {"user.city": "declined", "user.moved_in": "promoted"}


# -- a small real model -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_small_real_model_proposes_and_nothing_is_taken_on_trust(smollm: str) -> None:
    """Its answers are weak; the shape and the check of its quotes are what is tested."""
    limits = {"answer_tokens_max": 200, "facts_per_turn_max": 1, "attempts_max": 1}
    with muniment.open(":memory:", policy={"memory": {"extraction": limits}}) as mem:
        run = mem.run(user_id="ana")
        said = run.observe("user", TURN.text)
        for each in run.extract([said.id], model=f"{smollm}#smollm2"):
            assert each.status == "declined" or (each.quote is not None and each.quote in TURN.text)
            assert each.sources == (said.id,)
        assert mem.extract_pending(model=f"{smollm}#smollm2").left == 0
