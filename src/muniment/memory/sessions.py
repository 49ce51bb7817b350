"""The episodes of a user's sessions, paged. The grouping of turns is stored; their text is read from the ledger."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from heapq import heapify, heappop, heapreplace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from muniment.contracts.packet import OpenLoop
from muniment.core.canonical import short_id
from muniment.core.instants import parse_instant
from muniment.core.listing import ListQuery, Placed, matches
from muniment.core.ports.engine import Condition
from muniment.core.ports.rows import first, put, select, stream
from muniment.core.ports.schema import ENTRIES, EPISODES, EpisodeRow
from muniment.core.record import Items, Record
from muniment.core.scope import IdText, Trust, is_corpus, is_reserved, lowest_trust
from muniment.core.text.sentences import sentence_spans, with_marks
from muniment.errors import InvalidInput, InvalidRecord, TooLarge
from muniment.memory.patches import (
    Decided,
    Writer,
    cleaned,
    draft_patch,
    read_evidence,
    text_of,
    texts_of,
    trust_of_evidence,
    write_patches,
)
from muniment.memory.turn_reading import turns_by_id
from muniment.memory.turns import EpisodeCandidate, ReadTurn, Sentence, SessionLine, SummaryLine, Turn
from muniment.store.injection import reads_like_instructions
from muniment.store.items import Change, Item, digest_name, latest, select_items
from muniment.store.ledger import IMPORTED, INSTRUCTION_LIKE, SESSION_SUMMARIZED, LedgerEntry
from muniment.store.lists.seeking import seek
from muniment.store.turns import can_be_turn
from muniment.store.watermark import read_user

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.scope import Scope
    from muniment.store.context import Context
    from muniment.store.derivation import SessionFold

__all__ = [
    "EPISODE_ORDER",
    "EPISODE_TURNS_MAX",
    "GAP",
    "GIVEN_SUMMARY",
    "TEXT_CHARS_MAX",
    "GivenSummary",
    "SessionPiece",
    "SessionRows",
    "TurnPlace",
    "best_lines",
    "best_sentences",
    "extend_sessions",
    "form_episode",
    "form_episodes",
    "line_of",
    "list_episodes",
    "newest_given",
    "open_loops",
    "project_given_summary",
    "puts_off",
    "read_episodes",
    "real_questions",
    "stretches",
    "summarize",
    "summary_lines",
    "takes_back",
]

_ROLES = ("user", "assistant", "tool")
_KINDS = ("message", "tool_result")


class _Owner(NamedTuple):
    id: str
    user_id: str
    session_id: str
    seq: int


class _Id(NamedTuple):
    id: str


def list_episodes(
    ctx: Context, tenant_id: str, user_id: str, session_id: str | None, asked: ListQuery
) -> Iterator[Placed[EpisodeCandidate]]:
    """The episodes of a user's sessions, or of one, ordered by session name. A place is a session and the number of an
    episode's first entry. Around an event, the list holds the episode that contains it.
    """
    for name, given in (("user_id", user_id), ("session_id", session_id)):
        if not isinstance(given, str) and (name == "user_id" or given is not None):
            raise InvalidInput(f"{name} should be a string", path=f"$.{name}")

    def formed(reader: Reader, row: EpisodeRow) -> Placed[EpisodeCandidate]:
        return Placed((row.session_id, row.first), _form(ctx, reader, tenant_id, row, asked))

    def read(reader: Reader, after: Any, descending: bool, size: int) -> list[Placed[EpisodeCandidate]]:
        rows = read_episodes(reader, user_id, session_id, after, size, descending=descending)
        return [formed(reader, row) for row in rows]

    def find(reader: Reader, event_id: str) -> Placed[EpisodeCandidate] | None:
        entry = first(reader, ENTRIES, (("id", "=", event_id),), into=_Owner)
        if entry is None or entry.user_id != user_id or session_id not in (None, entry.session_id):
            return None
        held = read_episodes(reader, user_id, entry.session_id, (entry.session_id, entry.seq + 1), 1, descending=True)
        found = None if not held else formed(reader, held[0])
        return found if found is not None and found.value is not None else None

    return seek(ctx, tenant_id, read, asked, find)


def _form(ctx: Context, reader: Reader, tenant_id: str, row: EpisodeRow, asked: ListQuery) -> EpisodeCandidate | None:
    """The episode of a row's remaining turns; None if there are none or it is not requested."""
    is_early = asked.since is not None and row.ended_at < asked.since
    if not row.turns or is_early or (asked.until is not None and row.started_at >= asked.until):
        return None
    where: tuple[Condition, ...] = (
        ("user_id", "=", row.user_id),
        ("session_id", "=", row.session_id),
        ("seq", ">=", row.first),
        ("seq", "<=", row.last),
        ("kind", "in", _KINDS),
        ("role", "in", _ROLES),
        ("receipt_id", "=", None),
    )
    ids = [entry.id for entry in select(reader, ENTRIES, where, into=_Id, order=("user_id", "session_id", "seq"))]
    known = turns_by_id(ctx, reader, tenant_id, ids, is_asked_later=True)
    turns = [known[id_].read for id_ in ids if id_ in known]
    if not turns or not matches(asked.q, *(known[id_].text for id_ in ids if id_ in known)):
        return None
    return form_episode(turns, {})


