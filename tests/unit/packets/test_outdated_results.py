"""Results that no longer hold stand on no page as if they did: they are left out, or marked with the newer one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.packets.builds import Build
from muniment.runs.board import CALLS_MIN

Call = tuple[str, dict[str, Any], str, bool]
PURPOSES: tuple[Any, ...] = ("planner", "tool", "responder")


def call(name: str, content: str, ok: bool = True, /, **args: Any) -> Call:
    return name, args, content, ok


TESTS = (
    call("shell", "1 failed in test_tax.py", False, command="pytest -q"),
    call("shell", "42 passed", command="pytest -q"),
)
CASES: dict[str, tuple[list[Call], str, str]] = {
    # calls; the words that no longer hold; the words that do
    "command": ([*TESTS], "1 failed", "42 passed"),
    "command that was answered both times": (
        [call("run_command", "3 errors", cmd="make  lint"), call("run_command", "no errors", cmd="make lint")],
        "3 errors", "no errors",
    ),
    "command with a path spelled otherwise": (
        [call("shell", "5 failed", command="pytest ./tests"), call("shell", "9 passed", command="pytest tests/")],
        "5 failed", "9 passed",
    ),
    "file read before it was written": (
        [call("read_file", "RATE = 0.7", path="tax.py"),
         call("write_file", "ok", path="tax.py", content="RATE = 0.8\nNAME = 'tax'\n")],
        "RATE = 0.7", "RATE = 0.8",
    ),
    "file read before it was edited": (
        [call("read_file", "RATE = 0.7", path="src/tax.py"),
         call("str_replace", "1 replacement", path="./src/tax.py", old="RATE = 0.7 #", new="RATE = 0.8")],
        "→ RATE = 0.7", "1 replacement",
    ),
    "file named by its whole path later": (
        [call("view", "RATE = 0.7", file="tax.py"),
         call("edit", "done", file_path="/repo/tax.py", text="RATE = 0.8")],
        "RATE = 0.7", "RATE = 0.8",
    ),
    "file read again": (
        [call("read_file", "RATE = 0.7", path="tax.py"), call("read_file", "RATE = 0.8", path="./tax.py")],
        "RATE = 0.7", "RATE = 0.8",
    ),
    "file that was not there": (
        [call("read_file", "no such file", False, path="a/new.py"),
         call("create_file", "created", path="a/new.py", text="x")],
        "no such file", "created",
    ),
    "one tool that looks and edits": (
        [call("editor", "RATE = 0.7", command="view", path="tax.py"),
         call("editor", "replaced", command="str_replace", path="tax.py", new="RATE = 0.8")],
        "RATE = 0.7", "replaced",
    ),
    "resource": (
        [call("get_ticket", "state: open", id=7), call("update_ticket", "saved", ticket_id=7, state="closed")],
        "state: open", "closed",
    ),
    "resource named by a text": (
        [call("get_order_details", "shipping to Leeds", order_id="W71"),
         call("cancel_pending_order", "cancelled", order_id="W71", reason="no longer needed")],
        "shipping to Leeds", "cancelled",
    ),
    "list that got longer": (
        [call("list_invoices", "one invoice of 40", customer="c4"),
         call("create_invoice", "made", customer="c4", amount=90)],
        "one invoice of 40", "amount=90",
    ),
    "setting": (
        [call("set_rate", "saved as .7", country="AT", rate=0.7), call("get_rate", "0.7", country="AT"),
         call("set_rate", "saved as .8", country="AT", rate=0.8)],
        ".7", "saved as .8",
    ),
}  # fmt: skip
QUERIES = ("", "What did pytest say, and what are the rate in tax.py, the ticket, the order and the invoices?")


def begin(mem: Memory, calls: list[Call], *, is_long: bool = True) -> Run:
    """A run that made these calls and, where it is long, so many others that it has a board."""
    run = mem.run(user_id="ana", session_id="s1", run_id="r1", objective="ship it")
    for number in range(CALLS_MIN if is_long else 0):
        run.observe_tool("list_page", args={"page": number}, content="\n".join(f"row {n} of many" for n in range(30)))
    for name, args, content, ok in calls:
        run.observe_tool(name, args=args, content=content, ok=ok)
    return run


def unmarked(build: Build, words: str) -> list[str]:
    """The lines of calls with these words that do not say which line replaces them."""
    lines = [line for line in build.text.splitlines() if words in line and "→" in line]
    return [line for line in lines if not re.search(r"\(superseded by \[\d+\]\)|\(earlier\)", line)]


@pytest.mark.req("TM-17")
@pytest.mark.parametrize("is_long", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_what_no_longer_holds_is_left_out_or_marked(mem: Memory, name: str, is_long: bool) -> None:
    calls, old, new = CASES[name]
    run = begin(mem, calls, is_long=is_long)
    for purpose in PURPOSES:
        for query in QUERIES:
            for tokens in (256, 2048):
                build = run.compose(purpose, query=query, max_tokens=tokens)
                assert not unmarked(build, old), (purpose, query, tokens, build.text)
                if old in build.text and "→" in build.text:
                    assert new in build.text, (purpose, query, tokens, build.text)
                if tokens == 2048 and purpose != "responder":
                    assert new in build.text, (purpose, query, tokens, build.text)
        assert mem.replay(build.id).packet_bytes == build.packet_bytes


HELD: dict[str, tuple[list[Call], list[str]]] = {
    # calls; words that all hold
    "another command": (
        [call("shell", "1 failed", command="pytest -q"), call("shell", "42 passed", command="pytest -q tests/unit")],
        ["1 failed", "42 passed"],
    ),
    "a command that was not run since the edit": (
        [call("run_tests", "1 failed", False, path="tests/test_tax.py"),
         call("edit_file", "changed", path="tests/test_tax.py", text="x")],
        ["1 failed", "changed"],
    ),
    "a read after the edit": (
        [call("write_file", "ok", path="tax.py", content="RATE = 0.8"),
         call("read_file", "RATE is 0.8", path="tax.py")],
        ["RATE is 0.8"],
    ),
    "another file": (
        [call("read_file", "RATE = 0.7", path="tax.py"), call("write_file", "ok", path="lib/tax.py", content="A")],
        ["RATE = 0.7"],
    ),
    "an edit that failed": (
        [call("read_file", "RATE = 0.7", path="tax.py"), call("edit", "not found", False, path="tax.py", new="1")],
        ["RATE = 0.7", "not found"],
    ),
    "another resource of the same number": (
        [call("get_ticket", "state: open", id=7), call("update_user", "saved", id=7, name="Bo")],
        ["state: open", "saved"],
    ),
    "another resource of the same tools": (
        [call("get_ticket", "state: open", id=7), call("update_ticket", "saved", id=8, state="closed")],
        ["state: open", "saved"],
    ),
    "a booking in a town whose weather was looked up": (
        [call("get_weather", "sunny", city="Graz"), call("book_hotel", "booked", city="Graz")],
        ["sunny", "booked"],
    ),
    "two edits of one file": (
        [call("edit", "first done", path="a.py", old="one", new="two"),
         call("edit", "second done", path="a.py", old="three", new="four")],
        ["first done", "second done"],
    ),
    "two parts of one file": (
        [call("read_file", "def f()", path="a.py", start=1), call("read_file", "def g()", path="a.py", start=90)],
        ["def f()", "def g()"],
    ),
    "a file that was sent": (
        [call("read_file", "RATE = 0.7", path="tax.py"), call("send_file", "sent", path="tax.py", to="bo@example.org")],
        ["RATE = 0.7", "sent"],
    ),
    "the same answer twice": (
        [call("get_status", "all green", host="db"), call("get_status", "all green", host="db")],
        ["all green"],
    ),
}  # fmt: skip


@pytest.mark.req("TM-17", "TM-01")
@pytest.mark.parametrize("name", HELD)
def test_what_still_holds_is_not_marked(mem: Memory, name: str) -> None:
    calls, words = HELD[name]
    for is_long in (True, False):
        run = begin(mem, calls, is_long=is_long) if is_long else mem.run(user_id="bo", session_id="s2")
        if not is_long:
            for tool, args, content, ok in calls:
                run.observe_tool(tool, args=args, content=content, ok=ok)
        for purpose in ("planner", "tool"):
            build = run.compose(purpose, max_tokens=2048)
            assert "superseded" not in build.text
            for each in words:
                assert each in build.text, build.text


@pytest.mark.req("TM-17")
def test_a_run_of_the_same_session_knows_what_an_earlier_one_did(mem: Memory) -> None:
    first = begin(mem, [call("read_file", "RATE = 0.7", path="tax.py")], is_long=False)
    second = mem.run(user_id="ana", session_id="s1", run_id="r2")
    second.observe_tool("write_file", args={"path": "tax.py", "content": "RATE = 0.8"}, content="ok")
    for run in (first, second):
        assert not unmarked(run.compose("planner", max_tokens=1024), "RATE = 0.7")


@pytest.mark.req("TM-17", "LG-07")
def test_a_result_holds_again_when_what_replaced_it_is_forgotten(any_mem: Memory) -> None:
    run = begin(any_mem, [call("read_file", "RATE = 0.7", path="tax.py")], is_long=False)
    newer = run.observe_tool("write_file", args={"path": "tax.py", "content": "RATE = 0.8"}, content="ok")
    assert not unmarked(run.compose("planner", max_tokens=1024), "RATE = 0.7")
    any_mem.forget(event=newer.id)
    assert unmarked(run.compose("planner", max_tokens=1024), "RATE = 0.7")


Make = Callable[[int], Call]


@pytest.mark.req("TM-13")
@pytest.mark.parametrize(
    "shape",
    [
        lambda n: call("read_file", f"v{n}", path="a.py"),
        lambda n: call("write_file" if n % 2 else "read_file", f"v{n}", path="a.py", content=f"x = {n}"),
        lambda n: call(f"get_thing_{n}", f"v{n}", user="ana"),
        lambda n: call(f"update_thing_{n}", f"v{n}", user="ana"),
    ],
)
def test_a_long_run_of_calls_on_one_thing_is_composed(mem: Memory, shape: Make) -> None:
    run = begin(mem, [shape(number) for number in range(150)])
    assert run.compose("planner", query="a.py", max_tokens=512).tokens <= 512
