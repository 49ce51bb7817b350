"""One packet in progress: what was asked, what may be spent, what was placed, what a responder must not hear."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

from muniment.contracts.packet import Purpose
from muniment.core.instants import Instant, parse_rfc3339
from muniment.core.policy import ComposePolicy
from muniment.core.ports.models import TokenCounter
from muniment.core.record import JsonObject
from muniment.core.scope import Trust
from muniment.core.text.analyzer import analyze
from muniment.core.text.sentences import Seen, words_of
from muniment.errors import InvalidInput
from muniment.memory.facts.records import is_instruction
from muniment.memory.results.tool_text import call_without_failure
from muniment.memory.turns import Excerpt, Turn
from muniment.packets.compose.budget import Purse
from muniment.packets.compose.cues import AskedCues
from muniment.packets.compose.explain import Reason, Tally
from muniment.packets.page.lines import BlockName
from muniment.packets.page.opening import preamble, today_line
from muniment.packets.pool import CUE_PART, ComposeRequest, InsightCandidate, Pool, version_name
from muniment.store.ledger import INSTRUCTION_LIKE, imported_from

__all__ = ["PacketDraft", "Placed", "Said", "SummaryWords", "Wall", "emitted_ts", "instant_order"]

_STATEMENT_WORDS_MIN = 3
"""A shorter statement is only recognised as a whole text, not inside one."""


class Wall:
    """Stands before a responder only."""

    def __init__(self, insights: Iterable[InsightCandidate], purpose: Purpose) -> None:
        held = [each.insight for each in insights if each.insight.validation_state != "validated"]
        self._stands = purpose == "responder"
        self._ids = frozenset(item.id for item in held) if self._stands else frozenset()
        statements = [words_of(item.statement) for item in held] if self._stands else []
        self._whole = frozenset(_joined(words) for words in statements if words)
        self._parts = tuple(_joined(words) for words in statements if len(words) >= _STATEMENT_WORDS_MIN)

    @property
    def hides_nothing(self) -> bool:
        """Is there nothing behind the wall, or no wall?"""
        return not self._ids and not self._whole

    @property
    def hides_words(self) -> bool:
        """Is there a statement behind the wall?"""
        return bool(self._whole)

    def bars_id(self, *evidence_ids: str) -> bool:
        """Is one of them an insight behind the wall?"""
        return not self._ids.isdisjoint(evidence_ids)

    def bars_text(self, text: str) -> bool:
        """Does the text repeat a statement from behind the wall?"""
        if not self._whole:
            return False
        said = _joined(words_of(text))
        return said in self._whole or any(part in said for part in self._parts)

    def bars_value(self, value: Any) -> bool:
        """Does a JSON value repeat a statement from behind the wall in its texts or keys, or hold an object that says
        of itself that it is unvalidated?
        """
        if not self._stands:
            return False
        if isinstance(value, str):
            return self.bars_text(value) or self.bars_id(value)
        if isinstance(value, Mapping):
            if "validation_state" in value and value["validation_state"] != "validated":
                return True
            return any(self.bars_value(part) for pair in value.items() for part in pair)
        if isinstance(value, list | tuple):
            return any(self.bars_value(each) for each in value)
        return False


def _joined(words: list[str]) -> str:
    return f" {' '.join(words)} "


_QUERY_CHARS_MAX = 10_000
_COURTESY_WORDS = 2
"""`Please` and `thanks` around an instruction say nothing that it does not."""
_EARLIEST = Instant(0, "")
_ORDER = attrgetter("order")


class Placed(NamedTuple):
    """An item that has its place: which candidate it is, what it costs, and the record that goes into the packet."""

    name: str
    block: BlockName
    tokens: int
    item: Any
    order: tuple[Any, ...] = ()
    """Where it stands in its block; placing goes by worth, reading by this."""


class Said(NamedTuple):
    """A turn on the page, and how much of its text."""

    turn: Turn
    text: str
    excerpt: Excerpt | None = None
    """Of a tool's long result: the stretches that `text` is made of."""