# -- forming -------------------------------------------------------------------------------------------
#
# Episodes: stretches of one session that belong together in time, with their best sentences (MP-11).


T = TypeVar("T")

GAP = timedelta(hours=6)
"""A gap this long ends an episode."""
EPISODE_TURNS_MAX = 40
LINES = 6


def stretches(turns: Iterable[T], moment_of: Callable[[T], str]) -> Iterator[list[T]]:
    """Split the ordered turns of one session at long gaps or at a maximum length; one stretch in memory at a time."""
    held: list[T] = []
    last = None
    for turn in turns:
        moment = parse_instant(moment_of(turn))
        if last is not None and (len(held) >= EPISODE_TURNS_MAX or moment - last > GAP):
            yield held
            held = []
        held.append(turn)
        last = moment
    if held:
        yield held


def form_episodes(turns: Sequence[ReadTurn], scores: Mapping[str, float]) -> list[EpisodeCandidate]:
    """The episodes of one session's turns. `scores` are by event id."""
    return [form_episode(stretch, scores) for stretch in stretches(turns, lambda read: read.turn.ts)]


def form_episode(stretch: Sequence[ReadTurn], scores: Mapping[str, float]) -> EpisodeCandidate:
    """Build the episode of one stretch of turns."""
    turns = [read.turn for read in stretch]
    first, last = turns[0], turns[-1]
    return EpisodeCandidate.unchecked(  # from validated turns
        {
            "episode_id": short_id("epi", [first.session_id, first.id, last.id]),
            "session_id": first.session_id,
            "start": first.ts,
            "end": max(last.ts, first.ts),
            "lines": tuple(best_lines(stretch, LINES)),
            "sources": tuple([turn.id for turn in turns]),
            "tags": _most_common(label for read in stretch for label in read.tags),
            "entities": _most_common(label for read in stretch for label in read.entities),
            "score": max([scores.get(turn.id, 0.0) for turn in turns], default=0.0),
            "trust": lowest_trust([turn.trust for turn in turns]),
        }
    )


def _most_common(labels: Iterable[str]) -> tuple[str, ...]:
    counted = Counter(labels)
    return tuple(label for label, _ in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))[:8])


# -- salience ------------------------------------------------------------------------------------------
#
# The most informative sentences of a conversation: chosen, never written (MP-05). A sentence is weighted by its terms
# that recur in the conversation, a little more if it has numbers, dates or names, a little less if it is only a
# question. The same turns give the same sentences.


_ALWAYS = set(SummaryLine.model_fields) - {"speaker", "cited", "flags"}
_NAMED = _ALWAYS | {"speaker"}


def best_lines(turns: Sequence[ReadTurn], count: int) -> list[SummaryLine]:
    """The `count` sentences that best represent the turns, best first, each verbatim.

    Text that reads like a prompt injection is never a line, only a source (LG-08).
    """
    said = [(read.turn, sentence) for read in turns for sentence in read.sentences]
    return [line_of(turn, sentence.text, gain) for turn, sentence, gain in best_sentences(said, count)]


