"""`ingest`: load files of events, chat transcripts or traces into the ledger, fully checked before anything is
written.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from muniment.core.canonical import canonical_text, parse_json
from muniment.core.instants import format_instant
from muniment.core.outside.system import system_clock
from muniment.errors import InvalidInput, MunimentError, TooLarge
from muniment.surfaces.cli._command import Call, Command, OptionSpec
from muniment.surfaces.cli._reading import read_documents
from muniment.surfaces.cli.terminal import counted, progress_bar
from muniment.surfaces.settings import Settings, open_store

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.store.ledger import EntryDraft, LedgerEntry
    from muniment.store.load import LoadReport
    from muniment.traces.ingest import TraceReport

__all__ = ["ingest", "ingested"]

BATCH = 1000
_Address = tuple[str, str, str, str | None]
"""User, agent, session, and the run if an event names one."""
_SCOPE_KEYS = ("user_id", "agent_id", "session_id", "run_id")
_WHY: Mapping[str, str] = {
    "no_conversation": "are about something else than a conversation",
    "without_content": "report messages without their content: let the emitter capture content "
    "(OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT, for those that follow it)",
    "no_user": "do not say whose they are: give --user",
    "no_such_user": "name a user that can be none",
    "another_user": "are another user's",
    "no_trace": "belong to no trace and no conversation",
    "refused": "hold what the ledger does not take: too large, or no text",
    "reasoning": "are thoughts, not messages",
    "our_own": "are spans of our own",
}


def _ingest(
    call: Call,
    files: Annotated[tuple[str, ...], OptionSpec(metavar="FILE…")],
    *,
    tenant_id: str | None = None,  # noqa: ARG001  # read by the settings
    user_id: Annotated[str | None, OptionSpec("Whose memory this is, where an event does not say.")] = None,  # noqa: ARG001
    agent_id: Annotated[str | None, OptionSpec("Which agent it was, where an event does not say.")] = None,  # noqa: ARG001
    session_id: Annotated[
        str | None, OptionSpec("The session (default: the file's name; a number is added per transcript).")
    ] = None,
    again: Annotated[bool, OptionSpec("Write even what an earlier ingest of the same file wrote.")] = False,
    otel: Annotated[
        bool, OptionSpec("The files are traces of OpenTelemetry: OTLP, or what a console exporter printed.")
    ] = False,
    bulk: Annotated[
        bool, OptionSpec("Many events: large transactions, COPY on PostgreSQL, the index afterwards.")
    ] = False,
    index_later: Annotated[bool, OptionSpec("With --bulk: leave the index to `muniment store upkeep`.")] = False,
) -> _Tally | _TraceTally | _BulkTally:
    settings = call.settings
    opened = partial(open_store, settings)
    _check_choices(again=again, otel=otel, bulk=bulk, index_later=index_later)
    if bulk:
        named = partial(_drafts, settings=settings, session=session_id, again=False)
        return _ingest_bulk(files, settings, opened, named, is_indexed=not index_later, quiet=call.as_json)
    if otel:
        return _ingest_otel(files, settings, opened, session=session_id, again=again)
    with ingested(files, settings, opened, session=session_id, again=again, quiet=call.as_json) as (_, tally):
        return tally


def _check_choices(*, again: bool, otel: bool, bulk: bool, index_later: bool) -> None:
    """Refuse options that contradict each other."""
    if bulk and (again or otel):
        name = "again" if again else "otel"
        message = "a load goes on by the keys of its events" if again else "traces are small"
        raise InvalidInput(message, path=f"$.{name}", hint=f"leave out --{name} or --bulk")
    if index_later and not bulk:
        raise InvalidInput("the index is left for later by a load", path="$.index_later", hint="add --bulk")


def _ingest_bulk(
    files: Sequence[str],
    settings: Settings,
    open_memory: Callable[[], Memory],
    named: Callable[[list[tuple[str, str]]], Iterator[tuple[_Address, str, EntryDraft]]],
    *,
    is_indexed: bool,
    quiet: bool,
) -> _BulkTally:
    """Check everything and order it on disk before the store is opened."""
    from muniment.core.outside.spool import spool
    from muniment.core.policy import Policy
    from muniment.handles.openings import zone_given
    from muniment.store.load import LoadEvent, spool_events

    policy = Policy.from_wire(dict(settings.policy)).ledger
    with (
        tempfile.TemporaryDirectory(prefix="muniment-") as scratch,
        spool() as held,
        progress_bar("sorting", None, quiet=quiet) as advance,
    ):
        sources = [_on_disk(name, Path(scratch)) for name in files]
        events = (LoadEvent(*address, draft, where) for address, where, draft in named(sources))
        zone = None if settings.timezone == "none" else zone_given(settings.timezone)
        spool_events(events, policy, held, settings.tenant, lambda stage, count: advance(count, stage), zone)
        with open_memory() as mem:
            return _BulkTally(
                mem.store.load(
                    held,
                    index=is_indexed,
                    progress=lambda stage, count: advance(count, stage),
                    tenant_id=settings.tenant,
                )
            )


def _held(events: int, sessions: int, db: str) -> str:
    return f"{counted(events, 'event')} in {counted(sessions, 'session')} {'is' if events == 1 else 'are'} in {db}"


class _BulkTally:
    """A load's report in words."""

    def __init__(self, report: LoadReport) -> None:
        self._report = report

    def plain(self) -> dict[str, Any]:
        return self._report.to_wire()

    def lines(self, db: str) -> Iterator[str]:
        report = self._report
        yield _held(report.events, report.sessions, db)
        if report.already_present:
            yield f"{report.already_present} of them were there already; nothing was written twice"
        if report.forgotten:
            yield f"{report.forgotten} were forgotten since they were first written, and stay so"
        if report.waiting:
            yield f"{counted(report.waiting, 'event')} wait for the index: `muniment store upkeep`"


