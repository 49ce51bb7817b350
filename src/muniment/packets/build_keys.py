"""Idempotency keys of builds: the same request under a key is answered with the build that it made (LG-06).

A key is kept with its build, as the digest by which the build is found, and goes with it: once the build is forgotten,
nobody can tell that there was such a key, and it may be used again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from muniment.core.canonical import canonical_bytes, salted_digest
from muniment.core.instants import format_instant, parse_instant
from muniment.core.ports.engine import Condition, Lock, Reader, Transaction
from muniment.core.requests import whole
from muniment.core.scope import Scope
from muniment.errors import IdempotencyMismatch
from muniment.store.items import Item, digest_name, select_items

__all__ = ["BuildKey", "find_keyed", "key_of_build", "lock_key", "plain_request"]


class BuildKey(NamedTuple):
    """A key, and the request that it stands for."""

    name: str
    """What the build is found by."""
    said: bytes
    """What was asked, to tell another request under the same key."""
    salt: bytes

    @property
    def kept(self) -> dict[str, str]:
        """What the build keeps of it."""
        return {"name": self.name, "salt": self.salt.hex(), "said": salted_digest(self.salt, self.said).hex()}


def key_of_build(scope: Scope, key: str, asked: dict[str, Any], salt: bytes) -> BuildKey:
    """A caller's key; `asked` is what was asked for, as plain data."""
    # Never the bare digest of the key: a caller may well use the query, or its hash, as the key (LG-07).
    named = canonical_bytes(["muniment.build_key.v1", scope.tenant_id, scope.user_id, key]).decode()
    return BuildKey(digest_name(named), canonical_bytes([scope.run_id, asked]), salt)


def plain_request(
    given: dict[str, Any], max_tokens: int | None, policy: str, now: Any, task_type: str
) -> dict[str, Any]:
    """What was asked for, as it was asked: what is left to the store and its clock stays open."""
    sections = given["per_section"]
    return given | {
        "cues": None if given["cues"] is None else dict(given["cues"]),
        "max_tokens": whole(max_tokens),
        "per_section": None if sections is None else {name: whole(cap) for name, cap in sections.items()},
        "policy": policy,
        "now": None if now is None else format_instant(parse_instant(now, path="$.now")),
        "task_type": task_type,
    }


def lock_key(tx: Transaction, scope: Scope, key: BuildKey) -> None:
    """One request under a key at a time."""
    tx.do(Lock(("build_key", scope.user_id, key.name)))


def find_keyed(reader: Reader, scope: Scope, key: BuildKey) -> Item | None:
    """The build that was made under the key; another request than the one that made it is a mismatch."""
    where: tuple[Condition, ...] = (("kind", "=", "build"), ("user_id", "=", scope.user_id), ("name", "=", key.name))
    found = [item for item in select_items(reader, where, order=("created_at", "id"), limit=1) if item.body is not None]
    if not found:
        return None
    kept = found[0].plain().get("key", {})
    if kept.get("said") != salted_digest(bytes.fromhex(kept.get("salt", "")), key.said).hex():
        raise IdempotencyMismatch(
            "this idempotency key was used for another request",
            path="$.idempotency_key",
            details={"id": found[0].id},
        )
    return found[0]