def line_of(turn: Turn, text: str, weight: float) -> SummaryLine:
    """A sentence of a turn as a line of a summary."""
    fields = {"evidence_id": turn.id, "text": text, "ts": turn.ts, "weight": weight}
    fields |= {"role": turn.role, "speaker": turn.speaker or None, "trust": turn.trust, "cited": turn.cited}
    present = _NAMED if turn.speaker else _ALWAYS
    origin = tuple(flag for flag in turn.flags if flag.startswith(IMPORTED)) if turn.flags else ()
    fields["flags"] = origin or None
    more = {name for name in ("cited", "flags") if fields[name] is not None}
    return SummaryLine.unchecked(fields, present | more if more else present)


def best_sentences(given: Iterable[tuple[Turn, Sentence]], count: int) -> list[tuple[Turn, Sentence, float]]:
    """The `count` most representative sentences, best first, each with its added weight."""
    pairs = [(turn, sentence) for turn, sentence in given if INSTRUCTION_LIKE not in turn.flags]
    said_by: list[Turn] = [turn for turn, _ in pairs]
    sentences = [sentence for _, sentence in pairs]
    weight = _term_weights(sentences)
    said: set[str] = set()
    chosen: list[tuple[Turn, Sentence, float]] = []
    # A sentence's added weight only shrinks as others are chosen, so one that is still the best when re-evaluated is.
    waiting = [(-_gain(sentence, weight, said), place) for place, sentence in enumerate(sentences)]
    heapify(waiting)
    while waiting and len(chosen) < count:
        _, place = waiting[0]
        sentence = sentences[place]
        gain = _gain(sentence, weight, said)
        if len(waiting) > 1 and (-gain, place) > min(waiting[1:3]):
            heapreplace(waiting, (-gain, place))
            continue
        if gain <= 0:
            break
        heappop(waiting)
        said |= sentence.terms
        chosen.append((said_by[place], sentence, gain))
    return chosen


def _term_weights(sentences: Sequence[Sentence]) -> dict[str, float]:
    """A term's weight grows with the number of its sentences, up to a third of them; ubiquitous terms weigh nothing."""
    holding = Counter(chain.from_iterable(sentence.terms for sentence in sentences))
    limit = max(3.0, len(sentences) / 3)
    weights = {
        count: math.log1p(min(float(count), limit)) if count <= 2 * limit else 0.1 for count in set(holding.values())
    }
    return {term: weights[count] for term, count in holding.items()}


def _gain(sentence: Sentence, weight: dict[str, float], said: set[str]) -> float:
    fresh = sentence.terms - said if said else sentence.terms
    return round(sentence.factor * math.fsum(map(weight.__getitem__, fresh)), 6)


# -- loops ---------------------------------------------------------------------------------------------
#
# Open loops: genuine questions without an answer yet, as far as the words show.


_LOOPS_MAX = 5


def open_loops(turns: Sequence[ReadTurn]) -> list[OpenLoop]:
    """Open questions, newest last. A question stays open until the other side replies with more than a deferral, or the
    asker withdraws it. A tool's result is not yet an answer, and a promise is not a question.
    """
    asked: list[tuple[str, OpenLoop]] = []
    for turn in (read.turn for read in turns):
        if turn.role not in ("user", "assistant"):
            continue
        if asked and not puts_off(turn.text):
            asked = [(who, loop) for who, loop in asked if who == turn.role]
        if asked and turn.role == "user" and takes_back(turn.text):
            asked = []
        by_assistant = turn.role == "assistant"
        questions = real_questions(turn.text, of_assistant=by_assistant)
        # Of several questions from an assistant, only the last is meant; the others lead up to it.
        asked += [(turn.role, _loop(text, turn)) for text in (questions[-1:] if by_assistant else questions)]
    return [loop for _, loop in asked[-_LOOPS_MAX:]]


def _loop(question: str, turn: Turn) -> OpenLoop:
    owner = "agent" if turn.role == "user" else "user"
    question = with_marks(question, turn.cited or {})
    return OpenLoop.model_validate({"question": question, "owner": owner, "status": "open", "evidence_id": turn.id})


# -- questions -----------------------------------------------------------------------------------------
#
# Genuine questions (not quoted, not code, not rhetorical) and whether the reply answers them. Pure. Word rules, English
# first, with the usual forms of Chinese and Korean. A doubtful case counts as a question.


QUESTION_CHARS_MAX = 300
"""Longer sentences are not shown as questions."""
FRAGMENT_WORDS = 3
"""`The culprit? A missing comma.`: a fragment this short is no question if the same line continues."""

