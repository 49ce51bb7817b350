"""The manual of constraints is enough: every kind stands there, its lines run, and a file is written from it alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from muniment.surfaces.cli.check import FIRST_FILE
from muniment.testing.constraint_examples import EXAMPLES, PolitenessJudge
from muniment.verify._constraint import KINDS
from muniment.verify.constraint_files import read_constraints
from muniment.verify.constraints import evaluate
from muniment.verify.outputs import read_output
from muniment.verify.regression import read_pack, run_pack
from products import for_each

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "constraints.md").read_text("utf-8")
KIND = re.compile(r"^### (\w+)\n\n(.+?)\n\n(?:.*?)```yaml\n(.*?)\n```", re.MULTILINE | re.DOTALL)
SHOWN = {name: (said, line) for name, said, line in KIND.findall(PAGE)}


def test_every_kind_stands_in_the_manual_and_says_what_it_asks() -> None:
    assert set(SHOWN) == set(EXAMPLES)
    assert all(said.split(" Violated")[0].strip() for said, _ in SHOWN.values())


@for_each("name", EXAMPLES)
def test_the_line_of_a_kind_is_run_as_it_stands(name: str) -> None:
    asked = read_constraints(SHOWN[name][1]).constraints
    assert [each.NAME for each in asked] == [name]
    _, holds, breaks = EXAMPLES[name]
    assert evaluate(read_output(holds), asked, PolitenessJudge())[0].ok
    assert not evaluate(read_output(breaks), asked, PolitenessJudge())[0].ok


@for_each("name", EXAMPLES)
def test_every_field_of_a_kind_is_named(name: str) -> None:
    section = PAGE.split(f"### {name}\n")[1].split("\n#")[0]
    fields = {field.alias or own for own, field in KINDS[name].model_fields.items()} - {"key", "severity", "reason"}
    assert [field for field in sorted(fields) if f"`{field}`" not in section] == []


def order_bot(test: Any) -> dict[str, Any]:
    """A bot that answers as OpenAI's client gives it."""
    number = test.model_extra["vars"]["number"]
    call = {"id": "c", "type": "function", "function": {"name": "find_order", "arguments": f'{{"number": {number}}}'}}
    return {"role": "assistant", "content": f"Your order {number} left today.", "tool_calls": [call]}


def test_the_pack_of_the_manual_runs() -> None:
    pack = read_pack(PAGE.split("## Cases")[1].split("```yaml\n")[1].split("```")[0])
    report = run_pack(pack, order_bot)
    assert report.ok, report.to_dict()
    silent = run_pack(pack, lambda test: {"role": "assistant", "content": "Write to ana@shop.example."})
    assert not any(each.ok for each in silent.results)


SUPPORT_BOT = """
# Written from the manual alone: what a shop's support bot must hold to.
register:
  keys: {"STYLE:PROMISE": what only a person may promise}
constraints:
  - not_empty
  - words: {max: 90}
  - language: en
  - personal_data: {allow: ["help@shop.example"]}
  - forbidden_words: [guarantee, lawsuit]
    key: STYLE:PROMISE
  - regex_absent: "(?i)as an ai"
  - tools_allowed: [find_order, open_ticket]
  - none_of:
      - contains: refund approved
  - any_of:
      - ends_with: "Anything else I can help you with?"
        severity: minor
      - tool_called: open_ticket
cases:
  - id: late order
    prompt: "Where is order {{number}}? I am {{mood}}."
    data:
      - {number: 1234, mood: calm}
      - {number: 88, mood: furious}
    constraints:
      - contains: "{{number}}"
      - tool_arguments: {tool: find_order, equals: {number: "{{number}}"}}
      - tool_calls: {max: 2}
      - similar: {to: ["Your order {{number}} left our house today."], least: 0.4}
"""
ANSWER = "Your order {} left our house today. Anything else I can help you with?"


def _answered(number: int, text: str = ANSWER, **more: Any) -> dict[str, Any]:
    call = {"id": "c", "type": "function", "function": {"name": "find_order", "arguments": f'{{"number": {number}}}'}}
    return {"role": "assistant", "content": text.format(number), "tool_calls": [call], **more}


def test_a_support_bots_file_written_from_the_manual_holds_for_good_answers() -> None:
    pack = read_pack(SUPPORT_BOT)
    good = {"late order[1]": [_answered(1234)], "late order[2]": [_answered(88)]}
    report = run_pack(pack, good)
    assert report.ok, report.to_dict()


BAD = {
    "FORMAT:WORDS": _answered(1234, ANSWER + " very" * 90 + " Anything else I can help you with?"),
    "POLICY:PERSONAL_DATA": _answered(1234, "Ask ana@shop.example. " + ANSWER),
    "STYLE:PROMISE": _answered(1234, "I guarantee it. " + ANSWER),
    "FORMAT:REGEX_ABSENT": _answered(1234, "As an AI I may err. " + ANSWER),
    "FORMAT:NONE_OF": _answered(1234, "Your refund approved. " + ANSWER),
    "FORMAT:ANY_OF": _answered(1234, "Your order {} left our house today."),
    "CONTENT:CONTAINS": _answered(1234, ANSWER.replace("{}", "")),
    "TOOL:ARGUMENTS:find_order": _answered(88, ANSWER.replace("{}", "1234")),
    "TOOL:ALLOWED": _answered(1234, tool_calls=[{"id": "c", "function": {"name": "drop", "arguments": "{}"}}]),
    "CONTENT:SIMILAR": _answered(
        1234, "1234: nobody here knows what has become of that, so sorry about it, dear customer."
    ),
}


@for_each("key", BAD)
def test_and_names_what_is_wrong_with_bad_ones(key: str) -> None:
    (first, _) = run_pack(read_pack(SUPPORT_BOT), {"late order[1]": [BAD[key]]}).results
    assert not first.ok
    assert key in first.to_dict()["violated_constraints"]


def test_the_first_file_is_read_and_holds_for_a_plain_answer() -> None:
    asked = read_constraints(FIRST_FILE).constraints
    assert all(each.ok for each in evaluate(read_output("Your parcel left today."), asked))
    commented = FIRST_FILE.split("cases:")[1].replace("\n#", "\n")
    assert read_pack("cases:" + commented).cases[0].spec.prompt == "Where is my order 1234?"
