"""Constraint files: a line of YAML each, and every mistake named at its place; what would explode is refused."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.errors import InvalidInput, InvalidRecord, TooLarge
from muniment.verify import constraints
from muniment.verify._constraint import KINDS
from muniment.verify.constraint_files import YAML_CHARS_MAX, parse_constraints, parse_yaml, read_constraints, to_plain
from products import for_each

FILE = """
register:
  keys: {"STYLE:VOICE": how it should sound}
  reasons: {style_drift: it no longer sounds like us}
constraints:
  - words: {max: 300}
  - json_only
  - contains: Kind regards
  - network:
  - headings: [Plan, Risks]
  - json_schema: {type: object, required: [a]}
  - forbidden_words: [no, yes]
    severity: minor
    key: STYLE:VOICE:INTRO
    reason: style_drift
  - any_of:
      - starts_with: A
      - none_of: [{ends_with: z}]
"""


@pytest.mark.req("RC-17", "RC-02")
def test_a_file_says_what_the_calls_say() -> None:
    read = read_constraints(FILE)
    assert list(read.constraints) == [
        constraints.words(max=300),
        constraints.json_only(),
        constraints.contains(texts=("Kind regards",)),
        constraints.network(),
        constraints.headings(names=("Plan", "Risks")),
        constraints.json_schema(schema={"type": "object", "required": ["a"]}),
        constraints.forbidden_words(
            words=("no", "yes"), severity="minor", key="STYLE:VOICE:INTRO", reason="style_drift"
        ),
        constraints.any_of(
            constraints=[
                constraints.starts_with(phrase="A"),
                constraints.none_of(constraints=[constraints.ends_with(phrase="z")]),
            ]
        ),
    ]
    assert read.registry.check_key("STYLE:VOICE") == "STYLE:VOICE"


def test_constraints_are_written_as_they_are_read() -> None:
    read = read_constraints(FILE)
    assert parse_constraints([to_plain(each) for each in read.constraints], read.registry) == read


NESTED = "- " + "any_of: [" * 6 + "json_only" + "]" * 6
MISTAKES = [
    ("- wrods: {max: 3}", "$[0].wrods", "did you mean 'words'?"),
    ("- words: {maxx: 3}", "$[0].words.maxx", "did you mean 'max'?"),
    ("- words: 300", "$[0].words", "words wants its fields by name: min, max"),
    ("- words: {max: many}", "$[0].words.max", "wanted an integer of at least 0"),
    ("- {words: {max: 1}, lines: {max: 1}}", "$[0]", "found words, lines"),
    ("- {severity: minor}", "$[0]", "found none"),
    ("- contains: a\n  severity: mild", "$[0].contains.severity", "'fatal' or 'minor'"),
    ("- contains: a\n  key: CONTENT:CONTAIN", "$[0].contains.key", "did you mean 'CONTENT:CONTAINS'?"),
    ("- contains: a\n  reason: format_leek", "$[0].contains.reason", "did you mean 'format_leak'?"),
    ("- any_of: [{wrods: {max: 1}}]", "$[0].any_of[0].wrods", "did you mean 'words'?"),
    ("- any_of: []", "$[0].any_of", "wanted a list of constraints"),
    ("- 3", "$[0]", "wanted a constraint"),
    ("words: {max: 3}", "$", "wanted a list of constraints"),
    ("constraint: []\nconstraints: [json_only]", "$.constraint", "an unknown key"),
    ("register: {keys: [a]}\nconstraints: [json_only]", "$.register.keys", "wanted names"),
    ("", "$", "wanted a list of constraints"),
    (
        "- any_of: [any_of: [any_of: [any_of: [any_of: [any_of: [json_only]]]]]]",
        "$[0]" + ".any_of[0]" * 4,
        "nested deeper",
    ),
]


@for_each(("text", "path", "message"), MISTAKES)
def test_a_mistake_is_named_at_its_place(text: str, path: str, message: str) -> None:
    with pytest.raises(InvalidRecord) as caught:
        read_constraints(text)
    (issue,) = caught.value.issues
    assert issue.path.startswith(path)
    assert message in issue.message


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(InvalidRecord) as caught:
        read_constraints("- wrods: {max: 3}\n- json_only\n- lines: {}")
    assert [issue.path for issue in caught.value.issues] == ["$[0].wrods", "$[2].lines"]
    assert "words" in (caught.value.hint or "")


def test_too_many_constraints_are_refused() -> None:
    with pytest.raises(InvalidRecord):
        parse_constraints(["json_only"] * 1001)


# -- YAML ---------------------------------------------------------------------------------------------

LAUGHS = "a: &a [lol]\n" + "\n".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@for_each(
    "text",
    [
        LAUGHS,
        "a: &x 1\nb: 2",
        "- *nobody",
        "a: {<<: *b}",
        "!!python/object/apply:os.system ['true']",
        "- !!binary aGk=",
        "- !mine x",
        "a: 1\na: 2",
        "{a: 1, a: 2}",
        "? [a, b]\n: c",
        "--- 1\n--- 2",
        "[" * 100,
        "[" * 40 + "]" * 40,
        "{a: " * 40 + "}" * 40,
        "a: [",
        "\x00",
        "%YAML 9.9\n---\nx",
        "- 1e999",
        "- " + "9" * 2000,
        "a:\n\t- b",
    ],
)
def test_yaml_that_is_wrong_or_meant_to_hurt_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_yaml(text)


def test_a_long_yaml_is_refused_unread() -> None:
    with pytest.raises(TooLarge):
        parse_yaml("#" * (YAML_CHARS_MAX + 1))


def test_yaml_is_read_as_json_would_mean_it() -> None:
    text = "{a: no, b: 2024-01-01, c: 012, d: 1.5, e: -3, f: null, g: ~, h: true, i: 'true', j: 0x10, k: .5, l: }"
    assert parse_yaml(text) == {
        "a": "no",
        "b": "2024-01-01",
        "c": "012",
        "d": 1.5,
        "e": -3,
        "f": None,
        "g": None,
        "h": True,
        "i": "true",
        "j": "0x10",
        "k": ".5",
        "l": None,
    }
    assert parse_yaml("") is None
    assert parse_yaml("a: |\n  two\n  lines\n") == {"a": "two\nlines\n"}


@given(st.text(max_size=60) | st.text(alphabet="[]{}:-,&*!|>'\"\n ab1#?%@`~<", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (parse_yaml, read_constraints):
        with suppress(InvalidInput):
            read(text)


NAMES = st.sampled_from([*KINDS, "key", "x"])
PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*KINDS, "key", "x"]), inner, max_size=3)
    ),
)


@given(PLAIN)
def test_any_data_is_read_or_refused(data: Any) -> None:
    with suppress(InvalidInput):
        parse_constraints(data)
