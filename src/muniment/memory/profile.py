"""A user's profile in their own words: dated sentences from the ledger, most important first, within a budget.

Sentences about safety and standing wishes come first, then the newest of the others. Lines are verbatim and printed
oldest first, so that the text stays stable. A sentence that was corrected is shown together with its correction; the
correction may appear alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, NamedTuple

from muniment.core.ports.rows import find
from muniment.core.ports.schema import ENTRIES, StatementRow
from muniment.core.record import Count, Items, Record, Timestamp
from muniment.core.scope import IdText, is_reserved
from muniment.core.text.analyzer import analyze
from muniment.core.text.sentences import Seen, Words, read_words, sentence_spans
from muniment.errors import InvalidInput
from muniment.memory.statements import CHARS_MAX, best_statements, is_users_own, worth
from muniment.memory.turn_reading import check_cited, turns_by_id
from muniment.store.chain import damaged_entry

if TYPE_CHECKING:
    from muniment.contracts.packet import Purpose
    from muniment.core.policy import Policy, ProfilePolicy
    from muniment.core.ports.engine import Reader
    from muniment.memory.turn_reading import LiveTurn
    from muniment.store.context import Context

__all__ = [
    "LASTING_MIN",
    "Profile",
    "ProfileLine",
    "Statement",
    "build_profile",
    "choose_lines",
    "read_profile",
    "render_profile",
]

TOKENS_MAX = 100_000
KIND_MIN = 96
"""Below this score for safety or for a wish, a statement has neither kind in the policy for tools."""
LASTING_MIN = 128
"""A packet puts statements first that score at least this for safety or for a wish. All others compete with everything
else that was said.
"""
CORRECTION_MIN = 128
REVOCATION_MIN = 140
"""From this score on a statement may revoke an order with which it shares too few words."""
SHARED_MIN, SHARED_BY_MAX = 2, 3
"""Minimum number of words shared by a correction and its target, and maximum number of statements with such a word."""
LINE_TOKENS = 8
"""Minimum tokens of a line, used to decide the number of statements to read."""
_ALIKE = 0.9


class ProfileLine(Record):
    """Consecutive sentences of one user turn, verbatim."""

    event_id: IdText
    n: Count
    """The number of the event among its user's."""
    session_id: IdText
    start: Count
    end: Count
    """Start and end of the text in the event, in characters."""
    text: str
    ts: Timestamp
    speaker: str | None
    safety: Count
    wish: Count
    """Scores for safety and for a standing wish, from 0 to 255. Not probabilities."""
    tokens: Count
    """Token count, with its mark, and the date if it is the first line of its day."""
    corrects: str | None
    """The event of an earlier line that this one may correct."""


class Profile(Record):
    """A user's statements about themselves, as far as they fit."""

    user_id: IdText
    enabled: bool
    """False if the policy switches the profile of this user off."""
    lines: Items[ProfileLine]
    """Oldest first."""
    text: str
    """The lines as a model reads them, under their dates: `2026-03-04`, then `[1] …`, numbered as in `lines`."""
    tokens: Count


class Statement(NamedTuple):
    """A row of the projection with the turn it points to."""

    row: StatementRow
    event_id: str
    session_id: str
    ts: str
    speaker: str | None
    turn: str

    @property
    def text(self) -> str:
        return self.turn[self.row.start : self.row.start + self.row.size]


def read_profile(
    ctx: Context, tenant_id: str, user_id: str, max_tokens: int = 256, *, purpose: Purpose | None = None
) -> Profile:
    """The profile of a user, within a number of tokens. `purpose` applies the policy's rules for packets of that
    purpose.
    """
    if not isinstance(user_id, str) or not user_id or is_reserved(user_id):
        raise InvalidInput("user_id should be the id of a user", path="$.user_id")
    if type(max_tokens) is not int or not 0 <= max_tokens <= TOKENS_MAX:
        raise InvalidInput(f"max_tokens should be a whole number from 0 to {TOKENS_MAX}", path="$.max_tokens")
    if purpose not in (None, "planner", "tool", "responder"):
        raise InvalidInput("purpose should be planner, tool or responder", path="$.purpose")

    def work(reader: Reader) -> list[ProfileLine]:
        lines = build_profile(ctx, reader, tenant_id, user_id, max_tokens, purpose=purpose, policy=ctx.policy)
        check_cited(ctx, reader, tenant_id, [line.event_id for line in lines])
        return lines

    lines = ctx.engine.read(tenant_id, work)
    return Profile(
        user_id=user_id,
        enabled=is_enabled(ctx.policy.memory.profile, user_id, purpose),
        lines=tuple(lines),
        text=render_profile(lines),
        tokens=sum(line.tokens for line in lines),
    )


