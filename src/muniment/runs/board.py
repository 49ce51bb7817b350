"""The run's board in a packet: orders and calls, open matters, verified claims (TM-02, TM-17).

Computed from the calls and from the items of the run's entries, so that it is the same before and after a compaction,
after a resume and in another process. Each list is bounded, with the number of omissions.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.contracts.packet import OpenLoop
from muniment.core.canonical import canonical_text
from muniment.core.ports.engine import Condition
from muniment.core.ports.rows import by_ids, select
from muniment.core.ports.schema import ENTRIES, ITEMS, LINKS
from muniment.core.scope import FOREIGN, LEDGER_CORPUS, Trust
from muniment.core.text.analyzer import analyze, stem
from muniment.memory.evidence import match_text
from muniment.memory.tool_results import READ, effect_of_name, is_chunk, reads_as_failed, words_of_name
from muniment.runs.fold import TOOL_FAILURE
from muniment.runs.records import OpenQuestion, RunConflict
from muniment.store.injection import reads_like_instructions
from muniment.store.items import Item, get_version, latest, newest_items, select_items
from muniment.store.ledger import INSTRUCTION_LIKE, RunState, read_body

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader
    from muniment.core.scope import Scope
    from muniment.memory.evidence import Wanted

__all__ = [
    "AskedQuestion",
    "Listed",
    "RunCalls",
    "board_of",
    "failures_met",
    "find_outdated",
    "open_conflicts",
    "open_questions",
    "pinned_by",
    "planned_actions",
    "read_calls",
    "verified_claims",
]

FAILURES_READ = 100
"""The number of a run's latest failures examined."""
ACTIONS_READ = 16
"""The number of simultaneous plans examined, of which the last written counts."""
SIDE_MAX = 2
"""Pieces of evidence named on each side of a conflict."""


class Listed(NamedTuple):
    """The first current elements, in order, with their sources."""

    shown: list[dict[str, Any]]
    beyond: int
    """The number of further elements."""
    sources: tuple[str, ...]
    """The items and entries they rest on."""


class AskedQuestion(NamedTuple):
    """An unanswered question of the run, with the trust of its author."""

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
    """The run as it was started; empty if its purpose was forgotten, None if nothing was written yet."""
    item = latest(reader, scope.run_id)
    if item is None or item.kind != "run" or item.user_id != scope.user_id:
        return None
    if item.body is None:
        return RunState(run_id=scope.run_id, scope=scope, started_at=item.created_at)
    return RunState.from_wire(item.plain())


def open_questions(reader: Reader, scope: Scope, limit: int) -> tuple[list[AskedQuestion], int]:
    """The latest open questions, in the order they were asked, and the number of others."""
    items, beyond = _standing(reader, scope, "question", "open", limit)
    asked = []
    for item in items:
        question = OpenQuestion.from_wire(item.plain())
        loop = OpenLoop(question=question.text, owner="agent", status="open", evidence_id=question.opened_by)
        asked.append(AskedQuestion(loop, item.trust, item.id))
    return asked, beyond


def open_conflicts(reader: Reader, scope: Scope, limit: int) -> Listed:
    """The latest unsettled conflicts, each with evidence of both sides."""
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
    """The latest items of the run with this status; only their bodies are read."""
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
    """A failure by its fingerprint: its last occurrence, and all of them."""

    item: Item
    told: dict[str, Any]
    ids: tuple[str, ...]
    is_fixed: bool
    """True if its call has succeeded since."""


class _Source(NamedTuple):
    """The evidence of a failure."""

    id: str
    kind: str
    seq: int
    flags: str


