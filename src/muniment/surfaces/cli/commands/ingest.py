"""`ingest`: files of events, chat transcripts or traces into the ledger, checked whole before anything is written."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from muniment.core.instants import format_instant
from muniment.core.outside.system import system_clock
from muniment.errors import InvalidInput, MunimentError
from muniment.surfaces.cli.calling import Call, Command
from muniment.surfaces.cli.documents import read_documents
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.rates import rates
from muniment.surfaces.cli.terminal import counted, progress_bar
from muniment.surfaces.cli.traces import TraceTally, ingest_traces, read_traces
from muniment.surfaces.cli.transcripts import SCOPE_KEYS, events_of
from muniment.surfaces.settings import Settings, open_store

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.store.ledger import EntryDraft, LedgerEntry
    from muniment.store.load import LoadReport

__all__ = ["ingest", "ingested"]

BATCH = 1000
_Address = tuple[str, str, str, str | None]
"""User, agent, session, and the run where an event names it."""


def _ingest(
    call: Call,
    files: Annotated[tuple[str, ...], Word(metavar="FILE…")],
    *,
    tenant_id: str | None = None,  # noqa: ARG001  # read by the settings
    user_id: Annotated[str | None, Word("Whose memory this is, where an event does not say.")] = None,  # noqa: ARG001
    agent_id: Annotated[str | None, Word("Which agent it was, where an event does not say.")] = None,  # noqa: ARG001
    session_id: Annotated[
        str | None, Word("The session (default: the file's name; a number is added per transcript).")
    ] = None,
    again: Annotated[bool, Word("Write even what an earlier ingest of the same file wrote.")] = False,
    otel: Annotated[
        bool, Word("The files are traces of OpenTelemetry: OTLP, or what a console exporter printed.")
    ] = False,
    bulk: Annotated[bool, Word("Many events: large transactions, COPY on PostgreSQL, the index afterwards.")] = False,
    index_later: Annotated[bool, Word("With --bulk: leave the index to `muniment store index`.")] = False,
) -> _Tally | TraceTally | BulkTally:
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
        said = "a load is run again where it was broken off, by the keys of its events" if again else "traces are small"
        raise InvalidInput(said, path=f"$.{name}", hint=f"leave out --{name} or --bulk")
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
) -> BulkTally:
    """Everything is checked and put in order on disk before the store is opened."""
    from muniment.core.outside.spool import spool
    from muniment.core.policy import Policy
    from muniment.store.load import LoadEvent, spool_events

    policy = Policy.from_wire(dict(settings.policy)).ledger
    with tempfile.TemporaryDirectory(prefix="muniment-") as scratch, spool() as held, rates(quiet=quiet) as tell:
        sources = [_on_disk(name, Path(scratch)) for name in files]
        events = (LoadEvent(*address, draft, where) for address, where, draft in named(sources))
        spool_events(events, policy, held, settings.tenant, tell)
        with open_memory() as mem:
            return BulkTally(mem.store.load(held, index=is_indexed, progress=tell, tenant_id=settings.tenant))


class BulkTally:
    """What a load reports, in words."""

    def __init__(self, report: LoadReport) -> None:
        self._report = report

    def plain(self) -> dict[str, Any]:
        return self._report.to_wire()

    def lines(self, db: str) -> Iterator[str]:
        report = self._report
        yield f"{counted(report.events, 'event')} in {counted(report.sessions, 'session')} are in {db}"
        if report.already_present:
            yield f"{report.already_present} of them were there already; nothing was written twice"
        if report.forgotten:
            yield f"{report.forgotten} were forgotten since they were first written, and stay so"
        if report.waiting:
            yield f"{counted(report.waiting, 'event')} wait for the index: `muniment store index`"


def _ingest_otel(
    files: Sequence[str], settings: Settings, open_memory: Callable[[], Memory], *, session: str | None, again: bool
) -> TraceTally:
    if session is not None or again:
        name = "session_id" if session is not None else "again"
        said = "a trace names its own session" if session is not None else "a span is written once"
        raise InvalidInput(said, path=f"$.{name}", hint=f"leave out --{name.removesuffix('_id')}")
    with tempfile.TemporaryDirectory(prefix="muniment-") as scratch:
        held = read_traces([_on_disk(name, Path(scratch)) for name in files])
    with open_memory() as mem:
        return ingest_traces(mem, held, tenant=settings.tenant, user=settings.user)


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
    """A store with the events of these files in it; it is opened when all of them were found to be in order."""
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
    """What an ingest did, and what a reader might wonder about: what was there already, what has no words."""

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
        yield f"{counted(self._events, 'event')} in {counted(len(self._sessions), 'session')} are in {db}"
        if self._known:
            yield f"{self._known} of them were there already; nothing was written twice"
        if self._wordless:
            yield f"{self._wordless} hold no text (an image, say): they are kept, but a search cannot find them"


def _has_parts(draft: EntryDraft) -> bool:
    return bool((draft.metadata or {}).get("parts"))


def _check(sources: list[tuple[str, str]], settings: Settings, session: str | None, again: bool) -> int:
    """Bring every event to the door without letting one in; answers how many there are."""
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
    """(name to show, path to read twice): standard input is copied first."""
    if name != "-":
        return name, name
    copy = scratch / "stdin"
    with copy.open("wb") as out:
        shutil.copyfileobj(sys.stdin.buffer, out)
    return "stdin", str(copy)


def _batches(
    mem: Memory, sources: list[tuple[str, str]], settings: Settings, session: str | None, again: bool
) -> Iterator[tuple[Run, list[EntryDraft]]]:
    """Drafts of one run at a time, in the order of the file."""
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
    """Every event of the files as (scope, where it stands, draft)."""
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
        yield from events_of(data, "$")
    except MunimentError as error:
        raise _located(error, where) from None


def _address(event: dict[str, Any], settings: Settings, default_session: str, where: str) -> _Address:
    """Take the scope an event names itself off it, and fill in the rest."""
    named = {key: event.pop(key, None) for key in SCOPE_KEYS}
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


ingest = Command(
    "run.observe_many",
    lambda call: call.answer.lines(call.settings.shown_db),
    function=_ingest,
    on="settings",
    calls=("memory.run", "memory.ingest_otel"),
    document=lambda call: call.answer.plain() | {"db": call.settings.shown_db},
    about='FILE is JSON lines of events ({"role", "content", …}, the arguments of `observe`, and optionally '
    'user_id, agent_id, session_id), or OpenAI-style messages: a list, {"messages": […]}, or JSON lines of those. '
    "`-` is standard input. Everything is checked before anything is written. Running it again writes nothing twice. "
    "With --otel, FILE is what a traced agent exported: OTLP as JSON or protobuf, JSON lines of the collector's file "
    "exporter, or what a console exporter printed. The conversation that a span names is the session. "
    "With --bulk events are put in order on disk first and written many at a time; broken off, it is run again.",
)