def build_profile(
    ctx: Context,
    reader: Reader,
    tenant_id: str,
    user_id: str,
    max_tokens: int,
    *,
    purpose: Purpose | None,
    policy: Policy,
    query: str | None = None,
    without: str | None = None,
    safety_min: int = 0,
    wish_min: int = 0,
) -> list[ProfileLine]:
    """The lines of a user's profile for a packet, oldest first; empty if the user is unknown or disabled.

    A statement with lower scores for safety and for a wish is included only if it may correct an included one. A tool
    sees only what the policy allows and what shares a word with `query`. The session `without` is excluded. The cost
    does not grow with the user's history: only the best statements are read.
    """
    own = policy.memory.profile
    if max_tokens <= 0 or not is_enabled(own, user_id, purpose):
        return []
    rows = best_statements(ctx, reader, tenant_id, user_id, 32 + max_tokens // LINE_TOKENS)

    def leads(row: StatementRow) -> bool:
        return row.safety >= safety_min or row.wish >= wish_min

    rows = [row for row in rows if leads(row) or _may_correct(row)]
    statements = _with_turns(ctx, reader, tenant_id, user_id, rows)
    if without is not None:
        statements = [each for each in statements if each.session_id != without]
    leading = [each for each in statements if leads(each.row)]
    correcting = [each for each in statements if _may_correct(each.row)]
    if purpose == "tool":
        terms = frozenset(analyze(query)) if query else frozenset()
        leading = [each for each in leading if kind_of(each.row) in own.tool_kinds or _concerns(each, terms)]
        correcting = [each for each in correcting if kind_of(each.row) != "safety"]
    places = {_place(each) for each in leading}
    offered = [*leading, *(each for each in correcting if _place(each) not in places)]
    lines = choose_lines(offered, max_tokens, ctx.counter.count)
    led = {line.event_id for line in lines if any(n == line.n and line.start <= at < line.end for n, at in places)}
    return [line for line in lines if line.event_id in led or line.corrects in led]


# -- policy -------------------------------------------------------------------------------------------


def is_enabled(policy: ProfilePolicy, user_id: str, purpose: Purpose | None) -> bool:
    """True if the policy allows the profile of this user for this purpose."""
    is_off = any(fnmatchcase(user_id, pattern) for pattern in policy.users_off)
    return policy.enabled and not is_off and (purpose is None or purpose in policy.purposes)


def kind_of(row: StatementRow) -> Literal["safety", "wish", "other"]:
    """A statement's kind for the policy; anything possibly about health counts as safety."""
    if row.safety >= KIND_MIN:
        return "safety"
    return "wish" if row.wish >= KIND_MIN else "other"


def _concerns(statement: Statement, terms: frozenset[str]) -> bool:
    return not terms.isdisjoint(analyze(statement.text))


# -- choice -------------------------------------------------------------------------------------------


def choose_lines(statements: Sequence[Statement], max_tokens: int, count: Callable[[str], int]) -> list[ProfileLine]:
    """Fill a budget: by safety and standing wish, then the newest. Pure."""
    ranked = [_Candidate(each, read_words(each.text)) for each in sorted(statements, key=_worth)]
    newer = find_corrections(ranked)
    chosen: set[int] = set()
    days: dict[str, list[Statement]] = {}
    seen = Seen(_ALIKE)
    left, least = max_tokens, count(_mark(99))
    for at in range(len(ranked)):
        later = newer.get(at, ())
        # Corrections are guesses, so no safety statement is dropped for one. An order is, since a revoked order
        # misleads more than a missing one.
        row = ranked[at].said.row
        alone = (at,) if row.safety >= max(LASTING_MIN, row.wish) else later
        for unit in ((at, *later), alone):
            added = [at for at in unit if at not in chosen and not _is_said(ranked[at], seen)]
            cost = _cost([ranked[each].said for each in added], days, count)
            if cost <= left:
                left -= cost
                chosen.update(added)
                for each in added:
                    seen.add(ranked[each].said.text, str(each), ranked[each].words)
                    days.setdefault(_day(ranked[each].said.ts), []).append(ranked[each].said)
                break
        if left < least:
            break
    corrected = {ranked[late].place: ranked[early].said.event_id for early, later in newer.items() for late in later}
    return _lines([ranked[at].said for at in chosen], corrected, count)


class _Candidate(NamedTuple):
    said: Statement
    words: Words

    @property
    def place(self) -> tuple[int, int]:
        return _place(self.said)


def _cost(added: Sequence[Statement], days: Mapping[str, Sequence[Statement]], count: Callable[[str], int]) -> int:
    """The tokens that statements add: a date for each new day, and two instead of a mark for a possible neighbour."""
    cost = sum(count(_heading(day)) for day in {_day(each.ts) for each in added}.difference(days))
    for each in added:
        is_joined = any(_joins(each, other) or _joins(other, each) for other in days.get(_day(each.ts), ()))
        cost += count(each.text) + 2 if is_joined else count(_shown(99, each, each.text))
    return cost


def _joins(one: Statement, other: Statement) -> bool:
    """True if only white space separates a statement from the next of its turn."""
    end = one.row.start + one.row.size
    return one.row.n == other.row.n and end <= other.row.start and not one.turn[end : other.row.start].strip()


def _is_said(candidate: _Candidate, seen: Seen) -> bool:
    """True if an already chosen line says the same."""
    return seen.find(candidate.said.text, candidate.words) is not None


def _place(statement: Statement) -> tuple[int, int]:
    return statement.row.n, statement.row.start


def _printed(statement: Statement) -> tuple[str, int, int]:
    """Sort by day first, so that no date is printed twice, regardless of the times callers gave."""
    return (_day(statement.ts), *_place(statement))


def _worth(statement: Statement) -> tuple[int, int, int]:
    return -worth(statement.row), -statement.row.n, statement.row.start


def find_corrections(ranked: Sequence[_Candidate]) -> dict[int, tuple[int, ...]]:
    """Map each statement to the later ones that apparently correct it.

    This is a heuristic: the possibly outdated statement is shown together with the later ones.
    """
    holding: dict[str, list[int]] = {}
    for at, candidate in enumerate(ranked):
        for word in candidate.words.held:
            holding.setdefault(word, []).append(at)
    found: dict[int, list[int]] = {}
    revoking: dict[int, int] = {}
    for at, late in enumerate(ranked):
        if not _may_correct(late.said.row):
            continue
        rare = [places for word in late.words.held if len(places := holding[word]) <= SHARED_BY_MAX]
        shared = Counter(early for places in rare for early in places if ranked[early].place < late.place)
        earlier = sorted(early for early, words in shared.items() if words >= SHARED_MIN)
        for early in earlier:
            found.setdefault(early, []).append(at)
        if earlier or late.said.row.correction < REVOCATION_MIN:
            continue
        order = _revoked_order(ranked, late, shared)
        if order is not None:
            revoking[order] = max(at, revoking.get(order, at), key=lambda each: ranked[each].said.row.correction)
    for order, at in revoking.items():
        found.setdefault(order, []).append(at)
    return {early: tuple(own) for early, own in found.items()}


def _may_correct(row: StatementRow) -> bool:
    return row.correction >= CORRECTION_MIN


def _revoked_order(ranked: Sequence[_Candidate], late: _Candidate, shared: Mapping[int, int]) -> int | None:
    """The standing wish that a later statement may revoke without naming it ("scrap that"): the one that shares a word
    with it, else the latest before it.
    """
    orders = [at for at, each in enumerate(ranked) if each.said.row.wish >= LASTING_MIN and each.place < late.place]
    return max(orders, key=lambda at: (shared.get(at, 0), ranked[at].place), default=None)


def _lines(
    chosen: Sequence[Statement], corrected: dict[tuple[int, int], str], count: Callable[[str], int]
) -> list[ProfileLine]:
    """Chosen statements as lines, oldest first; neighbours within a turn are joined."""
    lines: list[ProfileLine] = []
    for each in sorted(chosen, key=_printed):
        row, start = each.row, each.row.start
        end, safety, wish = start + row.size, row.safety, row.wish
        corrects = corrected.get(_place(each))
        if lines and lines[-1].n == row.n and not each.turn[lines[-1].end : start].strip():
            last = lines.pop()
            start, safety, wish = last.start, max(last.safety, safety), max(last.wish, wish)
            corrects = corrects or last.corrects
        text = each.turn[start:end]
        tokens = count(_shown(99, each, text))
        if not lines or _day(lines[-1].ts) != _day(each.ts):
            tokens += count(_heading(_day(each.ts)))
        lines.append(
            ProfileLine(
                event_id=each.event_id,
                n=row.n,
                session_id=each.session_id,
                start=start,
                end=end,
                text=text,
                ts=each.ts,
                speaker=each.speaker,
                safety=safety,
                wish=wish,
                tokens=tokens,
                corrects=corrects,
            )
        )
    return lines


# -- text ---------------------------------------------------------------------------------------------


def render_profile(lines: Sequence[ProfileLine]) -> str:
    """The profile text for a model, numbered from 1, each day under its date."""
    parts: list[str] = []
    day = None
    for number, line in enumerate(lines, 1):
        if day != (day := _day(line.ts)):
            parts.append(_heading(day))
        parts.append(_shown(number, line, line.text))
    return "".join(parts)


def _shown(number: int, said: Statement | ProfileLine, text: str) -> str:
    """A profile line, with its text escaped so that no part of it looks like another line."""
    who = "" if said.speaker is None else f"{said.speaker}: "
    return f"{_mark(number)}{who}{text}".replace("\n", "\n    ") + "\n"


def _mark(number: int) -> str:
    return f"[{number}] "


def _heading(day: str) -> str:
    return f"{day}\n"


def _day(ts: str) -> str:
    return ts[:10]


class _Event(NamedTuple):
    n: int
    id: str


def _with_turns(
    ctx: Context, reader: Reader, tenant_id: str, user_id: str, rows: Sequence[StatementRow]
) -> list[Statement]:
    keys = sorted({(user_id, row.n) for row in rows})
    ids = {event.n: event.id for event in find(reader, ENTRIES, ("user_id", "n"), keys, into=_Event)}
    turns = turns_by_id(ctx, reader, tenant_id, list(ids.values()), is_asked_later=True)
    bounds = {n: _bounds(turns[id_]) for n, id_ in ids.items() if id_ in turns}
    found: list[Statement] = []
    for row in rows:
        begins, ends = bounds.get(row.n, _NOWHERE)
        if row.start not in begins or row.start + row.size not in ends:
            raise damaged_entry(ids.get(row.n), "a statement is not where the index says")
        turn = turns[ids[row.n]]
        found.append(Statement(row, turn.id, turn.session_id, turn.ts, turn.speaker, turn.text))
    return found


_NOWHERE: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())


def _bounds(turn: LiveTurn) -> tuple[frozenset[int], frozenset[int]]:
    """The allowed start and end offsets of statements in a turn; empty unless the user is the speaker."""
    if not is_users_own(turn.kind, turn.role, turn.trust):
        return _NOWHERE
    spans = sentence_spans(turn.text[:CHARS_MAX])
    return frozenset(start for start, _ in spans), frozenset((*(end for _, end in spans), len(turn.text.rstrip())))
