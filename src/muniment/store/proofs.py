"""Chains of proofs for items not made from entries: builds, by session, and receipts, which no user owns.

Each version of such an item has a link: a salted digest of its row, and a hash of that digest, of its place and of the
link before it. So reading and `verify` detect an item that was edited, removed or given to another owner. Where the
store is opened with a key, which is kept outside it, the hashes are keyed, and someone who can only write the file
cannot recompute them. The row with number 0 is the end of a chain, so that none can be cut short.

A forget empties the salts. The rest reveals nothing of the content, and the chain still holds; the item's sources are
then proven by the seal that the forget left on its row (`store.items.seal_lineages`).
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

from muniment.core.canonical import canonical_bytes, digest_of, salted_digest
from muniment.core.ports.engine import Condition, Lock, Reader, Transaction
from muniment.core.ports.rows import first, get, insert, put, stream
from muniment.core.ports.schema import PROOFS, ProofRow
from muniment.errors import MunimentError, StoreDamaged
from muniment.store.context import Context
from muniment.store.items import PROVEN, SAID, Item, get_version, item_of, lineage_digest, receipts_of
from muniment.store.ledger import Receipt

__all__ = ["ProofFault", "check_proof", "check_proofs", "proof_fault", "proof_faults", "prove", "receipt_fault"]

_END = 0
_NOBODY_S = ("", "")


def _genesis(user_id: str, session_id: str) -> bytes:
    return bytes.fromhex(digest_of(["muniment.proofs.v1", user_id, session_id]))


def _hash(key: bytes | None, before: bytes, row: ProofRow) -> bytes:
    """Return the hash of a link, from the hash of the one before it and all its fields but the salt."""
    told = before + canonical_bytes(
        [row.user_id, row.session_id, row.number, row.item_id, row.version, row.keyed, row.digest.hex()]
    )
    return sha256(told).digest() if key is None else hmac.digest(key, told, "sha256")


def _chain_of(item: Item) -> tuple[str, str]:
    return item.user_id or "", item.session_id or ""


def prove(ctx: Context, tx: Transaction, items: Iterable[Item]) -> int:
    """Add a link for each of these items, which were just written; returns how many were added."""
    proven = [item for item in items if item.kind in PROVEN and item.checked == 2]
    for item in proven:
        _add(ctx, tx, item)
    return len(proven)


def _add(ctx: Context, tx: Transaction, item: Item) -> None:
    chain = _chain_of(item)
    tx.do(Lock(("proofs", *chain)))
    end = get(tx, PROOFS, (*chain, _END))
    last = first(tx, PROOFS, (*_of_chain(chain), ("number", ">", _END)), order=_IN_ORDER, descending=True)
    counted, there = (0 if end is None else end.version), (0 if last is None else last.number)
    if counted != there and chain != _NOBODY_S:  # a receipt is written even if others were tampered with
        raise _broken_chain(chain)
    before = _genesis(*chain) if last is None else last.hash
    number = max(counted, there) + 1
    key = ctx.proof_key
    salt = None if item.body is None else ctx.ids.salts(1)[0]
    held = salted_digest(salt, lineage_digest(tx, item)) if salt is not None else b""
    link = ProofRow(*chain, number, item.id, item.version, int(key is not None), salt, held, b"")
    link = link._replace(hash=_hash(key, before, link))
    insert(tx, PROOFS, [link])
    put(tx, PROOFS, [_end_of(key, link)])


_IN_ORDER = ("user_id", "session_id", "number")


def _of_chain(chain: tuple[str, str]) -> tuple[Condition, ...]:
    return ("user_id", "=", chain[0]), ("session_id", "=", chain[1])


def _broken_chain(chain: tuple[str, str]) -> StoreDamaged:
    whose = f"of the session {chain[1]!r:.80}" if chain[1] else "of receipts"
    return StoreDamaged(f"the chain of proofs {whose} does not end where it did", details={"session_id": chain[1]})


def _end_of(key: bytes | None, last: ProofRow) -> ProofRow:
    name = f"proofs_{digest_of([last.user_id, last.session_id])[:32]}"
    end = last._replace(number=_END, item_id=name, version=last.number, salt=None, digest=b"", hash=b"")
    return end._replace(hash=_hash(key, last.hash, end))


def check_proof(ctx: Context, reader: Reader, item: Item) -> None:
    """Check the proof of a build or receipt being read, and its place in the chain (TM-12).

    Raises `StoreDamaged` if it was altered.
    """
    fault = proof_fault(ctx, reader, item)
    if fault is not None:
        raise item.damaged(fault)


def check_proofs(ctx: Context, tenant_id: str, items: Sequence[Item]) -> None:
    """Check several items, read earlier, with `check_proof`."""

    def work(reader: Reader) -> None:
        for item in items:
            check_proof(ctx, reader, item)

    if items:
        ctx.engine.read(tenant_id, work)


def proof_fault(ctx: Context, reader: Reader, item: Item) -> str | None:
    """Describe the fault in a build's or receipt's proof; None if it holds, or the item needs none."""
    if item.kind not in PROVEN:
        return None
    where = (("item_id", "=", item.id), ("version", "=", item.version))
    link = first(reader, PROOFS, where)  # type: ignore[arg-type]
    if link is None:
        return "its proof is missing"
    if (link.user_id, link.session_id) != _chain_of(item):
        return "its proof is another's"
    fault = _row_fault(reader, link, item)
    if fault is not None:
        return fault
    before = get(reader, PROOFS, (link.user_id, link.session_id, link.number - 1)) if link.number > 1 else None
    if link.number > 1 and before is None:
        return "the proof before its own is missing"
    return _link_fault(ctx.proof_key, link, _genesis(*_chain_of(item)) if before is None else before.hash)


def _row_fault(reader: Reader, link: ProofRow, item: Item) -> str | None:
    """Describe how an item differs from its link; None if it does not."""
    if item.body is None:
        return None if link.salt is None and item.receipt_id is not None else "it is empty, and no forget emptied it"
    if item.receipt_id is not None:
        return "it holds content and names a receipt"
    if link.salt is None or salted_digest(link.salt, lineage_digest(reader, item)) != link.digest:
        return "its row or its links are not what its proof says"
    return None


def _link_fault(key: bytes | None, link: ProofRow, before: bytes) -> str | None:
    if link.keyed and key is None:
        return None  # not verifiable without the key
    return None if link.hash == _hash(key if link.keyed else None, before, link) else "its proof was altered"


# -- all of them --------------------------------------------------------------------------------------


class ProofFault(NamedTuple):
    """A link that does not hold, and its item."""

    kind: str
    id: str
    version: int
    reason: str


def proof_faults(ctx: Context, reader: Reader, counts: Counter[str]) -> Iterator[ProofFault]:
    """Walk every chain of proofs of a tenant. `counts["unproven"]` are links made without the current key."""
    key = ctx.proof_key
    end: ProofRow | None = None
    last: ProofRow | None = None
    for link in stream(reader, PROOFS, order=("user_id", "session_id", "number")):
        if end is None or (link.user_id, link.session_id) != (end.user_id, end.session_id):
            yield from _ended(key, end, last)
            end, last = link, None
            if link.number == _END:
                continue
            yield ProofFault("proof", link.item_id, link.version, "the end of its chain is missing")
        number = 1 if last is None else last.number + 1
        before = _genesis(link.user_id, link.session_id) if last is None else last.hash
        counts["unproven"] += link.keyed != int(key is not None)
        if link.number != number:
            yield ProofFault("proof", link.item_id, link.version, f"proof {number} of its chain is missing")
        elif (fault := _link_fault(key, link, before)) is not None:
            yield ProofFault("proof", link.item_id, link.version, fault)
        item = get_version(reader, link.item_id, link.version)
        if item is None:
            yield ProofFault("proof", link.item_id, link.version, "what it proves is missing")
        elif (fault := _row_fault(reader, link, item)) is not None:
            yield ProofFault(item.kind, item.id, item.version, fault)
        last = link
    yield from _ended(key, end, last)


def _ended(key: bytes | None, end: ProofRow | None, last: ProofRow | None) -> Iterator[ProofFault]:
    """Yield the fault of a chain whose last link differs from its end row."""
    if end is None or end.number != _END:
        return
    if last is None or last.number != end.version:
        reason = f"the last proofs of its chain are missing: {end.version} were made"
        yield ProofFault("proof", end.item_id, end.version, reason)
    elif _link_fault(key, end, last.hash) is not None or _end_of(None, last)[:5] != end[:5]:
        yield ProofFault("proof", end.item_id, end.version, "the end of its chain was altered")


# -- receipts -----------------------------------------------------------------------------------------


def receipt_fault(item: Item, _sources: frozenset[str]) -> str | None:
    """Describe an inconsistency within a receipt; None if there is none."""
    from muniment.store.forget import SCRUB_DUE, receipt_change  # it imports this module

    try:
        receipt = Receipt.from_wire(item.plain())
    except MunimentError as error:
        return error.message
    if item.status not in ("issued", SCRUB_DUE):
        return "its status is not one of a receipt"
    if receipt.selector.get("tenant_id", receipt.tenant_id) != receipt.tenant_id:
        return "it was asked for in another tenant"
    asked = receipt.user_among(())
    if receipt.concerns is not None and asked and receipt.concerns != receipts_of(asked):
        return "it concerns another user than it was asked for"
    made = item_of(receipt_change(receipt, item.status), item.version)
    named = [name for name in SAID if getattr(item, name) != getattr(made, name)]
    return f"{', '.join(named)} not as it says itself" if named else None
