"""Every door through which a text comes in, as a function that makes ready and hands back what is to be measured.

A door is given a text and answers the work: what stands before it (a store, a study at its stage, a server) is not
counted. What a door refuses, it has read: a refusal costs as well.
"""

# ruff: noqa: E501, ARG001 - a door is one call with all that it takes, and has the signature of all doors

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any

import muniment
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.errors import MunimentError
from muniment.handles.memory import Memory
from muniment.handles.run import Run

__all__ = ["DOORS", "TOKENS", "Door", "Work", "door_named", "new_store"]

Work = Callable[[], object]
Door = Callable[[str, ExitStack], Work]
DOORS: dict[str, Door] = {}
"""By name: what is done with a text, group first."""

_QUESTIONS = ("Where do I live now?", "What did I say last Monday?", "我现在住在哪里？", "지금 어디에 살고 있나요?")
TOKENS = 256
"""So few that a text of any size has to be cut: one that just fits costs a step less than one that does not."""


def door_named(name: str) -> Callable[[Door], Door]:
    """Enter a door under its name."""

    def named(door: Door) -> Door:
        DOORS[name] = door
        return door

    return named


def new_store(stack: ExitStack, policy: dict[str, Any] | None = None) -> tuple[Memory, Run]:
    """A store of its own, and a run in it."""
    mem = stack.enter_context(muniment.open(":memory:", clock=TickingClock(), ids=CountingIds(), policy=policy))
    run = mem.run(user_id="ana", session_id="s1", run_id="r1", objective="talk")
    run.observe("user", "I live in Lisbon, and I work as a nurse.")
    return mem, run


def _told(text: str, stack: ExitStack) -> Run:
    """A run in which the text was said by the user, and by a tool."""
    _, run = new_store(stack)
    with suppress(MunimentError):
        run.observe("user", text)
        run.observe_tool("page", content=text)
    return run


# -- the ledger -----------------------------------------------------------------------------------------


@door_named("observe: message")
def _observe(text: str, stack: ExitStack) -> Work:
    _, run = new_store(stack)
    return lambda: run.observe("user", text)


@door_named("observe: tool")
def _observe_tool(text: str, stack: ExitStack) -> Work:
    _, run = new_store(stack)
    return lambda: run.observe_tool("page", content=text)


@door_named("observe: call")
def _observe_call(text: str, stack: ExitStack) -> Work:
    _, run = new_store(stack)
    return lambda: run.observe_tool("page", args={"q": text, "p": [text]}, content="done")


@door_named("observe: metadata")
def _observe_metadata(text: str, stack: ExitStack) -> Work:
    _, run = new_store(stack)
    words = text.split()
    return lambda: run.observe("user", "hello", metadata={"a": text, "b": words, text[:200]: {"c": text}})


