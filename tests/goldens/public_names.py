"""The names that people use: signatures of the library, attributes of what it answers, commands, errors."""

from __future__ import annotations

import inspect
import re
import runpy
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any
from unittest.mock import patch

import muniment
import muniment.aio
import muniment.errors
import muniment.integrations.langgraph
from muniment.core.record import Record
from muniment.errors import MunimentError

PROMISED = " is promised, and not there"

CALLABLES = {
    "muniment": "open wrap aio.open integrations.langgraph.MunimentStore integrations.langgraph.MunimentSaver",
    "mem": "run replay diff forget verify close bank rulebook extract_pending export import_ profile lessons undo",
    "run": "observe observe_tool observe_many record patch remember procedure insight propose search compose summarize "
    "verify extract finish profile hints",
    "bank": "add_lesson",
    "book": "advance",
    "build": "to_openai to_anthropic",
}
PARAMETERS = {
    "muniment.open": "clock ids embedder tokens policy lessons extract timezone",
    "muniment.wrap": "user_id on_error extract",
    "run.observe": "speaker ts id tags entities metadata idempotency_key build",
    "run.compose": "query cues max_tokens per_section policy now exclude_session exclude",
    "run.search": "k min_score",
    "run.verify": "grader",
}
"""Parameters that were given out by name."""
ATTRIBUTES = {
    "event": "id",
    "hit": "id kind text score ts sources why",
    "build": "id packet packet_bytes text tokens found",
    "receipt": "status",
}
"""Attributes that were given out by name; the golden has all the others too."""
COMMANDS = """
demo validate schema-list schema-show schema-export ingest search compose replay diff explain forget verify export
import serve mcp why doctor proxy install uninstall eval check check-init profile store-upgrade bill
"""


def signatures() -> list[str]:
    """Parameters with their kinds and defaults, of the library and its async face; no annotations."""
    with muniment.open(":memory:") as mem:
        run = mem.run(user_id="ana")
        event = run.observe("user", "I moved to Berlin in May.")
        fact = run.remember("user.city", "Berlin", sources=[event.id])
        build = run.compose("responder", query="Where does she live?")
        objects = {
            "muniment": muniment, "mem": mem, "run": run, "bank": mem.bank(user_id="ana"),
            "book": mem.rulebook(user_id="ana"), "build": build, "event": event, "fact": fact,
            "hit": run.search("where does she live")[0], "receipt": mem.forget(event=event.id),
        }  # fmt: skip
        found: dict[str, str] = {}
        for owner, names in CALLABLES.items():
            for name in names.split():
                found[f"{owner}.{name}"] = _signature(objects[owner], name)
        for called, names in PARAMETERS.items():
            taken = found[called]
            found |= {f"{called}({each}=)": PROMISED for each in names.split() if not re.search(rf"\b{each}\b", taken)}
        for owner in ("event", "fact", "hit", "build", "receipt"):
            held = _attributes(objects[owner])
            lacking = [each for each in ATTRIBUTES.get(owner, "").split() if each not in held]
            found[f"{owner}: "] = " ".join(held)
            found |= {f"{owner}.{each}": PROMISED for each in lacking}
    return [f"{name}{taken}" for name, taken in (found | _promises()).items()]


def _signature(owner: Any, path: str) -> str:
    for name in path.split("."):
        if not hasattr(owner, name):
            return PROMISED
        owner = getattr(owner, name)
    taken = inspect.signature(owner)
    plain = [each.replace(annotation=each.empty, default=_plain(each.default)) for each in taken.parameters.values()]
    return str(taken.replace(parameters=plain, return_annotation=taken.empty))


def _plain(default: Any) -> Any:
    """A default whose text is the same in every process: a function is shown by its name."""
    return _Named(default.__name__) if inspect.isfunction(default) else default


class _Named(str):
    __repr__ = str.__str__


def _attributes(held: Any) -> list[str]:
    own = set(dir(held)) - set(dir(Record))
    return sorted(each for each in own if not each.startswith("_"))


class TwoSided:
    """An embedder that tells queries from passages, and has no `embed`."""

    identity, dim = "two-sided-1", 2

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]

    embed_passages = embed_queries


def _promises() -> dict[str, str]:
    """Behaviour that was promised under names that are there already."""
    found: dict[str, str] = {}
    for name, embedder in (('"e5-small"', "e5-small"), ("embed_queries, embed_passages", TwoSided())):
        try:
            muniment.open(":memory:", embedder=embedder).close()  # type: ignore[arg-type]
        except MunimentError as error:
            if error.code != "missing_dependency":
                found[f"muniment.open(embedder={name})"] = PROMISED
    with muniment.open(":memory:") as mem:
        event = mem.run(user_id="ana").observe("user", "Good morning.", ts="2025-05-04T09:30:00+02:00")
        if event.local_ts != "2025-05-04T09:30:00.000000+02:00":
            found["run.observe keeps the offset of ts"] = PROMISED
    return found


def async_signatures() -> list[str]:
    """The same of the async face, for the methods of a memory and a run."""
    owners = {"mem": muniment.aio.AsyncMemory, "run": muniment.aio.AsyncRun}
    return [
        f"{owner}.{name}{_signature(cls, name).replace('(self, ', '(').replace('(self)', '()')}"
        for owner, cls in owners.items()
        for name in CALLABLES[owner].split()
    ]


def commands() -> list[str]:
    """The arguments and options of each command, as `--help` shows them."""
    return [f"muniment {each.replace('-', ' ')}{_options(each.split('-'))}" for each in COMMANDS.split()]


def _options(words: list[str]) -> str:
    status, shown = call(*words, "--help")
    usage = re.search(r"^Usage: muniment (.*)$", shown, re.MULTILINE)
    if status or usage is None:
        return PROMISED
    given = usage[1].removeprefix(" ".join(words)).replace("[OPTIONS]", "").split()
    if words == ["store", "upgrade"] and given != ["OLD", "NEW"]:
        return f" OLD NEW{PROMISED}"
    options = re.findall(r"^  (?:-\w, )?(--[\w-]+)", shown, re.MULTILINE)
    return "".join(f" {each}" for each in (*given, *sorted(options)))


def call(*words: str) -> tuple[int, str]:
    """Run a command of `muniment` in this process; its exit status, and what it printed."""
    shown = StringIO()
    with patch.object(sys, "argv", ["muniment", *words]), redirect_stdout(shown), redirect_stderr(StringIO()):
        try:
            runpy.run_module("muniment", run_name="__main__")
        except SystemExit as ended:
            return int(ended.code or 0), shown.getvalue()
    return 0, shown.getvalue()


def error_codes() -> list[str]:
    """Each class of the error tree with the one that it is caught by, its code, and its HTTP status."""
    named = (getattr(muniment.errors, name) for name in sorted(muniment.errors.__all__))
    classes = [each for each in named if isinstance(each, type) and issubclass(each, MunimentError)]
    return [f"{each.__name__}({each.__mro__[1].__name__}) {each.code} {each.status}" for each in classes]
