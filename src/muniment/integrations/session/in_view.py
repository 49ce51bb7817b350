"""Keep packets in a conversation where they were sent, so that a provider bills most of each prompt as cached.

A caller sends its own list each time, without the inserted packets. So they are put back in the same places, byte for
byte. A place is a question of the list, identified by a digest of the list up to it; after an edit or a cut the digests
differ, and later packets are not put back. The next packet then repeats what is needed.

    places_of(messages)                the questions of a list
    SentPackets                        packets by place, as far as this process knows
    PacketsInView(session, sent)       puts packets back, and composes the next one

Another process finds them in the store: an answer is recorded with its build, a build with the builds then in view.
Forgotten content is gone from the next request, though that costs the cached prefix.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.canonical import digest_of
from muniment.errors import Forgotten, NotFound
from muniment.integrations.session.alignment import event_mark, recorded, unmade_calls
from muniment.packets.recording import plain_messages
from muniment.store.messages import read_messages

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.packets.builds import Build

__all__ = ["InView", "PacketsInView", "Place", "SentPacket", "SentPackets", "places_of"]

_QUERY_CHARS_MAX = 4_000
_TOKENS_MAX = 32_768
"""Maximum tokens of packets in view; beyond it, the conversation restarts from a whole packet."""
_LATER_SHARE = 0.25
"""Share of the first packet's budget for each later one. A first packet of half the size costs less and loses a fifth
of what the labelled stores need (`benchmarks/cost`).
"""
_LATER_TOKENS_MIN = 256
_SENT_MAX = 16_384


class Place(NamedTuple):
    """A question of a list: its index, its text, and a digest of the list up to it."""

    at: int
    text: str
    digest: str


def places_of(messages: Sequence[Any]) -> list[Place]:
    """The user's non-empty messages, in order. The caller's own prompts are not part of the conversation."""
    plain = plain_messages(messages)
    unmade = unmade_calls(plain)
    found: dict[int, Place] = {}
    rolling = ""
    for each in read_messages([*unmade, *plain]):
        if each.is_prompt or each.at < len(unmade):
            continue
        rolling = _after(rolling, event_mark(each.event))
        if each.event["role"] == "user" and each.event["content"]:
            at = each.at - len(unmade)
            found[at] = Place(at, each.event["content"][-_QUERY_CHARS_MAX:], rolling)
    return list(found.values())


def _after(rolling: str, mark: str) -> str:
    return digest_of([rolling, mark])


class SentPacket(NamedTuple):
    """A packet that was sent with a question."""

    build_id: str
    text: str
    tokens: int
    in_view: tuple[str, ...] | None
    """Builds in view at the time; None if the packet was composed for another place."""


class SentPackets:
    """Packets by question, for many sessions, evicting the least recently used. Thread-safe.

    During tool calls a question is sent repeatedly with more messages after it, and keeps its packet.
    """

    def __init__(self, count_max: int = _SENT_MAX) -> None:
        self._held: OrderedDict[tuple[str, ...], SentPacket | None] = OrderedDict()
        self._count_max = count_max
        self._lock = threading.Lock()

    def is_known(self, key: tuple[str, ...]) -> bool:
        """True if this was looked up before, whether or not a packet was found."""
        with self._lock:
            return key in self._held

    def find(self, key: tuple[str, ...]) -> SentPacket | None:
        with self._lock:
            return self._held.get(key)

    def keep(self, key: tuple[str, ...], build: Build | None) -> None:
        """Store the build sent there; None if there was none."""
        in_view = None if build is None else build.request.in_view
        chain = None if in_view is None else tuple(in_view)
        sent = None if build is None else SentPacket(build.id, build.text, build.tokens, chain)
        with self._lock:
            self._held[key] = sent
            self._held.move_to_end(key)
            while len(self._held) > self._count_max:
                self._held.popitem(last=False)


class InView(NamedTuple):
    """The packet for a list's last question, and all packets with the messages they precede."""

    build: Build
    texts: tuple[tuple[int, str], ...]


