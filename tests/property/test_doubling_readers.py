"""No reader goes back over a text again and again: each fault that was found, at its reader, and every door by sample.

The harness is `benchmarks/doubling.py`, which grows the texts; here are those that it found, and those that a look at
the expressions found. `make soak` walks through every door with all of them and hunts for more.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from benchmarks import doubling
from benchmarks.doubling import GROWTH_MAX, SIZES, Growth, grown, growth_of, hunt, judged, known_recipes
from benchmarks.doubling_surfaces import DOORS
from benchmarks.doubling_texts import SIGNS, Recipe, pieces_of, pumps_of

from effort import SOAK, one_in
from muniment.core.markdown import escaped
from muniment.core.policy.verify import FactCheckPolicy
from muniment.core.text.citation_marks import split_citations
from muniment.core.text.offsets import lines_at
from muniment.memory.extraction.sentences import sentences
from muniment.packets.page.answers import resolve
from muniment.packets.page.lines import quoted
from muniment.research import drafts
from muniment.research.outside.page_text import read_text
from muniment.research.reading import marks
from muniment.runs.compaction.transitions import failure_fingerprint
from muniment.store.ledger.secrets import redact_text, redact_value
from muniment.verify.facts.claims import read_claim
from muniment.verify.facts.evidence import pick_evidence
from muniment.verify.facts.source import Source, SourceText
from products import for_each


class Case(NamedTuple):
    """A reader, the text of a size that is bad for it, and two sizes: smaller where it was worse than the square."""

    read: Callable[[Any], object]
    make: Callable[[int], Any]
    sizes: tuple[int, int] = (4_000, 16_000)


def _claim_of_itself(text: str) -> object:
    source = Source([SourceText("said", text), SourceText("half", text[: len(text) // 2])])
    return pick_evidence(read_claim(text, source), source, FactCheckPolicy())


TOKEN = "ghp_" + "a" * 255
CASES: dict[str, Case] = {
    "secrets that are glued": Case(lambda text: redact_text(text, Counter()), lambda n: TOKEN * (n // 100)),
    "secrets of two kinds": Case(
        lambda text: redact_text(text, Counter()), lambda n: f"{TOKEN}AIza{'b' * 35}" * (n // 100)
    ),
    "secrets as keys": Case(
        lambda keys: redact_value(dict.fromkeys(keys.split(), 1), Counter()),
        lambda n: " ".join(f"AIza{number:035d}" for number in range(n // 8)),
    ),
    "dots before a word": Case(lambda text: list(sentences(text)), lambda n: "." * n + "a"),
    "signs before a word": Case(lambda text: list(sentences(text)), lambda n: ".!" * (n // 2) + "a"),
    "comments before a page": Case(
        lambda text: read_text(text.encode(), ""), lambda n: "<!--a-->" * (n // 8) + "x", (80, 160)
    ),
    "a bracket that opens": Case(drafts._words, lambda n: "[" + "a" * n),
    "white space in a raised mark": Case(marks._RAISED.search, lambda n: "<sup>" + " " * n + "x", (100, 400)),
    "underscores": Case(escaped, lambda n: "a" + "_" * n + "b"),
    "a line far to the right": Case(quoted, lambda n: "a\n" + " " * (n // 2) + "x" * (n // 2)),
    "ids in brackets": Case(split_citations, lambda n: " [x]" * (n // 4) + "y", (16_000, 64_000)),
    "quotes that open": Case(lambda text: failure_fingerprint("tool", "x", text), lambda n: "“" * n, (8_000, 32_000)),
    "letters and dots": Case(lambda text: failure_fingerprint("tool", "x", text), lambda n: "a." * (n // 2)),
    "letters and strokes": Case(lambda text: failure_fingerprint("tool", "x", text), lambda n: "a/" * (n // 2)),
    "marks of an answer": Case(lambda text: resolve(text, {}), lambda n: "[1]. " * (n // 5), (40_000, 160_000)),
    "a claim that says few words over and over": Case(
        _claim_of_itself, lambda n: "俺のことはークオホってよん" * (n // 13), (6_000, 24_000)
    ),
    "places in lines": Case(
        lambda text: lines_at(text, [found.start() for found in re.finditer("a", text)]),
        lambda n: "a\n" * n,
        (16_000, 64_000),
    ),
}


def cost_of(read: Callable[[Any], object]) -> Callable[[Any], float]:
    def cost(given: Any) -> float:
        begun = time.thread_time()
        read(given)
        return time.thread_time() - begun

    return cost


def blame(growth: Growth, what: str) -> str:
    measured = f"{growth.small_s * 1000:.1f} ms, then {growth.large_s * 1000:.1f} ms"
    return f"{growth.times:.2f} times the work for twice the text, not {GROWTH_MAX}: {what}: {measured}"


@for_each("name", CASES)
def test_a_reader_that_went_back_reads_once(name: str) -> None:
    case = CASES[name]
    growth = grown(cost_of(case.read), (case.make(case.sizes[0]), case.make(case.sizes[1])))
    assert not growth.is_too_much, blame(growth, name)


def test_what_was_glued_is_still_redacted() -> None:
    """However long the chain, nothing of it stays; and what is no secret does."""
    for count in (1, 3, 9, 40):
        found: Counter[str] = Counter()
        clean = redact_text(f"key {TOKEN * count} and so on", found)
        assert "ghp_" not in clean
        assert "aaaa" not in clean
        assert clean.startswith("key [redacted:github_token]")
        assert clean.endswith(" and so on")
        assert redact_text(clean, Counter()) == clean
    clean_keys = redact_value({f"AIza{number:035d}": number for number in range(4)}, Counter())
    assert list(clean_keys.values()) == [0, 1, 2, 3]


STEEP = [
    pytest.param(door, recipe, id=f"{door}: {recipe.told()[:40]}")
    for door, recipes in known_recipes().items()
    for recipe in recipes
]
ALL = [pytest.param(door, Recipe((SIGNS[(37 * at) % len(SIGNS)],)), id=door) for at, door in enumerate(DOORS)]


@pytest.mark.slow
@for_each(("door", "recipe"), [*one_in(5, STEEP), *one_in(20, ALL, start=4)])
def test_twice_the_text_is_about_twice_the_work_at_every_door(door: str, recipe: Recipe) -> None:
    growth = growth_of(door, recipe, SIZES if SOAK else (1_500, 6_000))
    assert not growth.is_too_much, blame(growth, f"{door}: {recipe.told()}")


@pytest.mark.slow
def test_the_hunt_finds_no_text_that_grows_too_fast() -> None:
    pieces = pieces_of([r"[.!?]+\s", r"\[[^\]]*\]\(", r"(?:\w+ ){1,6}tool"], seed=1)
    found = hunt(one_in(20, list(DOORS), start=1), pieces, 20 if SOAK else 0.2, seed=1)
    assert not [blame(growth, f"{door}: {recipe.told()}") for door, recipe, growth in found if growth.is_too_much]


@pytest.mark.parametrize(
    ("cost", "is_steep"),
    [
        (lambda size: size / 100_000, False),
        (lambda size: size / 100_000 * (1 if size < 6_000 else 2), False),  # a step
        (lambda size: size / 100_000 * (1 if size < 30_000 else 3), False),  # one that only the longer texts see
        (lambda size: (size / 30_000) ** 2, True),
        (lambda size: (size / 30_000) ** 3, True),
    ],
)
def test_a_step_is_not_steep_and_a_square_is(
    monkeypatch: pytest.MonkeyPatch, cost: Callable[[int], float], is_steep: bool
) -> None:
    """What seems too much is judged at four times the size."""
    monkeypatch.setattr(doubling, "cost_s", lambda _, text: cost(len(text)))
    monkeypatch.setattr(doubling, "_standing", lambda _: 0.0)
    assert judged("any", Recipe(("a",))).is_too_much == is_steep


def test_the_harness_finds_what_goes_back() -> None:
    """An expression that begins again wherever a run does is found by the text that is made of it."""
    (before, pump), *_ = [each for each in pumps_of(r"<sup>\s*\[?\s*(\d+)", seed=1) if each[0] == "<sup>"]
    bad = re.compile(r"<sup>\s*\[?\s*\[?\s*(\d+)")
    texts = [before + pump * count + "x" for count in (60, 240)]
    assert grown(cost_of(bad.search), (texts[0], texts[1])).is_too_much
    good = re.compile(r"<sup>\s*+(?:\[\s*+)?(\d+)")
    assert not grown(cost_of(good.search), (texts[0], texts[1])).is_too_much


@pytest.mark.parametrize("size", [10, 1_000])
def test_a_recipe_makes_texts_of_about_the_size(size: int) -> None:
    for piece in SIGNS:
        text = Recipe((piece,)).text(size)
        assert len(text) <= size + 2 * len(piece) + 12
        assert text == Recipe((piece,)).text(size)