def _ingest_otel(
    files: Sequence[str], settings: Settings, open_memory: Callable[[], Memory], *, session: str | None, again: bool
) -> _TraceTally:
    if session is not None or again:
        name = "session_id" if session is not None else "again"
        message = "a trace names its own session" if session is not None else "a span is written once"
        raise InvalidInput(message, path=f"$.{name}", hint=f"leave out --{name.removesuffix('_id')}")
    with tempfile.TemporaryDirectory(prefix="muniment-") as scratch:
        held = _read_traces([_on_disk(name, Path(scratch)) for name in files])
    with open_memory() as mem:
        return _write_traces(mem, held, tenant=settings.tenant, user=settings.user)


@contextmanager
def ingested(
    files: Sequence[str],
    settings: Settings,
    open_memory: Callable[[], Memory],
    *,
    session: str | None = None,
    again: bool = False,
    quiet: bool = False,
) -> Iterator[tuple[Memory, _Tally]]:
    """Ingest the files into a store; it is opened once all of them are found valid."""
    with tempfile.TemporaryDirectory(prefix="muniment-") as scratch:
        sources = [_on_disk(name, Path(scratch)) for name in files]
        total = _check(sources, settings, session, again)
        with open_memory() as mem:
            tally = _Tally(format_instant(system_clock()))
            with progress_bar("ingesting", total, quiet=quiet) as advance:
                for run, drafts in _batches(mem, sources, settings, session, again):
                    tally.add(run, drafts, run.observe_many(drafts))
                    advance(len(drafts))
            yield mem, tally


class _Tally:
    """The counts of an ingest, and notable cases: events already present, events without words."""

    def __init__(self, started: str) -> None:
        self._started = started
        self._events = self._known = self._wordless = 0
        self._sessions: set[tuple[str, str]] = set()

    def add(self, run: Run, drafts: Sequence[EntryDraft], entries: Sequence[LedgerEntry]) -> None:
        self._events += len(entries)
        self._known += sum(entry.recorded_at < self._started for entry in entries)
        self._wordless += sum(not (draft.content or "").strip() and _has_parts(draft) for draft in drafts)
        self._sessions.add((run.scope.user_id, run.scope.session_id))

    def plain(self) -> dict[str, Any]:
        return {
            "events": self._events,
            "sessions": len(self._sessions),
            "already_present": self._known,
            "without_text": self._wordless,
        }

    def lines(self, db: str) -> Iterator[str]:
        yield _held(self._events, len(self._sessions), db)
        if self._known:
            yield f"{self._known} of them were there already; nothing was written twice"
        if self._wordless:
            yield f"{self._wordless} hold no text (an image, say): they are kept, but a search cannot find them"