TAKEN_BACK_CHARS = 500
"""A question is withdrawn within this many characters of a reply."""

_MASKED = re.compile(
    r"```.*?(?:```|\Z)"  # a block of code
    r"|^(?: {4}|\t|[ ]{0,3}>)[^\n]*"  # a line of code, or of quoted mail
    r"|`[^`\n]{1,300}`"
    r"|\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|«[^»\n]{1,300}»|「[^」\n]{1,300}」|『[^』\n]{1,300}』",
    re.DOTALL | re.MULTILINE,
)
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://\S+", re.IGNORECASE)
_CLOSING = ")]）」』”\"'’*_ "
"""Characters that may follow a question mark."""
_UNMARKED = re.compile(
    r"(?i)^(?:(?:hi|hey|hello|ok(?:ay)?|and|so|also|then)[, ]+)?(?:please[, ]+)?"
    r"(?:can|could|would|will) you (?!know\b)\w+"
    r"|[吗嗎][。.]?$"
    r"|(?:나요|까요|습니까|인가요|은가요|던가요)[.]?$"
)
"""Asked without a question mark."""
_STARTS = re.compile(
    r"(?i)^(?:(?:and|but|so|also|then|ok(?:ay)?|hey|hi|well|please)[, ]+)*"
    r"(?:who|whose|whom|what|which|when|where|why|how|is|are|am|was|were|do|does|did|can|could|would|will|shall|should"
    r"|may|might|must|has|have|had|isn|aren|don|doesn|didn|can't|won|any|anyone|anybody|for|to|in|on|by|since|until)\b"
)
_FOR_EFFECT = re.compile(
    r"(?i)^(?:(?:and|but|so|well|oh|ha|man|hey)[, ]+)*"
    r"(?:who (?:knows|cares|would have thought|would['’]ve thought|doesn['’]t)|why (?:me|not|bother|oh why)|so what"
    r"|guess what|you know(?: what)?|you see|know what|really|seriously|right|ok(?:ay)?"
    r"|yes|no|huh|eh|hm+|oh|what|remember|isn['’]t (?:it|that) \w+"
    r"|what could (?:possibly )?go wrong|how hard can (?:it|that) be|what(?:['’]s| is) not to (?:like|love)"
    r"|what was i thinking|are you kidding(?: me)?|is (?:this|that) a joke|need i say more)[\W_]*$"
    r"|\bhow (?:cool|great|crazy|weird|nice|awesome|lucky|bad|funny|sweet) is (?:that|this)\W*$"
    r"|\bisn['’]t that (?:great|nice|something|funny)\W*$"
    r"|[,，] ?(?:ok(?:ay)?|huh|eh|yeah|hm+)\W*$"
    r"|谁知道|誰知道|谁在乎|难道|難道|何必|누가 알겠|그렇지 않나|말이 돼"
)
"""Rhetorical questions."""
_COURTESY = re.compile(
    r"(?i)\banything else\b|\bhow (?:can|may) i (?:help|assist)\b"
    r"|\b(?:can|may) i (?:help|assist) (?:you )?(?:with )?(?:any|some)"
    r"|^(?:does|did) (?:that|this) (?:help|make sense|answer)|^(?:is|was) (?:that|this) (?:clear|helpful|ok(?:ay)?)\W*$"
    r"|^(?:shall|should) i (?:go on|continue)\W*$|还有(?:什么|其他)|有什么可以帮|도와드릴|더 필요하신|다른 문의"
)
"""An assistant's polite questions."""
_OWN_ANSWER = re.compile(
    r"(?i)^(?:because\b|turns out\b|it turns out\b|the answer\b|answer:|simple[:.]|easy[:.]|因为|因為|왜냐하면)"
)
_HEARD = (
    r"(?:(?:ok(?:ay)?|sure|right|alright|all right|good question|great question|good point|hm+|well|thanks|thank you"
    r"|got it|understood|of course|certainly|absolutely|no problem|sorry|will do|on it)\b[\s,.!:;–—-]*)*"
)
_PUTS_OFF = re.compile(
    rf"(?i)^{_HEARD}(?:$"
    r"|(?:i['’]ll|i will|let me|i['’]m going to|i am going to|i (?:need|have) to|i['’]d have to|we['’]ll|let['’]s)\s+"
    r"(?:first |just |quickly |also |now |go and |have to |need to |try to )*"
    r"(?:check|look|find|get back|send|book|call|ask|follow|confirm|update|prepare|write|remind|let you know"
    r"|schedule|try|see|investigate|dig|search|read|run|review|think|figure|start|begin"
    r"|take a look|have a look|open|inspect)\b"
    r"|(?:i (?:really )?(?:don['’]t|do not) know|i have no idea|no idea|not sure|i['’]m not sure|i am not sure"
    r"|i can(?:not|['’]t) (?:say|tell)|unclear|hard to say)\b"
    r"|(?:one|just a|a) (?:moment|second|sec|minute)\b|hold on\b|hang on\b|bear with\b"
    r"|give me a (?:moment|second|sec|minute)\b"
    r"|(?:i['’]m |i am )?(?:still )?(?:checking|looking|working|searching|thinking|investigating)\b"
    r"|(?:好的?|嗯|行)?[，,。 ]*(?:$|请?稍等|等一下|我?还?(?:不知道|不清楚|不确定)"
    r"|我(?:会|先|来|去|马上|再)*(?:查|看|问|找|确认|確認|试|想))"
    r"|(?:네|예|알겠습니다)?[,. ]*(?:$|잠시만|잘 모르|모르겠|알아보"
    r"|(?:확인|조사|검토|문의)[^.?!]{0,12}(?:겠|게요|볼게))"
    r")"
)
_TAKES_BACK = re.compile(
    r"(?i)(?:^|[.!,;] *)(?:(?:oh|ah|ok(?:ay)?|actually|no|thanks)[, ]+)*"
    r"(?:never ?mind|forget (?:it|that|about (?:it|that))|scrap that"
    r"|ignore (?:that|my (?:last )?question)|no longer (?:needed|relevant|necessary)"
    r"|not (?:needed|necessary|relevant) any ?more|(?:i )?(?:don['’]t|do not) need (?:it|that) any ?more"
    r"|i(?:['’]ve| have)? (?:found|solved|figured) (?:it|that)|found it|solved it|figured it out)\b"
    r"|算了|不用了|不需要了|됐어요|됐습니다|필요 ?없"
)


