"""The constraint language in Python: `constraints.words(max=300)`, one name for each kind.

The same names stand in YAML. Each call gives a frozen record, or raises at once and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from muniment.verify.static import actions, contents, groups, meaning, shapes
from muniment.verify.static.base import Constraint

__all__ = [
    "KINDS",
    "alternatives",
    "any_of",
    "budget",
    "bullets",
    "capital_words",
    "case",
    "citations",
    "claims_cited",
    "contains",
    "contract",
    "ends_with",
    "exact_match",
    "files",
    "forbidden_words",
    "headings",
    "highlights",
    "hint_length",
    "hints",
    "json_only",
    "json_schema",
    "keyword_count",
    "keywords",
    "language",
    "length",
    "letter_count",
    "lines",
    "marks_resolve",
    "network",
    "no_punctuation",
    "none_of",
    "not_contains",
    "not_empty",
    "one_of",
    "paragraph_start",
    "paragraphs",
    "personal_data",
    "placeholders",
    "postscript",
    "quoted",
    "regex_absent",
    "regex_present",
    "repeats_prompt",
    "rubric",
    "sections",
    "sentences",
    "similar",
    "starts_with",
    "title",
    "tool_arguments",
    "tool_called",
    "tool_calls",
    "tool_not_called",
    "tool_order",
    "tools_allowed",
    "tools_ok",
    "words",
]

not_empty = shapes.NotEmpty
length = shapes.Length
lines = shapes.Lines
words = shapes.Words
sentences = shapes.Sentences
paragraphs = shapes.Paragraphs
paragraph_start = shapes.ParagraphStart
sections = shapes.Sections
headings = shapes.Headings
bullets = shapes.Bullets
highlights = shapes.Highlights
placeholders = shapes.Placeholders
title = shapes.Title
postscript = shapes.Postscript
alternatives = shapes.Alternatives
case = shapes.Case
capital_words = shapes.CapitalWords
no_punctuation = shapes.NoPunctuation
quoted = shapes.Quoted
starts_with = shapes.StartsWith
ends_with = shapes.EndsWith
one_of = shapes.OneOf
exact_match = shapes.ExactMatch

contains = contents.Contains
not_contains = contents.NotContains
keywords = contents.Keywords
forbidden_words = contents.ForbiddenWords
keyword_count = contents.KeywordCount
letter_count = contents.LetterCount
repeats_prompt = contents.RepeatsPrompt
language = contents.Language
regex_present = contents.RegexPresent
regex_absent = contents.RegexAbsent
json_only = contents.JsonOnly
json_schema = contents.JsonSchema
contract = contents.Contract
claims_cited = contents.ClaimsCited
marks_resolve = contents.MarksResolve
citations = contents.Citations

tool_called = actions.ToolCalled
tool_not_called = actions.ToolNotCalled
tools_allowed = actions.ToolsAllowed
tool_order = actions.ToolOrder
tool_arguments = actions.ToolArguments
tools_ok = actions.ToolsOk
tool_calls = actions.ToolBudget
budget = actions.Budget
network = actions.Network
files = actions.Files
hint_length = actions.HintLength
hints = actions.Hints

personal_data = meaning.PersonalDataAbsent
similar = meaning.Similar
rubric = meaning.Rubric

any_of = groups.AnyOf
none_of = groups.NoneOf

KINDS: Mapping[str, type[Constraint]] = MappingProxyType(
    {
        "not_empty": not_empty,
        "length": length,
        "lines": lines,
        "words": words,
        "sentences": sentences,
        "paragraphs": paragraphs,
        "paragraph_start": paragraph_start,
        "sections": sections,
        "headings": headings,
        "bullets": bullets,
        "highlights": highlights,
        "placeholders": placeholders,
        "title": title,
        "postscript": postscript,
        "alternatives": alternatives,
        "case": case,
        "capital_words": capital_words,
        "no_punctuation": no_punctuation,
        "quoted": quoted,
        "starts_with": starts_with,
        "ends_with": ends_with,
        "one_of": one_of,
        "exact_match": exact_match,
        "contains": contains,
        "not_contains": not_contains,
        "keywords": keywords,
        "forbidden_words": forbidden_words,
        "keyword_count": keyword_count,
        "letter_count": letter_count,
        "repeats_prompt": repeats_prompt,
        "language": language,
        "regex_present": regex_present,
        "regex_absent": regex_absent,
        "json_only": json_only,
        "json_schema": json_schema,
        "contract": contract,
        "claims_cited": claims_cited,
        "marks_resolve": marks_resolve,
        "citations": citations,
        "tool_called": tool_called,
        "tool_not_called": tool_not_called,
        "tools_allowed": tools_allowed,
        "tool_order": tool_order,
        "tool_arguments": tool_arguments,
        "tools_ok": tools_ok,
        "tool_calls": tool_calls,
        "budget": budget,
        "network": network,
        "files": files,
        "hint_length": hint_length,
        "hints": hints,
        "personal_data": personal_data,
        "similar": similar,
        "rubric": rubric,
        "any_of": any_of,
        "none_of": none_of,
    }
)
"""Every kind by its name."""
