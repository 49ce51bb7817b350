"""Every constraint: an output that holds to it and one that does not, and no text that breaks it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.core.ports.grader import Judgement
from muniment.errors import InvalidRecord
from muniment.verify.outputs import Output
from muniment.verify.static import constraints
from muniment.verify.static.base import Constraint
from muniment.verify.static.constraints import KINDS
from muniment.verify.static.evaluation import evaluate
from muniment.verify.taxonomy import DEFAULT_REGISTRY

CALLS = [{"name": "search", "args": {"q": "x", "n": 1}, "ok": True}, {"name": "open", "ok": False}]
SEARCHED = {"text": "a", "tool_calls": CALLS}
HINT = {"memory_id": "m1", "source": "bank", "summary": "word " * 200}
SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}
RESULT = '{"schema_version":"0.5.15","verifier_id":"v","verdict":"PASS","outcome":"OK"}'

# name → (the fields, an output that holds, one that does not)
EXAMPLES: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "not_empty": ({}, "x", " \n"),
    "length": ({"max": 3}, "abc", "abcd"),
    "lines": ({"exactly": 2}, "a\n\nb", "a"),
    "words": ({"less_than": 3}, "two words", "three words here"),
    "sentences": ({"min": 2}, "One. Two.", "Mr. Smith went home"),
    "paragraphs": ({"exactly": 2}, "a\n\nb", "a\nb"),
    "paragraph_start": ({"paragraph": 2, "of": 2, "word": "then"}, "a\n\nThen, b", "then a\n\nb"),
    "sections": ({"marker": "SECTION", "min": 2}, "SECTION 1 a SECTION 2 b", "SECTION one"),
    "headings": ({"names": ["Plan", "Risks"]}, "# Plan\n\n## risks", "# Risks\n# Plan"),
    "bullets": ({"exactly": 2}, "* a\n- b", "* a\n** b"),
    "highlights": ({"min": 1}, "an *important* part", "2 * 3"),
    "placeholders": ({"min": 2}, "[name] [address]", "[name\n]"),
    "title": ({}, "<<joy>>\ntext", "<<>>"),
    "postscript": ({"marker": "P.S."}, "text\np. s. more", "text\nps more"),
    "alternatives": ({}, "a ****** b", "a ****** a"),
    "case": ({"case": "upper"}, "ABC 1", "ABc"),
    "capital_words": ({"min": 2}, "ALL CAPS here", "Caps here"),
    "no_punctuation": ({}, "no comma", "a, comma"),
    "quoted": ({}, '"all"', '"part" of'),
    "starts_with": ({"phrase": "Dear"}, " Dear all", "dear all"),
    "ends_with": ({"phrase": "Bye."}, 'So "bye."', "Bye. So"),
    "one_of": ({"options": ["yes", "no"]}, " yes\n", "yes, sir"),
    "exact_match": ({"text": "42"}, " 42 ", "42."),
    "contains": ({"texts": ["a", "b"]}, "ab", "a"),
    "not_contains": ({"texts": ["as an AI"]}, "hello", "as an AI"),
    "keywords": ({"words": ["Straw"]}, "strawberry", "berry"),
    "forbidden_words": ({"words": ["art"]}, "party", "the ART of"),
    "keyword_count": ({"word": "a", "exactly": 2, "whole": True}, "a and a", "a an"),
    "letter_count": ({"letter": "N", "max": 1}, "one", "none"),
    "repeats_prompt": ({}, {"text": "Say HI. Hi!", "prompt": "Say hi."}, {"text": "Hi!", "prompt": "Say hi."}),
    "language": (
        {"code": "de"},
        "Das ist ein ganz normaler deutscher Satz, der lang genug ist.",
        "This is a perfectly ordinary English sentence that is long enough.",
    ),
    "regex_present": ({"pattern": r"\b\d{4}\b"}, "in 1999", "in 19999"),
    "regex_absent": ({"pattern": "(?i)todo"}, "done", "ToDo"),
    "json_only": ({}, '{"a": 1}', 'Here: {"a": 1}'),
    "json_schema": ({"schema": SCHEMA}, '{"a": 1}', '{"a": "1"}'),
    "contract": ({"kind": "VerifierResult"}, RESULT, RESULT.replace("PASS", "GOOD")),
    "claims_cited": (
        {},
        {"text": "Sure. The sky is blue today. [1]", "marks": {"1": "ev1"}},
        {"text": "The sky is blue today.", "marks": {"1": "ev1"}},
    ),
    "marks_resolve": ({}, {"text": "Blue [1].", "marks": {"1": "ev1"}}, {"text": "Blue [2].", "marks": {"1": "ev1"}}),
    "citations": (
        {"min": 2},
        {"text": "A [1]. B [2].", "marks": {"1": "x", "2": "y"}},
        {"text": "A [1]. B [2].", "marks": {"1": "x", "2": "x"}},
    ),
    "tool_called": ({"tool": "search"}, SEARCHED, {"text": "a", "tool_calls": []}),
    "tool_not_called": ({"tool": "delete"}, SEARCHED, {"text": "a", "tool_calls": [{"name": "delete"}]}),
    "tools_allowed": ({"tools": ["search", "open"]}, SEARCHED, {"text": "a", "tool_calls": [{"name": "rm"}]}),
    "tool_order": ({"tools": ["search", "open"]}, SEARCHED, {"text": "a", "tool_calls": CALLS[::-1]}),
    "tool_arguments": (
        {"tool": "search", "equals": {"n": 1.0}},
        SEARCHED,
        {"text": "a", "tool_calls": [{"name": "search"}]},
    ),
    "tools_ok": ({"tool": "search"}, SEARCHED, {"text": "a", "tool_calls": [{"name": "search", "ok": False}]}),
    "tool_calls": ({"max": 2}, SEARCHED, {"text": "a", "tool_calls": CALLS * 2}),
    "budget": (
        {"of": "tokens", "max": 10},
        {"text": "a", "usage": {"tokens_in": 4, "tokens_out": 6}},
        {"text": "a", "usage": {"tokens_in": 4, "tokens_out": 7}},
    ),
    "network": (
        {"allow": ["example.org"]},
        {"text": "a", "policy_events": [{"kind": "network", "target": "https://API.example.org:443/x"}]},
        {"text": "a", "policy_events": [{"kind": "network", "target": "example.org.evil.net"}]},
    ),
    "files": (
        {"access": "write", "under": ["/scratch"]},
        {"text": "a", "policy_events": [{"kind": "file_write", "target": "/scratch/a"}]},
        {"text": "a", "policy_events": [{"kind": "file_write", "target": "/scratch/../etc/passwd"}]},
    ),
    "hint_length": ({"max": 120}, {"text": "a", "memory_hints": []}, {"text": "a", "memory_hints": [HINT]}),
    "hints": ({}, {"text": "a", "memory_hints": []}, {"text": "a", "memory_hints": [HINT, HINT]}),
    "personal_data": ({"allow": ["help@shop.example"]}, "Write to help@shop.example.", "Write to ana@shop.example."),
    "similar": (
        {"to": ["The tower is 330 metres tall."], "least": 0.7},
        "It is 330 metres tall, the tower.",
        "No idea.",
    ),
    "rubric": ({"ask": "Is it polite?"}, "Thank you, gladly.", "Go away."),
    "any_of": ({"constraints": [constraints.case(case="upper"), constraints.case(case="lower")]}, "AB", "Ab"),
    "none_of": ({"constraints": [constraints.contains(texts=("x",))]}, "ab", "ax"),
}


class Judge:
    """A grader that takes thanks for politeness."""

    def judge_rubric(self, rubric: str, answer: str, task: str | None) -> Judgement:
        return Judgement(rubric, "scripted", float("Thank you" in answer), "")


def output_of(given_: Any) -> Output:
    return Output.from_wire({"text": given_} if isinstance(given_, str) else given_)


def made(name: str) -> Constraint:
    return KINDS[name](**EXAMPLES[name][0])


@pytest.mark.req("RC-17")
def test_every_kind_has_its_examples() -> None:
    assert set(EXAMPLES) == set(KINDS)
    assert all(getattr(constraints, name) is kind for name, kind in KINDS.items())
    assert all(name == kind.NAME for name, kind in KINDS.items())


@pytest.mark.req("RC-17")
@pytest.mark.parametrize("name", KINDS)
def test_a_constraint_holds_for_one_output_and_not_for_the_other(name: str) -> None:
    _, holds, breaks = EXAMPLES[name]
    constraint = made(name)
    (good,) = evaluate(output_of(holds), [constraint], Judge())
    (bad,) = evaluate(output_of(breaks), [constraint], Judge())
    assert good.ok, good.message
    assert not bad.ok
    assert bad.message
    if bad.where is not None:
        start, end = bad.where
        assert 0 <= start <= end <= len(output_of(breaks).text)


@pytest.mark.req("RC-02")
@pytest.mark.parametrize("name", KINDS)
def test_the_key_and_the_reason_of_a_constraint_are_registered(name: str) -> None:
    constraint = made(name)
    assert DEFAULT_REGISTRY.check_key(constraint.violated_key)
    assert DEFAULT_REGISTRY.check_reason(constraint.violated_reason)


ALL = [made(name) for name in KINDS]
FRAGMENTS = st.sampled_from(
    [
        "[",
        "]",
        "<<",
        ">>",
        "*",
        "**",
        "***",
        "******",
        "\n",
        "\n\n",
        "#",
        "```",
        '"',
        "P.S.",
        "Mr. ",
        "1. ",
        "[1]",
        ". ",
        "{",
        "}",
    ]
)


@settings(max_examples=150)
@given(st.lists(st.text(max_size=30) | FRAGMENTS, max_size=12).map("".join))
def test_no_text_breaks_a_constraint(text: str) -> None:
    output = Output(text=text)
    found = evaluate(output, ALL, Judge())
    assert len(found) == len(ALL)
    assert evaluate(output, ALL, Judge()) == found


SIZE = 200_000


@pytest.mark.parametrize(
    "sign",
    [
        "[",
        "<<",
        "*",
        "** ",
        "\n",
        " ",
        "\n ",
        "# ",
        "```\n",
        "A. ",
        ". ",
        '."',
        "-",
        "'",
        "Section ",
        "@",
        "p.",
        "\\",
        "{",
        "a",
    ],
)
def test_a_long_run_of_one_sign_is_read_in_its_turn(sign: str) -> None:
    """Quadratic reading of 200,000 characters would run into the suite's timeout."""
    output = Output(text=sign * (SIZE // len(sign)))
    assert len(evaluate(output, ALL, Judge())) == len(ALL)


def test_what_nobody_watched_does_not_hold() -> None:
    blind = Output(text="a")
    watched = (
        constraints.tool_not_called(tool="x"),
        constraints.tools_ok(),
        constraints.tool_calls(max=9),
        constraints.network(),
        constraints.files(access="read"),
        constraints.budget(of="latency_ms", max=9),
        constraints.repeats_prompt(),
        constraints.hint_length(),
        constraints.hints(),
    )
    assert not any(finding.ok for finding in evaluate(blind, watched))


@pytest.mark.req("RC-17")
def test_what_nobody_can_tell_is_not_held_by_denying_it() -> None:
    blind = Output(text="a")
    called = constraints.tool_called(tool="delete")
    denied = constraints.none_of(constraints=[called])
    either = constraints.any_of(constraints=[called, constraints.contains(texts=("b",))])
    for constraint in (denied, constraints.none_of(constraints=[denied]), constraints.none_of(constraints=[either])):
        (finding,) = evaluate(blind, [constraint])
        assert not finding.ok
        assert "not recorded" in finding.message
    assert evaluate(Output(text="a", tool_calls=()), [denied])[0].ok
    assert evaluate(blind, [constraints.any_of(constraints=[called, constraints.contains(texts=("a",))])])[0].ok


def test_a_policy_without_a_list_forbids_everything() -> None:
    acted = output_of(
        {
            "text": "a",
            "policy_events": [{"kind": "network", "target": "::1"}, {"kind": "file_read", "target": "/etc/hosts"}],
        }
    )
    findings = evaluate(
        acted, [constraints.network(), constraints.files(access="read"), constraints.files(access="write")]
    )
    assert [(finding.key, finding.ok) for finding in findings] == [
        ("POLICY:NO_NETWORK", False),
        ("POLICY:FILES_READ", False),
        ("POLICY:FILES_WRITTEN", True),
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: constraints.words(), "say min, max"),
        (lambda: constraints.words(min=3, max=2), "nothing is at least 3"),
        (lambda: constraints.words(max=-1), "of at least 0"),
        (lambda: constraints.headings(), "say how many headings"),
        (lambda: constraints.language(code="klingon"), "cannot tell"),
        (lambda: constraints.contract(kind="VerifierResul"), "VerifierResult"),
        (lambda: constraints.tool_arguments(tool="x"), "say what the arguments equal"),
        (lambda: constraints.regex_present(pattern="(?=a)"), "two constraints"),
        (lambda: constraints.json_schema(schema={"typ": "object"}), "did you mean 'type'"),
    ],
)
def test_a_constraint_that_makes_no_sense_is_refused_when_it_is_written(make: Any, message: str) -> None:
    with pytest.raises(InvalidRecord) as caught:
        make()
    assert message in " ".join(issue.message for issue in caught.value.issues)


def test_severity_key_and_reason_can_be_said() -> None:
    constraint = constraints.words(max=1, severity="minor", key="FORMAT:LENGTH", reason="truncation_or_cutoff")
    (finding,) = evaluate(Output(text="two words"), [constraint])
    assert finding[:2] == ("FORMAT:LENGTH", False)
    assert (finding.severity, finding.reason, finding.constraint) == ("minor", "truncation_or_cutoff", "words")
