"""Lessons over HTTP: a person's, and what the model of the store proposed. Who writes is the server's to name."""

from __future__ import annotations

import json

import pytest
from http_support import ANA, TENANT, Serve

import muniment
from muniment.errors import InvalidInput, LessonRefused

SAID = {"text": "Call run_tests on tests/test_cart.py", "when": "cart.py was edited"}
PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}


def model(_messages: list[dict[str, str]]) -> str:
    return json.dumps({"lessons": [SAID | {"events": ["e2"]}, SAID | {"text": "Read settings.py", "events": ["e2"]}]})


def test_a_lesson_is_added_once_and_refused_with_a_reason(serve: Serve) -> None:
    with muniment.open(lessons=model) as memory:
        run = memory.run(user_id="ana", run_id="run_1")
        run.observe("user", "Fix cart.py")
        run.observe_tool("run_tests", args={"path": "tests/test_cart.py"}, content="3 passed after cart.py was edited")
        client = serve(memory)
        path = f"{ANA}/bank/lessons"
        made = client.post(path, json=SAID | {"evidence": ["run_1"]})
        assert made.status_code == 201, made.text
        assert made.json()["fate"] == "written"
        assert client.post(path, json=SAID | {"evidence": ["run_1"]}).json()["fate"] == "known"
        wrong = client.post(path, json={"text": "Read settings.py first", "evidence": ["run_1"], "when": "x"})
        assert wrong.status_code == 422
        assert (wrong.json()["code"], wrong.json()["details"]["reason"]) == ("lesson_refused", "not_in_evidence")
        assert client.post(path, json={"text": "Ask first, then act", "evidence": ["none"]}).status_code == 404
        assert (
            client.post(f"{TENANT}/bank/lessons", json={"text": "Ask first, then act", "when": "x"}).status_code == 201
        )
        run.finish(verifier_result=PASS, intent={"task_family": "coding"})
        listed = client.get(f"{ANA}/bank/lesson-reports").json()["items"]
        assert [each["fate"] for each in listed[0]["proposals"]] == ["written", "refused"]


def test_over_a_connection_it_is_the_same_and_no_model_is_given(serve: Serve) -> None:
    with muniment.open() as memory:
        client = serve(memory)
        with muniment.connect("http://testserver", http=client) as mem:
            bank = mem.bank(user_id="ana")
            added = bank.add_lesson("Ask for the order number first", when="a refund")
            assert bank.get(added.lesson_id).record["summary"] == "When a refund: Ask for the order number first."
            with pytest.raises(LessonRefused):
                bank.add_lesson("Ask for the order number first")
            assert bank.lesson_reports() == []
            run = mem.run(user_id="ana")
            run.observe("user", "Fix it")
            with pytest.raises(InvalidInput, match="over a connection"):
                run.finish(verifier_result=PASS, lessons=model)