@door_named("observe: messages of an API")
def _record(text: str, stack: ExitStack) -> Work:
    _, run = new_store(stack)
    parts = [{"type": "text", "text": text}, {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": text}}]
    return lambda: run.record([{"role": "user", "content": text}, {"role": "assistant", "content": parts}])


@door_named("observe: cited answer")
def _observe_cited(text: str, stack: ExitStack) -> Work:
    run = _told("hello", stack)
    build = run.compose("responder", query=_QUESTIONS[0])
    return lambda: run.observe("assistant", text, build=build)


@door_named("observe: many short messages")
def _observe_many(text: str, stack: ExitStack) -> Work:
    _, run = new_store(stack)
    events = [{"role": "user", "content": text[at : at + 40]} for at in range(0, len(text), 40)]
    return lambda: run.observe_many(events)


# -- memory ---------------------------------------------------------------------------------------------


@door_named("extract")
def _extract(text: str, stack: ExitStack) -> Work:
    run = _told(text, stack)
    return lambda: (run.extract(), run.memory.unheard())


@door_named("search")
def _search(text: str, stack: ExitStack) -> Work:
    run = _told(text, stack)
    return lambda: [run.search(question) for question in _QUESTIONS]


@door_named("search by it")
def _search_by(text: str, stack: ExitStack) -> Work:
    run = _told("I like tea. " + text[:2000], stack)
    return lambda: run.search(text)


@door_named("compose")
def _compose(text: str, stack: ExitStack) -> Work:
    run = _told(text, stack)
    return lambda: [
        run.compose(purpose, query=query, max_tokens=TOKENS)
        for purpose, query in (("planner", _QUESTIONS[0]), ("responder", _QUESTIONS[1]))
    ]


@door_named("compose: whole, explained, asked why")
def _compose_whole(text: str, stack: ExitStack) -> Work:
    mem, run = new_store(stack)
    event = run.observe("user", text)

    def work() -> None:
        build = run.compose("planner", query=_QUESTIONS[0], cues={"events": [event.id]}, max_tokens=100_000)
        mem.replay(build.id)
        build.resolve(text)
        mem.why(text[:2_000], user_id="ana")

    return work


@door_named("compose by it")
def _compose_by(text: str, stack: ExitStack) -> Work:
    run = _told("I like tea.", stack)
    return lambda: run.compose("tool", query=text, max_tokens=TOKENS)


@door_named("builds: diff")
def _diff(text: str, stack: ExitStack) -> Work:
    mem, run = new_store(stack)
    run.observe("user", text)
    one = run.compose("planner", query=_QUESTIONS[0], max_tokens=100_000)
    run.observe("user", text[::-1])
    other = run.compose("planner", query=_QUESTIONS[0], max_tokens=100_000)
    return lambda: mem.diff(one.id, other.id)


@door_named("remember")
def _remember(text: str, stack: ExitStack) -> Work:
    _, run = new_store(stack)
    event = run.observe("user", text)

    def work() -> None:
        calls: tuple[Work, ...] = (
            lambda: run.remember("user.note", text, sources=[event.id]),
            lambda: run.propose("user.note", text, quote=text[10:-10], sources=[event.id]),
            lambda: run.insight("hypothesis", text, sources=[event.id]),
            lambda: run.procedure("task", {"steps": [*text.split("\n")]}),
            lambda: run.patch(goal=text, slots={"words": text.split()}),
            lambda: run.summarize(text, sources=[event.id]),
            lambda: run.facts(),
        )
        for call in calls:
            with suppress(MunimentError):
                call()

    return work


@door_named("episodes")
def _episodes(text: str, stack: ExitStack) -> Work:
    mem, run = new_store(stack)
    for role in ("user", "assistant", "user"):
        run.observe(role, text)
    return lambda: list(mem.ledger.episodes(user_id="ana"))


@door_named("summaries and snapshots")
def _compaction(text: str, stack: ExitStack) -> Work:
    mem, run = new_store(stack)
    event = run.observe("user", text)
    for role in ("user", "assistant"):
        run.observe(role, text)

    def work() -> None:
        log = run.log
        for call in (
            lambda: log.step("ACT_DONE", text, action={"a": text}),
            lambda: log.claim(text, evidence=[event.id]),
            lambda: log.claim(
                "It is so.", evidence=[{"evidence_id": event.id, "quote": text[5:-5]}], status="verified"
            ),
            lambda: log.conflict(text, side_a=[event.id], side_b=[event.id]),
            lambda: log.failure("tool", text, text),
            lambda: log.question(text),
            lambda: log.plan_next(text.split("\n")),
            lambda: log.compact(),
            lambda: log.read(),
            lambda: mem.log.narrative("r1"),
            lambda: mem.log.drift(user_id="ana"),
            lambda: mem.resume("r1"),
        ):
            with suppress(MunimentError):
                call()

    return work


@door_named("forget")
def _forget(text: str, stack: ExitStack) -> Work:
    mem, run = new_store(stack)
    event = run.observe("user", text)
    run.observe("user", text)
    run.remember("user.note", text[:500], sources=[event.id])
    return lambda: mem.forget(event=event.id)


@door_named("store: verify and rebuild")
def _verify_store(text: str, stack: ExitStack) -> Work:
    run = _told(text, stack)
    mem = Memory(run._ctx)
    return lambda: (mem.verify(), mem.store.rebuild())


# -- dumps ----------------------------------------------------------------------------------------------


def _dump(mem: Memory, stack: ExitStack) -> Path:
    path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "dump.jsonl"
    path.write_bytes(b"".join(mem.export()))
    return path


@door_named("export and import")
def _import(text: str, stack: ExitStack) -> Work:
    run = _told(text, stack)
    mem = Memory(run._ctx)
    other, _ = new_store(stack)
    return lambda: other.import_(_dump(mem, stack))


@door_named("import: a line of it")
def _import_raw(text: str, stack: ExitStack) -> Work:
    run = _told("hello", stack)
    path = _dump(Memory(run._ctx), stack)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], text.replace("\x00", " ") + "\n", *lines[1:]]), errors="replace")
    other, _ = new_store(stack)
    return lambda: other.import_(path)


# -- checking -------------------------------------------------------------------------------------------


@door_named("verify: against it")
def _verify_against(text: str, stack: ExitStack) -> Work:
    _, run = new_store(stack)
    return lambda: run.verify("Ana lives in Lisbon and is a nurse. She moved in 2020.", documents=[text])


@door_named("verify: it")
def _verify_it(text: str, stack: ExitStack) -> Work:
    _, run = new_store(stack)
    return lambda: run.verify(text, documents=["Ana has lived in Lisbon since 2020. She is a nurse."])


