"""The session's summary in a packet: what was settled first, within a share of its own, then the best sentences.

It stands in the part of the page that a provider can keep: what is asked, and what else is quoted, does not change it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muniment.core.text.sentences import Seen
from muniment.memory.turns import SessionLine
from muniment.packets.compose.budget import cut_text, typical_mark
from muniment.packets.compose.draft import PacketDraft, Placed, SummaryWords
from muniment.packets.compose.explain import Reason, names_of
from muniment.packets.page.lines import flat, summary_evidence, summary_line, summary_text

__all__ = ["SummaryLines"]

_Numbered = tuple[int, str, SessionLine]
"""A line of the summary, where it stands there, and its name."""
_SETTLED_FIRST = ("constraint", "given", "decision", "commitment")
"""In this order what was settled is given its room; on the page it stands in the order said."""


class SummaryLines:
    """The lines of the session's summary that are still to be placed."""

    def __init__(self, draft: PacketDraft) -> None:
        self._draft = draft
        self._said = Seen(draft.policy.near_duplicate)
        """Words of the summary alone: no quote makes a line of it go."""
        names = names_of("summary", (line.evidence_id for line in draft.pool.summary))
        self._left = [(at, name, line) for at, (name, line) in enumerate(zip(names, draft.pool.summary, strict=True))]

    def place_settled(self) -> None:
        """What was settled, and what the caller gave, within a share of its own: the strongest first, then the newest.

        What has no room there waits for the rest of the summary.
        """
        settled = [each for each in self._left if each[2].kind is not None]
        settled.sort(key=lambda each: (_SETTLED_FIRST.index(each[2].kind or ""), -each[2].weight, -each[0]))
        waiting = self._place(settled, self._share(self._draft.policy.settled_share), is_last=False)
        self._left = [*waiting, *(each for each in self._left if each[2].kind is None)]

    def place_rest(self) -> None:
        """What was settled and still waits, then the weightiest sentences."""
        rest = sorted(self._left, key=lambda each: (each[2].kind is None, each[2].kind is None and -each[2].weight))
        self._left = self._place(rest, self._share(self._draft.policy.summary_share), is_last=True)

    def prices(self) -> Iterator[int]:
        """What each line would cost."""
        lines = enumerate(self._draft.pool.summary)
        return (self._draft.purse.price(self._whole(at, line).page) for at, line in lines)

    def _share(self, part: float) -> int:
        """The same for every question, whatever is found; all there is where nothing is asked."""
        return self._draft.share(part if self._draft.request.query.strip() else 1.0)

    def _whole(self, at: int, line: SessionLine) -> SummaryWords:
        """All of a line, which is looked at for its floor, for what it needs and when it is placed: written once."""
        known = self._draft.summary_words.get(at)
        if known is None:
            known = self._draft.summary_words[at] = self._written(line, line.text.strip())
        return known

    def _written(self, line: SessionLine, text: str) -> SummaryWords:
        packet = summary_line(line, text, self._draft.who(line.evidence_id))
        cited = summary_evidence(line)
        return SummaryWords(packet, summary_text(packet, cited, typical_mark, self._draft.answers))

    def _place(self, lines: Sequence[_Numbered], tokens_max: int, *, is_last: bool) -> list[_Numbered]:
        """Place what fits; answers what had no room, which is said of it where there is no other turn."""
        draft, waiting, spent = self._draft, [], 0
        for at, name, line in lines:
            text = line.text.strip()
            if (reason := self._reason(line, text)) is not None:
                draft.tally.omit(name, reason[0], **reason[1])
                continue
            room = min(tokens_max - spent, draft.purse.room("summary"))
            whole = self._whole(at, line)
            price = draft.purse.price(whole.page)
            shown = text if price <= room else self._cut(line, text, room)
            if shown is None:
                waiting.append((at, name, line))
                if is_last:
                    draft.tally.omit(name, "over_budget", tokens=price)
                continue
            words = whole if shown is text else self._written(line, shown)
            kept = draft.purse.price(words.page)
            spent += kept
            draft.place(
                Placed(name, "summary", kept, (line, words.packet), (at,)), line.weight, (line.kind or "weight",)
            )
            if flat(shown) == shown:
                draft.summary_names[line.evidence_id, shown] = name
            self._said.add(shown, name, line.words if shown is text else None)
            if kept < price:
                draft.tally.step_down(name, "short_term_summary", "raw→summary", f"{kept} of {price} tokens kept")
        return waiting

    def _reason(self, line: SessionLine, text: str) -> tuple[Reason, dict[str, str]] | None:
        """Why a line is not to stand on the page at all."""
        draft = self._draft
        if not text:
            return "empty", {}
        if line.kind == "given" and (barred := draft.bars(line.trust or "assistant", line.flags or ())) is not None:
            return barred, {}
        for evidence_id in (line.evidence_id, *(line.sources or ())):
            if (reason := draft.bars_sentence(evidence_id, text)) is not None:
                return reason, {}
        if (reason := draft.cues.bars(line.ts)) is not None:
            return reason, {}
        asked = draft.instruction_in(line.evidence_id, text) if line.kind in (None, "constraint") else None
        other = asked or self._said.find(text, line.words)
        return None if other is None else ("near_duplicate", {"of": other})

    def _cut(self, line: SessionLine, text: str, room: int) -> str | None:
        """As much of the text as there is room for: only a caller's summary is cut, sentence by sentence."""
        if line.kind != "given" or room < self._draft.policy.cut_tokens_min:
            return None
        return cut_text(text, lambda part: self._draft.purse.price(self._written(line, part).page) <= room)
