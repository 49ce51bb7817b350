"""What a run is now, as a packet shows it: its questions, conflicts, failures, plans and verified claims.

Read from the items that the run's entries make, by kind and run, so that it is the same before and after a compaction,
after a resume and in another process. Each list is bounded; what is left out is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.contracts.packet import OpenLoop
from muniment.core.canonical import canonical_text
from muniment.core.ports.engine import Condition
from muniment.core.ports.rows import by_ids, select
from muniment.core.ports.schema import ENTRIES, ITEMS, LINKS
from muniment.core.scope import LEDGER_CORPUS, Trust
from muniment.memory.reasons import match_text
from muniment.runs.fold import TOOL_FAILURE
from muniment.runs.records import OpenQuestion, RunConflict
from muniment.store.injection import reads_like_instructions
from muniment.store.items import Item, get_version, latest, newest_items, select_items
from muniment.store.ledger import INSTRUCTION_LIKE, RunState, read_body

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader
    from muniment.core.scope import Scope
    from muniment.memory.reasons import Wanted

__all__ = [
    "AskedQuestion",
    "Listed",
    "failures_met",
    "open_conflicts",
    "open_questions",
    "pinned_by",
    "planned_actions",
    "verified_claims",
]

FAILURES_READ = 100
"""How many of a run's latest failures are looked at."""
RESULTS_READ = 200
"""How many of a run's latest results are looked at for whether a call that failed was answered since."""
ACTIONS_READ = 16
"""Plans of the same moment, of which the last to be written stands."""
SIDE_MAX = 2
"""Pieces of evidence that are named on each side of a conflict."""
_FOREIGN: tuple[Trust, ...] = ("tool", "external")


class Listed(NamedTuple):
    """The first of what stands, in the order it was told, and what it is made of."""

    shown: list[dict[str, Any]]
    beyond: int
    """How many more stand."""
    sources: tuple[str, ...]
    """The items and entries that this rests on."""


class AskedQuestion(NamedTuple):
    """A question of the run that nobody has answered, and whose word it is."""

    loop: OpenLoop
    trust: Trust
    item_id: str


class _Version(NamedTuple):
    """A version of an item without its words."""

    id: str
    version: int
    status: str
    user_id: str | None
    created_at: str
    receipt_id: str | None


def pinned_by(reader: Reader, scope: Scope) -> RunState | None:
    """The run as it was started; empty where what it was for was forgotten, None where nothing was written yet."""
    item = latest(reader, scope.run_id)
    if item is None or item.kind != "run" or item.user_id != scope.user_id:
        return None
    if item.body is None:
        return RunState(run_id=scope.run_id, scope=scope, started_at=item.created_at)
    return RunState.from_wire(item.plain())


def open_questions(reader: Reader, scope: Scope, limit: int) -> tuple[list[AskedQuestion], int]:
    """The latest questions that are open, in the order they were asked; and how many more are."""
    items, beyond = _standing(reader, scope, "question", "open", limit)
    asked = []
    for item in items:
        question = OpenQuestion.from_wire(item.plain())
        loop = OpenLoop(question=question.text, owner="agent", status="open", evidence_id=question.opened_by)
        asked.append(AskedQuestion(loop, item.trust, item.id))
    return asked, beyond


def open_conflicts(reader: Reader, scope: Scope, limit: int) -> Listed:
    """The latest conflicts that are not settled, each with evidence of both sides."""
    items, beyond = _standing(reader, scope, "conflict", "open", limit)
    shown, sources = [], []
    for item in items:
        conflict = RunConflict.from_wire(item.plain())
        side_a, side_b = (
            list(dict.fromkeys(ref.chunk_id for ref in refs))[:SIDE_MAX]
            for refs in (conflict.side_a_refs, conflict.side_b_refs)
        )
        shown.append(
            {
                "conflict_id": item.id,
                "description": conflict.description,
                "side_a": side_a,
                "side_b": side_b,
                "trust": item.trust,
            }
            | _flags(item.trust, conflict.description)
        )
        sources += [item.id, *side_a, *side_b]
    return Listed(shown, beyond, tuple(sources))


def _standing(reader: Reader, scope: Scope, kind: str, status: str, limit: int) -> tuple[list[Item], int]:
    """The latest items of the run that are in this state; their words are read of those alone."""
    where: tuple[Condition, ...] = (("kind", "=", kind), ("run_id", "=", scope.run_id))
    newest: dict[str, _Version] = {}
    first: dict[str, str] = {}
    for version in select(reader, ITEMS, where, into=_Version, order=("id", "version")):
        newest[version.id] = version
        first.setdefault(version.id, version.created_at)
    stands = [
        each
        for each in newest.values()
        if each.status == status and each.receipt_id is None and each.user_id == scope.user_id
    ]
    stands.sort(key=lambda each: (first[each.id], each.id))
    chosen = stands[max(0, len(stands) - limit) :]
    items = [get_version(reader, each.id, each.version) for each in chosen]
    return [item for item in items if item is not None], len(stands) - len(chosen)


