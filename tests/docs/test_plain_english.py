"""Pages can be read: short sentences, an opening that says for whom a guide is, words that are explained.

The bar is on length and on what every page must have. It says nothing of style, and a page may have a long sentence.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from statistics import median

import pytest

sys.path.append(str(Path(__file__).parents[2] / "tools"))

import glossary
import plain_english
from plain_english import LONG, opening, sentences, words

from products import for_each

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *plain_english.pages()]
GUIDES = [page for page in PAGES if "guides" in page.parts]
MEDIAN_MAX, LONGEST, LONG_SHARE_MAX = 15, 40, 0.05


def faults_of(text: str) -> list[str]:
    """What is too long in a page."""
    told = sentences(text)
    long = sorted((each for each in told if words(each) > LONG), key=words, reverse=True)
    found = [f"over {LONGEST} words: {each}" for each in long if words(each) > LONGEST]
    if median(map(words, told)) > MEDIAN_MAX:
        found.append(f"the median sentence has more than {MEDIAN_MAX} words")
    if len(long) > max(1, LONG_SHARE_MAX * len(told)):
        found += [f"one of {len(long)} sentences over {LONG} words: {each}" for each in long]
    return found


@for_each("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_are_short(page: Path) -> None:
    assert faults_of(page.read_text("utf-8")) == []


@for_each("page", GUIDES, ids=lambda page: page.stem)
def test_a_guide_begins_with_whom_it_is_for_and_what_it_does(page: Path) -> None:
    begins = opening(page.read_text("utf-8"))
    assert begins.startswith("This page is for "), begins
    assert 12 <= words(begins) <= 130, begins


@for_each("page", glossary.pages(), ids=lambda page: page.stem)
def test_a_word_of_art_leads_to_the_glossary(page: Path) -> None:
    """`python tools/glossary.py --write` links what this finds."""
    assert glossary.unlinked(page, page.read_text("utf-8")) == []


def test_every_linked_word_has_one_entry() -> None:
    rows = re.findall(r'<a id="([^"]+)"></a>([^|]+?) \|', glossary.GLOSSARY.read_text("utf-8"))
    assert len(rows) == len(set(rows))
    assert [anchor for anchor, word in rows if anchor != word.replace(" ", "-")] == []
    assert set(glossary.LINKED) <= set(glossary.entries())


def test_every_link_into_the_glossary_finds_its_word() -> None:
    anchors = {word.replace(" ", "-") for word in glossary.entries()}
    for page in (ROOT / "docs").rglob("*.md"):
        found = set(re.findall(r"glossary\.md#([\w-]+)", page.read_text("utf-8")))
        assert found <= anchors, f"{page.name}: {found - anchors}"


def test_every_word_of_the_guides_is_used() -> None:
    """A glossary of words that no page says is no help."""
    said = " ".join(page.read_text("utf-8") for page in (ROOT / "docs").rglob("*.md") if page != glossary.GLOSSARY)
    assert [word for word in glossary.entries() if not re.search(rf"\b{word[:-1]}", said)] == []


def test_the_newcomers_words_are_explained() -> None:
    """Those that somebody who read the pages for the first time could not place."""
    asked = {
        "arm",
        "bank",
        "baseline recipe",
        "book",
        "build",
        "canary",
        "fold",
        "holdout",
        "mark",
        "packet",
        "pointer",
    }
    assert asked <= set(glossary.entries())


def test_a_page_that_begins_with_a_comment_has_a_title_in_the_site() -> None:
    """MkDocs names a page by its file where the heading is not its first line: `Api`, `Cli`."""
    listed = re.findall(r"^ +- (?:([^:\n]+): )?([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert len(listed) > 50
    pages = {path: title for title, path in listed if (ROOT / "docs" / path).is_file()}
    nameless = [path for path, title in pages.items() if not title]
    assert [path for path in nameless if not (ROOT / "docs" / path).read_text("utf-8").startswith("# ")] == []


# -- the measure itself -------------------------------------------------------------------------------


@for_each(
    ("text", "counted"),
    [
        ("# Title\n\nOne two three. Four five!\n", [3, 2]),
        ("# T\n\nA list of `a`, `b`, `c` and `d` is one.\n", [6]),
        ("# T\n\nBefore the code:\n\n```python\nx = 1. Y\n```\n\nAfter it.\n", [3, 2]),
        ("# T\n\n| a | b. C |\n|---|---|\n\n- One item.\n- Another one,\n  on two lines.\n", [2, 5]),
        ("# T\n\nSee [the guide](a/b.md#c.d). muniment is next. (Or not.)\n", [3, 3, 2]),
        ("# T\n\n<!-- figures:x -->\nA. B. C.\n<!-- /figures:x -->\n\n    code. More code.\n\nEnd.\n", [1]),
        ("# T\n\nIn 1.5 ms, e.g. at v2.0 of it.\n", [8]),
    ],
)
def test_what_counts_as_a_sentence(text: str, counted: list[int]) -> None:
    assert [words(each) for each in sentences(text)] == counted


@for_each(
    ("text", "is_well"),
    [
        ("# T\n\n" + "It is short. " * 30, True),
        ("# T\n\n" + "It is short. " * 30 + "word " * 30 + ".", True),
        ("# T\n\n" + "It is short. " * 30 + ("word " * 30 + ". ") * 2, False),
        ("# T\n\n" + "It is short. " * 30 + "word " * 41 + ".", False),
        ("# T\n\n" + ("word " * 16 + ". ") * 9, False),
    ],
)
def test_the_bar_can_fail(text: str, is_well: bool) -> None:
    assert (faults_of(text) == []) is is_well


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("# T\n\nThis page is\nfor you.\n\nMore.\n", "This page is for you."),
        ("# T\n\n    pip install x\n\nMore.\n", ""),
        ("# T\n\n- a list\n", ""),
    ],
)
def test_the_opening_of_a_page(text: str, begins: str) -> None:
    assert opening(text) == begins


@for_each(
    ("text", "linked"),
    [
        ("# A fold\n\nA fold, then folds.\n", "# A fold\n\nA [fold](../glossary.md#fold), then folds.\n"),
        ("# T\n\nTwo canaries.\n", "# T\n\nTwo [canaries](../glossary.md#canary).\n"),
        ("# T\n\n`fold`, [a fold](x.md), a fold-like thing, unfolded, fold.md\n", None),
        ("# T\n\n```sh\nfold\n```\n\n| fold |\n\n    fold\n", None),
        ("# T\n\nA [run's fold](../glossary.md#fold) and a fold.\n", None),
    ],
)
def test_the_first_use_is_linked(text: str, linked: str | None) -> None:
    page = ROOT / "docs" / "guides" / "some.md"
    assert glossary.linked(page, text) == (text if linked is None else linked)
    assert glossary.unlinked(page, glossary.linked(page, text)) == []
