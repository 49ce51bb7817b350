"""Search of an owner's messages and facts, ranked on the one scale of `run.search`.

If the index can answer part of a filter (`marks`), it is asked first, and its results are checked against the whole
filter. A question for all that is known of somebody is answered with the current facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.integrations.mem0.filters import Group, every_field
from muniment.integrations.mem0.marks import within_of
from muniment.integrations.mem0.profile import Asked, read_question

if TYPE_CHECKING:
    from muniment.contracts.packet import Fact
    from muniment.handles.run import Run
    from muniment.integrations.mem0.memories import Memories, Shown
    from muniment.memory.search import Hit

__all__ = ["Search", "newest_memories", "search_owner"]

_HITS_MAX = 1000
"""Maximum results of one store search."""
_LOOKED_MAX = 4000
"""Maximum results checked against a filter; beyond that, the ledger is read once for matches."""
_EVENTS_AT_ONCE = 20_000
_DISLIKES = ("dislikes", "avoids")
_OTHER_WAY = 0.5
"""Factor on a dislike's score if likes are asked for, and vice versa."""
_SAID_ANYWAY = 0.5
"""Score of plain messages if everything about a person is asked for: as likely relevant as not."""


class Search(NamedTuple):
    """A search of one owner's memories."""

    query: str
    tree: Group
    top: int
    least: float
    show_expired: bool
    explain: bool
    now: Any = None


def search_owner(memories: Memories, owner: str, asked: Search) -> list[dict[str, Any]]:
    """The best memories and facts of an owner, best first."""
    if asked.top == 0:
        return []
    found: dict[str, dict[str, Any]] = {}
    facts = {fact.fact_id: fact for fact in memories.facts(owner)}
    question = read_question(asked.query, _names(owner, facts.values()))
    if question is not None:
        for shown in _of_person(memories, owner, asked, question, list(facts.values())):
            found.setdefault(shown["id"], shown)
    for shown in _ranked(memories, owner, asked, facts):
        held = found.get(shown["id"])
        if held is None or held["score"] < shown["score"]:
            found[shown["id"]] = shown
    best = sorted(found.values(), key=lambda shown: -shown["score"])
    return [shown for shown in best if shown["score"] >= asked.least][: asked.top]


# -- what is known of a person ------------------------------------------------------------------------


def _names(owner: str, facts: Any) -> set[str]:
    """Words for an owner: the id, and known names."""
    named = [owner, *(str(fact.value) for fact in facts if fact.fact_key == "user.name")]
    return {word for name in named for word in name.split()}


def _of_person(
    memories: Memories, owner: str, asked: Search, question: Asked, facts: list[Fact]
) -> Iterator[dict[str, Any]]:
    if question.kind == "preferences":
        patterns = memories.mem.policy.memory.facts.preferences
        facts = [fact for fact in facts if any(fnmatchcase(fact.fact_key, pattern) for pattern in patterns)]
    told: set[str] = set()
    for fact in sorted(facts, key=_by_subject):
        shown = memories.fact_shown(fact, tree=asked.tree, show_expired=asked.show_expired)
        if shown is not None:
            told.update(fact.sources)
            why = f"a fact that stands, and the question asks for {question.kind}"
            yield _scored(shown, _chance(fact, question), asked, {}, why)
    if question.kind == "profile":
        said = newest_memories(memories, owner, asked.tree, asked.top, show_expired=asked.show_expired)
        for each in islice(said, asked.top):
            if each.event_id not in told:
                yield _scored(each.memory, _SAID_ANYWAY, asked, {}, "the question asks for everything")


def _chance(fact: Fact, question: Asked) -> float:
    """Probability that a fact is relevant: its confidence, lowered if the question asks for more or leans the other
    way.
    """
    chance = (1.0 if fact.confidence is None else fact.confidence) * question.share
    is_dislike = fact.fact_key.rpartition(".")[2] in _DISLIKES
    if question.leaning is None or is_dislike is (question.leaning == "dislikes"):
        return chance
    return chance * _OTHER_WAY


def _by_subject(fact: Fact) -> tuple[bool, str]:
    """Sort key: facts about the user before facts about others."""
    return not fact.fact_key.startswith("user."), fact.fact_key


# -- what is ranked -----------------------------------------------------------------------------------


