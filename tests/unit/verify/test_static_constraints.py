"""Every constraint: an output that holds to it and one that does not, and no text that breaks it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.core.limits import Cancellation, cancellable
from muniment.errors import DeadlineExceeded, InvalidRecord
from muniment.testing.constraint_examples import EXAMPLES, PolitenessJudge
from muniment.verify import constraints
from muniment.verify._constraint import KINDS, Constraint
from muniment.verify.constraints import DEFAULT_REGISTRY, evaluate
from muniment.verify.outputs import Output
from products import for_each

OURS = {name: kind for name, kind in KINDS.items() if kind.__module__.startswith("muniment.")}
"""Kinds of others, such as those of the benchmarks, register in the same table."""


def output_of(given_: Any) -> Output:
    return Output.from_wire({"text": given_} if isinstance(given_, str) else given_)


def made(name: str) -> Constraint:
    return KINDS[name](**EXAMPLES[name][0])


@pytest.mark.req("RC-17")
def test_every_kind_has_its_examples() -> None:
    assert set(EXAMPLES) == set(OURS)
    assert all(getattr(constraints, name) is kind for name, kind in KINDS.items())
    with pytest.raises(AttributeError, match="no constraint is called 'wordz'"):
        _ = constraints.wordz
    assert all(name == kind.NAME for name, kind in KINDS.items())


@pytest.mark.req("RC-17")
@for_each("name", OURS)
def test_a_constraint_holds_for_one_output_and_not_for_the_other(name: str) -> None:
    _, holds, breaks = EXAMPLES[name]
    constraint = made(name)
    (good,) = evaluate(output_of(holds), [constraint], PolitenessJudge())
    (bad,) = evaluate(output_of(breaks), [constraint], PolitenessJudge())
    assert good.ok, good.message
    assert not bad.ok
    assert bad.message
    if bad.where is not None:
        start, end = bad.where
        assert 0 <= start <= end <= len(output_of(breaks).text)


@pytest.mark.req("RC-02")
@for_each("name", OURS)
def test_the_key_and_the_reason_of_a_constraint_are_registered(name: str) -> None:
    constraint = made(name)
    assert DEFAULT_REGISTRY.check_key(constraint.violated_key)
    assert DEFAULT_REGISTRY.check_reason(constraint.violated_reason)


ALL = [made(name) for name in OURS]
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


@settings(max_examples=examples(50))
@given(st.lists(st.text(max_size=30) | FRAGMENTS, max_size=12).map("".join))
def test_no_text_breaks_a_constraint(text: str) -> None:
    output = Output(text=text)
    found = evaluate(output, ALL, PolitenessJudge())
    assert len(found) == len(ALL)
    assert evaluate(output, ALL, PolitenessJudge()) == found


SIZE = 200_000


@pytest.mark.soak
@for_each(
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
    assert len(evaluate(output, ALL, PolitenessJudge())) == len(ALL)


def test_what_nobody_watched_does_not_hold() -> None:
    blind = Output(text="a")
    watched = (
        constraints.tool_not_called(tool="x"),
        constraints.tools_ok(),
        constraints.tool_calls(max=9),
        constraints.network(),
        constraints.files(access="read"),
        constraints.budget(of="latency_ms", max=9),
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


@for_each(
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


WORDS_AND_TEXTS = [
    ("C++", "I like C++ a lot", 1),
    ("C++", "C++, or (C++)? C++.", 3),
    ("C++", "C++14 and ABC++", 0),
    ("C#", "C# is not C#x", 1),
    ("c#", "用C#写的", 1),
    (".NET", "We use .NET here; .net there", 2),
    (".NET", "ASP.NET", 0),
    ("@here", "ping @here, not me@here", 1),
    ("50%", "50% of it, not 150%", 1),
    ("坏", "这是坏的", 1),
    ("坏的", "这是坏的，坏的！", 2),
    ("ダメ", "それはダメです", 1),
    ("학교", "학교에서 학교는", 2),
    ("학교", "초등학교", 0),
    ("ไม่", "ฉันไม่รู้", 1),
    ("NASA", "NASA는 왔다; 在NASA工作; NASAs", 2),
    ("sun", "The sun, sunny; SUN-day sun_", 2),
    ("naïve", "a naïve naïveté", 1),
    ("two words", "Two words. two wordsmiths", 1),
]


@for_each(("word", "text", "count"), WORDS_AND_TEXTS)
def test_a_word_is_found_by_itself(word: str, text: str, count: int) -> None:
    held, absent = evaluate(
        Output(text=text),
        [
            constraints.keyword_count(word=word, whole=True, exactly=count),
            constraints.forbidden_words(words=("zzz", word)),
        ],
    )
    assert held.ok, held.message
    assert absent.ok == (count == 0), absent.message
    if absent.where is not None:
        assert text[slice(*absent.where)].casefold() == word.casefold()


ROOTS_AND_PATHS = [
    (".", "a.txt", True),
    (".", "./a/b.txt", True),
    ("./", "a.txt", True),
    ("src/..", "a.txt", True),
    (".", ".hidden", True),
    (".", "..", False),
    (".", "../a.txt", False),
    (".", "a/../../b.txt", False),
    (".", "/a.txt", False),
    ("..", "a.txt", True),
    ("..", "../a.txt", True),
    ("..", "../../a.txt", False),
    ("../x", "../x/y", True),
    ("../x", "../xy", False),
    ("src", "src", True),
    ("src", "src/a.py", True),
    ("src", "srcs/a.py", False),
    ("src", "src/../a.py", False),
    ("/", "/etc/hosts", True),
    ("/", "etc/hosts", False),
    ("/data", "//data/a", True),
    ("/data", "/data/../etc", False),
    ("/data", "/..//data/a", True),
]


@for_each(("root", "path", "allowed"), ROOTS_AND_PATHS)
def test_files_are_allowed_under_their_root(root: str, path: str, allowed: bool) -> None:
    output = output_of({"text": "a", "policy_events": [{"kind": "file_write", "target": path}]})
    (finding,) = evaluate(output, [constraints.files(access="write", under=("nowhere", root))])
    assert finding.ok == allowed, (root, path)


def test_stopped_work_stops_between_constraints_and_inside_a_pattern() -> None:
    hard = constraints.regex_present(pattern="(?:a|b)*a(?:a|b){200}c")
    text = "".join("ab"[number * number % 7 % 2] for number in range(50_000))
    for asked, steps in (([constraints.words(max=9)] * 2, 1), ([hard], 20)):
        stopping = CountingCancellation(steps)
        with cancellable(stopping), pytest.raises(DeadlineExceeded):
            evaluate(Output(text=text), asked)
        assert stopping.checks == steps


class CountingCancellation(Cancellation):
    """Stops the work at its so-many-th checkpoint."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.checks, self.steps = 0, steps

    def check(self, *, can_wait: bool = False) -> None:
        self.checks += 1
        if self.checks == self.steps:
            self.stop(lambda: DeadlineExceeded("late"))
        super().check(can_wait=can_wait)
