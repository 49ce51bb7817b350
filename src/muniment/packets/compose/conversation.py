"""What was said, in a packet: open loops, tool results, summary and last turns; recalled turns word for word."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from muniment.contracts.packet import ToolEvidence
from muniment.core.text.analyzer import analyze
from muniment.core.text.sentences import Words
from muniment.memory.results.asked_calls import asks_how_often
from muniment.memory.turns import Turn, told_text
from muniment.packets.compose.budget import typical_mark
from muniment.packets.compose.draft import PacketDraft, Placed, Said, emitted_ts, instant_order
from muniment.packets.compose.evidence import is_asked, is_found, strong_ids, worth_of
from muniment.packets.compose.explain import names_of
from muniment.packets.compose.results import cut_turn, results_made_good, said_line, told_of, whole_turn
from muniment.packets.compose.summary import SummaryLines
from muniment.packets.page.dated import day_heading, day_of
from muniment.packets.page.layout import NOT_FOUND_LINES
from muniment.packets.page.lines import (
    BlockName,
    loop_line,
    may_show,
    tool_line,
)
from muniment.packets.pool import CUE_PART, SAID_LATELY, HitCandidate, ToolCandidate

__all__ = ["Quotes", "place_short_term", "short_term_prices"]


def place_short_term(draft: PacketDraft) -> Quotes:
    """What was settled has a share of its own; loops and tool results are short and come next; then the rest of the
    summary, in a share that no match changes; a share is kept for turns; quotes get what is left."""
    summary = SummaryLines(draft)
    summary.place_settled()
    if draft.purpose == "tool":
        _place_tools(draft)
        _place_loops(draft)
    else:
        _place_loops(draft)
        _place_tools(draft)
    summary.place_rest()
    window_max = draft.share_beside_hits(draft.policy.unmatched_share)
    quotes = Quotes(draft)
    quotes.fill(reserve=_wanted(draft, window_max))
    _place_window(draft, window_max)
    quotes.fill()
    quotes.finish()
    return quotes


def short_term_prices(draft: PacketDraft) -> Iterator[tuple[BlockName, int]]:
    """What could stand of the conversation, and what each costs."""
    price = draft.purse.price
    for hit in draft.pool.hits:
        if hit.turn.text.strip() and draft.bars_turn(hit.turn) is None:
            yield "quotes", price(said_line(draft, whole_turn(draft, hit.turn)))
    yield from (("summary", each) for each in SummaryLines(draft).prices())
    for loop in draft.pool.loops:
        yield "loops", price(loop_line(loop, typical_mark))
    if may_show("window", draft.purpose):
        for turn in draft.pool.window:
            yield "window", price(said_line(draft, whole_turn(draft, turn)))


def _wanted(draft: PacketDraft, window_max: int) -> int:
    """Tokens that the window could use within its share."""
    window = 0
    if may_show("window", draft.purpose) and draft.policy.window_turns:
        window = sum(draft.purse.price(said_line(draft, whole_turn(draft, turn))) for turn in draft.pool.window)
    return min(window, window_max) + draft.purse.opening("window") * bool(window)


# -- open loops and tool results ----------------------------------------------------------------------


def _place_loops(draft: PacketDraft) -> None:
    names = names_of("loop", (str(at) for at in range(len(draft.pool.loops))))
    for at, (name, loop) in enumerate(zip(names, draft.pool.loops, strict=True)):
        price = draft.purse.price(loop_line(loop, typical_mark))
        if loop.status != "open":
            draft.tally.omit(name, "superseded", detail="closed")
        elif (said_at := draft.said_at(loop.evidence_id)) is not None and draft.cues.bars(said_at):
            draft.tally.omit(name, "out_of_window")
        elif not loop.question.strip():
            draft.tally.omit(name, "empty")
        elif (reason := draft.bars_sentence(loop.evidence_id, loop.question)) is not None:
            draft.tally.omit(name, reason)
        elif price > draft.purse.room("loops"):
            draft.tally.omit(name, "over_budget", tokens=price)
        else:
            draft.place(Placed(name, "loops", price, loop, (at,)), 0.0, ("open",))


def _place_tools(draft: PacketDraft) -> None:
    """The newest have room first, as the pool has them; whole, else by reference alone. They are told in the order of
    the calls, so that an edit stands below the failure that it was made for.
    """
    names = names_of("tool", (tool.ref for tool in draft.pool.tools))
    made_good = results_made_good(draft.pool.tools)
    taken: set[str] = set()
    for at, (name, tool) in enumerate(zip(names, draft.pool.tools, strict=True)):
        if not may_show("tools", draft.purpose):
            draft.tally.omit(name, "purpose")
        elif (reason := draft.bars(tool.trust, tool.flags) or draft.cues.bars(tool.ts)) is not None:
            draft.tally.omit(name, reason)
        elif tool.ref in made_good:
            draft.tally.omit(name, "superseded")
        elif tool.ref in taken:
            draft.tally.omit(name, "duplicate")
        elif (other := _same_result(draft, tool)) is not None:
            draft.tally.omit(name, "duplicate", of=other)
        elif len(taken) >= draft.policy.tool_evidence_max:
            draft.tally.omit(name, "count_limit", limit=draft.policy.tool_evidence_max)
        elif _place_tool(draft, name, tool, at):
            taken.add(tool.ref)


def _same_result(draft: PacketDraft, tool: ToolCandidate) -> str | None:
    """What the page has of this result already: the caller's own line about it, or the same call with the same line."""
    if (told := told_of(draft, tool.ref)) is not None:
        return told.name
    summary = tool.summary.strip()
    return next((placed.name for placed in draft.items("tools") if summary and placed.item.summary == summary), None)