class PacketsInView:
    """Composes for the questions of one session, given the packets that are still in view."""

    def __init__(self, mem: Memory, run: Run, sent: SentPackets, max_tokens: int | None) -> None:
        self._mem = mem
        self._run = run
        self._sent = sent
        self._max_tokens = mem.policy.compose.max_tokens if max_tokens is None else max_tokens

    def compose(self, messages: Sequence[Any], left_out: dict[str, Any], holds: Callable[[int], bool]) -> InView | None:
        """Compose for the last question; None if the list has no question in words, or cannot hold a packet there.

        `holds` returns whether a packet can be put before a message of the list.
        """
        places = places_of(messages)
        if not places or not holds(places[-1].at):
            return None
        *earlier, asked = places
        view = self._in_view([place for place in earlier if holds(place.at)])
        own = self._sent.find(self._key(asked))
        if (
            own is not None and own.in_view is not None and asked.at < len(messages) - 1
        ):  # only tools were called since: the question keeps its packet
            build = self._replayed(own, view)
            if build is not None:
                return _placed(build, view, asked)
        build = self._run.compose(
            "responder",
            query=asked.text,
            max_tokens=self._budget(view),
            in_view=[sent.build_id for _, sent in view],
            **left_out,
        )
        self._sent.keep(self._key(asked), build)
        return _placed(build, view, asked)

    def _budget(self, view: Sequence[Any]) -> int:
        if not view:
            return self._max_tokens
        return min(self._max_tokens, max(_LATER_TOKENS_MIN, int(self._max_tokens * _LATER_SHARE)))

    def _in_view(self, earlier: Sequence[Place]) -> list[tuple[Place, SentPacket]]:
        """Packets that may be put back, by place, oldest first."""
        if not earlier:
            return []
        if not self._sent.is_known(self._key(earlier[-1])):
            self._read_store(earlier)
        found = [(place, self._sent.find(self._key(place))) for place in earlier]
        sent = [(place, each) for place, each in found if each is not None and each.in_view is not None]
        if not sent:
            return []
        newest = sent[-1][1]
        named = {*(newest.in_view or ()), newest.build_id}
        view = [(place, each) for place, each in sent if each.build_id in named and each.text]
        return view if sum(each.tokens for _, each in view) <= _TOKENS_MAX else []

    def _replayed(self, own: SentPacket, view: Sequence[tuple[Place, SentPacket]]) -> Build | None:
        """The build sent with a question, if nothing in it or in the packets before it was forgotten."""
        try:
            for _, each in view:
                self._replay(each.build_id)
            return self._replay(own.build_id)
        except (Forgotten, NotFound):
            return None

    def _replay(self, build_id: str) -> Build:
        return self._mem.replay(build_id, tenant_id=self._run.scope.tenant_id)

    def _key(self, place: Place) -> tuple[str, ...]:
        scope = self._run.scope
        return scope.tenant_id, scope.user_id, scope.session_id, place.digest

    def _read_store(self, earlier: Sequence[Place]) -> None:
        """Find packets that another process put at these places: each answer of the session names its build."""
        scope = self._run.scope
        entries = list(
            self._mem.ledger.entries(user_id=scope.user_id, session_id=scope.session_id, tenant_id=scope.tenant_id)
        )
        built = _builds_by_place(entries, self._run.ledger.content)
        for place in earlier:
            if self._sent.is_known(self._key(place)):
                continue
            build = None
            if place.digest in built:
                with suppress(Forgotten, NotFound):
                    build = self._replay(built[place.digest])
            self._sent.keep(self._key(place), build)


def _builds_by_place(entries: Sequence[Any], read: Callable[[str], str]) -> dict[str, str]:
    """The builds of a session's answers, by the places of their questions."""
    cited = {entry.id: entry.cited.build_id for entry in entries if entry.cited is not None}
    rolling, asked = "", ""
    found: dict[str, str] = {}
    for turn in recorded(entries, read):
        rolling = _after(rolling, turn.mark)
        if turn.role == "user":
            asked = rolling
        elif asked and turn.id in cited:
            found[asked] = cited[turn.id]
    return found


def _placed(build: Build, view: Iterable[tuple[Place, SentPacket]], asked: Place) -> InView:
    """The placed packets: those that stay, and the new one."""
    alive = set(build.request.in_view or ())
    texts = [(place.at, each.text) for place, each in view if each.build_id in alive]
    if build.text:
        texts.append((asked.at, build.text))
    return InView(build, tuple(texts))
