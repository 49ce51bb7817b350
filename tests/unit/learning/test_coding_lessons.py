"""Lessons of a coding agent name the file, the error and the edit, and take nothing for a cause that is none."""

from __future__ import annotations

import coding_world
import pytest

import muniment


@pytest.fixture(scope="module", params=[1, 2, 3])
def summaries(request: pytest.FixtureRequest) -> list[str]:
    with muniment.open(":memory:", embedder="none") as mem:
        coding_world.work(mem, request.param, 12)
        bank = mem.bank(user_id="dev")
        told = [str(memory.record["summary"]) for memory in bank.records(kind="tactic")]
        return [*told, *(str(draft.proposed_rule.body) for draft in bank.drafts())]


@pytest.mark.soak
def test_they_name_the_file_the_error_and_the_edit_that_mended_it(summaries: list[str]) -> None:
    fixes = [
        bug
        for bug in coding_world.BUGS
        for line in summaries
        if f"In {bug.path}, when {bug.test} fails with {bug.error.partition(':')[0]}" in line
        and f"write `{bug.mends}`: passed" in line
    ]
    assert fixes


def test_what_hard_tasks_are_searched_with_is_neither_advised_nor_forbidden(summaries: list[str]) -> None:
    assert not [line for line in summaries if "search_method" in line]


def test_no_line_forbids_what_mends(summaries: list[str]) -> None:
    assert not [line for line in summaries for bug in coding_world.BUGS if f"do not write `{bug.mends}`" in line]


def test_no_line_speaks_of_what_only_the_library_knows(summaries: list[str]) -> None:
    assert summaries
    for line in summaries:
        assert not {"say", "say."} & set(line.lower().split())
        assert not [mark for mark in ("edit:", "met:", "then:", "tool:", "mend:", "Look first") if mark in line], line
        assert line[0].isupper()
        assert line.endswith(".")