class SummaryWords(NamedTuple):
    """A line of the summary, written out."""

    packet: str
    """As `rolling_summary` has it, with evidence ids."""
    page: str
    """As it is priced, with typical marks."""


def barred(policy: ComposePolicy, purpose: Purpose, trust: Trust, flags: Iterable[str] = ()) -> Reason | None:
    """LG-08: what this purpose does not hear, by where it comes from."""
    if trust in getattr(policy, f"barred_trust_{purpose}"):
        return "trust"
    if not policy.quote_instruction_like and INSTRUCTION_LIKE in flags:
        return "instruction_like"
    return None


class PacketDraft:
    """Everything the placing functions share."""

    def __init__(self, request: ComposeRequest, pool: Pool, policy: ComposePolicy, counter: TokenCounter) -> None:
        now = parse_rfc3339(request.now)
        if now is None:
            raise InvalidInput(
                f"{request.now!r:.60} names no instant",
                path="$.now",
                hint="write RFC 3339 with an offset, such as 2026-05-01T12:00:00Z",
            )
        self.request, self.pool, self.policy, self.now = request, pool, policy, now
        self.purpose = request.purpose
        self.cues = AskedCues(request.cues)
        self.tally = Tally()
        today = today_line(request.now)
        first = preamble(has_instructions=any(is_instruction(each.fact) for each in pool.facts))
        opening = first if today is None else (*first, today)
        next_mark = 1 if request.marks is None else request.marks.next_number
        self.purse = Purse(request.budget, counter, opening, next_mark)
        self.notes: JsonObject = {}
        """What `explain.filters` says beside the numbers of the policy."""
        self.wall = Wall(pool.insights, request.purpose)
        self.said = Seen(policy.near_duplicate)
        """Words of evidence that stand on the page."""
        asked = " ".join((request.query[:_QUERY_CHARS_MAX], *self.cues.keywords))
        self.terms = frozenset(analyze(asked[:_QUERY_CHARS_MAX]))
        self.placed: list[Placed] = []
        self._by_block: dict[BlockName, list[Placed]] = {}
        self._ordered: dict[BlockName, list[Placed]] = {}
        self.shown: dict[str, str] = {}
        """Turns that stand on the page, by id, with as much of their text as is shown."""
        self.summary_names: dict[tuple[str, str], str] = {}
        """Lines of the summary on the page, by the turn they were said in and their words."""
        self.instructed: dict[str, list[tuple[str, str]]] = {}
        """What the user asked for on the page, by the turn that says it: the words, and the name of the fact."""
        self.excerpts: dict[str, Said] = {}
        """What is shown of very long results where there is room, by their texts."""
        self.summary_words: dict[int, SummaryWords] = {}
        """The lines of the summary written out, by where they stand there."""
        self.turn_lines: dict[tuple[str, str], str] = {}
        """Whole turns as they would stand on the page, by id and text."""
        self.turns = {turn.id: turn for turn in chain(pool.window, [hit.turn for hit in pool.hits])}
        self.lines = {
            line.evidence_id: line
            for line in chain(*(episode.lines for episode in pool.episodes), pool.summary)
            if line.evidence_id not in self.turns
        }
        """Sentences of turns that are not here themselves."""
        self.answers: dict[str, dict[str, str]] = {
            **{name: line.cited for name, line in self.lines.items() if line.cited is not None},
            **{name: turn.cited for name, turn in self.turns.items() if turn.cited is not None},
        }
        """Answers to earlier pages, and what their marks named there."""
        self.superseded = _find_repeated_calls(chain(pool.window, [hit.turn for hit in pool.hits]))
        """Results of calls that failed, with the result of the same call made again."""
        self.found = True
        """Does memory hold something on what is asked? Decided when the quotes are chosen."""
        self.says_not_found = False
        """Is there a line on the page that says that it does not?"""
        self._tools = frozenset(tool.ref for tool in pool.tools)
        self.carrying = frozenset([hit.turn.id for hit in pool.hits if hit.parts.get(CUE_PART)])
        """Turns that a cue points at."""
        self._barred: tuple[Trust, ...] = getattr(policy, f"barred_trust_{request.purpose}")
        self._withheld = self._withheld_ids()

    @property
    def bars_no_turn(self) -> bool:
        """May every turn of the pool be told, as far as it depends on where it comes from and what it repeats?"""
        return not self._withheld and self.wall.hides_nothing

    # -- filters that every kind shares ----------------------------------------------------------------

    def bars(self, trust: Trust, flags: Iterable[str] = ()) -> Reason | None:
        return barred(self.policy, self.purpose, trust, flags)

    def bars_evidence(self, evidence_id: str | None) -> Reason | None:
        """Why a sentence may not stand in the packet: the wall, where it rests on an insight, or where its event comes
        from.
        """
        if evidence_id is None:
            return None
        if self.wall.bars_id(evidence_id):
            return "insight_wall"
        return self._withheld.get(evidence_id)

    def bars_sentence(self, evidence_id: str | None, text: str) -> Reason | None:
        """Why a sentence may not stand in the packet: by its evidence, or by its words, unless the user said them."""
        if (reason := self.bars_evidence(evidence_id)) is not None:
            return reason
        if not self.wall.hides_words:
            return None
        turn = self.turns.get(evidence_id) if evidence_id else None
        if turn is not None and turn.role == "user" and text in turn.text:
            return None
        return "insight_wall" if self.wall.bars_text(text) else None

    def bars_turn(self, turn: Turn) -> Reason | None:
        """Why a turn may not be told: where it comes from, whose words it repeats, when it was said."""
        return (
            self.bars(turn.trust, turn.flags)
            or self.bars_sentence(turn.id, turn.text)
            or (self.cues.bars(turn.ts) if self.cues.is_wall else None)
        )

    def leaves_out_version(self, fact_id: str, version: int) -> bool:
        """Is the fact not to be told as it stands? Once it says something else it is another version."""
        return self._withheld.get(version_name(fact_id, version)) == "excluded"

    def _withheld_ids(self) -> dict[str, Reason]:
        found: dict[str, Reason] = dict.fromkeys(self.request.exclude or (), "excluded")
        for turn in self.turns.values():
            if (turn.flags or turn.trust in self._barred) and (reason := self.bars(turn.trust, turn.flags)) is not None:
                found[turn.id] = reason
        if self._barred:
            found |= {name: "trust" for name, line in self.lines.items() if line.trust in self._barred}
        for tool in self.pool.tools:
            if (reason := self.bars(tool.trust, tool.flags)) is not None:
                found.setdefault(tool.ref, reason)
        if self._barred and self.pool.run is not None:
            found |= {name: "trust" for name, trust in self.pool.run.trust.items() if trust in self._barred}
        return found

    def said_at(self, evidence_id: str | None) -> str | None:
        """When something was said, where that is known here."""
        said = None if evidence_id is None else self.turns.get(evidence_id) or self.lines.get(evidence_id)
        return None if said is None else said.ts

    def who(self, evidence_id: str) -> str | None:
        """Who said it, by name or else by role; None of what nobody is known to have said."""
        said = self.turns.get(evidence_id) or self.lines.get(evidence_id)
        if said is None:
            return None
        if said.role == "tool" and said.speaker and self.wall.bars_text(said.speaker):
            return said.role  # what a call was made with may be a statement from behind the wall
        name, origin = said.speaker or said.role, imported_from(said.flags or ())
        return name if origin is None else f"{name}, imported from {origin}"  # MV-02

    def is_result(self, evidence_id: str) -> bool:
        """Is it what a tool answered?"""
        if (turn := self.turns.get(evidence_id)) is not None:
            return turn.kind == "tool_result"
        line = self.lines.get(evidence_id)
        return evidence_id in self._tools if line is None or not (line.speaker or line.role) else line.role == "tool"

    def counted_from(self, turn: Turn) -> str | None:
        """When a user said a turn, from which its days are counted."""
        return emitted_ts(turn.ts) if turn.role == "user" else None

    def instruction_in(self, evidence_id: str, text: str) -> str | None:
        """The instruction on the page that says all of a text but for a word or two of courtesy."""
        for words, name in self.instructed.get(evidence_id, ()):
            if words in text and len(text.split()) - len(words.split()) <= _COURTESY_WORDS:
                return name
        return None

    def summed_up(self, turn: Turn) -> str | None:
        """The line of the summary that tells all of a turn, word for word, where a quote would tell no more: the quote
        has the day as well, which the page has of what was said today. An instruction needs no day.
        """
        if (asked := self.instruction_in(turn.id, turn.text)) is not None:
            return asked
        name = self.summary_names.get((turn.id, turn.text.strip())) if self.summary_names else None
        if name is None:
            return None
        said_at = emitted_ts(turn.ts)
        return name if said_at is None or said_at[:10] == self.request.now[:10] else None

    # -- placing ---------------------------------------------------------------------------------------

    def share(self, part: float) -> int:
        """A share of the whole budget, in tokens."""
        return int(part * self.purse.tokens_max)

    def share_beside_hits(self, part: float) -> int:
        """What may be spent on something with no match: a share while hits wait for the rest, else all there is."""
        return self.share(part if self.pool.hits and self.request.query.strip() else 1.0)

    def place(self, placed: Placed, score: float, rules: Iterable[str]) -> None:
        self.purse.pay(placed.block, placed.tokens)
        self.placed.append(placed)
        self._by_block.setdefault(placed.block, []).append(placed)
        self._ordered.pop(placed.block, None)
        if isinstance(placed.item, Said):
            self.shown[placed.item.turn.id] = placed.item.text
        self.tally.select(placed.name, score, rules)

    def take_back(self, placed: Placed, reason: Reason, **detail: Any) -> None:
        """Take something out that was placed, and note the reason."""
        self.placed.remove(placed)
        self._by_block[placed.block].remove(placed)
        self._ordered.pop(placed.block, None)
        if isinstance(placed.item, Said):
            self.shown.pop(placed.item.turn.id, None)
        for source, told in list(self.instructed.items()):
            self.instructed[source] = [each for each in told if each[1] != placed.name]
        self.summary_names = {key: name for key, name in self.summary_names.items() if name != placed.name}
        self.purse.take_back(placed.block, placed.tokens)
        self.tally.withdraw(placed.name, reason, **detail)

    def swap(self, old: Placed, new: Placed) -> None:
        """Let something stand whole that stood shortened: in its place, so that it is given back no sooner."""
        for held in (self.placed, self._by_block[old.block]):
            held[held.index(old)] = new
        self._ordered.pop(old.block, None)
        if isinstance(new.item, Said):
            self.shown[new.item.turn.id] = new.item.text
        self.purse.take_back(old.block, old.tokens)
        self.purse.pay(new.block, new.tokens)
        self.tally.step_up(new.name)

    def items(self, block: BlockName) -> list[Placed]:
        """What stands in a block, in reading order."""
        known = self._ordered.get(block)
        if known is None:
            known = self._ordered[block] = sorted(self._by_block.get(block, ()), key=_ORDER)
        return known


@lru_cache(maxsize=4096)
def instant_order(ts: str | None) -> Instant:
    """For sorting: what names no instant comes before everything."""
    return (parse_rfc3339(ts) if ts else None) or _EARLIEST


@lru_cache(maxsize=4096)
def emitted_ts(ts: str) -> str | None:
    """A time stamp as it may stand in a packet, or None when it names no instant."""
    return ts if instant_order(ts).seconds else None


def _find_repeated_calls(turns: Iterable[Turn]) -> dict[str, str]:
    """Map results of failed calls to the result of the same call that was made again later in the session."""
    results = [turn for turn in turns if turn.kind == "tool_result" and turn.speaker]
    newest = {(turn.session_id, turn.speaker): turn for turn in sorted(results, key=lambda turn: (turn.seq, turn.id))}
    repeated: dict[str, str] = {}
    for turn in results:
        newer = newest.get((turn.session_id, call_without_failure(turn.speaker or "")))
        if newer is not None and newer.seq > turn.seq:
            repeated[turn.id] = newer.id
    return repeated