def _has_parts(draft: EntryDraft) -> bool:
    return bool((draft.metadata or {}).get("parts"))


def _check(sources: list[tuple[str, str]], settings: Settings, session: str | None, again: bool) -> int:
    """Validate every event without writing any; returns how many there are."""
    from muniment.core.policy import Policy
    from muniment.store.admission import admit

    policy = Policy.from_wire(dict(settings.policy)).ledger
    count = 0
    for _, where, draft in _drafts(sources, settings, session, again):
        count += 1
        try:
            admit(draft, policy)
        except MunimentError as error:
            raise _located(error, where) from None
    return count


def _on_disk(name: str, scratch: Path) -> tuple[str, str]:
    """Return (name to show, path that can be read twice): standard input is copied first."""
    if name != "-":
        return name, name
    copy = scratch / "stdin"
    with copy.open("wb") as out:
        shutil.copyfileobj(sys.stdin.buffer, out)
    return "stdin", str(copy)


def _batches(
    mem: Memory, sources: list[tuple[str, str]], settings: Settings, session: str | None, again: bool
) -> Iterator[tuple[Run, list[EntryDraft]]]:
    """Yield drafts of one run at a time, in the order of the file."""
    runs: dict[_Address, Run] = {}
    current: _Address | None = None
    held: list[EntryDraft] = []
    for address, _, draft in _drafts(sources, settings, session, again):
        if held and (address != current or len(held) >= BATCH):
            assert current is not None
            yield runs[current], held
            held = []
        if address not in runs:
            user_id, agent_id, session_id, run_id = address
            runs[address] = mem.run(
                tenant_id=settings.tenant, user_id=user_id, agent_id=agent_id, session_id=session_id, run_id=run_id
            )
        current = address
        held.append(draft)
    if held and current is not None:
        yield runs[current], held


def _drafts(
    sources: list[tuple[str, str]], settings: Settings, session: str | None, again: bool
) -> Iterator[tuple[_Address, str, EntryDraft]]:
    """Yield every event of the files as (scope, place, draft)."""
    from muniment.store.ledger import draft_of
    from muniment.store.load import event_key

    for shown, path in sources:
        base = session or Path(shown).stem or "session"
        counts: dict[str, int] = {}
        for document in read_documents(path):
            where = f"{shown}:{document.line}"
            if document.error is not None:
                raise _located(document.error, where)
            is_transcript = not (isinstance(document.data, dict) and "role" in document.data)
            counts["transcripts"] = counts.get("transcripts", 0) + is_transcript
            number = counts["transcripts"]
            default = f"{base}-{number}" if is_transcript and number > 1 else base
            for event in _events(document.data, where):
                address = _address(event, settings, default, where)
                at = counts[address[2]] = counts.get(address[2], 0) + 1
                if not again and event.get("idempotency_key") is None:
                    event["idempotency_key"] = event_key(address, at, event)
                try:
                    yield address, where, draft_of(event)
                except MunimentError as error:
                    raise _located(error, where) from None


def _events(data: Any, where: str) -> Iterator[dict[str, Any]]:
    try:
        yield from _events_of(data, "$")
    except MunimentError as error:
        raise _located(error, where) from None


def _address(event: dict[str, Any], settings: Settings, default_session: str, where: str) -> _Address:
    """Remove an event's own scope from it, and fill in the rest."""
    named = {key: event.pop(key, None) for key in _SCOPE_KEYS}
    user_id = named["user_id"] or settings.user
    if not user_id:
        raise InvalidInput(
            f"{where}: whose memory is this?", path="$.user_id", hint="give --user, or user_id in the event"
        )
    for key, value in named.items():
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"{where}: {key} should be a string", path=f"$.{key}", hint="put the id in quotes")
    return user_id, named["agent_id"] or settings.agent, named["session_id"] or default_session, named["run_id"]


