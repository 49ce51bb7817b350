"""Keys of intent and state (the kind of work of a run, and its conditions); and the lifetime of records."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Literal, NamedTuple, TypeVar
from unicodedata import normalize

from muniment.core.canonical import digest, short_id
from muniment.core.instants import format_instant, parse_instant
from muniment.core.limits import remembered
from muniment.errors import InvalidInput
from muniment.learning.records import IntentParts, RunFacts, StateParts, StoredMemory

__all__ = [
    "ANYWHERE",
    "DAYS_MAX",
    "BankIds",
    "Likeness",
    "Ttl",
    "clashes",
    "expires_at",
    "has_expired",
    "intent_key",
    "intent_likeness",
    "key_hash",
    "keys_of",
    "name_key",
    "parse_intent_key",
    "parse_state_key",
    "parse_ttl",
    "read_intent_key",
    "read_state_key",
    "rule_intent_key",
    "rule_place_key",
    "shared_intent",
    "shared_keys_of",
    "state_compat",
    "state_key",
    "ttl_text",
]

_RESERVED = re.compile(r"[%|=,\x00-\x20\x7f]")
_ESCAPED = re.compile(r"%([0-9A-F]{2})")
_OFF = frozenset({"off", "no", "none", "false", "0"})

Parts = TypeVar("Parts", IntentParts, StateParts)


class Likeness(NamedTuple):
    """The similarity of two keys. A clash means that records learned under one are of no use under the other."""

    score: float
    """From 0 to 1, over the parts known to either key."""
    clash: bool
    why: tuple[str, ...]


class _Judged(NamedTuple):
    score: float
    clash: bool
    why: str


class _Field(NamedTuple):
    """A part of a key: name in the text, field of the record, and weight in comparisons."""

    name: str
    field: str
    weight: float
    judge: Callable[[str, Any, Any], _Judged]
    many: bool = False


# -- writing and reading ------------------------------------------------------------------------------


def intent_key(parts: IntentParts) -> str:
    """The canonical text of an intent."""
    return _write("intent", _INTENT, parts)


def rule_intent_key(record: Mapping[str, Any]) -> str:
    """The intent a RuleRecord (as plain data) applies to: family and domain, if named."""
    return intent_key(IntentParts.model_validate({name: value for name, value in _rule_place(record) if value}))


def rule_place_key(record: Mapping[str, Any]) -> str:
    """The intent key under which a RuleRecord is looked up; names that `name_key` equates have the same key."""
    named = {name: name_key(value) for name, value in _rule_place(record)}
    return intent_key(IntentParts.model_validate({name: value for name, value in named.items() if value}))


def name_key(name: str | None) -> str | None:
    """A domain or family normalised for comparison: composed, trimmed, case-folded; None if none is named."""
    return (normalize("NFC", name).strip().casefold() or None) if name is not None else None


def _rule_place(record: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    given = record.get("applicability")
    where: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    said = [(name, where.get(name)) for name in ("domain_tag", "task_family")]
    return [(name, value if isinstance(value, str) and value.strip() else None) for name, value in said]


def state_key(parts: StateParts) -> str:
    """The canonical text of a state."""
    return _write("state", _STATE, parts)


def parse_intent_key(text: str) -> IntentParts:
    """The inverse of `intent_key`. Raises `InvalidInput` for anything else."""
    parts = read_intent_key(text)
    if parts is None or intent_key(parts) != text:
        raise InvalidInput(f"{text!r:.80} is not an intent key", hint="intent|domain=…, as intent_key() writes it")
    return parts


def parse_state_key(text: str) -> StateParts:
    """The inverse of `state_key`. Raises `InvalidInput` for anything else."""
    parts = read_state_key(text)
    if parts is None or state_key(parts) != text:
        raise InvalidInput(f"{text!r:.80} is not a state key", hint="state|mode=…, as state_key() writes it")
    return parts


@remembered(4096)
def read_intent_key(text: str) -> IntentParts | None:
    """The parts of a key as written by a caller, in any order; None for an opaque key."""
    return _read("intent", _INTENT, IntentParts, text)


@remembered(4096)
def read_state_key(text: str) -> StateParts | None:
    """The parts of a key as written by a caller, in any order; None for an opaque key."""
    return _read("state", _STATE, StateParts, text)


def key_hash(text: str) -> str:
    """Hash a key of any length to 32 characters, for an index."""
    return digest(text.encode("utf-8", "surrogatepass")).hex()[:32]


def _write(head: str, fields: tuple[_Field, ...], parts: IntentParts | StateParts) -> str:
    line = [head]
    for field in fields:
        value = getattr(parts, field.field)
        if value is not None and field.many:
            names = sorted({_clean(name) for name in value} - {""})
            line.append(f"{field.name}={','.join(map(_escape, names))}")
        elif value is not None and _clean(value):
            line.append(f"{field.name}={_escape(_clean(value))}")
    return "|".join(line)


def _read(head: str, fields: tuple[_Field, ...], kind: type[Parts], text: str) -> Parts | None:
    first, *rest = text.split("|")
    by_name = {field.name: field for field in fields}
    found: dict[str, Any] = {}
    if first != head or not _is_text(text):
        return None
    for part in rest:
        name, equals, value = part.partition("=")
        field = by_name.get(name)
        if field is None or not equals or field.field in found:
            return None
        if field.many:
            found[field.field] = tuple(sorted({_clean(_unescaped(item)) for item in value.split(",")} - {""}))
        elif _clean(_unescaped(value)):
            found[field.field] = _clean(_unescaped(value))
    return kind.model_validate(found)


def _clean(value: str) -> str:
    """Trim and compose. Composing may expose white space at the ends, so it comes first."""
    return normalize("NFC", value).strip()


def _escape(value: str) -> str:
    return _RESERVED.sub(lambda found: f"%{ord(found[0]):02X}", value)


def _unescaped(value: str) -> str:
    """Restore the escaped characters of a value."""
    return _ESCAPED.sub(lambda code: chr(int(code[1], 16)), value)


def _is_text(value: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in value)


# -- comparing ----------------------------------------------------------------------------------------


@remembered(4096)
def intent_likeness(a: str | None, b: str | None) -> Likeness:
    """The similarity of two intents; symmetric. Different domains or families clash."""
    if a is None or b is None:
        return _UNKNOWN
    left, right = read_intent_key(a), read_intent_key(b)
    if left is None or right is None:
        return _as_wholes(a, b, both_opaque=left is None and right is None)
    return _compare(_INTENT, left, right)


def clashes(asked: str | None, key: Any) -> bool:
    """Return whether the intents are incompatible. Keys that do not parse clash with none."""
    return isinstance(key, str) and asked is not None and intent_likeness(asked, key).clash


def state_compat(wanted: str | None, memory: str | None, *, needs: Collection[str] | None = None) -> Likeness:
    """The compatibility of records learned in the state `memory` with the state `wanted`.

    `needs` are the required tools (from its intent), all of which must be available; by default, the tools available
    then.
    """
    missing = _missing(wanted, needs)
    if missing:
        return Likeness(0.0, True, (f"needs tools: {', '.join(missing)}",))
    if wanted is None or memory is None:
        return _UNKNOWN
    left, right = read_state_key(wanted), read_state_key(memory)
    if left is None or right is None:
        return _as_wholes(wanted, memory, both_opaque=False)
    return _compare(_STATE if needs is None else _STATE_WITH_NEEDS, left, right)


def _missing(wanted: str | None, needs: Collection[str] | None) -> list[str]:
    state = None if wanted is None else read_state_key(wanted)
    if not needs or state is None or state.tool_availability is None:
        return []
    return sorted({_clean(name) for name in needs} - set(state.tool_availability))


def _as_wholes(a: str, b: str, *, both_opaque: bool) -> Likeness:
    """Compare opaque keys for equality; a hash equals the key it was made from."""
    if _clean(a) == _clean(b) or key_hash(a) == b or key_hash(b) == a:
        return Likeness(1.0, False, ("same key",))
    return Likeness(0.0, both_opaque, ("other key",)) if both_opaque else _UNKNOWN


def _compare(fields: tuple[_Field, ...], left: IntentParts | StateParts, right: IntentParts | StateParts) -> Likeness:
    """Compare part by part. Parts known to one key only do not affect score or clash."""
    if left == right:
        return Likeness(1.0, False, ("same key",))
    weight = score = 0.0
    clash, why = False, []
    for field in fields:
        ours, theirs = getattr(left, field.field), getattr(right, field.field)
        if ours is None and theirs is None:
            continue
        weight += field.weight
        if ours is not None and theirs is not None:
            judged = field.judge(field.name, ours, theirs)
            score += field.weight * judged.score
            clash = clash or judged.clash
            why.append(judged.why)
    return Likeness(min(score / weight, 1.0), clash, tuple(why) or _UNKNOWN.why)


def _must_agree(name: str, ours: str, theirs: str) -> _Judged:
    return _same(name) if ours.casefold() == theirs.casefold() else _Judged(0.0, True, f"other {name}")


def _may_differ(name: str, ours: str, theirs: str) -> _Judged:
    return _same(name) if ours.casefold() == theirs.casefold() else _Judged(0.0, False, f"other {name}")


def _half_if_other(name: str, ours: str, theirs: str) -> _Judged:
    return _same(name) if ours.casefold() == theirs.casefold() else _Judged(0.5, False, f"other {name}")


def _overlap(name: str, ours: tuple[str, ...], theirs: tuple[str, ...]) -> _Judged:
    """The Jaccard index; if one set contains the other, halfway from there to 1."""
    left, right = set(ours), set(theirs)
    if left == right:
        return _same(name)
    both, either = len(left & right), len(left | right)
    share = both / either
    if both and both == min(len(left), len(right)):
        share = (1 + share) / 2
    return _Judged(share, False, f"{both} of {either} {name}")


def _available(name: str, ours: tuple[str, ...], theirs: tuple[str, ...]) -> _Judged:
    missing = sorted(set(theirs) - set(ours))
    if missing:
        return _Judged(1 - len(missing) / len(set(theirs)), True, f"needs {name}: {', '.join(missing)}")
    return _Judged(1.0, False, f"{name} available")


def _mostly_available(name: str, ours: tuple[str, ...], theirs: tuple[str, ...]) -> _Judged:
    judged = _available(name, ours, theirs)
    return _Judged(judged.score, False, judged.why.replace("needs", "had", 1))


def _sandbox(name: str, ours: tuple[str, ...], theirs: tuple[str, ...]) -> _Judged:
    """Records learned with a capability need it; those learned without it work with it too."""
    have, took = _flags(ours), _flags(theirs)
    broken = sorted(flag for flag, value in took.items() if value not in _OFF and have.get(flag) != value)
    if broken:
        return _Judged(0.0, True, f"needs {name}: {', '.join(broken)}")
    return _same(name) if have == took else _Judged(0.5, False, f"other {name}")


def _flags(flags: tuple[str, ...]) -> Mapping[str, str]:
    """Parse `network=allowlist`, `network:allowlist`, or just `network` for on."""
    named = (re.split("[:=]", flag.casefold(), maxsplit=1) for flag in flags)
    return {parts[0]: parts[1] if len(parts) > 1 else "on" for parts in named}


def _same(name: str) -> _Judged:
    return _Judged(1.0, False, f"same {name}")


_UNKNOWN = Likeness(0.0, False, ("unknown",))
_INTENT = (
    _Field("domain", "domain_tag", 0.3, _must_agree),
    _Field("family", "task_family", 0.3, _must_agree),
    _Field("tools", "required_tools", 0.2, _overlap, many=True),
    _Field("format", "output_format", 0.1, _may_differ),
    _Field("constraints", "constraint_profile", 0.1, _may_differ),
)
_MODE = _Field("mode", "mode", 0.2, _half_if_other)
_TIER = _Field("tier", "budget_tier", 0.1, _half_if_other)
_POLICY = _Field("policy", "policy_profile", 0.2, _must_agree)
_REST = (
    _Field("verifier", "verifier_profile", 0.1, _half_if_other),
    _Field("sandbox", "sandbox_flags", 0.1, _sandbox, many=True),
)
_STATE = (_MODE, _TIER, _POLICY, _Field("tools", "tool_availability", 0.3, _available, many=True), *_REST)
_STATE_WITH_NEEDS = (
    _MODE, _TIER, _POLICY, _Field("tools", "tool_availability", 0.3, _mostly_available, many=True), *_REST,
)  # fmt: skip


DAYS_MAX = 36_500
"""A hundred years. Use a pin for longer."""

_SHAPE = re.compile(r"([a-z]+):([0-9]{1,9})")
_HINT = "session, hours:6 or days:14"


class Ttl(NamedTuple):
    """A time to live. For a session it has no number: it ends with the session."""

    unit: Literal["session", "hours", "days"]
    n: int = 0


def parse_ttl(text: str, *, path: str = "$.ttl") -> Ttl:
    """Read a TTL in the contracts' notation. The error's `details["reason"]` names the kind of problem."""
    if text == "session":
        return Ttl("session")
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise _refusal(text, path, "not_a_ttl", "is not a TTL")
    unit, n = found[1], int(found[2])
    if unit != "hours" and unit != "days":
        raise _refusal(text, path, "unknown_unit", "is in no unit of a TTL")
    if n == 0:
        raise _refusal(text, path, "no_time", "leaves no time to live")
    if n > (DAYS_MAX if unit == "days" else DAYS_MAX * 24):
        raise _refusal(text, path, "too_long", f"is more than {DAYS_MAX} days")
    return Ttl("hours" if unit == "hours" else "days", n)


def ttl_text(ttl: Ttl) -> str:
    """The inverse of `parse_ttl`, without leading zeros."""
    return ttl.unit if ttl.unit == "session" else f"{ttl.unit}:{ttl.n}"


def expires_at(ttl: Ttl, created_at: str) -> str | None:
    """The last instant at which a record made at `created_at` is valid; None if that is the session's end."""
    if ttl.unit == "session":
        return None
    span = timedelta(days=ttl.n) if ttl.unit == "days" else timedelta(hours=ttl.n)
    try:
        return format_instant(parse_instant(created_at, path="$.created_at") + span)
    except OverflowError:
        raise _refusal(ttl_text(ttl), "$.ttl", "too_long", "ends after the year 9999") from None