def real_questions(text: str, *, of_assistant: bool = False) -> list[str]:
    """The genuine questions of a turn, verbatim."""
    masked = _masked(text)
    spans = sentence_spans(masked)
    found: list[str] = []
    for at, (start, end) in enumerate(spans):
        after = masked[slice(*spans[at + 1])] if at + 1 < len(spans) else ""
        if end - start <= QUESTION_CHARS_MAX and _asks(masked[start:end], after, of_assistant):
            found.append(text[start:end])
    return found


def puts_off(text: str) -> bool:
    """True if a turn only defers: somebody will look, it is not known, or it asks back."""
    masked = _masked(text)
    said = [masked[start:end] for start, end in sentence_spans(masked)]
    return bool(said) and all(_is_marked(each) or _PUTS_OFF.search(each.rstrip(" .!。…")) for each in said)


def takes_back(text: str) -> bool:
    """True if a turn withdraws a question."""
    return _TAKES_BACK.search(_masked(text[:TAKEN_BACK_CHARS])) is not None


def _masked(text: str) -> str:
    """The text with code and quoted words masked, at the same length."""

    def hide(found: re.Match[str]) -> str:
        is_block = found[0].startswith(("```", "    ", "\t")) or found[0].lstrip().startswith(">")
        return "".join("\n" if sign == "\n" else " " if is_block else "x" for sign in found[0])

    return _MASKED.sub(hide, text)


def _is_marked(sentence: str) -> bool:
    return sentence.rstrip(_CLOSING).endswith(("?", "？"))


def _asks(sentence: str, after: str, of_assistant: bool) -> bool:
    if not any(sign.isalpha() for sign in sentence):
        return False
    if not _is_marked(sentence):
        return _UNMARKED.search(sentence) is not None
    last = list(_ADDRESS.finditer(sentence))[-1:]
    if last and last[0].end() >= len(sentence.rstrip()) and not _STARTS.search(sentence):
        return False  # the question mark is part of a URL
    if _FOR_EFFECT.search(sentence) or (of_assistant and _COURTESY.search(sentence)):
        return False
    if after and _OWN_ANSWER.search(after):
        return False
    is_fragment = len(sentence.split()) <= FRAGMENT_WORDS and sentence.isascii() and not _STARTS.search(sentence)
    return not (after and is_fragment and not _is_marked(after))