def failures_met(reader: Reader, scope: Scope, limit: int, calls: RunCalls, *, has_board: bool) -> Listed:
    """Failures: those recorded by the run first, then those of tools, the latest of each.

    A call that succeeded on a retry is no failure; the run's own reason for it is marked as passed. If the run has a
    board, that lists the calls.
    """
    where: tuple[Condition, ...] = (("kind", "=", "failure"), ("run_id", "=", scope.run_id), ("receipt_id", "=", None))
    order = ("created_at", "id", "version")
    rows = select_items(reader, where, order=order, descending=True, limit=FAILURES_READ)
    met = [(item, item.plain()) for item in rows if item.user_id == scope.user_id]
    met = [(item, said) for item, said in met if _is_told(said)]
    if has_board:
        met = [(item, said) for item, said in met if said["category"] != TOOL_FAILURE]
    rests_on = _sources(reader, [item.id for item, _ in met])
    fixed = calls.fixed()
    found: dict[str, _Failure] = {}
    for item, said in met:
        is_fixed = any(source.id in fixed for source in rests_on[item.id])
        if is_fixed and said["category"] == TOOL_FAILURE:
            continue
        known = found.setdefault(said["fingerprint"], _Failure(item, said, (), is_fixed))
        found[said["fingerprint"]] = known._replace(ids=(*known.ids, item.id))
    recorded = [each for each in found.values() if each.told["category"] != TOOL_FAILURE]
    answered = [each for each in found.values() if each.told["category"] == TOOL_FAILURE]
    # For a tool's result with a reason given by the run, the reason suffices.
    given = {source.id for each in recorded for source in rests_on[each.item.id]}
    answered = [each for each in answered if given.isdisjoint(source.id for source in rests_on[each.item.id])]
    ranked = [*recorded, *answered]  # each latest first
    chosen = sorted(ranked[:limit], key=lambda each: (each.item.created_at, each.item.id))
    shown = [_shown_failure(each, rests_on[each.item.id]) for each in chosen]
    ids = [id_ for each in chosen for id_ in (*each.ids, *(source.id for source in rests_on[each.item.id]))]
    return Listed(shown, len(ranked) - len(chosen), tuple(dict.fromkeys(ids)))


def _is_told(told: dict[str, Any]) -> bool:
    """Check the shape, as an imported item may hold anything."""
    return all(isinstance(told.get(key), str) for key in ("category", "where", "why", "fingerprint"))


def _shown_failure(failure: _Failure, sources: Sequence[_Source]) -> dict[str, Any]:
    """A failure in packet form, citing its evidence, or else its own entry."""
    evidence = [source for source in sources if source.kind != "state_patch"] or list(sources)
    shown: dict[str, Any] = {"failure_id": failure.item.id} | {
        key: failure.told[key] for key in ("category", "where", "why")
    }
    if len(failure.ids) > 1:
        shown["times"] = len(failure.ids)
    if failure.is_fixed:
        shown["passed"] = True
    if evidence:
        shown["evidence_id"] = evidence[0].id
    shown["trust"] = failure.item.trust
    suspect = any(INSTRUCTION_LIKE in source.flags.split(",") for source in evidence)
    flags = _flags(failure.item.trust, f"{failure.told['where']}\n{failure.told['why']}")
    return shown | ({"flags": [INSTRUCTION_LIKE]} if suspect else flags)


def _sources(reader: Reader, item_ids: Sequence[str]) -> dict[str, list[_Source]]:
    """The entries of these items, in order."""
    links = list(by_ids(reader, LINKS, item_ids, column="item_id"))
    rows = by_ids(reader, ENTRIES, sorted({link.source_id for link in links}), into=_Source)
    known = {row.id: row for row in rows}
    found: dict[str, list[_Source]] = {id_: [] for id_ in item_ids}
    for link in links:
        if link.source_id in known:
            found[link.item_id].append(known[link.source_id])
    return {id_: sorted(sources, key=lambda source: (source.seq, source.id)) for id_, sources in found.items()}


def _flags(trust: Trust, text: str) -> dict[str, Any]:
    """Flag external text again, since it may have been relayed in an entry of the run's own."""
    return {"flags": [INSTRUCTION_LIKE]} if trust in FOREIGN and reads_like_instructions(text) else {}


# -- calls and orders -----------------------------------------------------------------------------------

CALLS_MIN = 6
"""A run with fewer calls has no board: the last turns show them."""
CALLS_READ, ORDERS_READ = 600, 100
"""The numbers of a run's latest results, and of its user's messages, that the board is computed from."""
LINES_MAX, ORDERS_MAX = 100, 16
"""Maximum lines of calls and of orders. A run with more talk than calls has no orders: it is quoted."""
_ORDER_CHARS_MAX, _VALUE_CHARS_MAX, _KEY_CHARS_MAX, _RESULT_CHARS_MAX = 240, 96, 64, 120
_SHOWN_MIN = 1.0
"""The minimum value of a call's line; the long results of a tool called a hundred times are below it."""


