"""Examples of every kind of constraint: its fields, a valid output, and an invalid one.

The reference shows them and the tests run them, so that no kind is without one.
"""

from __future__ import annotations

from typing import Any

from muniment.core.ports.models import Judgement
from muniment.verify import constraints

__all__ = ["EXAMPLES", "PolitenessJudge"]

_CALLS = [{"name": "search", "args": {"q": "x", "n": 1}, "ok": True}, {"name": "open", "ok": False}]
_SEARCHED = {"text": "a", "tool_calls": _CALLS}
_HINT = {"memory_id": "m1", "source": "bank", "summary": "word " * 200}
_SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}
_RESULT = '{"schema_version":"0.5.15","verifier_id":"v","verdict":"PASS","outcome":"OK"}'

EXAMPLES: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "not_empty": ({}, "x", " \n"),
    "length": ({"max": 3}, "abc", "abcd"),
    "lines": ({"exactly": 2}, "a\n\nb", "a"),
    "words": ({"less_than": 3}, "two words", "three words here"),
    "sentences": ({"min": 2}, "One. Two.", "Mr. Smith went home"),
    "paragraphs": ({"exactly": 2}, "a\n\nb", "a\nb"),
    "headings": ({"names": ["Plan", "Risks"]}, "# Plan\n\n## risks", "# Risks\n# Plan"),
    "bullets": ({"exactly": 2}, "* a\n- b", "* a\n** b"),
    "starts_with": ({"phrase": "Dear"}, " Dear all", "dear all"),
    "ends_with": ({"phrase": "Bye."}, 'So "bye."', "Bye. So"),
    "one_of": ({"options": ["yes", "no"]}, " yes\n", "yes, sir"),
    "exact_match": ({"text": "42"}, " 42 ", "42."),
    "contains": ({"texts": ["a", "b"]}, "ab", "a"),
    "not_contains": ({"texts": ["as an AI"]}, "hello", "as an AI"),
    "forbidden_words": ({"words": ["art"]}, "party", "the ART of"),
    "keyword_count": ({"word": "a", "exactly": 2, "whole": True}, "a and a", "a an"),
    "language": (
        {"code": "de"},
        "Das ist ein ganz normaler deutscher Satz, der lang genug ist.",
        "This is a perfectly ordinary English sentence that is long enough.",
    ),
    "regex_present": ({"pattern": r"\b\d{4}\b"}, "in 1999", "in 19999"),
    "regex_absent": ({"pattern": "(?i)todo"}, "done", "ToDo"),
    "json_only": ({}, '{"a": 1}', 'Here: {"a": 1}'),
    "json_schema": ({"schema": _SCHEMA}, '{"a": 1}', '{"a": "1"}'),
    "contract": ({"kind": "VerifierResult"}, _RESULT, _RESULT.replace("PASS", "GOOD")),
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
    "tool_called": ({"tool": "search"}, _SEARCHED, {"text": "a", "tool_calls": []}),
    "tool_not_called": ({"tool": "delete"}, _SEARCHED, {"text": "a", "tool_calls": [{"name": "delete"}]}),
    "tools_allowed": ({"tools": ["search", "open"]}, _SEARCHED, {"text": "a", "tool_calls": [{"name": "rm"}]}),
    "tool_order": ({"tools": ["search", "open"]}, _SEARCHED, {"text": "a", "tool_calls": _CALLS[::-1]}),
    "tool_arguments": (
        {"tool": "search", "equals": {"n": 1.0}},
        _SEARCHED,
        {"text": "a", "tool_calls": [{"name": "search"}]},
    ),
    "tools_ok": ({"tool": "search"}, _SEARCHED, {"text": "a", "tool_calls": [{"name": "search", "ok": False}]}),
    "tool_calls": ({"max": 2}, _SEARCHED, {"text": "a", "tool_calls": _CALLS * 2}),
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
    "hint_length": ({"max": 120}, {"text": "a", "memory_hints": []}, {"text": "a", "memory_hints": [_HINT]}),
    "hints": ({}, {"text": "a", "memory_hints": []}, {"text": "a", "memory_hints": [_HINT, _HINT]}),
    "personal_data": ({"allow": ["help@shop.example"]}, "Write to help@shop.example.", "Write to ana@shop.example."),
    "similar": (
        {"to": ["The tower is 330 metres tall."], "least": 0.7},
        "It is 330 metres tall, the tower.",
        "No idea.",
    ),
    "rubric": ({"ask": "Is it polite?"}, "Thank you, gladly.", "Go away."),
    "any_of": ({"constraints": [constraints.starts_with(phrase="A"), constraints.words(max=1)]}, "AB b", "b A"),
    "none_of": ({"constraints": [constraints.contains(texts=("x",))]}, "ab", "ax"),
}
"""By name: the fields, a valid output, and an invalid one."""


class PolitenessJudge:
    """A grader that rates thanks as politeness."""

    def judge_rubric(self, rubric: str, answer: str, task: str | None) -> Judgement:  # noqa: ARG002 - the port
        return Judgement(rubric, "scripted", float("Thank you" in answer), "")