def _located(error: MunimentError, where: str) -> MunimentError:
    error.message = f"{where}: {error.message}"
    return error


# -- transcripts --------------------------------------------------------------------------------------


def _events_of(document: Any, path: str) -> Iterator[dict[str, Any]]:
    """Yield the events of one document, in order. `path` is its place, for errors."""
    if isinstance(document, list):
        yield from _messages(document, path, {})
    elif isinstance(document, dict) and isinstance(document.get("messages"), list):
        scope = {key: document[key] for key in _SCOPE_KEYS if key in document}
        yield from _messages(document["messages"], f"{path}.messages", scope)
    elif isinstance(document, dict) and "role" in document:
        yield from _messages([document], path, {}, single=True)
    else:
        raise InvalidInput(
            "neither an event nor a list of messages",
            path=path,
            hint='an event has "role" and "content"; a transcript is a list of those, or {"messages": […]}',
        )


def _messages(
    messages: list[Any], path: str, scope: dict[str, Any], *, single: bool = False
) -> Iterator[dict[str, Any]]:
    calls: dict[str, dict[str, Any]] = {}
    for index, message in enumerate(messages):
        where = path if single else f"{path}[{index}]"
        if not isinstance(message, dict):
            message_fault = f"a message should be an object, found {type(message).__name__}"
            raise InvalidInput(message_fault, path=where, hint='such as {"role": "user", "content": "…"}')
        if _is_openai(message):
            yield scope | _from_openai(message, calls, where)
        else:
            yield scope | message


def _is_openai(message: dict[str, Any]) -> bool:
    return (
        not isinstance(message.get("content"), str)
        or "tool_calls" in message
        or "tool_call_id" in message
        or (message.get("role") == "tool" and "tool" not in message)
        or (isinstance(message.get("name"), str) and "speaker" not in message)
    )


def _from_openai(message: dict[str, Any], calls: dict[str, dict[str, Any]], path: str) -> dict[str, Any]:
    known = {
        "role",
        "content",
        "name",
        "tool_calls",
        "tool_call_id",
        "refusal",
        "annotations",
        "audio",
        "function_call",
    }
    event = {key: value for key, value in message.items() if key not in known}
    content, others = _text_of(message.get("content"), f"{path}.content")
    event["role"] = message.get("role")
    if message.get("role") == "assistant" or message.get("content") is not None:
        event["content"] = content or message.get("refusal") or ""
    metadata = dict(event.get("metadata") or {})
    if others:
        metadata["parts"] = others
    made = message.get("tool_calls")
    if isinstance(made, list) and made:
        metadata["tool_calls"] = made
        for call in made:
            if isinstance(call, dict) and isinstance(call.get("id"), str):
                calls[call["id"]] = call
    if message.get("role") == "tool":
        event["tool"] = _tool_of(message, calls)
        if isinstance(message.get("tool_call_id"), str):
            metadata["tool_call_id"] = message["tool_call_id"]
    elif isinstance(message.get("name"), str):
        event["speaker"] = message["name"]
    if metadata:
        event["metadata"] = metadata
    return event


def _text_of(content: Any, path: str) -> tuple[str, list[Any]]:
    """The text of a message's content, and its parts that are not text."""
    if content is None:
        return "", []
    if isinstance(content, str):
        return content, []
    if not isinstance(content, list):
        fault = f"content should be text or a list of parts, found {type(content).__name__}"
        raise InvalidInput(fault, path=path, hint='a part is {"type": "text", "text": "…"}')
    texts: list[str] = []
    others: list[Any] = []
    for part in content:
        text = part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str):
            texts.append(text)
        else:
            others.append({"type": part.get("type")} if isinstance(part, dict) else {"type": type(part).__name__})
    return "\n".join(texts), others


def _tool_of(message: dict[str, Any], calls: dict[str, dict[str, Any]]) -> dict[str, Any]:
    call = calls.get(message.get("tool_call_id") or "", {})
    function = call.get("function") if isinstance(call.get("function"), dict) else {}
    assert isinstance(function, dict)
    name = message.get("name") or function.get("name") or "tool"
    tool: dict[str, Any] = {"name": name, "ok": True}
    arguments = function.get("arguments")
    if isinstance(arguments, str) and arguments:
        try:
            parsed = parse_json(arguments)
        except MunimentError:
            parsed = {"arguments": arguments}
        tool["args"] = parsed if isinstance(parsed, dict) else {"arguments": canonical_text(parsed)}
    return tool


