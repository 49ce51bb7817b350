"""Tools' results stand on a page in the order of their calls: what was done about a failure stands below it."""

from __future__ import annotations

from typing import Any

import pytest

CALLS = (
    ("run_tests", {"path": "tests"}, "1 failed: KeyError 'discount' in src/cart.py", False),
    ("edit", {"path": "src/cart.py", "line": 7}, "changed line 7", True),
    ("read_file", {"path": "README.md"}, "# Cart", True),
    ("run_tests", {"path": "tests", "quiet": True}, "all passed", True),
)


def underway(mem: Any) -> Any:
    run = mem.run(user_id="ana", agent_id="coder")
    run.observe("user", "The cart's total breaks on items without a discount.")
    for name, args, says, ok in CALLS:
        run.observe_tool(name, content=says, args=args, ok=ok)
    return run


def results_of(build: Any) -> list[str]:
    """What a page has of calls, from top to bottom, besides the lines of the board."""
    return [line for line in build.text.splitlines() if " → " in line and line.startswith("[")]


@pytest.mark.parametrize("tokens", [256, 1024])
@pytest.mark.parametrize("purpose", ["planner", "tool"])
def test_results_stand_in_the_order_of_the_calls(any_mem: Any, purpose: str, tokens: int) -> None:
    build = underway(any_mem).compose(purpose, query="zebra crossing", max_tokens=tokens)
    told = results_of(build)
    wanted = ("1 failed", "changed line 7", "# Cart", "all passed")
    assert [next(said for said in wanted if said in line) for line in told] == list(wanted)
    assert any_mem.replay(build.id).packet_bytes == build.packet_bytes


def test_each_result_stands_once_and_is_explained(mem: Any) -> None:
    build = underway(mem).compose("planner", query="zebra crossing", max_tokens=1024)
    omitted = {each.item: each.to_wire() for each in build.packet.explain.omitted if each.item.startswith("tool:")}
    turns = [each.evidence_id for each in build.packet.short_term.conversation_window]
    assert {each["of"] for each in omitted.values() if each["reason"] == "duplicate"} <= {
        f"turn:{id_}" for id_ in turns
    }
    assert len(turns) == len(set(turns)) == 1 + len(CALLS)


def test_where_room_is_short_the_newest_stay(mem: Any) -> None:
    run = underway(mem)
    for number in range(30):
        run.observe_tool("read_file", content=f"page {number} " + "word " * 30, args={"n": number}, ok=True)
    for tokens in (256, 300, 512, 1024):
        told = results_of(run.compose("planner", query="zebra crossing", max_tokens=tokens))
        numbers = [int(line.partition("page ")[2].split()[0]) for line in told if "page " in line]
        assert numbers == sorted(numbers)
        assert not numbers or 29 in numbers


def test_results_from_before_the_last_turns_stand_above_them_in_order(mem: Any) -> None:
    run = underway(mem)
    for number in range(6):
        run.observe("user" if number % 2 == 0 else "assistant", f"Let us talk of something else, part {number}.")
    lines = run.compose("planner", query="zebra crossing", max_tokens=1024).text.splitlines()
    told = [at for at, line in enumerate(lines) if " → " in line]
    assert told
    assert max(told) < lines.index("## Last turns")
    assert [line.partition("] ")[2][:4] for at, line in enumerate(lines) if at in told] == ["edit", "read", "run_"]
