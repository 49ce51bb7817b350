"""Every clause that we say is kept has a test that names it, and the page of clauses says which."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "tools"))

from make_requirements import DATA, PAGE, ROOT, Naming, faults, named_in, named_in_tests, page, read

CLAUSE = re.compile(r"\b(?:X|LG|MP|RC|CS|RP|MV|BL|UK|TM)-\d\d\b")

SMALL = read("""
not_built = ["TM-02"]

[still_missing]
TM-01 = "Half of it."

[[chapters]]
id = "X"
title = "All"
about = "About all."
settled_here = ["X-01"]
[chapters.clauses]
X-01 = "One."

[[chapters]]
id = "TM"
title = "Told"
about = "About telling."
settled_here = []
[chapters.clauses]
TM-01 = "Two."
TM-02 = "Three."
""")
NAMED = [Naming("X-01", "tests/test_a.py", "test_one"), Naming("TM-01", "tests/test_b.py")]


def wrong(named: list[Naming], written: str | None = None) -> list[str]:
    return faults(SMALL, named, page(SMALL, named) if written is None else written)


def test_every_clause_is_proven_and_the_page_says_by_what() -> None:
    assert faults(read(DATA.read_text("utf-8")), named_in_tests(), PAGE.read_text("utf-8")) == []


def test_every_clause_that_the_source_cites_can_be_read_there() -> None:
    clauses = read(DATA.read_text("utf-8")).clauses
    for folder in ("src", "benchmarks", "tools", "docs/decisions"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".md"):
                unknown = set(CLAUSE.findall(path.read_text("utf-8"))) - clauses.keys()
                assert not unknown, f"{path.relative_to(ROOT)} cites {sorted(unknown)}"


def test_a_page_that_is_right_has_no_fault() -> None:
    assert wrong(NAMED) == []


@pytest.mark.parametrize(
    ("named", "fault"),
    [
        (NAMED[1:], "no test names X-01"),
        (
            [*NAMED, Naming("X-07", "tests/test_a.py", "test_two")],
            "tests/test_a.py test_two names X-07: no such clause",
        ),
        ([*NAMED, Naming("TM-02", "tests/test_a.py", "test_two")], "TM-02 is listed as not built, and a test names it"),
    ],
)
def test_what_the_tests_name_is_compared_with_the_clauses(named: list[Naming], fault: str) -> None:
    (found,) = wrong(named)
    assert found.startswith(fault)


def test_a_stale_page_is_told() -> None:
    (found,) = wrong(NAMED, page(SMALL, NAMED).replace("test_one", "test_two"))
    assert found.startswith("docs/requirements.md is not what")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("not_built = [", 'not_built = ["MP-01", ', "MP-01 is listed as not built: only clauses of TM"),
        ("not_built = [", 'not_built = ["TM-13", ', "TM-13 is both not built and built in part"),
        ("not_built = [", 'not_built = ["TM-99", ', "TM-99 is listed, and is no clause"),
        ("LG-09 = ", "LG-29 = ", "the clauses of LG are not numbered in order"),
    ],
)
def test_what_the_data_file_may_not_say(old: str, new: str, fault: str) -> None:
    text = DATA.read_text("utf-8")
    assert old in text
    found = faults(read(text.replace(old, new, 1)), [], "")
    assert any(each.startswith(fault) for each in found), found


def test_how_a_test_names_a_clause() -> None:
    source = '''
"""All of it (X-01, MP-06 … MP-08)."""
pytestmark = pytest.mark.req("X-02")

@pytest.mark.req("X-03", "X-04")
@pytest.mark.parametrize("a", [pytest.param(1, marks=pytest.mark.req("X-05"))])
def test_one(a):
    """Also X-06, but not what stands below."""
    assert "X-07"

class TestMore:
    """CS-01 to CS-02."""

    async def test_two(self):
        """LG-01."""

pytest.mark.req("X-09")(EngineContract.test_three)
'''
    by_test: dict[str, set[str]] = {}
    for each in named_in(source, "tests/test_it.py"):
        by_test.setdefault(each.test, set()).add(each.clause)
    assert by_test == {
        "": {"X-01", "X-02", "MP-06", "MP-07", "MP-08"},
        "test_one": {"X-03", "X-04", "X-05", "X-06"},
        "TestMore": {"CS-01", "CS-02"},
        "TestMore::test_two": {"LG-01"},
        "EngineContract::test_three": {"X-09"},
    }