# -- session rows --------------------------------------------------------------------------------------
#
# Stored episodes of sessions, and those of entries past the watermark. An episode is a stretch of a session with no
# long gap: a pure function of the entries. Its rows follow the ledger with the index (`memory.index`): a user's rows
# are derived from the first `users.indexed` entries. Later entries are evaluated on demand, so that readers see the
# same regardless of the watermark. A forgotten turn keeps its place, so no boundary moves.


EPISODE_ORDER = ("user_id", "session_id", "first")
_BY_SEQ = ("user_id", "session_id", "seq")


class TurnPlace(NamedTuple):
    """The number of a turn in its session, and its time."""

    seq: int
    ts: str


class SessionPiece(NamedTuple):
    """The entries of one session among consecutive entries of a user."""

    session_id: str
    first: int
    """The number of the first one in the session."""
    places: list[TurnPlace]
    """Those that are turns, forgotten ones included."""


# -- following the ledger -----------------------------------------------------------------------------


def extend_sessions(tx: Transaction, user_id: str, pieces: Sequence[SessionPiece]) -> None:
    """Write the rows of the next entries of a user, in the transaction that moves the watermark past them."""
    episodes: list[EpisodeRow] = []
    for piece in pieces:
        episodes += cut(_last_episode(tx, user_id, piece), piece.places)
    if episodes:
        put(tx, EPISODES, episodes)


def _last_episode(reader: Reader, user_id: str, piece: SessionPiece) -> EpisodeRow:
    """The episode that a piece's entries continue."""
    if piece.first > 1:
        of_session = _of_session(user_id, piece.session_id)
        last = first(reader, EPISODES, of_session, order=EPISODE_ORDER, descending=True)
        if last is not None:
            return last
    return unbegun(user_id, piece.session_id)


def unbegun(user_id: str, session_id: str) -> EpisodeRow:
    """The first episode of a session without turns."""
    return EpisodeRow(user_id, session_id, first=1, last=1, turns=0, started_at="", ended_at="")


def cut(row: EpisodeRow, turns: Iterable[TurnPlace]) -> list[EpisodeRow]:
    """Append turns to an episode; return it and the episodes that begin among them."""
    user_id, session_id, first, last, count, started_at, ended_at = row
    ended = parse_instant(ended_at) if count else None
    found: list[EpisodeRow] = []
    for seq, ts in turns:
        moment = parse_instant(ts)
        if ended is None:
            started_at = ts
        elif count >= EPISODE_TURNS_MAX or moment - ended > GAP:
            found.append(EpisodeRow(user_id, session_id, first, last, count, started_at, ended_at))
            first, count, started_at = seq, 0, ts
        last, count, ended_at, ended = seq, count + 1, ts, moment
    return [*found, EpisodeRow(user_id, session_id, first, last, count, started_at, ended_at)]


def _of_session(user_id: str, session_id: str) -> tuple[Condition, ...]:
    return ("user_id", "=", user_id), ("session_id", "=", session_id)


# -- reading, independent of the watermark ---------------------------------------------------------------


class _Entry(NamedTuple):
    session_id: str
    seq: int
    ts: str
    kind: str
    role: str


def read_episodes(
    reader: Reader,
    user_id: str,
    session_id: str | None,
    after: tuple[str, int] | None,
    size: int,
    *,
    descending: bool = False,
) -> list[EpisodeRow]:
    """The next episodes of a user's sessions, or of one, after a place (session, number)."""
    where: tuple[Condition, ...] = (("user_id", "=", user_id),)
    where += () if session_id is None else (("session_id", "=", session_id),)
    place = None if after is None else (user_id, *after)
    stored = select(reader, EPISODES, where, order=EPISODE_ORDER, after=place, descending=descending, limit=size)
    rows = {(row.session_id, row.first): row for row in stored}
    for row in _episodes_of_tail(reader, user_id, session_id):
        key = row.session_id, row.first
        if after is None or (key < after if descending else key > after):
            rows[key] = row
    return [rows[key] for key in sorted(rows, reverse=descending)][:size]


