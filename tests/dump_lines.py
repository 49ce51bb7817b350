"""Dumps taken apart and put together again, as somebody would who knows their form."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from muniment.core.canonical import canonical_bytes
from muniment.handles.memory import Memory

__all__ = ["dump_of", "plain", "resealed"]


def dump_of(mem: Memory, **scope: Any) -> list[bytes]:
    return list(mem.export(**scope))


def resealed(lines: list[dict[str, Any]]) -> list[bytes]:
    """The lines as a dump whose trailer is right: what someone writes who knows the form."""
    body = [canonical_bytes(line) + b"\n" for line in lines if "end" not in line]
    counts: dict[str, int] = {}
    for line in lines[1:]:
        if "table" in line:
            counts[line["table"]] = counts.get(line["table"], 0) + 1
    digest = hashlib.sha256(b"".join(body)).hexdigest()
    return [*body, canonical_bytes({"end": True, "counts": counts, "digest": digest}) + b"\n"]


def plain(lines: list[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]
