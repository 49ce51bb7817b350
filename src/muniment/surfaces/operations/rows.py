"""Every operation, and why the library's other methods are not operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from muniment.surfaces.operations import parts
from muniment.surfaces.operations.table import SUBHANDLES, Access, Level, Operation, row

__all__ = ["LOCAL", "OPERATIONS", "REFUSED", "find_operation", "operation_named"]

_TEXT = "text/plain"
_MARKDOWN = "text/markdown"
_LINES = "application/x-ndjson"
_PATHS = "the server's files are not the caller's: send the text"
_CODE = "a function of the caller's does not cross the wire"
_WRITER = "a model is the server's to name: its setting lessons"
_BUILD = {"build_id": "build"}
_RUN = {"run_id": "run"}
_PROGRESS = {"progress": "progress is told by the operation: Prefer: respond-async"}
_HANDLE = "a handle, made without asking; its methods are operations"

_AT_HOME = "call it where the store is opened"


def _local(place: str, *calls: str) -> dict[str, str]:
    """Methods that serve no purpose for a remote caller (decision 0060)."""
    return dict.fromkeys((f"{place}.{call}" for call in calls), _AT_HOME)


LOCAL: Mapping[str, str] = {
    **dict.fromkeys(SUBHANDLES, _HANDLE),
    **_local("memory.log", "drift"),
    **_local("memory.learning", "route", "observe_rates", "bank_of"),
    **_local("memory.store", "scrub", "index", "reembed"),
    **_local("run.memory", "retire_procedure", "use_procedures", "judge_insight", "promote_insight", "unheard"),
    **_local("run.learning", "note", "push_working_set", "pop_working_set", "working_set", "fold", "learned"),
    **_local("run.log", "failures", "questions", "budgets"),
    **_local(
        "bank",
        "reasoning_bank",
        "reuse_buffer",
        "event_logs",
        "lesson_reports",
        "drafts",
        "plans",
        "get_plan",
        "select_seed",
        "plan",
        "apply",
        "tidy",
    ),
    **_local("rulebook", "lint", "make_tests", "add_tests", "gate", "publish"),
    "memory.close": "closes the caller's side; a server is closed by whoever runs it",
    "memory.corpus": _HANDLE,
    "memory.bank": _HANDLE,
    "memory.store.extracted": "of the process that opened the store; a server answers POST extract with a report",
    "memory.store.evaluate": "asks a model of the caller's and takes as long as that does: where the store is",
    "memory.store.import_from": "reads files of the caller's: a portable file can be sent",
    "memory.store.load": "puts the caller's events in order on the caller's disk: send them to a run in batches",
    "memory.runner": "runs the caller's own agent and verifier, with the operations of a run",
    "run.scope": "part of every run that is answered",
    "run.run_id": "part of every run that is answered",
    "corpus.corpus_id": "part of the path",
    "corpus.add_file": "reads a file of the caller's and adds its text",
    "study.run_id": "part of every study that is answered",
    "study.run": "part of every study that is answered",
    "study.directory": "part of every study that is answered",
    "study.collect": "calls the caller's own agent, with study.prompt and study.ingest",
    "study.look": "a server does not go to addresses it is told: look at home, and supply what was read",
    "bank.name": "part of every bank that is answered",
    "memory.rulebook": _HANDLE,
    "memory.store.values": _HANDLE,
    "memory.store.threads": _HANDLE,
    "rulebook.name": "part of the path",
    "rulebook.level": "part of the path",
    "rulebook.replay": "runs the caller's own agent and verifier on the tasks of the store: where the store is",
    "rulebook.advance": "runs the caller's own agent and verifier on the tasks of the store: where the store is",
    "works.start": "an operation that takes long starts one: Prefer: respond-async",
    "works.watch": "within a process; outside of it, the events are streamed",
    "works.take_up": "a server's processes look after one another",
    "works.is_own": "within a process; outside of it, no work is anybody's own",
    "works.close": "a server is closed by whoever runs it",
}
"""Public methods and properties without a route, and why."""

_CALLERS_SIDE = ("memory.store.evaluate", "memory.store.import_from", "memory.store.load", "rulebook.replay",
                 "rulebook.advance", "study.look")  # fmt: skip
REFUSED = frozenset((*(name for name, why in LOCAL.items() if why is _AT_HOME), *_CALLERS_SIDE))
"""Those that a connection refuses."""

_MEMORY = (
    row("memory", "info", "GET info", "read", "store"),
    row("memory", "policy", "GET policy", "read", "store"),
    row("memory.store", "tenants", "GET tenants", "admin", "store", is_listed=True),
    row("memory.store", "users", "GET users", "read", "tenant", is_listed=True),
    row("memory.store", "overview", "GET overview", "read", "tenant"),
    row("memory.store", "attention", "GET attention", "read", "tenant", "user", is_listed=True),
    row("memory", "verify", "POST verify", "read", "store", "tenant", is_long=True),
    row("memory", "run", "POST runs", "write", "user", status=201, function=parts.start_run),
    row("memory", "runs", "GET runs", "read", "tenant", "user", is_listed=True),
    row("memory", "extract_pending", "POST extract", "admin", "tenant", "user", is_long=True,
        left_out={"model": "a model is the server's to name: its setting extract_model", **_PROGRESS}),
    row("memory.log", "run_state", "GET runs/{run_id}", "read", "tenant", "user", owned=_RUN),
    row("memory.log", "turns", "GET turns", "read", "tenant", "user", is_listed=True),
    row("memory", "resume", "POST runs/{run_id}/resume", "write", "tenant", "user", owned=_RUN),
    row("memory.log", "snapshot", "GET runs/{run_id}/snapshot", "read", "tenant", "user", owned=_RUN),
    row("memory.log", "snapshots", "GET runs/{run_id}/snapshots", "read", "tenant", "user", owned=_RUN, is_listed=True),
    row("memory.log", "check_snapshot", "GET runs/{run_id}/snapshot/check", "read", "tenant", "user", owned=_RUN),
    row("memory.log", "narrative", "GET runs/{run_id}/narrative", "read", "tenant", "user", owned=_RUN,
        media=_MARKDOWN),
    row("memory.log", "bill", "GET runs/{run_id}/bill", "read", "tenant", "user", owned=_RUN),
    row("memory.log", "in_view", "GET builds/{build_id}/in-view", "read", "tenant", "user", owned=_BUILD),
    row("memory.learning", "learn", "POST runs/{run_id}/learn", "admin", "tenant", left_out={"lessons": _WRITER}),
    row("memory.ledger", "get", "GET events/{event_id}", "read", "tenant"),
    row("memory.ledger", "content", "GET events/{event_id}/content", "read", "tenant", media=_TEXT),
    row("memory.ledger", "resolve", "POST resolve", "read", "tenant"),
    row("memory.ledger", "entries", "GET events", "read", "user", is_listed=True),
    row("memory.ledger", "ingest_otel", "POST traces", "write", "tenant", "user"),
    row("memory.ledger", "changes", "GET changes", "read", "user", is_watched=True),
    row("memory.ledger", "episodes", "GET episodes", "read", "user", is_listed=True),
    row("memory", "profile", "GET profile", "read", "user"),
    row("memory", "lessons", "GET lessons", "read", "tenant", "user", is_listed=True),
    row("memory", "undo", "POST plans/{plan_id}/undo", "admin", "tenant", is_listed=True),
    row("memory", "forget", "POST forget", "admin", "tenant",
        left_out={"tenant": "DELETE of the tenant's own address forgets all of it"}),
    row("memory", "forget", "POST forget", "write", "user",
        left_out={"tenant": "a user's address reaches no further than the user"}),
    row("memory", "forget_tenant", "DELETE ", "admin", "tenant", function=parts.forget_tenant),
    row("memory.store", "upkeep", "POST upkeep", "admin", "store", "tenant", is_long=True, left_out=_PROGRESS),
    row("memory.store", "rebuild", "POST rebuild", "admin", "tenant", is_long=True),
    row("memory", "export", "GET export", "admin", "tenant", media=_LINES),
    row("memory", "export", "GET export", "read", "user", media=_LINES),
    row("memory", "import_", "POST import", "admin", "tenant", is_long=True, body="source", takes="lines",
        left_out=_PROGRESS, function=parts.import_lines),
    row("memory.store", "export_memory", "GET portable", "read", "user", media=_LINES),
    row("memory.store", "import_memory", "POST portable", "write", "user", is_long=True, body="source", takes="lines",
        left_out={"dry_run": _AT_HOME, "agent_id": "the file names its agents", **_PROGRESS}),
    row("memory", "builds", "GET builds", "read", "tenant", "user", function=parts.builds, is_listed=True),
    row("memory", "replay", "GET builds/{build_id}", "read", "tenant", "user", owned=_BUILD),
    row("memory", "build_packet", "GET builds/{build_id}/packet", "read", "tenant", "user", owned=_BUILD,
        function=parts.build_packet),
    row("memory", "build_inputs", "GET builds/{build_id}/inputs", "read", "tenant", "user", owned=_BUILD,
        function=parts.build_inputs),
    row("memory", "resolve_answer", "POST builds/{build_id}/resolve", "read", "tenant", "user", owned=_BUILD,
        function=parts.resolve_answer),
    row("memory.ledger", "answers", "GET builds/{build_id}/answers", "read", "tenant", "user", owned=_BUILD,
        is_listed=True),
    row("memory", "diff", "GET builds/{a}/diff/{b}", "read", "tenant", "user", owned={"a": "build", "b": "build"}),
    row("memory", "compare", "POST builds/{build_id}/compare", "read", "tenant", "user", owned=_BUILD),
    row("memory.log", "preview", "POST builds/{build_id}/preview", "read", "tenant", "user", owned=_BUILD),
    row("memory", "why", "POST why", "read", "tenant", "user", is_listed=True),
    row("memory.store", "add_documents", "POST documents", "write", "tenant", "user", status=201, is_listed=True,
        body="documents"),
    row("memory", "research", "POST research", "write", "user", status=201, left_out={"directory": _PATHS},
        makes_folder=True),
    row("memory", "open_research", "GET research/{run_id}", "read", "user", owned=_RUN, left_out={"directory": _PATHS}),
)  # fmt: skip

_RUNS = (
    row("run", "observe", "POST events", "write", status=201, repeats="ledger"),
    row("run", "observe_tool", "POST tool-results", "write", status=201, repeats="ledger"),
    row("run", "observe_many", "POST events/batch", "write", status=201, repeats="ledger", is_listed=True,
        body="events"),
    row("run", "record", "POST messages", "write", status=201, repeats="guarded", is_listed=True),
    row("run.ledger", "entries", "GET events", "read", is_listed=True),
    row("run.ledger", "get", "GET events/{event_id}", "read", without_run="events/{event_id}"),
    row("run.ledger", "content", "GET events/{event_id}/content", "read", media=_TEXT,
        without_run="events/{event_id}/content"),
    row("run.ledger", "resolve", "POST resolve", "read", without_run="resolve"),
    row("run", "state", "GET status", "read"),
    row("run", "finish", "POST finish", "write", repeats="guarded", left_out={"lessons": _WRITER}),
    row("run", "working_state", "GET state", "read", versioned="state"),
    row("run", "patch", "PATCH state", "write", versioned="state", repeats="guarded"),
    row("run", "remember", "POST facts", "write", status=201, repeats="guarded"),
    row("run", "facts", "GET facts", "read", is_listed=True, without_run="facts"),
    row("run.memory", "fact_history", "GET fact-history", "read", is_listed=True, without_run="fact-history"),
    row("run", "fact", "GET facts/{fact_id}", "read", function=parts.fact, versioned="fact_id",
        without_run="facts/{fact_id}"),
    row("run.memory", "dispute", "POST facts/{fact_id}/dispute", "write", versioned="fact_id", repeats="guarded"),
    row("run.memory", "retract", "POST facts/{fact_id}/retract", "write", versioned="fact_id", repeats="guarded"),
    row("run", "profile", "GET profile", "read"),
    row("run", "hints", "POST hints", "write", repeats="guarded"),
    row("run", "procedure", "POST procedures", "write", status=201, repeats="guarded"),
    row("run", "insight", "POST insights", "write", status=201, repeats="guarded"),
    row("run", "propose", "POST candidates", "write", status=201, repeats="guarded"),
    row("run.memory", "candidates", "GET candidates", "read", is_listed=True, without_run="candidates"),
    row("run.memory", "decide", "POST candidates/{candidate_id}/decide", "write", repeats="guarded"),
    row("run", "summarize", "POST summaries", "write", status=201, repeats="guarded"),
    row("run", "extract", "POST extract", "write", is_listed=True, left_out={"model": _CODE}),
    row("run", "search", "POST search", "read", is_listed=True, without_run="search"),
    row("run", "compose", "POST compose", "write", repeats="ledger", without_run="compose"),
    row("run.learning", "recall", "POST recall", "write", repeats="guarded"),
    row("run.learning", "used", "POST recalls/used", "write", repeats="guarded"),
    row("run.learning", "select_rules", "POST rules/select", "write", repeats="guarded"),
    row("run.learning", "learn", "POST learn", "write", left_out={"lessons": _WRITER}),
    row("run.learning", "lessons", "GET lessons", "read"),
    row("run.log", "step", "POST steps", "write", status=201, repeats="guarded"),
    row("run.log", "claim", "POST claims", "write", status=201, repeats="guarded"),
    row("run.log", "claims", "GET claims", "read", is_listed=True),
    row("run.log", "verify_claim", "POST claims/{claim_id}/verify", "write", repeats="guarded"),
    row("run.log", "retract_claim", "POST claims/{claim_id}/retract", "write", repeats="guarded"),
    row("run.log", "conflict", "POST conflicts", "write", status=201, repeats="guarded"),
    row("run.log", "conflicts", "GET conflicts", "read", is_listed=True),
    row("run.log", "settle_conflict", "POST conflicts/{conflict_id}/settle", "write", repeats="guarded"),
    row("run.log", "failure", "POST failures", "write", status=201, repeats="guarded"),
    row("run.log", "question", "POST questions", "write", status=201, repeats="guarded"),
    row("run.log", "close_question", "POST questions/close", "write", repeats="guarded"),
    row("run.log", "plan_next", "POST next-actions", "write", repeats="guarded"),
    row("run", "verify", "POST verifications", "write", status=201, repeats="guarded",
        left_out={"harness": _CODE, "files": "belongs to a harness", "grader": "a model is the server's to name"}),
    row("run", "verifications", "GET verifications", "read", is_listed=True),
    row("run.log", "read", "GET log", "read", wire_name="log"),
    row("run.log", "compact", "POST snapshots", "write", status=201, repeats="guarded"),
    row("run.log", "unlock", "POST unlock", "write", repeats="guarded"),
)  # fmt: skip

_CORPORA = (
    row("corpus", "add", "POST documents", "write", "tenant", "user", status=201),
    row("corpus", "documents", "GET documents", "read", "tenant", "user", is_listed=True),
    row("corpus", "get", "GET documents/{document_id}", "read", "tenant", "user"),
    row("corpus", "chunk", "GET chunks/{chunk_id}", "read", "tenant", "user"),
    row("corpus", "search", "POST search", "read", "tenant", "user", is_listed=True),
    row("corpus", "retract", "POST documents/{document_id}/retract", "write", "tenant", "user"),
    row("corpus", "forget", "POST forget", "write", "tenant", "user"),
)

_STUDIES = (
    row("study", "manifest", "GET manifest", "read"),
    row("study", "perspectives", "GET perspectives", "read", is_listed=True),
    row("study", "prompt", "GET prompts/{perspective_id}", "read", media=_TEXT),
    row("study", "status", "GET status", "read"),
    row("study", "gates", "GET gates", "read"),
    row("study", "claims", "GET claims", "read", is_listed=True),
    row("study", "sources", "GET sources", "read", is_listed=True),
    row("study", "route", "POST route", "write", left_out={"propose": _CODE}, is_listed=True),
    row("study", "ingest", "POST outputs", "write"),
    row("study", "give_up", "POST give-up", "write"),
    row("study", "pivot", "POST pivot", "write"),
    row("study", "supply", "POST sources", "write", is_listed=True),
    row("study", "citations", "POST citations", "write", is_listed=True),
    row("study", "pack", "POST pack", "write", is_long=True),
    row("study", "synthesis_input", "GET synthesis-input", "read"),
    row("study", "check", "POST check", "write", is_long=True),
    row("study", "resume", "POST resume", "write", is_listed=True),
    row("study", "finish", "POST finish", "write"),
)


def _bank_changes(access: Access, *levels: Level) -> tuple[Operation, ...]:
    """The operations that change a bank: a user may change their own; higher levels need an administrator."""
    return (
        row("bank", "add_lesson", "POST lessons", access, *levels, status=201),
        row("bank", "sign_lesson", "POST lessons/{lesson_id}/sign", access, *levels),
        row("bank", "drop_lesson", "POST lessons/{lesson_id}/drop", access, *levels),
        row("bank", "undo", "POST plans/{plan_id}/undo", access, *levels, versioned="plan_id", is_listed=True),
    )


_BANKS = (
    row("bank", "records", "GET records", "read", "tenant", "agent", "user", is_listed=True),
    row("bank", "get", "GET records/{memory_id}", "read", "tenant", "agent", "user"),
    row("bank", "lessons", "GET lessons", "read", "tenant", "agent", "user", is_listed=True),
    row("bank", "lesson", "GET lessons/{lesson_id}", "read", "tenant", "agent", "user"),
    row("bank", "flow_map", "GET flow-map", "read", "tenant", "agent", "user"),
    *_bank_changes("admin", "tenant", "agent"),
    *_bank_changes("write", "user"),
)

_ALL: tuple[Level, ...] = ("tenant", "agent", "user")
_RULE = "rules/{rule_id}"
_TRIED = {"executor": _CODE, "verifier": _CODE}


def _rule_changes(access: Access, *levels: Level) -> tuple[Operation, ...]:
    """The operations that change a rulebook, likewise."""
    return (
        row("rulebook", "submit", "POST drafts", access, *levels, status=201),
        row("rulebook", "add", "POST rules", access, *levels, status=201),
        row("rulebook", "canary", f"POST {_RULE}/canary", access, *levels),
        row("rulebook", "watch", "POST watch", access, *levels),
        row("rulebook", "promote", f"POST {_RULE}/promote", access, *levels),
        row("rulebook", "retire", f"POST {_RULE}/retire", access, *levels),
        row("rulebook", "rollback", "POST rollback", access, *levels),
    )


_RULEBOOKS = (
    row("rulebook", "revision", "GET revision", "read", *_ALL),
    row("rulebook", "revisions", "GET revisions", "read", *_ALL, is_listed=True),
    row("rulebook", "rules", "GET rules", "read", *_ALL, is_listed=True),
    row("rulebook", "get", f"GET {_RULE}", "read", *_ALL),
    row("rulebook", "history", f"GET {_RULE}/history", "read", *_ALL, is_listed=True),
    row("rulebook", "tests", f"GET {_RULE}/tests", "read", *_ALL, is_listed=True),
    row("rulebook", "reports", f"GET {_RULE}/reports", "read", *_ALL, is_listed=True),
    row("rulebook", "stats", f"GET {_RULE}/stats", "read", *_ALL),
    row("rulebook", "select", "POST select", "read", *_ALL),
    *_rule_changes("admin", "tenant", "agent"),
    *_rule_changes("write", "user"),
)

_VALUES = (
    row("values", "put", "POST put", "write", "tenant", "user"),
    row("values", "get", "POST get", "read", "tenant", "user"),
    row("values", "search", "POST search", "read", "tenant", "user"),
    row("values", "fill", "POST fill", "write", "tenant", "user"),
    row("values", "namespaces", "POST namespaces", "read", "tenant", "user"),
    row("values", "history", "POST history", "read", "tenant", "user"),
    row("values", "prolong", "POST prolong", "write", "tenant", "user"),
    row("values", "sweep", "POST sweep", "write", "tenant", "user"),
    row("values", "forget", "POST forget", "write", "tenant", "user"),
)

_THREADS = (
    row("threads", "put", "POST checkpoints", "write", "tenant", "user", status=204),
    row("threads", "put_writes", "POST writes", "write", "tenant", "user", status=204),
    row("threads", "get", "POST get", "read", "tenant", "user"),
    row("threads", "checkpoints", "POST list", "read", "tenant", "user"),
    row("threads", "thread_ids", "GET ids", "read", "tenant", "user"),
    row("threads", "copy", "POST copy", "write", "tenant", "user", status=204),
    row("threads", "forget", "POST forget", "write", "tenant", "user"),
)

_WORKS = (
    row("works", "list", "GET ", "read", "store", "tenant", "user", is_listed=True),
    row("works", "get", "GET {operation_id}", "read", "store", "tenant", "user"),
    row("works", "events", "GET {operation_id}/events", "read", "store", "tenant", "user", media="text/event-stream"),
)

OPERATIONS: tuple[Operation, ...] = (
    *_MEMORY,
    *_RUNS,
    *_CORPORA,
    *_STUDIES,
    *_BANKS,
    *_RULEBOOKS,
    *_VALUES,
    *_THREADS,
    *_WORKS,
)


@cache
def find_operation(handle: str, name: str, level: str) -> Operation | None:
    """The row of an operation at a level."""
    named = (each for each in OPERATIONS if each.id == f"{handle}.{name}")
    return next((each for each in named if level in each.levels), None)


@cache
def operation_named(name: str) -> Operation:
    """The first row of an operation; for a method without one, a row without an address."""
    found = next((each for each in OPERATIONS if each.id == name), None)
    if found is not None:
        return found
    handle, _, call = name.partition(".")
    places = (handle, *(each for each in SUBHANDLES if each.startswith(f"{handle}.")))
    place = next(each for each in places if f"{each}.{call}" in LOCAL)
    return replace(row(place, call, "GET ", "read"), levels=())