def _place_tool(draft: PacketDraft, name: str, tool: ToolCandidate, at: int) -> bool:
    whole = ToolEvidence(ref=tool.ref, summary=tool.summary.strip())
    price = draft.purse.price(tool_line(whole, typical_mark))
    for evidence in (whole, ToolEvidence(ref=tool.ref, summary="")):
        kept = draft.purse.price(tool_line(evidence, typical_mark))
        if kept <= draft.purse.room("tools"):
            draft.place(Placed(name, "tools", kept, evidence, (-at,)), 0.0, ("recent",))
            if evidence is not whole:
                draft.tally.step_down(name, "short_term_summary", "raw→ref", f"{kept} of {price} tokens kept")
            return True
    draft.tally.omit(name, "over_budget", tokens=price)
    return False


# -- last turns ---------------------------------------------------------------------------------------


def _place_window(draft: PacketDraft, tokens_max: int) -> None:
    """The newest first, so that the oldest go when the room does. Off for a responder (MP-05).

    A result that a line tells in full stands here in place of it, where it was called: else what was done about a
    failure would stand above it. It takes the place of a line, so it is not counted as a turn.
    """
    names = names_of("turn", (turn.id for turn in draft.pool.window))
    numbered = list(enumerate(zip(names, draft.pool.window, strict=True)))
    left, count = tokens_max, 0
    for at, (name, turn) in reversed(numbered):
        if not may_show("window", draft.purpose):
            draft.tally.omit(name, "purpose")
        elif (reason := draft.bars_turn(turn)) is not None:
            draft.tally.omit(name, reason)
        elif not turn.text.strip():
            draft.tally.omit(name, "empty")
        elif turn.id in draft.shown:
            draft.tally.omit(name, "duplicate", of=f"quote:{turn.id}")
        elif turn.kind == "tool_result" and (line := _line_of(draft, turn)) is not None:
            left -= _put_in_place(draft, name, turn, at, line, left)
        elif turn.kind == "tool_result" and (other := _told_result(draft, turn)) is not None:
            draft.tally.omit(name, "duplicate", of=other)
        elif count >= draft.policy.window_turns:
            draft.tally.omit(name, "count_limit", limit=draft.policy.window_turns)
        else:
            spent = _place_turn(draft, name, turn, at, left)
            left -= spent
            count += spent > 0


def _line_of(draft: PacketDraft, turn: Turn) -> Placed | None:
    """The line about a recent result that says all of it."""
    told = told_of(draft, turn.id, turn.text)
    return told if told is not None and told.block == "tools" else None


def _put_in_place(draft: PacketDraft, name: str, turn: Turn, at: int, line: Placed, left: int) -> int:
    """The turn in place of the line that tells of it, where there is room; else the line stays. Tokens spent beyond."""
    said = whole_turn(draft, turn)
    price = draft.purse.price(said_line(draft, said))
    more = price - line.tokens
    if said.text is not turn.text or more > min(left, draft.purse.room("window")):
        draft.tally.omit(name, "duplicate", of=line.name)
        return 0
    draft.take_back(line, "duplicate", of=name)
    draft.place(Placed(name, "window", price, said, (at,)), 0.0, ("recent",))
    draft.said.add(told_text(turn, said.text), name, turn.words)
    return max(0, more)