class _Call(NamedTuple):
    """A call and its result, from the ledger."""

    id: str
    seq: int
    trust: Trust
    flags: str
    name: str
    args: Mapping[str, Any]
    ok: bool
    text: str
    size: int
    """Bytes of a result stored in a blob."""
    key: str
    """Equal for calls with the same request."""


class _Order(NamedTuple):
    """A user message in a run."""

    id: str
    text: str
    trust: Trust
    flags: str


class _BoardRow(NamedTuple):
    id: str
    run_id: str
    seq: int
    ts: str
    kind: str
    trust: Trust
    flags: str
    content_hash: bytes
    salt: bytes | None
    body: str | None
    receipt_id: str | None


@dataclass(slots=True)
class _Unit:
    """All calls of one tool on one subject, the newest last."""

    calls: list[_Call]
    payload: list[str]
    """The names of the arguments that do not identify the subject."""
    subjects: frozenset[str]
    """The subjects, in the form that other calls name them."""
    is_earlier: bool = False
    """True if a later call changed the subject, or the same tool was called on it again."""

    @property
    def last(self) -> _Call:
        return self.calls[-1]

    @property
    def is_short(self) -> bool:
        """True for a short result on one line, as changes give; a long one was read, and can be read again."""
        text = self.last.text.strip()
        return len(text) <= _RESULT_CHARS_MAX and "\n" not in text and not self.last.size

    @property
    def times(self) -> int:
        """The number of calls identical to the last one."""
        key = self.last.key
        return sum(call.key == key for call in self.calls)


class RunCalls(NamedTuple):
    """The latest calls of a run and the user's messages in it, oldest first."""

    calls: list[_Call]
    orders: list[_Order]
    outdated: dict[str, str]
    """Outdated results in the session, each with the newer call that replaces it (`find_outdated`)."""

    def fixed(self) -> frozenset[str]:
        """The calls that failed and succeeded when repeated identically."""
        answered = {call.key: call.seq for call in self.calls if call.ok}
        return frozenset(call.id for call in self.calls if not call.ok and answered.get(call.key, 0) > call.seq)


def read_calls(reader: Reader, scope: Scope, is_meant: Callable[[str], bool] | None = None) -> RunCalls:
    """Read the calls of a run, the user's messages if it has a board, and the outdated results in its session.
    `is_meant` says whether a moment is requested.
    """
    calls: list[_Call] = []
    own: list[_Call] = []
    for row, body in _bodies(reader, scope, (("kind", "=", "tool_result"),), CALLS_READ, is_meant):
        tool = body.get("tool")
        if tool is not None and not is_chunk(tool, body.get("metadata")):
            name, args = tool["name"], tool.get("args") or {}
            result = (tool["ok"], body.get("content") or "", body.get("bytes") or 0, canonical_text([name, args]))
            calls.append(_Call(row.id, row.seq, row.trust, row.flags, name, args, *result))
            if row.run_id == scope.run_id:
                own.append(calls[-1])
    orders: list[_Order] = []
    if len(own) >= CALLS_MIN:
        in_run: tuple[Condition, ...] = (("run_id", "=", scope.run_id), ("role", "=", "user"))
        for row, body in _bodies(reader, scope, in_run, ORDERS_READ, is_meant):
            text = body.get("content") or ""
            if row.kind == "message" and len(set(analyze(text))) >= _ORDER_TERMS_MIN:
                orders.append(_Order(row.id, text, row.trust, row.flags))
    return RunCalls(own[::-1], orders[::-1], find_outdated(calls[::-1]))