# -- failures -----------------------------------------------------------------------------------------


class _Failure(NamedTuple):
    """A failure by its fingerprint: as it was met last, and every time it was met."""

    item: Item
    told: dict[str, Any]
    ids: tuple[str, ...]
    is_good: bool
    """Was the call that it is about answered since?"""


class _Source(NamedTuple):
    """What a failure rests on."""

    id: str
    kind: str
    seq: int
    flags: str


def failures_met(reader: Reader, scope: Scope, limit: int) -> Listed:
    """What was tried and failed: what the run itself told of first, then what tools answered, the latest of each.

    A call that was made again and answered has not failed; a reason that the run gave for it says that it passed since.
    """
    where: tuple[Condition, ...] = (("kind", "=", "failure"), ("run_id", "=", scope.run_id), ("receipt_id", "=", None))
    order = ("created_at", "id", "version")
    rows = select_items(reader, where, order=order, descending=True, limit=FAILURES_READ)
    told = [(item, item.plain()) for item in rows if item.user_id == scope.user_id]
    told = [(item, said) for item, said in told if _is_told(said)]
    rests_on = _sources(reader, [item.id for item, _ in told])
    made_good = _made_good(reader, scope, [source for sources in rests_on.values() for source in sources])
    found: dict[str, _Failure] = {}
    for item, said in told:
        is_good = any(source.id in made_good for source in rests_on[item.id])
        if is_good and said["category"] == TOOL_FAILURE:
            continue
        known = found.get(said["fingerprint"])
        met = _Failure(item, said, (), is_good) if known is None else known
        found[said["fingerprint"]] = met._replace(ids=(*met.ids, item.id))
    told_of = [each for each in found.values() if each.told["category"] != TOOL_FAILURE]
    answered = [each for each in found.values() if each.told["category"] == TOOL_FAILURE]
    # Of a tool's result that the run gave its own reason for, the reason is enough.
    given = {source.id for each in told_of for source in rests_on[each.item.id]}
    answered = [each for each in answered if given.isdisjoint(source.id for source in rests_on[each.item.id])]
    ranked = [*told_of, *answered]  # each latest first
    chosen = sorted(ranked[:limit], key=lambda each: (each.item.created_at, each.item.id))
    shown = [_shown_failure(each, rests_on[each.item.id]) for each in chosen]
    ids = [id_ for each in chosen for id_ in (*each.ids, *(source.id for source in rests_on[each.item.id]))]
    return Listed(shown, len(ranked) - len(chosen), tuple(dict.fromkeys(ids)))


def _is_told(told: dict[str, Any]) -> bool:
    """An imported item may hold anything."""
    return all(isinstance(told.get(key), str) for key in ("category", "where", "why", "fingerprint"))


def _shown_failure(failure: _Failure, sources: Sequence[_Source]) -> dict[str, Any]:
    """Cited by the evidence it was told on, else by the entry that told of it."""
    evidence = [source for source in sources if source.kind != "state_patch"] or list(sources)
    shown: dict[str, Any] = {"failure_id": failure.item.id} | {
        key: failure.told[key] for key in ("category", "where", "why")
    }
    if len(failure.ids) > 1:
        shown["times"] = len(failure.ids)
    if failure.is_good:
        shown["passed"] = True
    if evidence:
        shown["evidence_id"] = evidence[0].id
    shown["trust"] = failure.item.trust
    suspect = any(INSTRUCTION_LIKE in source.flags.split(",") for source in evidence)
    flags = _flags(failure.item.trust, f"{failure.told['where']}\n{failure.told['why']}")
    return shown | ({"flags": [INSTRUCTION_LIKE]} if suspect else flags)


class _Result(NamedTuple):
    """A tool's result, of which the call and whether it worked are asked."""

    id: str
    content_hash: bytes
    salt: bytes | None
    body: str | None
    receipt_id: str | None


def _made_good(reader: Reader, scope: Scope, sources: Sequence[_Source]) -> frozenset[str]:
    """The results among these of calls that failed and, made again with the same arguments, were answered since.

    Looked for among the latest results of the run, and no further back than the first of these.
    """
    failed = [source for source in sources if source.kind == "tool_result"]
    if not failed:
        return frozenset()
    where: tuple[Condition, ...] = (
        ("user_id", "=", scope.user_id),
        ("session_id", "=", scope.session_id),
        ("seq", ">=", min(source.seq for source in failed)),
        ("run_id", "=", scope.run_id),
        ("kind", "=", "tool_result"),
    )
    order = ("user_id", "session_id", "seq")
    answered: set[str] = set()
    found: set[str] = set()
    for row in select(reader, ENTRIES, where, into=_Result, order=order, descending=True, limit=RESULTS_READ):
        tool = (read_body(row) or {}).get("tool")
        if tool is None:
            continue
        call = canonical_text([tool["name"], tool.get("args") or {}])
        if tool["ok"]:
            answered.add(call)
        elif call in answered:
            found.add(row.id)
    return frozenset(found)