def _place_turn(draft: PacketDraft, name: str, turn: Turn, at: int, left: int) -> int:
    """Tokens spent; 0 where it was left out."""
    room = min(left, draft.purse.room("window"))
    said: Said | None = whole_turn(draft, turn)
    price = draft.purse.price(said_line(draft, whole_turn(draft, turn)))
    if price > room:
        said = None
        if room >= draft.policy.cut_tokens_min:
            said = cut_turn(turn, lambda part: draft.purse.price(said_line(draft, part)) <= room, draft.terms)
    if said is None:
        draft.tally.omit(name, "over_budget", tokens=price)
        return 0
    kept = draft.purse.price(said_line(draft, said))
    draft.place(Placed(name, "window", kept, said, (at,)), 0.0, ("recent",))
    if turn.kind == "tool_result":
        draft.said.add(told_text(turn, said.text), name, turn.words)
    if kept < price:
        draft.tally.step_down(name, "short_term_summary", "raw→quote", f"{kept} of {price} tokens kept")
    return kept


def _told_result(draft: PacketDraft, turn: Turn) -> str | None:
    """What tells a tool's result already, in full: a line about it, or the same call with the same result."""
    told = told_of(draft, turn.id, turn.text)
    return told.name if told is not None else draft.said.find(told_text(turn, turn.text), turn.words)


_RESULT_TOKENS = 160
"""What a tool's result takes of a large budget while others wait: its lines that match stand first, and the rest comes
back where room is left."""
_WORDS_MIN = 2
_BATCH = 24
"""Hits priced in one go: most of a long list is never looked at."""

Named = tuple[str, HitCandidate]


