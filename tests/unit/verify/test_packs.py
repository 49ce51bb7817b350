"""Pack files: cases with variables, repeats with bounds, rubrics, limits, and the run before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muniment.core.ports.models import Grade
from muniment.errors import InvalidInput, InvalidRecord
from muniment.verify.regression import compare_packs, read_pack, read_pack_report, run_pack
from products import for_each

PACK = """
name: support
constraints:
  - personal_data
cases:
  - id: refund
    prompt: "Where is my order {{order}}?"
    vars: {order: 1234}
    constraints:
      - contains: "{{order}}"
  - id: greet
    prompt: "{{hello}} there"
    data: [{hello: Hi, most: 3}, {hello: Hallo, most: 1}]
    constraints:
      - words: {max: "{{most}}"}
"""


def echo(test: Any) -> str:
    return f"Well {test.prompt}"


def test_each_row_is_a_case_and_variables_stand_in_prompts_and_constraints() -> None:
    pack = read_pack(PACK)
    assert [(case.id, case.spec.prompt) for case in pack.cases] == [
        ("refund", "Where is my order 1234?"),
        ("greet[1]", "Hi there"),
        ("greet[2]", "Hallo there"),
    ]
    report = run_pack(pack, echo)
    assert [(each.id, each.ok) for each in report.results] == [
        ("refund", True),
        ("greet[1]", True),
        ("greet[2]", False),
    ]
    assert report.to_json() == run_pack(pack, echo).to_json()


def test_data_may_stand_in_a_file_that_the_caller_reads() -> None:
    text = "cases:\n  - {id: a, prompt: '{{p}}', data: rows.jsonl, constraints: [not_empty]}"
    pack = read_pack(text, {"rows.jsonl": [{"p": "x"}, {"p": "y"}]}.__getitem__)
    assert [case.spec.prompt for case in pack.cases] == ["x", "y"]


WRONG: list[tuple[str, str, str]] = [
    ("cases: [{id: a, constraints: [{wrods: 3}]}]", "$.cases[0].constraints[0].wrods", "unknown_constraint"),
    ("constraints: [{wrods: 3}]\ncases: [{id: a}, {id: b}]", "$.constraints[0].wrods", "unknown_constraint"),
    ("cases: [{id: a, prompt: '{{x}}', constraints: [not_empty]}]", "$.cases[0].prompt", "unknown_variable"),
    ("cases: [{id: a, constraints: [{contains: '{{x}}'}]}]", "$.cases[0].constraints[0].contains", "unknown_variable"),
    ("cases: [{id: a, constraints: [not_empty]}, {id: a, constraints: [not_empty]}]", "$.cases[1].id", "duplicate"),
    ("cases: [{id: a}]", "$.cases[0]", "invalid"),
    ("cases: [{id: a, data: rows, constraints: [not_empty]}]", "$.cases[0].data", "invalid"),
    ("cases: [{id: a, promt: x, constraints: [not_empty]}]", "$.cases[0].promt", "extra_forbidden"),
]


@for_each(("text", "path", "code"), WRONG)
def test_whatever_is_wrong_with_a_pack_is_named_at_its_place(text: str, path: str, code: str) -> None:
    with pytest.raises(InvalidRecord) as caught:
        read_pack(text)
    assert [(each.path, each.code) for each in caught.value.issues] == [(path, code)]
    assert caught.value.hint


def test_a_key_of_ones_own_is_registered_for_every_case() -> None:
    text = """