def _sources(reader: Reader, item_ids: Sequence[str]) -> dict[str, list[_Source]]:
    """The entries that these items were made from, in their order."""
    links = list(by_ids(reader, LINKS, item_ids, column="item_id"))
    rows = by_ids(reader, ENTRIES, sorted({link.source_id for link in links}), into=_Source)
    known = {row.id: row for row in rows}
    found: dict[str, list[_Source]] = {id_: [] for id_ in item_ids}
    for link in links:
        if link.source_id in known:
            found[link.item_id].append(known[link.source_id])
    return {id_: sorted(sources, key=lambda source: (source.seq, source.id)) for id_, sources in found.items()}


def _flags(trust: Trust, text: str) -> dict[str, Any]:
    """Words that came from outside are looked at again: they may have been told on in an entry of the run's own."""
    return {"flags": [INSTRUCTION_LIKE]} if trust in _FOREIGN and reads_like_instructions(text) else {}


# -- what comes next ----------------------------------------------------------------------------------


def planned_actions(reader: Reader, scope: Scope) -> Listed:
    """What the run said it would do next, when it last said so."""
    where: tuple[Condition, ...] = (
        ("kind", "=", "next_actions"),
        ("run_id", "=", scope.run_id),
        ("receipt_id", "=", None),
    )
    order = ("created_at", "id", "version")
    rows = select_items(reader, where, order=order, descending=True, limit=ACTIONS_READ)
    plans = [(item.created_at, item.plain(), item) for item in rows if item.user_id == scope.user_id]
    if not plans:
        return Listed([], 0, ())
    _, told, item = max(plans, key=lambda plan: (plan[0], plan[1].get("seq", 0)))
    evidence_id = told.get("planned_by")
    cited = {"evidence_id": evidence_id} if isinstance(evidence_id, str) else {}
    shown = [{"action": each, **cited, "trust": item.trust} for each in _texts(told.get("actions"))]
    return Listed(shown, 0, (item.id, *cited.values()) if shown else ())


def _texts(given: Any) -> Iterable[str]:
    return (each for each in given if isinstance(each, str)) if isinstance(given, list) else ()


# -- what was verified --------------------------------------------------------------------------------

_STANDS = ("live", "superseded")
"""A newer revision takes nothing from what the older one says."""


class _MatchedClaim(NamedTuple):
    score: float
    created_at: str
    shown: dict[str, Any]
    chunk_ids: tuple[str, ...]
    """Of the documents it cites."""


def verified_claims(
    reader: Reader, scope: Scope, wanted: Wanted, limit: int, is_meant: Callable[[str], bool] | None = None
) -> tuple[list[dict[str, Any]], int]:
    """At most `limit` verified claims of the run that rest on what stands, each with the evidence it names first; and
    how many more there are. `is_meant` says of the moment at which a claim was made whether it is asked for.
    """
    where: tuple[Condition, ...] = (("kind", "=", "claim"), ("run_id", "=", scope.run_id))
    found: list[_MatchedClaim] = []
    for item in newest_items(reader, where):
        if item.status != "verified" or item.user_id != scope.user_id:
            continue
        if is_meant is not None and not is_meant(item.created_at):
            continue
        claim = item.plain()
        refs = claim["evidence_refs"]
        if not refs:  # brought from elsewhere: nothing shows it (CS-06)
            continue
        shown = {
            "claim_id": item.id,
            "statement": claim["statement"],
            "evidence_id": refs[0]["chunk_id"],
            "trust": item.trust,
        }
        chunk_ids = tuple(ref["chunk_id"] for ref in refs if ref.get("corpus_id", LEDGER_CORPUS) != LEDGER_CORPUS)
        score = match_text(wanted, claim["statement"]).score
        found.append(_MatchedClaim(score, item.created_at, shown, chunk_ids))
    found.sort(key=lambda each: each.shown["claim_id"])
    found.sort(key=lambda each: each[:2], reverse=True)
    return _with_standing(reader, scope, found, limit)


def _with_standing(
    reader: Reader, scope: Scope, found: Sequence[_MatchedClaim], limit: int
) -> tuple[list[dict[str, Any]], int]:
    """The first of them that cite no document that was retracted, or is not here: such a one verifies nothing."""
    from muniment.memory.corpus import standing_of

    shown: list[dict[str, Any]] = []
    at = 0
    while at < len(found) and len(shown) < limit:
        page = found[at : at + limit]
        standing = standing_of(reader, scope.tenant_id, [id_ for each in page for id_ in each.chunk_ids])
        shown += [each.shown for each in page if all(standing.get(id_) in _STANDS for id_ in each.chunk_ids)]
        at += limit
    return shown[:limit], len(shown[limit:]) + len(found[at:])
