"""Admission of a draft to the ledger: redaction, size checks, injection flags and trust.

Rows from a dump are checked as strictly: their hashes prove that they were not altered since they were sealed, not who
sealed them.

Pure: never reads a clock, mints an id or touches storage.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from muniment.core.canonical import canonical_bytes, canonical_text, parse_json, salted_digest
from muniment.core.instants import format_instant, offset_minutes, parse_instant
from muniment.core.policy import LedgerPolicy
from muniment.core.ports.schema import EntryRow, ItemRow
from muniment.core.record import ValidationError
from muniment.core.scope import FOREIGN, TRUST_ORDER, TRUST_RANK, IdText, Trust
from muniment.core.text.patterns import analysed_chars
from muniment.errors import InvalidInput, MunimentError, TooLarge
from muniment.store.injection import reads_like_instructions, split_name
from muniment.store.ledger import (
    IMPORTED,
    INSTRUCTION_LIKE,
    PARTLY_ANALYSED,
    EntryDraft,
    EntryKind,
    LedgerEntry,
    Role,
)
from muniment.store.secrets import may_hold_secret, redact_value

__all__ = [
    "REDACTED",
    "Admitted",
    "admit",
    "entry_fault",
    "is_id",
    "is_instant",
    "item_fault",
    "place_blob",
    "trust_of",
]


_BY_ROLE: dict[Role, Trust] = {
    "user": "user",
    "system": "user",
    "developer": "user",
    "assistant": "assistant",
    "tool": "tool",
}


def trust_of(role: Role, claimed: Trust | None) -> Trust:
    """The trust the role gives, or a lower one that the caller claims."""
    given = _BY_ROLE[role]
    if claimed is None:
        return given
    if TRUST_RANK[claimed] < TRUST_RANK[given]:
        raise InvalidInput(
            f"the role {role!r} has trust {given!r}; a caller can lower it, not raise it to {claimed!r}",
            path="$.trust",
            hint=f"leave trust out, or give one of {', '.join(TRUST_ORDER[TRUST_RANK[given] :])}",
        )
    return claimed


REDACTED = "redacted"
_ANALYSED = ("message", "tool_result")
"""Kinds of entries whose text is analysed."""
_UNREAD_TIMES = 4
"""Text larger than this multiple of the limit is refused before it is scanned for secrets."""


class Admitted(NamedTuple):
    """A draft that may be written: its body as plain data and canonical text, ready to be sealed."""

    draft: EntryDraft
    ts: str | None
    trust: Trust
    flags: tuple[str, ...]
    body: dict[str, Any]
    body_text: str
    blob: bytes | None
    """Content too large for the row. The body then has no content until `place_blob`."""

    @property
    def kind(self) -> EntryKind:
        return self.draft.kind

    @property
    def role(self) -> Role:
        return self.draft.role

    @property
    def event(self) -> Any:
        """The event named in the metadata, if any."""
        metadata = self.draft.metadata
        return metadata.get("event") if metadata else None

    @property
    def text(self) -> str:
        """The admitted content, wherever it is stored."""
        content: str = self.body["content"] if self.blob is None else self.blob.decode()
        return content


def admit(draft: EntryDraft, policy: LedgerPolicy, said_at: str | datetime | None = None) -> Admitted:
    """Redact, then flag, then check the size. Raises before anything is written. `said_at` replaces the draft's own
    time where the store knows the speaker's time zone.
    """
    _check_shape(draft)
    if len(draft.content) > policy.content_bytes_max:  # before any pattern has to read it
        raise _content_too_large(len(draft.content.encode(errors="replace")), policy)
    said_at = draft.ts if said_at is None else said_at
    body = _body_of(draft, said_at)
    text = canonical_text(body)
    if len(text) > _UNREAD_TIMES * policy.body_bytes_max:  # redaction could not shrink this enough
        _check_rest(body, _UNREAD_TIMES * policy.body_bytes_max, policy)
    flags: list[str] = []
    if policy.redact_secrets and may_hold_secret(text):
        found: Counter[str] = Counter()
        body = redact_value(body, found)
        if found:
            body["redactions"] = dict(found)
            flags.append(REDACTED)
            text = canonical_text(body)
    trust = trust_of(draft.role, draft.trust)
    if policy.flag_instructions and _instructs(draft, body, trust):
        flags.append(INSTRUCTION_LIKE)
    if draft.imported is not None:
        flags.append(f"{IMPORTED}{draft.imported.system}")
    if draft.kind in _ANALYSED and len(body["content"]) > min(policy.analysis_chars_max, policy.analysis_pieces_max):
        reach = analysed_chars(body["content"], policy.analysis_chars_max, policy.analysis_pieces_max)
        if reach < len(body["content"]):
            body["analysed_chars"] = reach
            flags.append(PARTLY_ANALYSED)
            text = canonical_text(body)
    blob = None
    if len(text) * 4 > min(policy.inline_bytes_max, policy.body_bytes_max, policy.content_bytes_max):
        body, text, blob = _move_out(body, text, policy)
    ts = None if draft.ts is None else format_instant(parse_instant(said_at or draft.ts))
    return Admitted(draft, ts, trust, tuple(sorted(flags)) if flags else (), body, text, blob)


def _instructs(draft: EntryDraft, body: dict[str, Any], trust: Trust) -> bool:
    """Return whether external content, or a name shown with it, reads like instructions.

    Anyone who runs a tool server or joins a chat chooses that name, even where the content is the user's own.
    """
    names = [name for name in (draft.speaker, draft.tool and draft.tool.name) if name]
    if any(reads_like_instructions(split_name(name)) for name in names):
        return True
    is_foreign = trust in FOREIGN or draft.imported is not None
    return is_foreign and reads_like_instructions(body["content"])


def _check_shape(draft: EntryDraft) -> None:
    if (draft.kind == "tool_result") != (draft.tool is not None):
        raise InvalidInput("a tool_result, and nothing else, has a tool", path="$.tool", hint="use observe_tool")
    if draft.kind == "tool_result" and draft.role != "tool":  # another role would lend its trust (LG-08)
        raise InvalidInput("a tool_result has the role 'tool'", path="$.role", hint="use observe_tool")
    if (draft.kind == "step") != (draft.step is not None):
        raise InvalidInput("a step, and nothing else, has a step event", path="$.step")


def _body_of(draft: EntryDraft, said_at: str | datetime | None) -> dict[str, Any]:
    body: dict[str, Any] = {"content": draft.content}
    if draft.speaker is not None:
        body["speaker"] = draft.speaker
    if draft.tags:
        body["tags"] = list(draft.tags)
    if draft.entities:
        body["entities"] = list(draft.entities)
    if draft.metadata:
        body["metadata"] = draft.metadata
    if draft.tool is not None:
        body["tool"] = draft.tool.to_wire()
    if draft.step is not None:
        body["step"] = draft.step.to_wire()
    if draft.cited is not None:
        body["cited"] = draft.cited.to_wire()
    if draft.imported is not None:
        body["imported"] = draft.imported.to_wire()
    if said_at is not None and (offset := offset_minutes(said_at)):
        body["utc_offset"] = offset
    return body


def _move_out(body: dict[str, Any], text: str, policy: LedgerPolicy) -> tuple[dict[str, Any], str, bytes | None]:
    """Check the sizes; content over the inline limit becomes a blob (LG-09)."""
    data = body["content"].encode()
    if len(data) > policy.content_bytes_max:
        raise _content_too_large(len(data), policy)
    rest = _check_rest(body, policy.body_bytes_max, policy)
    return (body, text, None) if len(data) <= policy.inline_bytes_max else (rest, "", data)


def _check_rest(body: dict[str, Any], limit: int, policy: LedgerPolicy) -> dict[str, Any]:
    """Check the size of everything but the content."""
    rest = {key: value for key, value in body.items() if key != "content"}
    rest_bytes = len(canonical_bytes(rest))
    if rest_bytes > limit:
        tool = body.get("tool")
        is_call = tool is not None and len(canonical_bytes(tool)) > limit // 2
        raise TooLarge(
            f"metadata, tags, entities and tool arguments of {rest_bytes} bytes are over the limit"
            f" of {policy.body_bytes_max}",
            path="$.tool.args" if is_call else "$.metadata",
            hint="put large data into the content",
        )
    return rest


def _content_too_large(size: int, policy: LedgerPolicy) -> TooLarge:
    return TooLarge(
        f"content of {size} bytes is over the limit of {policy.content_bytes_max}",
        path="$.content",
        hint="split it, or raise ledger.content_bytes_max in the policy",
    )


def place_blob(admitted: Admitted, salt: bytes) -> Admitted:
    """Name an admitted blob by its salted hash and let the body refer to it."""
    assert admitted.blob is not None
    name = salted_digest(salt, admitted.blob)
    body = admitted.body | {"blob": name.hex(), "bytes": len(admitted.blob)}
    return admitted._replace(body=body, body_text=canonical_text(body))


# -- rows from a dump -----------------------------------------------------------------------------------------


_ID = TypeAdapter(IdText)
_HASH_BYTES = 32
_SCOPE = ("user_id", "agent_id", "session_id", "run_id")
_PLAIN = ("seq", "ts", "recorded_at", "kind", "role", "trust")


def is_id(value: Any) -> bool:
    """Return whether this is a name or id that a caller could have supplied."""
    try:
        _ID.validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


def is_instant(value: Any) -> bool:
    """Return whether this is a time stamp in the canonical form."""
    try:
        return isinstance(value, str) and format_instant(parse_instant(value)) == value
    except InvalidInput:
        return False


def entry_fault(tenant_id: str, row: EntryRow) -> str | None:
    """Return why this row cannot be an entry, or None if it can."""
    scope = {name: getattr(row, name) for name in _SCOPE}
    if not all(is_id(value) for value in (row.id, *scope.values())):
        return "an id is not well-formed"
    if not (is_instant(row.ts) and is_instant(row.recorded_at)):
        return "a time is not well-formed"
    if any(len(value) != _HASH_BYTES for value in (row.content_hash, row.prev_hash, row.hash)):
        return "a hash has the wrong length"
    if row.receipt_id is not None and not is_id(row.receipt_id):
        return "the receipt's id is not well-formed"
    flags = row.flags.split(",") if row.flags else []
    if sorted(set(flags)) != flags:
        return "the flags are not in order"
    try:
        plain = None if row.body is None else _object(row.body)
        LedgerEntry.from_wire(
            {name: getattr(row, name) for name in _PLAIN}
            | {"id": row.id, "flags": flags, "body": plain, "receipt_id": row.receipt_id}
            | dict.fromkeys(("content_hash", "prev_hash", "hash"), "")
            | {"scope": {"tenant_id": tenant_id} | scope}
        )
    except MunimentError as error:
        return str(error)
    if plain is not None and ("content" in plain) == ("blob" in plain):
        return "the content is neither here nor in a blob"
    return None


def item_fault(row: ItemRow) -> str | None:
    """Return why this row cannot be a version of an item, or None if it can."""
    if not all(is_id(value) for value in (row.id, row.kind, row.status)):
        return "an id, kind or status is not well-formed"
    named = (row.user_id, row.agent_id, row.session_id, row.run_id, row.name, row.receipt_id)
    if not all(value is None or is_id(value) for value in named):
        return "an id is not well-formed"
    if row.trust not in TRUST_ORDER or not is_instant(row.created_at) or row.version < 1:
        return "its trust, time or version is not well-formed"
    if row.body is None:
        return None if row.receipt_id is not None else "the content is missing and no receipt says why"
    if row.receipt_id is not None:
        return "a forgotten item still holds content"
    try:
        _object(row.body)
    except MunimentError as error:
        return str(error)
    return None


def _object(body: Any) -> dict[str, Any]:
    plain = parse_json(body)
    if not isinstance(plain, dict) or canonical_text(plain) != body:
        raise InvalidInput("the body is not a canonical object")
    return plain