def _episodes_of_tail(reader: Reader, user_id: str, session_id: str | None) -> Iterator[EpisodeRow]:
    """The future rows of the entries past the watermark: the last of each session as updated, and new ones."""
    user = read_user(reader, user_id)
    if user.indexed >= user.tail or is_reserved(user_id):
        return
    where: tuple[Condition, ...] = (("user_id", "=", user_id), ("n", ">", user.indexed))
    where += () if session_id is None else (("session_id", "=", session_id),)
    sessions: dict[str, list[_Entry]] = {}
    for entry in select(reader, ENTRIES, where, into=_Entry, order=("user_id", "n")):
        sessions.setdefault(entry.session_id, []).append(entry)
    for name, entries in sessions.items():
        piece = SessionPiece(name, entries[0].seq, _places(entries))
        yield from cut(_last_episode(reader, user_id, piece), piece.places)


def _places(entries: Iterable[_Entry]) -> list[TurnPlace]:
    """Those that are turns, forgotten ones included."""
    return [TurnPlace(entry.seq, entry.ts) for entry in entries if can_be_turn(entry.kind, entry.role)]


# -- rebuilding, verifying ----------------------------------------------------------------------------


class SessionRows:
    """Episodes as the store verifies them, with the rows of corpora (`SessionFold`).

    The folds of corpora are written with the entries, since their values are requested by name at once.
    """

    def __init__(self, *corpora: SessionFold) -> None:
        self._corpora = corpora

    def extend(self, tx: Transaction, user_id: str, session_id: str, last_seq: int, written: int) -> None:
        for fold in self._corpora if is_corpus(user_id) else ():
            fold.extend(tx, user_id, session_id, last_seq, written)

    def rebuild(self, tx: Transaction, user_id: str) -> None:
        """Rebuild the rows of corpora; the rest is rebuilt with the index."""
        for fold in self._corpora if is_corpus(user_id) else ():
            fold.rebuild(tx, user_id)

    def fault(self, reader: Reader, user_id: str, session_id: str, last_seq: int) -> tuple[int, str] | None:
        if is_reserved(user_id):
            folds = self._corpora if is_corpus(user_id) else ()
            faults = (fold.fault(reader, user_id, session_id, last_seq) for fold in folds)
            return next((fault for fault in faults if fault is not None), None)
        indexed = _last_indexed(reader, user_id, session_id)
        return _episode_fault(reader, user_id, session_id, indexed)


class _Seq(NamedTuple):
    seq: int


def _last_indexed(reader: Reader, user_id: str, session_id: str) -> int:
    """The session number of the last entry before the watermark; 0 for a session past it."""
    indexed = read_user(reader, user_id).indexed
    where = (*_of_session(user_id, session_id), ("n", "<=", indexed))
    last = first(reader, ENTRIES, where, into=_Seq, order=_BY_SEQ, descending=True)
    return 0 if last is None else last.seq


def _episode_fault(reader: Reader, user_id: str, session_id: str, indexed: int) -> tuple[int, str] | None:
    held = select(reader, EPISODES, _of_session(user_id, session_id), order=EPISODE_ORDER)
    made: Sequence[EpisodeRow] = ()
    if indexed:
        where = (*_of_session(user_id, session_id), ("seq", "<=", indexed))
        entries = stream(reader, ENTRIES, where, into=_Entry, order=_BY_SEQ)
        made = cut(unbegun(user_id, session_id), _places(entries))
    for row, other in zip(held, made, strict=False):
        if row != other:
            return other.first, f"its episode from entry {other.first} on is not what its turns give"
    if len(held) != len(made):
        at = min(len(held), len(made))
        number = (held if len(held) > len(made) else made)[at].first
        return number, f"its episode from entry {number} on is missing, or one too many"
    return None


# -- given summary -------------------------------------------------------------------------------------
#
# The caller's own summary of a session, with its sources. Pure.


GIVEN_SUMMARY = "summary"
"""The kind of item."""


class GivenSummary(Record):
    """A caller's summary of a session, its evidence, and no more trust than that evidence has."""

    summary_id: IdText
    session_id: IdText
    text: str
    sources: Items[IdText]
    given_at: str
    trust: Trust
    flags: Items[str] = ()
    """`instruction_like` if it, or its evidence, reads like a prompt injection."""