register: {keys: {"STYLE:VOICE": how it sounds}}
constraints: [{not_contains: synergy, key: "STYLE:VOICE"}]
cases: [{id: a, prompt: x}]
"""
    report = run_pack(read_pack(text), {"a": ["what synergy"]})
    assert report.results[0].to_dict()["violated_constraints"] == ["STYLE:VOICE"]


class _Sometimes:
    """Passes so many times out of ten."""

    def __init__(self, passes: int) -> None:
        self.passes, self.asked = passes, 0

    def __call__(self, _test: Any) -> str:
        self.asked += 1
        return "yes" if self.asked <= self.passes else "no"


@pytest.mark.parametrize(
    ("passes", "least", "ok"), [(10, 0.7, True), (9, 0.7, False), (9, 0.5, True), (9, None, False)]
)
def test_repeats_are_judged_by_the_lower_bound(passes: int, least: float | None, ok: bool) -> None:
    text = "cases: [{id: a, prompt: x, constraints: [{exact_match: 'yes'}]}]\nrepeats: 10\n"
    pack = read_pack(text + (f"least: {least}" if least is not None else ""))
    (result,) = run_pack(pack, _Sometimes(passes)).results
    assert (result.passed, len(result.answers), result.ok) == (passes, 10, ok)
    assert result.bounds[0] < passes / 10 <= result.bounds[1]


def test_cost_and_latency_are_limited_and_latency_is_measured() -> None:
    text = """
cases:
  - {id: cost, prompt: x, constraints: [{budget: {of: cost_usd, max: 0.01}}]}
  - {id: time, prompt: x, constraints: [{budget: {of: latency_ms, max: 60000}}]}
"""
    dear = {"text": "a", "usage": {"cost_usd": 0.02}}
    cheap = {"text": "a", "usage": {"cost_usd": 0.005}}
    assert [each.ok for each in run_pack(read_pack(text), lambda _: dear).results] == [False, True]
    assert [each.ok for each in run_pack(read_pack(text), lambda _: cheap).results] == [True, True]
    untold = run_pack(read_pack(text), {"cost": ["a"], "time": ["a"]})
    assert [each.ok for each in untold.results] == [False, False]
    assert "was not measured" in untold.results[1].words


class _Polite:
    name = "polite"

    def grade(self, claim: str, evidence: Any) -> float:
        return 0.5

    def grade_rubric(self, rubric: str, answer: str, task: str | None) -> Grade:
        return Grade(float("please" in answer), f"of {task}")


def test_a_rubric_is_asked_of_a_grader_and_what_it_says_is_kept() -> None:
    pack = read_pack("cases: [{id: a, prompt: Ask, constraints: [{rubric: 'Is it polite?'}]}]")
    report = run_pack(pack, {"a": ["Come, please.", "Come."]}, grader=_Polite())
    assert [each.ok for each in report.results[0].answers] == [True, False]
    told = json.loads(report.to_json())["judgements"]
    assert [(each["score"], each["grader"]) for each in told] == [(1, "polite"), (0, "polite")]
    assert all(each["prompt_hash"] for each in told)


def test_a_rubric_without_a_grader_is_an_error_that_names_it() -> None:
    pack = read_pack("cases: [{id: a, prompt: x, constraints: [not_empty, {any_of: [{rubric: 'Is it polite?'}]}]}]")
    with pytest.raises(InvalidRecord) as caught:
        run_pack(pack, {"a": ["x"]})
    assert caught.value.path == "$.cases.a.constraints[1].any_of[0].rubric"
    assert caught.value.issues[0].code == "unsupported_constraint"
    assert "grader" in (caught.value.hint or "")


def test_a_case_without_an_output_and_a_crash_are_results() -> None:
    pack = read_pack(PACK)
    assert "no output was given" in run_pack(pack, {}).results[0].words

    def crash(_test: Any) -> str:
        raise RuntimeError("boom")

    assert "RuntimeError: boom" in run_pack(pack, crash).results[0].words


def test_against_the_run_before_only_what_was_good_can_be_worse() -> None:
    pack = read_pack(PACK)
    before = read_pack_report(json.loads(run_pack(pack, echo).to_json()), "r.json")
    same = compare_packs(run_pack(pack, echo), before)
    assert (same.worse, same.better, same.added, same.gone) == ((), (), (), ())
    turned = run_pack(pack, lambda test: "Hallo" if "Hallo" in str(test.prompt) else "a@b.example, no")
    since = compare_packs(turned, before)
    assert (since.worse, since.better) == (("refund", "greet[1]"), ("greet[2]",))
    assert turned.to_junit(since).count(b"<failure") == 2
    assert run_pack(pack, echo).to_junit(same).count(b"<skipped") == 1
    with pytest.raises(InvalidInput, match=r"r\.json is not the report"):
        read_pack_report({"eval": 1}, "r.json")
