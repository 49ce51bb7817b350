"""Answers of a store of version 0.1: its chains, what callers wrote, and the bytes of its builds and snapshots."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from itertools import groupby
from typing import Any

import muniment
from muniment.core.canonical import canonical_bytes
from muniment.errors import Forgotten

PEOPLE = (("default", "ana"), ("acme", "ana"))


def answers(mem: muniment.Memory, builds: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Everything that must survive a move into another layout. `builds` are pairs of a tenant and a build's id."""
    report = mem.verify()
    assert report.ok, report
    return {
        "verified": {name: getattr(report, name) for name in ("sessions", "entries", "forgotten", "unreceipted")},
        "ledger": _ledger(mem),
        "builds": [[tenant_id, build_id, *_replayed(mem, tenant_id, build_id)] for tenant_id, build_id in builds],
        "runs": [
            [tenant_id, run.run_id, run.stop_reason, *_snapshots(mem, tenant_id, run.run_id)]
            for tenant_id in mem.store.tenants()
            for run in mem.runs(tenant_id=tenant_id)
        ],
        "facts": [_facts(mem, *person) for person in PEOPLE],
        "learned": sorted([each.id, each.status] for each in mem.bank(user_id="ana").records(include_all=True)),
        "rules": sorted([each.id, each.status] for each in mem.rulebook(user_id="ana").rules(include_all=True)),
        "documents": sorted(
            ([each.document_id, each.status] for each in mem.corpus("handbook").documents(include_all=True)),
            key=lambda each: each[0],
        ),
    }


def _ledger(mem: muniment.Memory) -> dict[str, Any]:
    """By session: how many entries, the head of its chain, and one digest over the canonical bytes of all entries."""
    found: dict[str, Any] = {}
    for tenant_id in mem.store.tenants():
        for user in mem.store.users(tenant_id=tenant_id):
            entries = mem.ledger.entries(user_id=user.user_id, tenant_id=tenant_id)
            for session_id, grouped in groupby(entries, lambda entry: entry.scope.session_id):
                held = list(grouped)
                wire = b"\n".join(canonical_bytes(entry.to_wire()) for entry in held)
                name = f"{tenant_id}/{user.user_id}/{session_id}"
                found[name] = [len(held), held[-1].hash, sha256(wire).hexdigest()]
    return found


def _replayed(mem: muniment.Memory, tenant_id: str, build_id: str) -> list[Any]:
    """The digests of a build's packet and text, and its tokens; of one that was forgotten, the receipt."""
    try:
        build = mem.replay(build_id, tenant_id=tenant_id)
    except Forgotten as error:
        return [error.details["receipt_id"]]
    return [sha256(build.packet_bytes).hexdigest(), sha256(build.text.encode()).hexdigest(), build.tokens]


def _snapshots(mem: muniment.Memory, tenant_id: str, run_id: str) -> list[str]:
    snapshots = mem.log.snapshots(run_id, tenant_id=tenant_id)
    return [sha256(canonical_bytes(each.to_wire())).hexdigest() for each in snapshots]


def _facts(mem: muniment.Memory, tenant_id: str, user_id: str) -> list[Any]:
    facts = mem.run(tenant_id=tenant_id, user_id=user_id).facts(include_all=True)
    return sorted([each.fact_id, each.fact_key, each.value, each.status] for each in facts)
