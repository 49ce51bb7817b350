"""The hints of the small repository that the decision page quotes are printed by this version, word for word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import muniment

PAGE = Path(__file__).parents[3] / "docs" / "decisions" / "0033-lessons.md"


def quoted() -> list[str]:
    told = PAGE.read_text("utf-8").partition("### Twenty hints, as they are")[2].partition("### ")[0]
    found = re.findall(r"^\d+\. (?:``(.*?)``(?!`)|`([^`]*)`)", told, re.MULTILINE)
    return [code or plain for code, plain in found]


@pytest.mark.soak
def test_the_page_quotes_twenty_and_those_of_the_small_repository_are_printed_so(mem: muniment.Memory) -> None:
    from coding_world import BUGS, INTENT, work

    lines = quoted()
    assert len(lines) == 20
    work(mem, 1, 5)
    told = set()
    for bug in BUGS:
        run = mem.run(user_id="dev", agent_id="coder")
        run.observe("user", bug.asked)
        found = run.learning.recall(f"Hi, {bug.asked}", intent=INTENT, keep=False)
        told |= {line.removeprefix("- ") for line in found.text.splitlines()}
    ours = [line for line in lines if "src/" in line]
    assert len(ours) == 4
    assert [line for line in ours if line not in told] == []
