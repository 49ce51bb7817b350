"""`ingest --otel`: files of traces into the ledger, read whole before anything is written; and what is said of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muniment.errors import InvalidInput, MunimentError, TooLarge
from muniment.surfaces.cli.terminal import counted

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.traces.ingest import TraceReport

__all__ = ["TraceTally", "ingest_traces", "read_traces"]

_WHY: Mapping[str, str] = {
    "no_conversation": "are about something else than a conversation",
    "without_content": "say that something was said, and not what: let the emitter capture content "
    "(OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT, for those that follow it)",
    "no_user": "do not say whose they are: give --user",
    "no_such_user": "name a user that can be none",
    "another_user": "are another user's",
    "no_trace": "belong to no trace and no conversation",
    "refused": "hold what the ledger does not take: too large, or no text",
    "reasoning": "are thoughts, which nobody said",
    "our_own": "are spans of our own",
}


class TraceTally:
    """What came of the files together."""

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
        told = self.plain()
        written = f"{counted(told['messages'], 'message')} and {counted(told['results'], 'tool result')}"
        read = f"{counted(told['spans'], 'span')} and {counted(told['logs'], 'log record')}"
        yield f"{written} of {read} were written to {db}"
        if told["known"]:
            yield f"{told['known']} were there already or stand in several spans; nothing was written twice"
        for each in told["sessions"]:
            yield f"  {each['user_id']}: session {each['session_id']} of {each['agent_id']}, {each['written']} new"
        for why, count in told["left_out"].items():
            yield f"left out: {count} {_WHY[why]}"


def read_traces(sources: Sequence[tuple[str, str]]) -> list[bytes]:
    """The bytes of the files, each found to be in order."""
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


def ingest_traces(mem: Memory, files: Sequence[bytes], *, tenant: str, user: str | None) -> TraceTally:
    """Write what is new of them, file by file."""
    reports = [mem.ledger.ingest_otel(data, default_user_id=user or None, tenant_id=tenant) for data in files]
    nobodys = sum(report.left_out.get("no_user", 0) for report in reports)
    if nobodys and not any(report.sessions or report.known for report in reports):
        raise InvalidInput(
            f"whose memory is this? {nobodys} spans or logs do not say",
            path="$.user_id",
            hint="give --user, or let the agent's spans carry `user.id`",
        )
    return TraceTally(reports)