def _bodies(
    reader: Reader, scope: Scope, chosen: tuple[Condition, ...], limit: int, is_meant: Callable[[str], bool] | None
) -> Iterator[tuple[_BoardRow, dict[str, Any]]]:
    """The latest entries of the session that meet these conditions, newest first."""
    where: tuple[Condition, ...] = (
        ("user_id", "=", scope.user_id),
        ("session_id", "=", scope.session_id),
        ("receipt_id", "=", None),
        *chosen,
    )
    order = ("user_id", "session_id", "seq")
    for row in select(reader, ENTRIES, where, into=_BoardRow, order=order, descending=True, limit=limit):
        body = read_body(row)
        if body is not None and (is_meant is None or is_meant(row.ts)):
            yield row, body


def board_of(run: RunCalls) -> Listed:
    """The run's board (TM-17): the user's orders, grouped with those that repeat their words; then the calls by
    subject, each with its last call and result. Words are not interpreted: similarity, repetition and recency decide.

    A short run has none: its last turns show everything.
    """
    calls, orders, outdated = run
    if len(calls) < CALLS_MIN:
        return Listed([], 0, ())
    name_of = {call.id: call.name for call in calls}
    units: list[_Unit] = []
    for unit in _units(calls):
        newer = outdated.get(unit.last.id)
        if newer is None or name_of.get(newer) != unit.last.name:  # else the newer call has a line of the same kind
            unit.is_earlier |= newer is not None
            units.append(unit)
    of_tool = Counter(unit.last.name for unit in units)
    worth = [(_worth(unit, of_tool, calls[-1].seq), unit.last.seq, unit) for unit in units]
    ranked = sorted(worth, key=lambda each: each[:2], reverse=True)
    told = [unit for value, _, unit in ranked if value >= _SHOWN_MIN][:LINES_MAX]
    asked = _order_lines(orders)[:ORDERS_MAX] if len(orders) <= len(calls) else []
    shown = [*asked, *map(_call_line, told)]
    sources = [id_ for line in shown for id_ in line["evidence_ids"]]
    return Listed(shown, len(units) - len(told), tuple(dict.fromkeys(sources)))


# -- calls by subject


def _units(calls: Sequence[_Call]) -> list[_Unit]:
    """Group the calls by tool and subject.

    An argument identifies the subject if its value recurs in an otherwise different call: a path, an id, a name. One
    that is equal in all calls of a tool does so only if another tool is called with it too. For a tool that gives
    different answers to the same question over time, all arguments do: it reads, and changes nothing.
    """
    named_in: dict[str, set[str]] = {}
    tools_of: dict[str, set[str]] = {}
    values: dict[tuple[str, str], set[str]] = {}
    results: dict[str, set[str]] = {}
    for call in calls:
        results.setdefault(call.key, set()).add(call.text)
        for name, value in call.args.items():
            values.setdefault((call.name, name), set()).add(canonical_text(value))
            if _is_name(value):
                named_in.setdefault(value, set()).add(call.key)
                tools_of.setdefault(value, set()).add(call.name)
    looking = {call.name for call in calls if len(results[call.key]) > 1}
    telling: set[tuple[str, str]] = set()
    for call in calls:
        for name, value in call.args.items():
            varies = len(values[call.name, name]) > 1
            if _is_name(value) and len(named_in[value]) > 1 and (varies or len(tools_of[value]) > 1):
                telling.add((call.name, name))
    units: dict[str, _Unit] = {}
    for call in calls:
        keys = [name for name in call.args if (call.name, name) in telling]
        if call.name in looking or not keys:
            keys = [name for name, value in call.args.items() if call.name in looking or _is_name(value)]
        key = canonical_text([call.name, {name: call.args[name] for name in keys}])
        subjects = frozenset(value for value in call.args.values() if _is_name(value) and len(named_in[value]) > 1)
        unit = units.setdefault(key, _Unit([], [], subjects))
        unit.calls.append(call)
        unit.payload = [name for name in call.args if name not in keys]
    _mark_earlier(list(units.values()))
    return list(units.values())


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _KEY_CHARS_MAX and "\n" not in value


