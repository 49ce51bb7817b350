"""Lessons over HTTP: a person's, and what the model of the store proposed. Who writes is the server's to name."""

from __future__ import annotations

import json

import pytest
from http_support import ANA, TENANT, Serve

import muniment
from muniment.errors import InvalidInput, LearningFailed, LessonRefused

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
        path = f"{TENANT}/banks/user:ana/lessons"
        made = client.post(path, json=SAID | {"evidence": ["run_1"]})
        assert made.status_code == 201, made.text
        assert made.json()["fate"] == "written"
        assert client.post(path, json=SAID | {"evidence": ["run_1"]}).json()["fate"] == "known"
        wrong = client.post(path, json={"text": "Read settings.py first", "evidence": ["run_1"], "when": "x"})
        assert wrong.status_code == 422
        assert (wrong.json()["code"], wrong.json()["details"]["reason"]) == ("lesson_refused", "not_in_evidence")
        assert client.post(path, json={"text": "Ask first, then act", "evidence": ["none"]}).status_code == 404
        assert (
            client.post(f"{TENANT}/banks/tenant/lessons", json={"text": "Ask first, then act", "when": "x"}).status_code
            == 201
        )
        run.finish(verifier_result=PASS, intent={"task_family": "coding"})
        report = memory.bank(user_id="ana").lesson_reports()[0]
        assert [each.fate for each in report.proposals] == ["written", "refused"]


def test_over_a_connection_it_is_the_same_and_no_model_is_given(serve: Serve) -> None:
    with muniment.open() as memory:
        client = serve(memory)
        with muniment.connect("http://testserver", http=client) as mem:
            bank = mem.bank(user_id="ana")
            added = bank.add_lesson("Ask for the order number first", when="a refund")
            assert bank.get(added.lesson_id).record["summary"] == "When a refund: Ask for the order number first."
            with pytest.raises(LessonRefused):
                bank.add_lesson("Ask for the order number first")
            run = mem.run(user_id="ana")
            run.observe("user", "Fix it")
            with pytest.raises(InvalidInput, match="over a connection"):
                run.finish(verifier_result=PASS, lessons=model)


@pytest.mark.parametrize("door", ["address", "connection"])
def test_a_run_whose_fold_fails_is_judged_and_ended_and_the_failure_told(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    def broken(*_args: object, **_named: object) -> None:
        raise KeyError("a word of somebody's")

    with muniment.open() as memory:
        client = serve(memory)
        with muniment.connect("http://testserver", http=client) as mem:
            run = mem.run(user_id="ana", session_id="s", run_id="run_1")
            run.observe("user", "Fix cart.py")
            with monkeypatch.context() as patch:
                patch.setattr("muniment.learning.folding.plan_fold", broken)
                if door == "connection":
                    with pytest.raises(LearningFailed) as failed:
                        run.finish(verifier_result=PASS, intent={"task_family": "coding"})
                    told = failed.value.to_dict()
                else:
                    path = f"{ANA}/runs/run_1/finish"
                    said = client.post(path, json={"verifier_result": PASS, "intent": {"task_family": "coding"}})
                    assert said.status_code == 500
                    told = said.json()
            assert told["code"] == "learning_failed"
            assert told["details"] == {"run_id": "run_1", "cause": "KeyError"}
            assert "somebody" not in json.dumps(told)
            assert run.state().stop_reason == "OBJECTIVE_ACHIEVED"
            verdicts = [each.metadata for each in run.ledger.entries() if "result" in each.metadata]
            assert [said["result"]["verdict"] for said in verdicts] == ["PASS"]
            assert mem.learning.learn("run_1", PASS, intent={"task_family": "coding"}).fold.produced.reasoning_ids
