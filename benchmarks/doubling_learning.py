"""Doors through which a text comes to be learnt from, kept as a value or printed; beside those of the ledger."""

# ruff: noqa: E501 - a door is one call with all that it takes

from __future__ import annotations

import tempfile
from base64 import b64encode
from contextlib import ExitStack, suppress
from pathlib import Path

import muniment
from benchmarks.doubling_doors import DOORS, Work, door_named, new_store
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.errors import MunimentError

__all__ = ["DOORS"]

_PASSED = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
_INTENT = {"domain_tag": "shop", "task_family": "coding"}


def _all(*calls: Work) -> Work:
    """All of these, whatever one of them refuses."""

    def work() -> None:
        for call in calls:
            with suppress(MunimentError):
                call()

    return work


@door_named("learning: a run of it")
def _learn(text: str, stack: ExitStack) -> Work:
    _, run = new_store(stack)
    run.observe("user", text)
    run.observe_tool("edit", args={"file": text[:500]}, content=text)
    run.observe("assistant", text)
    return lambda: run.learning.learn(_PASSED, intent=_INTENT)


@door_named("learning: recall by it")
def _recall(text: str, stack: ExitStack) -> Work:
    mem, run = new_store(stack)
    run.observe("assistant", "The cart is rounded.")
    run.learning.learn(_PASSED, intent=_INTENT)
    later = mem.run(user_id="ana", session_id="s2", run_id="r2")
    return lambda: later.learning.recall(text)


@door_named("learning: recall of it")
def _recall_of(text: str, stack: ExitStack) -> Work:
    mem, run = new_store(stack)
    run.observe("user", text)
    run.observe("assistant", text)
    run.learning.learn(_PASSED, intent=_INTENT)
    later = mem.run(user_id="ana", session_id="s2", run_id="r2")
    return lambda: later.learning.recall("How is the cart rounded?")


@door_named("learning: lessons and rules")
def _lessons(text: str, stack: ExitStack) -> Work:
    mem, run = new_store(stack)
    event = run.observe("user", text)
    bank, rulebook = mem.bank(user_id="ana"), mem.rulebook(user_id="ana")
    return _all(
        lambda: bank.add_lesson(text, when="a cup is ordered"),
        lambda: bank.add_lesson("Ask for the size first", when=text, evidence=[event.id]),
        lambda: rulebook.add(text),
        lambda: run.learning.note(facts=[text], decisions=text.split("\n")),
    )


@door_named("kept: values")
def _values(text: str, stack: ExitStack) -> Work:
    mem, _ = new_store(stack)
    values = mem.store.values("space", user_id="ana")
    kept = {"namespace": ["notes"], "key": text[:200], "value": {"text": text, "parts": text.split()}, "texts": [text]}
    return _all(
        lambda: values.put([kept]),
        lambda: values.search(query=text),
        lambda: values.search(query="Where do I live?"),
        lambda: values.forget([{"namespace": ["notes"], "key": text[:200]}]),
    )


@door_named("kept: threads")
def _threads(text: str, stack: ExitStack) -> Work:
    mem, _ = new_store(stack)
    threads = mem.store.threads("space", user_id="ana")
    part, data = {"type": "null", "data": ""}, b64encode(text.encode("utf-8", "replace")).decode()
    held = {"channel": {"type": "text", "data": data}}
    checkpoint = {
        "thread_id": "t",
        "checkpoint_id": "1",
        "head": {"type": "text", "data": data},
        "metadata": part,
        "values": held,
    }
    return _all(lambda: threads.put(checkpoint), lambda: threads.get("t"), lambda: threads.forget("t"))


@door_named("mem0's calls")
def _mem0(text: str, stack: ExitStack) -> Work:
    from muniment.integrations.mem0 import Memory as Mem0

    mem, _ = new_store(stack)
    client = Mem0(mem)
    return _all(
        lambda: client.add([{"role": "user", "content": text}], user_id="ana"),
        lambda: client.add(text, user_id="ana", infer=False),
        lambda: client.search(text, filters={"user_id": "ana"}),
        lambda: client.get_all(filters={"user_id": "ana"}),
    )


@door_named("CLI: stored text is printed")
def _print(text: str, stack: ExitStack) -> Work:
    from click.testing import CliRunner

    from muniment.surfaces.cli.main import cli

    store = str(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "m.db")
    with muniment.open(store, clock=TickingClock(), ids=CountingIds()) as mem:
        run = mem.run(user_id="ana", session_id="s1", run_id="r1", objective=text[:500])
        event = run.observe("user", text)
        with suppress(MunimentError):
            run.remember("user.note", text, sources=[event.id])
            run.log.step("ACT_DONE", text)
        build = run.compose("planner", query="Where do I live now?", max_tokens=100_000)
    commands = (
        ("run", "events", "r1"), ("run", "log", "r1"), ("run", "show", "r1"), ("explain", build.id), ("replay", build.id),
        ("memory", "facts", "--user", "ana"), ("memory", "search", "live", "--user", "ana"),
    )  # fmt: skip
    return lambda: [CliRunner().invoke(cli, [*command, "--db", store]) for command in commands]