class Quotes:
    """The hits still to be placed, best first."""

    def __init__(self, draft: PacketDraft) -> None:
        self._draft = draft
        self._days: set[str] = set()
        self._left: list[Named] = []
        self._own: list[Named] = []
        """What the user said that is hardly evidence, newest first: it fills the room that nothing else needs."""
        self._placed: dict[str, Placed] = {}
        self._cut: dict[str, HitCandidate] = {}
        """What stands shortened, by name, best first."""
        self._tokens_max = draft.share(draft.policy.quote_share)
        self._result_max = min(self._tokens_max, _RESULT_TOKENS)
        self._counts_calls = asks_how_often(draft.request.query.casefold())
        self._too_little = 0
        """Room in which none of what is left out fits."""
        self._pending = self._newer_first(self._eligible())
        self._say_not_found()

    def _say_not_found(self) -> None:
        """Where memory holds nothing on what is asked, the page says so in a line that is paid for."""
        draft = self._draft
        if not is_asked(draft):
            return
        draft.found = is_found(draft, (hit for _, hit in self._pending))
        if not draft.found:
            for name, _ in self._pending[draft.policy.nearest_max :]:
                draft.tally.omit(name, "weak_evidence")
            self._pending = self._pending[: draft.policy.nearest_max]
        price = max(map(draft.purse.price, NOT_FOUND_LINES))
        if not draft.found and price <= draft.purse.room("quotes") and may_show("quotes", draft.purpose):
            draft.purse.pay("quotes", price)
            draft.says_not_found = True

    def fill(self, reserve: int = 0) -> None:
        """Place what fits whole, leaving `reserve` tokens of the section for others; the rest stays pending."""
        draft, waiting = self._draft, []
        room = draft.purse.room("quotes") - reserve
        for at, (name, hit) in enumerate(self._pending):
            if room < draft.policy.cut_tokens_min:
                waiting += self._pending[at:]
                break
            if at % _BATCH == 0:
                wholes = [whole_turn(draft, each.turn) for _, each in self._pending[at : at + _BATCH]]
                lines = [said_line(draft, whole) for whole in wholes]
                draft.purse.price_many(lines)
            turn = hit.turn
            if turn.id in draft.shown:
                draft.tally.omit(name, "duplicate", of=f"turn:{turn.id}")
                continue
            if turn.kind == "tool_result" and (told := told_of(draft, turn.id, turn.text)) is not None:
                draft.tally.omit(name, "duplicate", of=told.name)
                continue
            if (line := draft.summed_up(turn)) is not None:
                draft.tally.omit(name, "duplicate", of=line)
                continue
            whole, quote_max = wholes[at % _BATCH], self._most(hit)
            price = self._price(hit, lines[at % _BATCH])
            if price <= min(room, quote_max):
                other = self._said_before(hit, turn.text, turn.words)
                if other is None or self._yields(other, hit, name):
                    self._place(name, hit, whole, price)
                else:
                    draft.tally.omit(name, "near_duplicate", of=other)
                    continue
            elif price <= quote_max or not self._place_shorter(name, hit, room):
                waiting.append((name, hit))
                continue
            room = draft.purse.room("quotes") - reserve
        self._pending = waiting

    def finish(self) -> None:
        """Cut what still waits to the room that is left, or leave it out and say so."""
        draft = self._draft
        for at, (name, hit) in enumerate(self._pending):
            room = draft.purse.room("quotes")
            if room < draft.policy.cut_tokens_min:
                self._left += self._pending[at:]
                break
            if not self._place_shorter(name, hit, room):
                self._left.append((name, hit))
        self._pending = []
        self._leave_out()

    def retry(self) -> bool:
        """A second chance for what had no room, when the page turned out shorter than feared. Was there one?"""
        room = self._draft.purse.room("quotes")
        if room < self._draft.policy.cut_tokens_min or room <= self._too_little:
            return False
        draft = self._draft
        lines = ((hit, said_line(draft, whole_turn(draft, hit.turn))) for _, hit in self._left)
        short = ((hit, line) for hit, line in lines if draft.purse.price(line) <= room)
        if not any(self._price(hit, line) <= min(room, self._most(hit)) for hit, line in short):
            self._too_little = room
            return False
        self._pending = self._left
        for name, _ in self._left:
            self._draft.tally.forget(name)
        self.fill()
        self._left = self._pending
        self._leave_out()
        return True

    def fill_room(self) -> None:
        """Place what the user said last in any session, newest first, in the room that nothing else needs.

        Turns of one word that counts ("Thanks!", "I see.") come after all others.
        """
        draft = self._draft
        newest = sorted(self._own, key=lambda named: (instant_order(named[1].turn.ts), named[1].turn.seq), reverse=True)
        for name, hit in sorted(newest, key=lambda named: len(set(analyze(named[1].turn.text))) < _WORDS_MIN):
            turn = hit.turn
            if turn.id in draft.shown or draft.summed_up(turn) is not None:
                continue
            whole = whole_turn(draft, turn)
            price = self._price(hit, said_line(draft, whole))
            if price <= draft.purse.room("quotes") and self._said_before(hit, turn.text, turn.words) is None:
                draft.tally.forget(name)
                self._place(name, hit, whole, price)

    def widen(self) -> bool:
        """Give what was cut its whole text back, the best first, while there is room. Was there any?"""
        draft, has_room = self._draft, False
        for name, hit in list(self._cut.items()):
            placed = self._placed.get(name)
            if placed is None or hit.turn.id not in draft.shown:
                del self._cut[name]
                continue
            whole = whole_turn(draft, hit.turn)
            more = draft.purse.price(said_line(draft, whole)) - draft.purse.price(said_line(draft, placed.item))
            if 0 < more <= draft.purse.room("quotes"):
                self._placed[name] = placed._replace(tokens=placed.tokens + more, item=whole)
                draft.swap(placed, self._placed[name])
                draft.said.add(told_text(hit.turn, whole.text), name, _words(whole))
                del self._cut[name]
                has_room = True
        return has_room

    def _leave_out(self) -> None:
        """Without room: a superseded result says so, any other that there was no room."""
        for name, hit in self._left:
            self._draft.tally.omit(name, "superseded" if self._is_superseded(hit) else "over_budget")

    # -- choosing --------------------------------------------------------------------------------------

    def _eligible(self) -> list[Named]:
        draft = self._draft
        fit: list[Named] = []
        taken: set[str] = set()
        limit = len(draft.pool.hits) if draft.request.query.strip() else draft.policy.quotes_max
        hits = draft.pool.hits
        worths = [worth_of(hit, draft.policy, self._result_max) for hit in hits]
        strong = strong_ids(draft, worths)
        names = names_of("quote", [hit.turn.id for hit in hits])
        has_no_bar = draft.bars_no_turn and not draft.cues.is_wall
        # What a cue points at comes first, then what is likeliest evidence for the room it takes.
        pointed_at = [-hit.parts.get(CUE_PART, 0.0) for hit in hits] if draft.carrying else [0.0] * len(hits)
        for _, _, name, hit in sorted(zip(pointed_at, [-worth for worth in worths], names, hits, strict=True)):
            turn = hit.turn
            reason = None if has_no_bar else draft.bars_turn(turn)
            if reason is not None:
                draft.tally.omit(name, reason)
            elif not turn.text.strip():
                draft.tally.omit(name, "empty")
            elif turn.id in taken:
                draft.tally.omit(name, "duplicate")
            elif hit.reasons == (SAID_LATELY,) or (turn.id not in strong and turn.id not in draft.carrying):
                draft.tally.omit(name, "weak_evidence")
                if SAID_LATELY in hit.reasons:
                    self._own.append((name, hit))
            elif len(fit) >= limit:
                draft.tally.omit(name, "count_limit")  # without a query nothing matches it
            else:
                taken.add(turn.id)
                fit.append((name, hit))
        return fit

    def _newer_first(self, ranked: list[Named]) -> list[Named]:
        """A superseded result comes right after the one that supersedes it, if that was found."""
        if not self._draft.superseded:
            return ranked
        newer = self._draft.superseded
        by_id = {hit.turn.id: (name, hit) for name, hit in ranked}
        done: dict[str, Named] = {}
        for name, hit in ranked:
            if (first := by_id.get(newer.get(hit.turn.id, ""))) is not None:
                done.setdefault(first[0], first)
            done.setdefault(name, (name, hit))
        return list(done.values())

    # -- placing ---------------------------------------------------------------------------------------

    def _is_superseded(self, hit: HitCandidate) -> bool:
        return hit.turn.id in self._draft.superseded

    def _price(self, hit: HitCandidate, line: str) -> int:
        """What a line costs with the heading of its day, where there is none yet."""
        day = _day(hit.turn.ts)
        purse = self._draft.purse
        price = purse.price(line)
        return price if day in self._days else price + purse.price(day_heading(day))

    def _said_before(self, hit: HitCandidate, text: str, words: Words | None) -> str | None:
        """What says as much already. Where it is asked how often something was done, each call is told."""
        if self._counts_calls and hit.turn.kind == "tool_result":
            return None
        return self._draft.said.find(told_text(hit.turn, text), words)

    def _yields(self, other: str, hit: HitCandidate, name: str) -> bool:
        """Said before, and again: what was said last says that it still holds, so the older one makes room for it.

        The user's own words make none for somebody's echo of them. What has left the page is in nobody's way.
        """
        placed = self._placed.get(other)
        if placed is None:
            return False
        older: Turn = placed.item.turn
        if older.id in self._draft.shown:
            is_echo = older.role == "user" and hit.turn.role != "user"
            if is_echo or self._is_superseded(hit) or instant_order(hit.turn.ts) <= instant_order(older.ts):
                return False
            self._draft.take_back(placed, "near_duplicate", of=name)
        del self._placed[other]
        self._draft.said.rename(other, name)
        return True

    def _place_shorter(self, name: str, hit: HitCandidate, room: int) -> bool:
        """Cut to what one quote may take; a result whose call alone takes that may take as much for what it said."""
        most = self._most(hit)
        if self._place_cut(name, hit, min(room, most)):
            return True
        return hit.turn.kind == "tool_result" and self._place_cut(name, hit, min(room, 2 * most))

    def _most(self, hit: HitCandidate) -> int:
        """What one quote may take while others wait."""
        return self._result_max if hit.turn.kind == "tool_result" else self._tokens_max

    def _place_cut(self, name: str, hit: HitCandidate, room: int) -> bool:
        draft = self._draft
        if room < draft.policy.cut_tokens_min:
            return False
        said = cut_turn(hit.turn, lambda part: self._price(hit, said_line(draft, part)) <= room, draft.terms)
        if said is None:
            return False
        if (other := self._said_before(hit, said.text, _words(said))) is not None:
            draft.tally.omit(name, "near_duplicate", of=other)
            return True
        whole = draft.purse.price(said_line(draft, whole_turn(draft, hit.turn)))
        line = said_line(draft, said)
        self._place(name, hit, said, self._price(hit, line))
        kept = draft.purse.price(line)
        draft.tally.step_down(name, "short_term_summary", "raw→quote", f"{kept} of {whole} tokens kept")
        self._cut[name] = hit
        return True

    def _place(self, name: str, hit: HitCandidate, said: Said, price: int) -> None:
        turn, day = hit.turn, _day(hit.turn.ts)
        self._days.add(day)
        said_at = instant_order(turn.ts)
        order = (_reversed(day), self._is_superseded(hit), said_at, turn.session_id, turn.seq, turn.id)
        placed = self._placed[name] = Placed(name, "quotes", price, said, order)
        self._draft.place(placed, hit.score, hit.reasons)
        self._draft.said.add(told_text(turn, said.text), name, _words(said))


def _words(said: Said) -> Words | None:
    """Those of the whole turn where they are known to be of this text; of a result, always those of all of it."""
    return said.turn.words if said.text is said.turn.text or said.turn.kind == "tool_result" else None


@lru_cache(maxsize=1024)
def _day(ts: str) -> str:
    return day_of(emitted_ts(ts))


@lru_cache(maxsize=1024)
def _reversed(day: str) -> tuple[int, ...]:
    """Sorts days newest first, undated ones last."""
    return tuple(-ord(char) for char in day) if day != "undated" else (1,)