def _ranked(memories: Memories, owner: str, asked: Search, facts: Mapping[str, Fact]) -> Iterator[dict[str, Any]]:
    """Results of a store search that match the filter."""
    run, within = memories.run(owner), within_of(asked.tree)
    seen: set[str] = set()
    count, last = 0, 1.0
    size = min(_HITS_MAX, 4 * asked.top + 20)
    while True:
        hits = _hits(run, asked, size, _beyond(within, seen))
        fresh = [hit for hit in hits if hit.id not in seen]
        for hit in fresh:
            if count >= asked.top:
                return
            seen.add(hit.id)
            shown = _shown(memories, asked, hit, facts)
            if shown is not None:
                last = min(last, hit.score)  # later results never rank above earlier ones
                yield _scored(shown, last, asked, hit.parts, *hit.why)
                count += 1
        if count >= asked.top or len(hits) < size:
            return
        if size == _HITS_MAX and len(seen) >= _LOOKED_MAX and _narrows(asked.tree):
            yield from _walked(memories, owner, asked, facts, seen, last)
            return
        if len(seen) > _EVENTS_AT_ONCE - _HITS_MAX:
            return
        size = _HITS_MAX


def _beyond(within: dict[str, Any] | None, seen: set[str]) -> dict[str, Any] | None:
    """Extend the conditions to exclude seen results."""
    if len(seen) < _HITS_MAX:
        return within
    rest: dict[str, Any] = {"none_of": [{"events": sorted(seen)}]}
    return rest if within is None else {"all_of": [within, rest]}


def _narrows(tree: Group) -> bool:
    return any(field.key != "user_id" for field in every_field(tree))


def _walked(
    memories: Memories, owner: str, asked: Search, facts: Mapping[str, Fact], seen: set[str], last: float
) -> Iterator[dict[str, Any]]:
    """Read the ledger once and rank the matches, if matches are rare and unknown to the index."""
    fitting = [
        each.event_id
        for each in memories.walk(owner, asked.tree, show_expired=asked.show_expired)
        if each.event_id not in seen
    ]
    run = memories.run(owner)
    for begin in range(0, len(fitting), _EVENTS_AT_ONCE):
        among = {"events": fitting[begin : begin + _EVENTS_AT_ONCE]}
        for hit in _hits(run, asked, _HITS_MAX, among):
            shown = _shown(memories, asked, hit, facts)
            if shown is not None:
                yield _scored(shown, min(last, hit.score), asked, hit.parts, *hit.why)


def newest_memories(memories: Memories, owner: str, tree: Group, about: int, *, show_expired: bool) -> Iterator[Shown]:
    """An owner's memories that match a filter, newest first; roughly `about` of them are wanted."""
    run, within = memories.run(owner), within_of(tree) or {}
    seen: set[str] = set()
    size = min(_HITS_MAX, 2 * about + 20)
    while True:
        hits = run.search("", k=size, within=_beyond(within, seen))
        for hit in hits:
            entry = None if hit.id in seen else memories.entry(hit.id)
            seen.add(hit.id)
            shown = None if entry is None else memories.shown_if(entry, tree, show_expired=show_expired)
            if shown is not None:
                yield shown
        if len(hits) < size:
            return
        if len(seen) >= _LOOKED_MAX:
            walked = memories.walk(owner, tree, show_expired=show_expired)
            yield from (each for each in walked if each.event_id not in seen)
            return
        size = _HITS_MAX


def _hits(run: Run, asked: Search, size: int, within: dict[str, Any] | None) -> list[Hit]:
    return run.search(asked.query, k=size, now=asked.now, min_score=asked.least, within=within)


def _shown(memories: Memories, asked: Search, hit: Hit, facts: Mapping[str, Fact]) -> dict[str, Any] | None:
    if hit.kind == "fact":
        fact = facts.get(hit.id)
        return None if fact is None else memories.fact_shown(fact, tree=asked.tree, show_expired=asked.show_expired)
    entry = memories.entry(hit.id) if hit.kind == "event" else None
    found = None if entry is None else memories.shown_if(entry, asked.tree, show_expired=asked.show_expired)
    return None if found is None else found.memory


def _scored(
    shown: dict[str, Any], score: float, asked: Search, parts: Mapping[str, float], *why: str
) -> dict[str, Any]:
    more = {"score_details": dict(parts), "why": list(why)} if asked.explain else {}
    return {**shown, "score": float(score), **more}