def _mark_earlier(units: Sequence[_Unit]) -> None:
    """Mark a unit as earlier if a later call changed its subject, or the same tool was called on it differently: its
    result may be outdated.
    """
    changed: dict[str, int] = {}
    again: dict[tuple[str, str], int] = {}
    for unit in units:
        for subject in unit.subjects:
            if unit.last.ok and (unit.payload or unit.is_short):
                changed[subject] = max(changed.get(subject, 0), unit.last.seq)
            place = (unit.last.name, subject)
            again[place] = max(again.get(place, 0), unit.last.seq)
    for unit in units:
        unit.is_earlier = any(
            max(changed.get(subject, 0), again[unit.last.name, subject]) > unit.last.seq for subject in unit.subjects
        )


def _worth(unit: _Unit, of_tool: Mapping[str, int], newest: int) -> float:
    """The value of a line: unresolved failures first, then changes and repeated calls, then rare ones."""
    return (
        2.0 * (not unit.last.ok)
        + unit.is_short * (1 + bool(unit.payload) + (len(unit.calls) > 1))
        + 1 / math.sqrt(of_tool[unit.last.name])
        - 1.0 * unit.is_earlier
        + 0.5 * unit.last.seq / newest
    )


def _call_line(unit: _Unit) -> dict[str, Any]:
    call = unit.last
    said = [_short(value) for name, value in call.args.items() if name not in unit.payload]
    said += [f"{name}={_short(call.args[name])}" for name in unit.payload]
    if reads_like_instructions("\n".join(said)):  # LG-08: the arguments may have been dictated by an injection
        said = [f"… {len(said)} left out: they read like instructions"]
    notes = [f"called {unit.times} times"] if unit.times > 1 else []
    notes += ["earlier"] if unit.is_earlier else []
    words = f"{call.name}({', '.join(said)}){'' if call.ok else ' failed'} → {_result(call)}"
    if notes:
        words += f" ({', '.join(notes)})"
    return _line(words, call.trust, call.flags, call.id) | {"times": unit.times}


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else canonical_text(value)
    text = " ".join(text.split())
    return text if len(text) <= _VALUE_CHARS_MAX else f"{text[:_VALUE_CHARS_MAX].rstrip()}…"


def _result(call: _Call) -> str:
    """The first and the last line of a result: a command's summary is at one of the ends."""
    if call.size and not call.text:
        return f"{call.size} bytes"
    lines = [" ".join(line.split()) for line in call.text.splitlines() if line.strip()]
    if not lines:
        return "(nothing)"
    if len(lines) == 1 and len(lines[0]) <= _RESULT_CHARS_MAX:
        return lines[0]
    half = _RESULT_CHARS_MAX // 2
    first = lines[0] if len(lines[0]) <= half else f"{lines[0][:half].rstrip()}…"
    last = lines[-1] if len(lines[-1]) <= half else f"…{lines[-1][-half:].lstrip()}"
    return f"{first} … {last}"


def _line(words: str, trust: Trust, flags: str, *evidence_ids: str) -> dict[str, Any]:
    line: dict[str, Any] = {"line": words, "evidence_ids": list(evidence_ids), "trust": trust}
    return line | ({"flags": [INSTRUCTION_LIKE]} if INSTRUCTION_LIKE in flags.split(",") else {})


# -- outdated results


_THING_CHARS_MAX, _VALUE_WORDS_MIN = 256, 0.5
"""A longer argument names nothing; the share of words that a rewritten text keeps."""
_EXTENSION = re.compile(r"\w\.[A-Za-z]\w{0,7}\Z")
_WORD = re.compile(r"\w+")


class _Reading(NamedTuple):
    """A call, with its subject and effect."""

    call: _Call
    effect: str | None
    noun: frozenset[str]
    """The words of the tool's name without its leading verb."""
    args: dict[str, Any]
    """With paths and spaces normalised."""
    key: str

    @property
    def has_changed(self) -> bool:
        return self.effect not in (None, READ) and self.call.ok and not reads_as_failed(self.call.text)


