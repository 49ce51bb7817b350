"""Which extras install together: pyproject.toml, the table that users read and the second environment say the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
PAGE = (ROOT / "docs" / "guides" / "integrations.md").read_text("utf-8")
APART = ROOT / "tests" / "apart"
TOGETHER, ASIDE = "integrations", "integrations-apart"


class Row(NamedTuple):
    packages: list[str]
    together: bool
    aside: bool
    beside_mcp: bool


def members(extra: str) -> set[str]:
    """The extras that another one is made of."""
    named = [re.fullmatch(r"muniment\[([\w,-]+)\](?:; .+)?", each) for each in EXTRAS[extra]]
    return {name for each in named if each for name in each[1].split(",")}


def further(extra: str) -> list[str]:
    """What it says beside them: tighter bounds for packages of theirs."""
    return [each for each in EXTRAS[extra] if not each.startswith("muniment[")]


def table() -> dict[str, Row]:
    section = PAGE.split("## Which install together\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([\w-]+)` \| (.+?) \| (yes|no) \| (yes|no) \| (yes|no) \|$", section, re.MULTILINE)
    return {
        extra: Row(re.findall(r"`([^`]+)`", packages), *(said == "yes" for said in answers))
        for extra, packages, *answers in rows
    }


def test_the_table_has_every_framework_with_the_packages_of_its_extra() -> None:
    rows = table()
    assert set(rows) == members(TOGETHER) | members(ASIDE)
    assert {extra: row.packages for extra, row in rows.items()} == {extra: EXTRAS[extra] for extra in rows}
    assert {extra for extra, row in rows.items() if row.together} == members(TOGETHER)
    assert {extra for extra, row in rows.items() if row.aside} == members(ASIDE)
    assert not members(TOGETHER) & members(ASIDE), "each is tested in one environment"
    for bound in (*further(TOGETHER), *further(ASIDE)):
        assert f"`{bound}`" in PAGE, f"the page says why it is {bound}"


def test_every_extra_for_a_package_of_others_is_in_one_of_the_two() -> None:
    own = {"all", "proxy", TOGETHER, ASIDE} | members("all") | {"otel"}
    assert set(EXTRAS) - own == members(TOGETHER) | members(ASIDE)


def test_what_stands_beside_mcp_is_what_is_installed_so() -> None:
    assert "mcp" in members("all"), "the integrations are tested beside it"
    rows = table()
    assert all(rows[extra].beside_mcp for extra in members(TOGETHER))
    kept = pinned()["mcp"]
    assert kept.startswith("1."), "CrewAI holds it back, which is why it has an environment of its own"
    assert not rows["crewai"].beside_mcp


def test_each_extra_has_a_bound_and_a_row_in_the_table_of_integrations() -> None:
    for extra, row in table().items():
        assert all(">=" in package for package in row.packages), extra
        assert re.search(rf"^\|.*\| [^|]*`{extra}`[^|]*\|", PAGE.split("## ")[0], re.MULTILINE), extra


def test_the_second_environment_names_a_version_for_all_it_wants() -> None:
    wanted = [line.split("#")[0].strip() for line in (APART / "requirements.in").read_text("utf-8").splitlines()]
    own, *others = [line for line in wanted if line]
    named = re.fullmatch(r"\.\[([\w,-]+)\]", own)
    assert named is not None
    assert ASIDE in named[1].split(",")
    asked = [*others, *further(ASIDE), *(each for extra in members(ASIDE) for each in EXTRAS[extra])]
    versions = pinned()
    for each in asked:
        found = re.match(r"([\w-]+)((?:[<>]=?[\d.]+,?)*)", each)
        assert found is not None
        assert fits(versions[found[1]], found[2]), f"{each} is installed as {versions[found[1]]}"


def pinned() -> dict[str, str]:
    """The versions that are installed there."""
    text = (APART / "requirements.txt").read_text("utf-8")
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    found = [re.fullmatch(r"([\w.-]+)==([\w.]+)(?: *;.*)?", line) for line in lines if line]
    assert all(found), "every line is a package and its version"
    return {each[1]: each[2] for each in found if each}


def fits(version: str, bounds: str) -> bool:
    have = [int(part) for part in re.findall(r"\d+", version)][:3]
    for sign, bound in re.findall(r"([<>]=?)([\d.]+)", bounds):
        want = [int(part) for part in bound.split(".")]
        if sign == ">=" and have < want:
            return False
        if sign == "<" and have[: len(want)] >= want:
            return False
    return True


def test_bounds_are_compared_by_number() -> None:
    assert fits("1.62.0", ">=1.62,<2")
    assert fits("1.106.2", ">=1.100")
    assert not fits("1.62.0", ">=1.100")
    assert not fits("2.0.0", ">=1.15,<2")
