"""Ask the questions of an eval with every arm, and measure the results.

Nothing is written: packets are composed but not stored, and searches leave no trace. Every question is asked in its own
user's scope. Its evidence is looked up only there; if that memory does not hold it (forgotten, or never recorded), the
question is broken rather than missed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from math import log
from time import perf_counter
from typing import Any, NamedTuple

from muniment.core.instants import format_instant, parse_instant
from muniment.core.scope import Scope, scope_given
from muniment.core.text.sentences import numbers_in
from muniment.errors import InvalidInput
from muniment.packets.builds import Build, compose_inputs, gather_inputs
from muniment.packets.explain import candidates_of
from muniment.packets.render import Rendered, to_openai
from muniment.packets.searching import search_user
from muniment.store.context import Context
from muniment.store.reading import content_of, list_entries
from muniment.store.turns import is_turn, speaker_of
from muniment.verify.evals.measures import Given, Piece, Wanted, folded, judge, misses_of, passes
from muniment.verify.evals.questions import EvalQuestion
from muniment.verify.evals.report import Arm, Asked, EvalReport, Scored

Answerer = Callable[[list[dict[str, Any]]], str]
"""A model: chat messages in, answer out."""
SESSION = "eval"
"""Default session of a question: an empty one, so that all others are earlier."""
BRIEFLY = "Answer in as few words as possible. If the evidence does not say, answer: I don't know."
"""Instruction after the question, so that answers can be compared token by token."""
_SHOWN_CHARS = 400
"""Maximum characters of an event shown for its id."""
_LOOKED_AT = 100
"""How many search results are examined for missed evidence."""


def run_eval(
    ctx: Context,
    questions: Sequence[EvalQuestion],
    arms: Sequence[Arm],
    *,
    name: str,
    tenant_id: str,
    user_id: str | None = None,
    agent_id: str = "agent",
    model: Answerer | None = None,
    model_name: str | None = None,
    cite: bool = False,
    progress: Callable[[int], None] | None = None,
) -> EvalReport:
    """Ask every question with every arm. `user_id` and `agent_id` apply to questions that name none."""
    owners = [question.user_id or user_id for question in questions]
    for question, owner in zip(questions, owners, strict=True):
        if not owner:
            raise InvalidInput(
                f"whose memory is the question {question.name!r:.80} about?",
                path="$.user_id",
                hint="give --user, or user_id in the question",
            )
    users: dict[str, _User] = {}
    asked: list[Asked] = []
    for question, owner in zip(questions, owners, strict=True):
        assert owner is not None
        user = users.get(owner) or users.setdefault(owner, _User(ctx, tenant_id, owner))
        names = {"tenant_id": tenant_id, "user_id": owner, "agent_id": question.agent_id or agent_id}
        session_id = question.session_id or SESSION
        scope = scope_given({**names, "session_id": session_id, "run_id": SESSION})
        asked.append(_Asking(ctx, scope, user, question).with_arms(arms, model, cite))
        if progress is not None:
            progress(1)
    return EvalReport(name, tuple(arms), tuple(asked), ctx.counter.name, model_name if model else None)


# -- whose memory -------------------------------------------------------------------------------------


class _Said(NamedTuple):
    """A turn as shown in a result list."""

    id: str
    ts: str
    speaker: str
    text: str

    @property
    def line(self) -> str:
        return f"{self.ts[:10]} {self.speaker}: {self.text}"


class _User:
    """The turns of one user, read once for all questions about them."""

    def __init__(self, ctx: Context, tenant_id: str, user_id: str) -> None:
        self.user_id = user_id
        self.turns: list[_Said] = []
        self.forgotten: set[str] = set()
        for entry in list_entries(ctx, tenant_id, user_id):
            if entry.is_forgotten:
                self.forgotten.add(entry.id)
            elif is_turn(entry):
                text = entry.content if entry.content is not None else content_of(ctx, tenant_id, entry.id)
                self.turns.append(_Said(entry.id, entry.ts, speaker_of(entry), text))
        self.texts = {turn.id: turn.text for turn in self.turns}

    @cached_property
    def last_said_at(self) -> str | None:
        return max((turn.ts for turn in self.turns), default=None)

    @cached_property
    def _folded(self) -> list[tuple[str, str]]:
        return [(turn.id, folded(turn.text)) for turn in self.turns]

    @cached_property
    def bm25(self) -> PlainBm25:
        return PlainBm25([turn.text for turn in self.turns])

    def find(self, said: Iterable[str], broken: list[str]) -> tuple[Piece, ...]:
        """Find the events of a question's evidence, adding any missing to `broken`."""
        found = []
        for each in said:
            if each in self.texts:
                found.append(Piece(each, (each,), False, self.texts[each][:_SHOWN_CHARS]))
                continue
            words = folded(each)
            holds = tuple(id_ for id_, text in self._folded if words in text)
            if holds:
                found.append(Piece(each, holds, True))
            elif each in self.forgotten:
                broken.append(f"the event {each} was forgotten")
            else:
                broken.append(f"neither an event of {self.user_id!r:.80} nor words of one: {each!r:.160}")
        return tuple(found)