def find_outdated(calls: Sequence[_Call]) -> dict[str, str]:
    """Map outdated results to the newer calls that replace them; `calls` are a session's, oldest first.

    A result is outdated by a repetition of its call, and a read by a later change to its subject. A change is outdated
    by the same change with another value. Two calls that differ in an argument are different: the result of a command
    counts until the same command is run again.
    """
    readings = _readings(calls)
    set_again = _set_again(calls) if any(each.has_changed for each in readings) else {}
    newest: dict[str, _Call] = {}
    changes: dict[Any, dict[str, _Reading]] = {}
    outdated: dict[str, str] = {}
    for reading in reversed(readings):
        call = reading.call
        again = newest.setdefault(reading.key, call)
        if again is not call and (again.text, again.ok, again.size) != (call.text, call.ok, call.size):
            outdated[call.id] = again.id
        elif reading.effect == READ:
            later = [each for thing in (*_things(reading.args), None) for each in changes.get(thing, {}).values()]
            later = [each for each in later if _makes_untrue(each, reading)]
            if later:
                outdated[call.id] = max(later, key=lambda each: each.call.seq).call.id
        elif call.id in set_again:
            outdated[call.id] = set_again[call.id]
        if reading.has_changed:
            for thing in (*_things(reading.args), None):
                changes.setdefault(thing, {}).setdefault(call.name, reading)
    return outdated


def _readings(calls: Sequence[_Call]) -> list[_Reading]:
    plain = [{name: _in_one_form(value) for name, value in call.args.items()} for call in calls]
    paths = {value for args in plain for value in args.values() if _is_path(value)}
    whole: dict[str, str] = {}
    for path in paths:
        ends = [each for each in paths if each.startswith("/") and each.endswith(f"/{path}")]
        if len(ends) == 1 and not path.startswith("/"):
            whole[path] = ends[0]
    modes = _modes(calls)
    readings: list[_Reading] = []
    for call, named in zip(calls, plain, strict=True):
        args = {name: whole.get(value, value) if isinstance(value, str) else value for name, value in named.items()}
        words = words_of_name(call.name)
        mode = call.args.get(modes[call.name]) if call.name in modes else None
        effect = effect_of_name(words if mode is None else words_of_name(mode))
        noun = frozenset(map(stem, words if effect_of_name(words[:1]) is None else words[1:]))
        readings.append(_Reading(call, effect, noun, args, canonical_text([call.name, args])))
    return readings


def _modes(calls: Sequence[_Call]) -> dict[str, str]:
    """The argument that selects the operation, for tools that both read and write: `view`, `create`."""
    effects: dict[tuple[str, str], set[str | None]] = {}
    for call in calls:
        for name, value in call.args.items():
            is_word = isinstance(value, str) and value.isidentifier()
            effects.setdefault((call.name, name), set()).add(effect_of_name(words_of_name(value)) if is_word else None)
    return {tool: name for (tool, name), held in effects.items() if READ in held and len(held) > 1 and None not in held}


def _in_one_form(value: Any) -> Any:
    """An argument with normalised paths and spaces: `pytest  ./tests` is `pytest tests`."""
    if not isinstance(value, str) or len(value) > _THING_CHARS_MAX or "\n" in value:
        return value
    words = value.split()
    paths = [word.removeprefix("file://") for word in words]
    return " ".join(posixpath.normpath(word) if "/" in word and "://" not in word else word for word in paths) or value


def _is_path(value: Any) -> bool:
    return (
        isinstance(value, str)
        and 0 < len(value) <= _THING_CHARS_MAX
        and not any(sign.isspace() or sign == "@" for sign in value)
        and "://" not in value
        and ("/" in value or _EXTENSION.search(value) is not None)
    )


def _things(args: Mapping[str, Any]) -> list[Any]:
    """Texts and integers that may name a subject; a number together with what it numbers."""
    found: list[Any] = []
    for name, value in args.items():
        if isinstance(value, str) and 0 < len(value) <= _THING_CHARS_MAX and "\n" not in value:
            found.append(value)
        elif type(value) is int:
            found.append((words_of_name(name)[-1], value))
    return found


def _makes_untrue(change: _Reading, earlier: _Reading) -> bool:
    """True if a later change affects an earlier read: for a file, if it names it; otherwise, if both tools share a noun
    and all subjects of the earlier call recur. A creation only outdates the finding that the subject was missing.
    """
    things, changed = _things(earlier.args), set(_things(change.args))
    shared = [thing for thing in things if thing in changed]
    if any(map(_is_path, shared)):
        return change.effect != "create" or not earlier.call.ok
    return bool(change.noun & earlier.noun) and len(shared) == len(things)