def has_expired(memory: StoredMemory, now: str | datetime) -> bool:
    """Return whether a record has expired. Pinned records do not (RC-06)."""
    if memory.status == "pinned" or memory.expires_at is None:
        return False
    return parse_instant(now, path="$.now") > parse_instant(memory.expires_at)


def _refusal(text: str, path: str, reason: str, words: str) -> InvalidInput:
    return InvalidInput(f"{text!r:.60} {words}", path=path, hint=_HINT, details={"reason": reason})


# -- of a run -----------------------------------------------------------------------------------------


def keys_of(run: RunFacts) -> dict[str, str]:
    """The lookup keys of a record from this run; parts without information are omitted."""
    keys = {"bucket_key": run.bucket_key}
    if any(value is not None for _, value in run.intent):
        keys["intent_key"] = intent_key(run.intent)
    if any(value is not None for _, value in run.state):
        keys["state_key"] = state_key(run.state)
    return {name: key for name, key in keys.items() if key is not None}


def shared_intent(intent: IntentParts) -> IntentParts:
    """The parts shared by comparable runs: domain and family; tools and form may differ."""
    known = {"domain_tag": intent.domain_tag, "task_family": intent.task_family}
    return IntentParts.model_validate({name: value for name, value in known.items() if value is not None})


def shared_keys_of(run: RunFacts) -> dict[str, str]:
    """The keys of a lesson from this run: it applies to all runs of the same work."""
    return keys_of(run.model_copy(update={"intent": shared_intent(run.intent)}))


class BankIds(NamedTuple):
    """Derived ids of one bank: records learned alike in two banks stay separate, and a forgotten id is not reused."""

    name: str = ""
    is_erased: Callable[[str], bool] = lambda _id: False

    def id_of(self, prefix: str, parts: Sequence[Any]) -> str:
        ids = (short_id(prefix, [self.name, *parts, *([number] if number else [])]) for number in count())
        return next(id_ for id_ in ids if not self.is_erased(id_))


ANYWHERE = BankIds()