# -- one question -------------------------------------------------------------------------------------


class _Asking:
    """A question asked of one user's memory."""

    def __init__(self, ctx: Context, scope: Scope, user: _User, question: EvalQuestion) -> None:
        self._ctx, self._scope, self._user, self._question = ctx, scope, user, question
        said_at = question.asked_at or user.last_said_at
        self._now = format_instant(ctx.clock() if said_at is None else parse_instant(said_at))

    def with_arms(self, arms: Sequence[Arm], model: Answerer | None, cite: bool) -> Asked:
        question, broken = self._question, list[str]()
        wanted = Wanted(self._user.find(question.evidence, broken), self._user.find(question.stale, broken))
        if broken:
            return Asked(question, self._user.user_id, self._now, tuple(broken))
        by_arm = {arm.name: self._scored(arm, wanted, model, cite) for arm in arms}
        texts = {piece.said: piece.text for piece in (*wanted.evidence, *wanted.stale) if piece.text}
        return Asked(question, self._user.user_id, self._now, (), texts, by_arm)

    def _scored(self, arm: Arm, wanted: Wanted, model: Answerer | None, cite: bool) -> Scored:
        start = perf_counter()
        given = self._given(arm)
        given = given._replace(duration_ms=(perf_counter() - start) * 1000)
        if model is not None:
            asked = f"{self._question.question}\n\n{BRIEFLY}"
            messages = to_openai(Rendered(given.text, dict(given.marks), asked), cite=cite)
            given = given._replace(answer=model(messages), marks=given.marks if cite else {})
        measures = judge(self._question, wanted, given)
        ranks = self._ranks if measures.get("recall", 1) < 1 else {}
        misses = tuple(misses_of(self._question, wanted, given, measures, ranks))
        return Scored(given, measures, passes(measures), misses)

    @cached_property
    def _ranks(self) -> dict[str, int]:
        """Rank of each event in a long search."""
        hits = search_user(self._ctx, self._scope, self._question.question, _LOOKED_AT, self._now)
        ranks: dict[str, int] = {}
        for rank, hit in enumerate(hits, 1):
            for id_ in hit.sources:
                ranks.setdefault(id_, rank)
        return ranks

    # -- the arms -------------------------------------------------------------------------------------

    def _given(self, arm: Arm) -> Given:
        match arm.kind:
            case "packet":
                return self._packet(arm)
            case "search":
                return self._searched(arm)
            case "bm25":
                return self._reference(arm)

    def _packet(self, arm: Arm) -> Given:
        policy = arm.policy or self._ctx.policy
        inputs = gather_inputs(
            self._ctx,
            self._scope,
            arm.purpose,
            query=self._question.question,
            cues=None,
            max_tokens=arm.max_tokens,
            per_section=None,
            policy=policy,
            now=self._now,
            task_type="generic",
        )
        build = compose_inputs(self._ctx, inputs, policy, "eval")
        return Given(
            build.text,
            _from_the_top(build),
            build.tokens,
            found=build.found,
            marks=dict(build.marks),
            omitted=_omitted(build),
        )

    def _searched(self, arm: Arm) -> Given:
        assert arm.k is not None
        hits = search_user(self._ctx, self._scope, self._question.question, arm.k, self._now)
        lines = [(hit.sources, f"{hit.ts[:10]} {hit.speaker or hit.role or hit.kind}: {hit.text}") for hit in hits]
        return self._listed(lines)

    def _reference(self, arm: Arm) -> Given:
        """BM25's best turns: a fixed number, or whole turns that fit the budget, skipping those that do not."""
        ranked = [self._user.turns[place] for place in self._user.bm25.ranked(self._question.question)]
        if arm.max_tokens is None:
            return self._listed([((turn.id,), turn.line) for turn in ranked[: arm.k]])
        lines: list[tuple[tuple[str, ...], str]] = []
        left = arm.max_tokens
        for turn in ranked[:_LOOKED_AT]:
            tokens = self._ctx.counter.count(f"[{len(lines) + 1}] {turn.line}\n")
            if tokens <= left:
                lines.append(((turn.id,), turn.line))
                left -= tokens
        return self._listed(lines)

    def _listed(self, lines: Sequence[tuple[tuple[str, ...], str]]) -> Given:
        """Lines from the best on, each with its mark."""
        text = "".join(f"[{number}] {line}\n" for number, (_, line) in enumerate(lines, 1))
        ids = tuple(dict.fromkeys(id_ for sources, _ in lines for id_ in sources))
        marks = {str(number): sources[0] for number, (sources, _) in enumerate(lines, 1) if sources}
        return Given(text, ids, self._ctx.counter.count(text), marks=marks)