def project_given_summary(entry: LedgerEntry, _lookup: Callable[[str], Item | None]) -> list[Change]:
    """One item per summary: the newest of a session counts, and the one before it if that is forgotten."""
    said = entry.metadata
    scope = entry.scope
    try:
        given = GivenSummary.from_wire(
            {
                "summary_id": said.get("id"),
                "session_id": scope.session_id,
                "text": said.get("text"),
                "sources": said.get("sources"),
                "given_at": entry.recorded_at,
                "trust": entry.trust,
                "flags": said.get("flags", []),
            }
        )
    except InvalidRecord:  # not written by one of our runs, so no summary
        return []
    return [
        Change(
            id=given.summary_id,
            kind=GIVEN_SUMMARY,
            status="given",
            body=given.to_wire(),
            created_at=entry.recorded_at,
            trust=entry.trust,
            sources=(*given.sources, entry.id),
            name=digest_name(scope.session_id),
            user_id=scope.user_id,
            agent_id=scope.agent_id,
            session_id=scope.session_id,
            run_id=scope.run_id,
        )
    ]


# -- summary writing -----------------------------------------------------------------------------------
#
# The caller's own summary of a session: its sources are checked, and the newest of a session counts.


TEXT_CHARS_MAX = 8_000
"""Maximum length of a summary. A packet cuts it to the room it has."""
SOURCES_MAX = 256


def summarize(writer: Writer, text: Any, sources: Any) -> GivenSummary:
    """Keep a summary of the run's session on this user's evidence, at least one event of it."""
    said: str = cleaned(writer.ctx, text_of(text, "$.text"))
    if not said.strip():
        raise InvalidInput("a summary should hold some words", path="$.text")
    if len(said) > TEXT_CHARS_MAX:
        hint = "say less; what it rests on can be read by its sources"
        raise TooLarge(f"{len(said)} characters are over the limit of {TEXT_CHARS_MAX}", path="$.text", hint=hint)
    named = texts_of(sources, "$.sources")
    if not named:
        raise InvalidInput(
            "a summary needs at least one source", path="$.sources", hint="name the events that it sums up"
        )
    if len(named) > SOURCES_MAX:
        raise TooLarge(f"{len(named)} sources are over the limit of {SOURCES_MAX}", path="$.sources")
    summary_id = writer.ctx.ids.new("sum")

    def decide(tx: Transaction) -> Decided:
        evidence = read_evidence(tx, writer.scope, named)
        trust = trust_of_evidence([*evidence], is_supposed=True)
        reads_so = writer.ctx.policy.ledger.flag_instructions and reads_like_instructions(said)
        is_suspect = any(each.is_suspect for each in evidence) or (trust in ("tool", "external") and reads_so)
        flags = {"flags": [INSTRUCTION_LIKE]} if is_suspect else {}
        told = {"id": summary_id, "text": said, "sources": list(named)} | flags
        return Decided([draft_patch(SESSION_SUMMARIZED, trust, told)])

    return write_patches(writer, decide, lambda reader: _given(reader, summary_id))


def newest_given(reader: Reader, user_id: str, session_id: str) -> GivenSummary | None:
    """The caller's newest summary of a session that was not forgotten."""
    where: tuple[Condition, ...] = (
        ("kind", "=", GIVEN_SUMMARY),
        ("user_id", "=", user_id),
        ("name", "=", digest_name(session_id)),
        ("receipt_id", "=", None),
    )
    found = select_items(reader, where, order=("created_at", "id"), descending=True, limit=1)
    return GivenSummary.from_wire(found[0].plain()) if found else None


def summary_lines(reader: Reader, scope: Scope) -> tuple[SessionLine, ...]:
    """The caller's newest summary of a session as a line for its packets; empty if there is none."""
    given = newest_given(reader, scope.user_id, scope.session_id)
    if given is None:
        return ()
    line = SessionLine(
        evidence_id=given.summary_id,
        text=given.text,
        ts=given.given_at,
        weight=0,
        trust=given.trust,
        kind="given",
        sources=given.sources,
        flags=given.flags,
    )
    return (line,)


def _given(reader: Reader, summary_id: str) -> GivenSummary:
    item = latest(reader, summary_id)
    assert item is not None  # written in this transaction
    return GivenSummary.from_wire(item.plain())
