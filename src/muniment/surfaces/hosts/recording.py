"""Events and transcripts become entries, each once, however often a hook runs and from wherever it is told.

A tool's result is known by the id of its call. A message has no id that a hook and a transcript share, so it is known
by its words and by how often they were said before in the session: the second "go on" is another message than the
first, and the first one is itself wherever it is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from muniment.core.canonical import digest_of, short_id
from muniment.errors import IdempotencyMismatch
from muniment.surfaces.hosts.transcripts import Turn

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.store.ledger import LedgerEntry

__all__ = ["Session", "open_session"]

ANNOUNCED = "host.compaction_announced"
"""The event that says: the host is about to let go of what was said; it may find that it need not."""
COMPACTING = "host.compacting"
"""The event that says: from here on the host no longer has what was said before."""
LOST = "host.lost_told"
"""The event that says: the host has the session, and no longer what hooks told it."""
TOLD = "host.told"
"""The event that names what was put before the model."""
SUMMED_UP = "host.summed_up"
"""The event that holds the host's own summary of what it let go."""
RESULT_CHARS_MAX = 20_000
_OWN_TOOLS = "muniment"
"""What a tool of ours answered is memory already."""
_READERS = ("Read", "NotebookRead", "read_file", "read_many_files", "view")
"""What a file held stands in the repository and changes there: of reading it is kept that it was read."""
_KEY = "host_key"