@door_named("verify: it against itself")
def _verify_both(text: str, stack: ExitStack) -> Work:
    _, run = new_store(stack)
    return lambda: run.verify(text, documents=[text, text[: len(text) // 2]])


@cache
def _constraints() -> list[tuple[str, list[Any]]]:
    from muniment.testing.constraint_examples import EXAMPLES

    return [(name, [{name: fields}] if fields else [name]) for name, (fields, _, _) in EXAMPLES.items()]


@door_named("verify: every constraint")
def _verify_constraints(text: str, stack: ExitStack) -> Work:
    from muniment.verify.verify import constraints_of, read_output, verify_output

    _, run = new_store(stack)
    sets = [constraints_of(lines) for name, lines in _constraints() if name != "rubric"]

    def work() -> None:
        for given in sets:
            with suppress(MunimentError):
                verify_output(read_output(text), constraints=given, documents=[], harness=None, policy=run._ctx.policy)

    return work


_PATTERNS = (
    r"(a+)+$", r"(\w+\s?)*x", r"^(?:.*,)*z$", r"\b\w+@\w+\.\w+\b", r"(?:a|b)*a(?:a|b){20}c", r"(\d+)[^\d]*(\d+)x", r"(?s).*.*.*=z",
    r"[^()]*\([^()]*\)q", r"(?:I live in )+x", r"(?:\s|\w)*$z",
)  # fmt: skip


@door_named("verify: patterns of the caller")
def _verify_patterns(text: str, stack: ExitStack) -> Work:
    _, run = new_store(stack)
    given = [{"regex_present": pattern} for pattern in _PATTERNS] + [{"regex_absent": pattern} for pattern in _PATTERNS]
    return lambda: run.verify(text, constraints=given)


@door_named("verify: it as a pattern")
def _verify_pattern(text: str, stack: ExitStack) -> Work:
    _, run = new_store(stack)
    return lambda: [
        run.verify("I live in Lisbon, aaaa.", constraints=[{kind: text[:size]}])
        for kind in ("regex_present", "contains")
        for size in (900, len(text))
    ]


@door_named("verify: it as constraints")
def _verify_yaml(text: str, stack: ExitStack) -> Work:
    _, run = new_store(stack)
    return lambda: run.verify("I live in Lisbon.", constraints=text)


@door_named("verify: JSON against a schema")
def _verify_json(text: str, stack: ExitStack) -> Work:
    _, run = new_store(stack)
    schema = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}, "b": {"pattern": "(a+)+$"}}}
    values = {"a": [*text.split(" "), *text.split(" ")[1:]], "b": text}
    output = json.dumps(values)
    return lambda: [run.verify(given, constraints=[{"json_schema": {"schema": schema}}]) for given in (output, text)]


# -- documents ------------------------------------------------------------------------------------------


def _add_as(media_type: str) -> Door:
    def door(text: str, stack: ExitStack) -> Work:
        mem, _ = new_store(stack)
        corpus = mem.corpus("notes")

        def work() -> None:
            corpus.add(text, media_type=media_type, document_id="d1")
            corpus.search(_QUESTIONS[0])

        return work

    return door


for _type in ("text/plain", "text/markdown", "text/html"):
    DOORS[f"corpus: {_type}"] = _add_as(_type)


@door_named("corpus: a new version")
def _corpus_again(text: str, stack: ExitStack) -> Work:
    mem, _ = new_store(stack)
    corpus = mem.corpus("notes")
    corpus.add(text, document_id="d1")
    return lambda: corpus.add(text[: len(text) // 2] + " x " + text[len(text) // 2 :], document_id="d1")


# -- research -------------------------------------------------------------------------------------------


def _study(mem: Memory, stack: ExitStack, stage: str, question: str | None = None) -> Any:
    from muniment.testing.stories import QUESTION, walk_to

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    study = mem.research(question or QUESTION, user_id="ana", run_id="dr_1", directory=folder / "dr_1")
    if stage:
        walk_to(study, stage)
    return study


@door_named("research: question")
def _question(text: str, stack: ExitStack) -> Work:
    mem, _ = new_store(stack)
    return lambda: _study(mem, stack, "", text).route()


@door_named("research: ingest")
def _ingest(text: str, stack: ExitStack) -> Work:
    from muniment.testing.stories import TOOL_USE, output_for

    mem, _ = new_store(stack)
    study = _study(mem, stack, "wave1")
    given = output_for("p1").replace("\n## Sources", f"\n{text}\n\n## Sources")
    return lambda: (study.ingest("p1", given, tool_use=TOOL_USE), study.claims())


@door_named("research: sources and citations")
def _sources(text: str, stack: ExitStack) -> Work:
    from muniment.testing.stories import PAGES, TOOL_USE, output_for

    mem, _ = new_store(stack)
    study = _study(mem, stack, "wave1")
    for perspective in study.perspectives():
        study.ingest(perspective.id, output_for(perspective.id), tool_use=TOOL_USE)
    study.pivot()

    def work() -> None:
        study.supply([{**page, "text": page["text"] + text} for page in PAGES])
        study.citations()
        study.pack()

    return work


@door_named("research: report")
def _report(text: str, stack: ExitStack) -> Work:
    from muniment.testing.stories import draft_for

    mem, _ = new_store(stack)
    study = _study(mem, stack, "synthesis")
    draft = draft_for(study.synthesis_input()).replace("## Limitations", f"{text}\n\n## Limitations")
    return lambda: study.check(draft)


@door_named("research: page from the web")
def _web(text: str, stack: ExitStack) -> Work:
    from muniment.research.url_check import read_text

    data = text.encode("utf-8", "replace")
    return lambda: [
        read_text(data, kind) for kind in ("text/html; charset=utf-8", "text/plain", "application/json", "text/html")
    ]