def _set_again(calls: Sequence[_Call]) -> dict[str, str]:
    """Map changes to the last one of the same tool on the same subject with another value."""
    found: dict[str, str] = {}
    for unit in _units(calls):
        last = unit.last
        if len(unit.payload) != 1 or effect_of_name(words_of_name(last.name)) != "change" or not last.ok:
            continue
        name = unit.payload[0]
        for call in unit.calls[:-1]:
            if call.args.keys() == last.args.keys() and _is_instead(last.args[name], call.args[name]):
                found[call.id] = last.id
    return found


def _is_instead(value: Any, earlier: Any) -> bool:
    """True if a value replaces an earlier one: a single word does, or a text that keeps half of its words."""
    if not isinstance(value, str) or not isinstance(earlier, str):
        return True
    words, own = set(_WORD.findall(earlier)), set(_WORD.findall(value))
    return (len(words) <= 1 and len(own) <= 1) or len(words & own) >= _VALUE_WORDS_MIN * len(words)


# -- orders


def _order_lines(orders: Sequence[_Order]) -> list[dict[str, Any]]:
    """The user's orders, newest first; those that repeat a rare word of earlier ones share a line with them, so that an
    order appears with its follow-ups.
    """
    terms = [frozenset(analyze(order.text)) for order in orders]
    holding = Counter(term for each in terms for term in each)
    lines: dict[int, list[int]] = {}
    place: dict[int, int] = {}
    for at in range(len(orders)):
        shared = [(sum(1 / holding[term] for term in terms[at] & terms[other]), other) for other in range(at)]
        best, other = max(shared, default=(0.0, 0))
        place[at] = place[other] if best >= _TAKEN_UP else at
        lines.setdefault(place[at], []).append(at)
    newest = sorted(lines.values(), key=lambda held: -held[-1])
    return [_order_line([orders[at] for at in held]) for held in newest]


_ORDER_TERMS_MIN = 2
"""Minimum meaningful words of an order, unlike "Thanks!" and "Go on"."""
_TAKEN_UP = 0.5
"""The share of an earlier order that a later one must repeat; one word unique to these two is enough."""


def _order_line(held: Sequence[_Order]) -> dict[str, Any]:
    texts = [" ".join(order.text.split()) for order in held]
    cut = [text if len(text) <= _ORDER_CHARS_MAX else f"{text[:_ORDER_CHARS_MAX]}…" for text in texts]
    words = " — later: ".join(cut)
    flags = ",".join(order.flags for order in held)
    return _line(f"asked: {words}", held[-1].trust, flags, *(order.id for order in held))


# -- planned actions ---------------------------------------------------------------------------------------


def planned_actions(reader: Reader, scope: Scope) -> Listed:
    """The run's latest plan of next actions."""
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


# -- verified claims -------------------------------------------------------------------------------------

_STANDS = ("live", "superseded")
"""A newer revision does not invalidate the older one."""


class _MatchedClaim(NamedTuple):
    score: float
    created_at: str
    shown: dict[str, Any]
    chunk_ids: tuple[str, ...]
    """Chunks of the documents it cites."""


def verified_claims(
    reader: Reader, scope: Scope, wanted: Wanted, limit: int, is_meant: Callable[[str], bool] | None = None
) -> tuple[list[dict[str, Any]], int]:
    """At most `limit` verified claims of the run whose evidence still counts, each with its first evidence, and the
    number of others. `is_meant` says whether a claim of a moment is requested.
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
        if not refs:  # imported: without evidence here (CS-06)
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
    """The first of them that cite no retracted or missing document, which verifies nothing."""
    from muniment.memory.corpus import standing_of

    shown: list[dict[str, Any]] = []
    at = 0
    while at < len(found) and len(shown) < limit:
        page = found[at : at + limit]
        standing = standing_of(reader, scope.tenant_id, [id_ for each in page for id_ in each.chunk_ids])
        shown += [each.shown for each in page if all(standing.get(id_) in _STANDS for id_ in each.chunk_ids)]
        at += limit
    return shown[:limit], len(shown[limit:]) + len(found[at:])
