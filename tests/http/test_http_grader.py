"""A server whose store has a grader asks it in every verification, and tells what it said."""

from __future__ import annotations

from collections.abc import Sequence

from http_support import ANA, Serve

import muniment
from muniment.verify.graders import Grading


class Certain:
    name = "certain"

    def grade(self, claim: str, evidence: Sequence[str]) -> float:
        return 1.0 if "harbour" in claim and evidence else 0.5


def test_a_server_asks_the_grader_of_its_store(serve: Serve) -> None:
    with muniment.open(grader=Grading(Certain(), decides="unknown")) as memory:
        client = serve(memory)
        client.post(f"{ANA}/runs", json={"session_id": "s", "run_id": "r1"})
        asked = {"output": "The harbour smelled of tar.", "documents": ["The old bridge was closed in 1990."]}
        answer = client.post(f"{ANA}/runs/r1/verifications", json=asked, headers={"Idempotency-Key": "k1"})
    assert answer.status_code == 201, answer.text
    (unit,) = answer.json()["fgfc"]["units"]
    assert unit["verdict"] == "SUPPORTED"
    assert (unit["judgement"]["grader"], unit["judgement"]["decided"]) == ("certain", True)


def test_a_rubric_without_a_grader_is_refused_as_everywhere(serve: Serve) -> None:
    client = serve()
    client.post(f"{ANA}/runs", json={"session_id": "s", "run_id": "r1"})
    asked = {"output": "Hello.", "constraints": [{"rubric": "Is it polite?"}]}
    answer = client.post(f"{ANA}/runs/r1/verifications", json=asked, headers={"Idempotency-Key": "k1"})
    assert answer.status_code == 422
    told = answer.json()
    assert (told["code"], told["path"]) == ("invalid_record", "$.constraints[0].rubric")
    assert "grader" in told["hint"]