# -- traces -------------------------------------------------------------------------------------------


class _TraceTally:
    """The combined results of all files."""

    def __init__(self, reports: Sequence[TraceReport]) -> None:
        self._reports = reports

    def plain(self) -> dict[str, Any]:
        names = ("spans", "logs", "messages", "results", "prompts", "known", "rejected_spans", "rejected_logs")
        sessions: Counter[tuple[str, str, str]] = Counter()
        left_out: Counter[str] = Counter()
        for report in self._reports:
            left_out.update(report.left_out)
            for each in report.sessions:
                sessions[each.user_id, each.agent_id, each.session_id] += each.written
        return {
            **{name: sum(getattr(report, name) for report in self._reports) for name in names},
            "left_out": dict(sorted(left_out.items())),
            "sessions": [
                {"user_id": user, "agent_id": agent, "session_id": session, "written": written}
                for (user, agent, session), written in sorted(sessions.items())
            ],
        }

    def lines(self, db: str) -> Iterator[str]:
        counts = self.plain()
        written = f"{counted(counts['messages'], 'message')} and {counted(counts['results'], 'tool result')}"
        read = f"{counted(counts['spans'], 'span')} and {counted(counts['logs'], 'log record')}"
        yield f"{written} of {read} were written to {db}"
        if counts["known"]:
            yield f"{counts['known']} were there already or are in several spans; nothing was written twice"
        for each in counts["sessions"]:
            yield f"  {each['user_id']}: session {each['session_id']} of {each['agent_id']}, {each['written']} new"
        for why, count in counts["left_out"].items():
            yield f"left out: {count} {_WHY[why]}"


def _read_traces(sources: Sequence[tuple[str, str]]) -> list[bytes]:
    """Read the files, raising for the first invalid one."""
    from muniment.traces.otlp import BYTES_MAX, read_export

    found = []
    for shown, path in sources:
        try:
            with Path(path).open("rb") as file:
                data = file.read(BYTES_MAX + 1)
        except OSError as error:
            raise InvalidInput(f"{shown}: {error.strerror or error}", path="$.files") from None
        if len(data) > BYTES_MAX:
            raise TooLarge(f"{shown}: more than {BYTES_MAX} bytes", hint="split the file")
        try:
            read_export(data)
        except MunimentError as error:
            error.message = f"{shown}: {error.message}"
            raise
        found.append(data)
    return found


def _write_traces(mem: Memory, files: Sequence[bytes], *, tenant: str, user: str | None) -> _TraceTally:
    """Write the new entries, file by file."""
    reports = [mem.ledger.ingest_otel(data, default_user_id=user or None, tenant_id=tenant) for data in files]
    nobodys = sum(report.left_out.get("no_user", 0) for report in reports)
    if nobodys and not any(report.sessions or report.known for report in reports):
        raise InvalidInput(
            f"whose memory is this? {nobodys} spans or logs do not say",
            path="$.user_id",
            hint="give --user, or let the agent's spans carry `user.id`",
        )
    return _TraceTally(reports)


ingest = Command(
    "run.observe_many",
    lambda call: call.answer.lines(call.settings.shown_db),
    function=_ingest,
    on="settings",
    document=lambda call: call.answer.plain() | {"db": call.settings.shown_db},
    about='FILE is JSON lines of events ({"role", "content", …}, the arguments of `observe`, and optionally '
    'user_id, agent_id, session_id), or OpenAI-style messages: a list, {"messages": […]}, or JSON lines of those. '
    "`-` is standard input. Everything is checked before anything is written. Running it again writes nothing twice. "
    "With --otel, FILE is what a traced agent exported: OTLP as JSON or protobuf, JSON lines of the collector's file "
    "exporter, or what a console exporter printed. The conversation that a span names is the session. "
    "With --bulk events are put in order on disk first and written many at a time; broken off, it is run again.",
)