class Session:
    """One session of a host: the run it is written in, and what of it is known."""

    def __init__(self, run: Run, entries: list[LedgerEntry]) -> None:
        self.run = run
        self.entries = entries
        self._keys = {str(entry.metadata[_KEY]) for entry in entries if _KEY in entry.metadata}
        self._said = Counter(key.rpartition(":")[0] for key in self._keys if not key.startswith("tool:"))
        self.has_read = False
        """Whether the host's transcript was read."""
        self._read: Counter[str] = Counter()
        self._prompts = {str(entry.metadata["prompt_id"]) for entry in entries if "prompt_id" in entry.metadata}

    # -- what is told by hooks ------------------------------------------------------------------------

    def prompt(self, text: str, prompt_id: str | None) -> None:
        """What the user says now: said again it is another message, unless it has the id of one that is known."""
        if not text.strip() or prompt_id in self._prompts:
            return
        about = {} if prompt_id is None else {"prompt_id": prompt_id}
        self._message("user", text, self._said[_place("user", text)], about)

    def answer(self, text: str, prompt_id: str | None, speaker: str | None = None) -> None:
        """The agent's last message, which a transcript may have told already."""
        if not text.strip() or self._is_last(text) or (speaker is None and self._read[_place("assistant", text)]):
            return
        if prompt_id and any(each.metadata.get("answers") == prompt_id and _is(each, text) for each in self.entries):
            return
        about = {} if prompt_id is None else {"answers": prompt_id}
        self._message("assistant", text, self._said[_place("assistant", text)], about, speaker=speaker)

    def _is_last(self, text: str) -> bool:
        """Whether the newest message of the session is this answer: then it was told before."""
        messages = [entry for entry in self.entries if entry.kind == "message"]
        return bool(messages) and messages[-1].role == "assistant" and _is(messages[-1], text)

    def ends_with(self, text: str, *, since: int) -> bool:
        """Whether the transcript, read just now, was quicker than the hook: its last message is this prompt."""
        messages = [entry for entry in self.entries[since:] if entry.kind == "message"]
        return bool(messages) and messages[-1].role == "user" and _is(messages[-1], text)

    def result(
        self,
        tool: str,
        text: str,
        *,
        arguments: Mapping[str, Any] | None,
        ok: bool,
        call: str | None,
        key: str,
        ts: Any = None,
    ) -> None:
        """A tool's result, under the id of its call, else under a key of the caller's."""
        known = f"tool:{call or key}"
        if known in self._keys or _OWN_TOOLS in tool:
            return
        if ok and tool in _READERS:
            text = f"{len(text.splitlines())} lines"
        about: dict[str, Any] = {_KEY: known}
        if len(text) > RESULT_CHARS_MAX:
            about["cut_from_chars"] = len(text)
        self._keep(
            lambda: self.run.observe_tool(
                tool[:200], args=arguments, content=text[:RESULT_CHARS_MAX], ok=ok, call_id=call, ts=ts,
                idempotency_key=self._key(known), metadata=about,
            ),
            known,
        )  # fmt: skip

    # -- what a transcript tells ----------------------------------------------------------------------

    def turns(self, turns: Sequence[Turn], forgotten: Callable[[Turn], bool] = lambda _: False) -> None:
        """What of a transcript is not known yet, in its order, without what was forgotten."""
        met: Counter[str] = Counter()
        for turn in turns:
            if forgotten(turn):
                continue
            if turn.role == "tool":
                self.result(
                    turn.tool, turn.text, arguments=turn.arguments, ok=turn.ok, call=turn.call, key="", ts=turn.at
                )
                continue
            place = _place(turn.role, turn.text)
            if met[place] >= self._said[place]:
                self._message(turn.role, turn.text, met[place], {}, ts=turn.at)
            met[place] += 1
        self._read, self.has_read = met, True

    # -- writing --------------------------------------------------------------------------------------

    def _message(
        self,
        role: str,
        text: str,
        before: int,
        about: Mapping[str, Any],
        *,
        ts: Any = None,
        speaker: str | None = None,
    ) -> None:
        place = _place(role, text)
        known = f"{place}:{before}"
        metadata = {_KEY: known, **about}
        self._keep(
            lambda: self.run.observe(
                role, text, ts=ts, speaker=speaker, metadata=metadata, idempotency_key=self._key(known)
            ),
            known,
        )
        self._said[place] += 1
        self._prompts.update(str(about[name]) for name in ("prompt_id",) if name in about)

    def _keep(self, write: Callable[[], LedgerEntry], known: str) -> None:
        with suppress(IdempotencyMismatch):  # another hook wrote the same at the same time, with another time beside it
            self.entries.append(write())
        self._keys.add(known)

    def _key(self, known: str) -> str:
        return short_id("host", [self.run.scope.session_id, known])

    # -- what the host still has ----------------------------------------------------------------------

    def announce(self, host_event: str) -> None:
        """A compaction is to come."""
        self._note({"event": ANNOUNCED, "host_event": host_event})

    def let_go(self, host_event: str) -> None:
        """The host has let go of what was said until now. Hosts tell it in several ways: one mark for each time."""
        last = next((event for event in reversed(self._events()) if event in (ANNOUNCED, COMPACTING)), None)
        if last != COMPACTING:
            self._note({"event": COMPACTING, "host_event": host_event})

    def lose_told(self) -> None:
        """The host has no longer what hooks told it; what was said in the session it has."""
        self._note({"event": LOST})

    def let_go_of(self, compactions: int) -> None:
        """The same, where a transcript tells of more than hooks did."""
        if compactions > self._events().count(COMPACTING):
            self._note({"event": COMPACTING, "host_event": "transcript"})

    def summed_up(self, summary: str) -> None:
        """Keep the host's own summary, for later sessions."""
        self.entries.append(self.run.observe("system", summary, metadata={"event": SUMMED_UP}))

    def _events(self) -> list[Any]:
        return [entry.metadata.get("event") for entry in self.entries]

    def _note(self, metadata: Mapping[str, Any]) -> None:
        self.entries.append(self.run.observe("system", "", metadata=dict(metadata)))

    def in_window(self) -> dict[str, Any]:
        """What stands in the host's window and need not be told again, as arguments of `compose`: the session, or what
        came in it since the host let go of the rest; and what it was told since then, of earlier sessions and of facts
        as they stood. A fact that says something else by now is told.
        """
        events = self._events()
        since, lost = (len(events) - events[::-1].index(name) if name in events else 0 for name in (COMPACTING, LOST))
        told = [each for entry in self.entries[max(since, lost) :] for each in _ids(entry.metadata.get("told"))]
        if not since:
            return {"exclude_session": True, "exclude": told}
        return {"exclude": [*told, *(entry.id for entry in self.entries[since:])]}

    def tell(self, names: Iterable[str]) -> None:
        """Keep what the host was told (events, and facts as they stood), so that it is not told twice."""
        self._note({"event": TOLD, "told": sorted(set(names))})


def _ids(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, Sequence) else []


def _place(role: str, text: str) -> str:
    return f"{role}:{digest_of(text.strip())[:24]}"


def _is(entry: LedgerEntry, text: str) -> bool:
    return str(entry.metadata.get(_KEY, "")).startswith(_place(entry.role, text))


def open_session(mem: Memory, session_id: str, *, user_id: str, agent_id: str, tenant_id: str) -> Session:
    """The session's run: that which is open, else a further one, since a session that ended may be taken up again."""
    names: dict[str, Any] = {"user_id": user_id, "agent_id": agent_id, "session_id": session_id, "tenant_id": tenant_id}
    parts: list[Any] = ["hooks", tenant_id, user_id, session_id]
    number = 0
    while True:
        run = mem.run(run_id=short_id("run", parts if number == 0 else [*parts, number]), **names)
        state = run.state()
        if state is None or (state.stop_reason is None and not state.is_locked):
            break
        number += 1
    entries = mem.ledger.entries(user_id=user_id, session_id=session_id, tenant_id=tenant_id)
    return Session(run, list(entries))
