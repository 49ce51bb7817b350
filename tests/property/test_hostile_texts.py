"""No text makes a reader slow: texts so large that a quadratic reader would not finish before the test times out.

How cost grows at every door is measured by `python -m benchmarks.doubling`, which `make soak` runs.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from hostile_texts import FAMILIES, hostile_text

import muniment
from effort import SOAK, one_in
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.policy import ExtractionPolicy, FactCheckPolicy
from muniment.core.text.sentences import lines_at, split_citations
from muniment.errors import TooLarge
from muniment.handles.run import Run
from muniment.memory._extract_checks import ModelProposal, SourceTurn, check_proposals
from muniment.memory._extract_model import prompt_messages, read_answer
from muniment.packets.answers import resolve
from muniment.packets.page import quoted
from muniment.research import _marks
from muniment.research.url_check import read_text
from muniment.runs.fold import failure_fingerprint
from muniment.runs.narrative import escaped
from muniment.store.secrets import redact_text, redact_value
from muniment.verify.facts._source import Source, SourceText, read_claim
from muniment.verify.facts.check import pick_evidence
from products import for_each


class Case(NamedTuple):
    """A reader, and the text of a size that was bad for it once."""

    read: Callable[[Any], object]
    make: Callable[[int], Any]
    size: int = 1_000_000


def _claim_of_itself(text: str) -> object:
    source = Source([SourceText("said", text), SourceText("half", text[: len(text) // 2])])
    return pick_evidence(read_claim(text, source), source, FactCheckPolicy())


TOKEN = "ghp_" + "a" * 255
CASES: dict[str, Case] = {
    "glued secrets": Case(lambda text: redact_text(text, Counter()), lambda n: TOKEN * (n // 259), 100_000),
    "glued secrets of two kinds": Case(
        lambda text: redact_text(text, Counter()), lambda n: f"{TOKEN}AIza{'b' * 35}" * (n // 298), 100_000
    ),
    "secrets as keys": Case(
        lambda keys: redact_value(dict.fromkeys(keys.split(), 1), Counter()),
        lambda n: " ".join(f"AIza{number:035d}" for number in range(n // 40)),
        300_000,
    ),
    "comments before a page": Case(lambda text: read_text(text.encode(), ""), lambda n: "<!--a-->" * (n // 8) + "x"),
    "white space in a superscript": Case(_marks._TOKEN.search, lambda n: "<sup>" + " " * n + "x"),
    "underscores": Case(escaped, lambda n: "a" + "_" * n + "b"),
    "a deeply indented line": Case(quoted, lambda n: "a\n" + " " * (n // 2) + "x" * (n // 2)),
    "ids in brackets": Case(split_citations, lambda n: " [x]" * (n // 4) + "y"),
    "open quotes": Case(lambda text: failure_fingerprint("tool", "x", text), lambda n: "“" * n),
    "letters and dots": Case(lambda text: failure_fingerprint("tool", "x", text), lambda n: "a." * (n // 2)),
    "letters and slashes": Case(lambda text: failure_fingerprint("tool", "x", text), lambda n: "a/" * (n // 2)),
    "marks of an answer": Case(lambda text: resolve(text, {}), lambda n: "[1]. " * (n // 5)),
    "a claim that repeats few words": Case(
        _claim_of_itself, lambda n: "俺のことはークオホってよん" * (n // 13), 30_000
    ),
    "offsets in lines": Case(
        lambda text: lines_at(text, [found.start() for found in re.finditer("a", text)]), lambda n: "a\n" * (n // 2)
    ),
}
FAMILY_SIZE = 20_000


def texts_of(family: str) -> list[str]:
    stretches = FAMILIES[family] if SOAK else FAMILIES[family][:1]
    return [hostile_text(stretch, FAMILY_SIZE) for stretch in stretches]


@pytest.mark.timeout(60)
@for_each("name", CASES)
def test_a_reader_that_was_quadratic_is_not(name: str) -> None:
    case = CASES[name]
    case.read(case.make(case.size))


def test_a_quadratic_pattern_does_not_complete() -> None:
    """The text is large enough: a pattern that starts again at each character runs into a limit of processor time."""
    script = """
import re, resource, sys
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_CPU, (2, 3))
re.search(sys.argv[1], "<sup>" + " " * 1_000_000 + "x")
"""
    ended = [
        subprocess.run([sys.executable, "-c", script, pattern], check=False) for pattern in (r"\s+z", r"(?<!\s)\s+z")
    ]
    assert [each.returncode for each in ended] == [-signal.SIGXCPU, 0]


def test_glued_secrets_are_redacted() -> None:
    for count in (1, 3, 9, 40):
        clean = redact_text(f"key {TOKEN * count} and so on", Counter())
        assert "ghp_" not in clean
        assert "aaaa" not in clean
        assert clean.startswith("key [redacted:github_token]")
        assert clean.endswith(" and so on")
        assert redact_text(clean, Counter()) == clean
    clean_keys = redact_value({f"AIza{number:035d}": number for number in range(4)}, Counter())
    assert list(clean_keys.values()) == [0, 1, 2, 3]


@pytest.mark.slow
@pytest.mark.timeout(120)
@for_each("family", one_in(6, list(FAMILIES)))
def test_every_operation_completes(family: str) -> None:
    for text in texts_of(family):
        with muniment.open(":memory:", clock=TickingClock(), ids=CountingIds()) as mem:
            run = mem.run(user_id="ana", session_id="s1")
            for call in operations(run, text):
                with suppress(TooLarge):  # some hold more findings than an entry may
                    call()


def operations(run: Run, text: str) -> list[Callable[[], object]]:
    return [
        lambda: run.observe("user", text),
        lambda: run.observe_tool("page", args={"q": text}, content=text),
        lambda: run.extract(),
        lambda: run.search("Where do I live now?"),
        lambda: run.search(text),
        lambda: run.compose("planner", query="我现在住在哪里？", max_tokens=256),
        lambda: run.verify("Ana lives in Lisbon and is a nurse.", documents=[text]),
        lambda: run.verify(text, documents=["Ana has lived in Lisbon since 2020."]),
    ]


@pytest.mark.timeout(60)
@for_each("family", FAMILIES)
def test_checks_of_proposals_complete(family: str) -> None:
    ts = "2026-05-20T10:00:00Z"
    text = hostile_text(FAMILIES[family][0], FAMILY_SIZE)
    turn = SourceTurn("e1", "user", "user", ts, text, 1)
    middle = len(text) // 2
    for quote in (text[:middle], text[middle : middle + 40]):
        for value in (quote, "Berlin", 3, "2026-05-03"):
            proposal = ModelProposal("e1", "user", "person.kim.city", value, quote)
            check_proposals([proposal], [turn], ExtractionPolicy())
    prompt_messages([turn], ())
    read_answer('{"facts": [' + text, [turn], is_cut=True)