def _from_the_top(build: Build) -> tuple[str, ...]:
    """The evidence of a packet in page order; evidence cited only by the packet comes last."""
    shown = (build.marks[number] for number in numbers_in(build.text) if number in build.marks)
    return tuple(dict.fromkeys([*shown, *(citation.id for citation in build.packet.citations)]))


def _omitted(build: Build) -> dict[str, str]:
    """Reasons that considered turns are not in the packet."""
    reasons = {each.item: each.reason for each in build.packet.explain.omitted}
    purpose = build.packet.meta.purpose
    return {
        id_: reasons[name]
        for name, kind, id_ in candidates_of(build.pool, purpose)
        if kind in ("quote", "turn") and name in reasons
    }


# -- the reference -------------------------------------------------------------------------------------

_K1, _B = 1.2, 0.75
_SIGNS = "\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
_WORD = re.compile(rf"[{_SIGNS}]+|[^\W_{_SIGNS}]+")


def _words(text: str) -> Iterator[str]:
    """Lower-case words; for scripts without spaces, character pairs."""
    for word in _WORD.findall(text.casefold()):
        if "\u3041" <= word[0] <= "\ud7a3" and len(word) > 1:
            yield from (word[at : at + 2] for at in range(len(word) - 1))
        else:
            yield word


class PlainBm25:
    """BM25 over the turns of one user, for any number of questions."""

    def __init__(self, texts: Sequence[str]) -> None:
        lengths: list[int] = []
        self._turns: dict[str, list[tuple[int, int]]] = {}
        for place, text in enumerate(texts):
            counts = Counter(_words(text))
            lengths.append(counts.total())
            for word, count in counts.items():
                self._turns.setdefault(word, []).append((place, count))
        mean = sum(lengths) / len(lengths) if lengths else 1.0
        self._size = len(lengths)
        self._norms = [_K1 * (1 - _B + _B * length / (mean or 1.0)) for length in lengths]

    def ranked(self, question: str) -> list[int]:
        """Indices of turns that share a word with the question, best first, ties in order of time."""
        scores: dict[int, float] = {}
        for word in dict.fromkeys(_words(question)):
            held = self._turns.get(word, ())
            weight = log(1 + (self._size - len(held) + 0.5) / (len(held) + 0.5))
            for place, count in held:
                scores[place] = scores.get(place, 0.0) + weight * count * (_K1 + 1) / (count + self._norms[place])
        return sorted(scores, key=lambda place: (-scores[place], place))
