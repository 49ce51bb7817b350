"""Digests of what others rely on: the JSON Schemas of the contracts and the HTTP surface, both without their prose."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from golden_store.store import digest
from muniment.core.canonical import canonical_bytes

__all__ = ["openapi_digests", "schema_digests"]

PROSE = frozenset({"description", "summary", "title"})


def schema_digests(folder: Path) -> dict[str, str]:
    """The schemas of a folder, by kind, without what only a person reads."""
    found = {path.stem: json.loads(path.read_bytes()) for path in sorted(folder.glob("*.json"))}
    return {kind: digest(canonical_bytes(_without_prose(schema))) for kind, schema in found.items()}


def openapi_digests(file: Path) -> dict[str, str]:
    """Every path and every component of the document, without what only a person reads."""
    document = json.loads(file.read_bytes())
    parts = {f"path {name}": part for name, part in document["paths"].items()}
    for group, held in document["components"].items():
        parts |= {f"{group} {name}": part for name, part in held.items()}
    return {name: digest(canonical_bytes(_without_prose(part)))[:12] for name, part in sorted(parts.items())}


def _without_prose(part: Any, *, is_named: bool = False) -> Any:
    """A copy without words for people; `is_named` says that the keys are names of fields, which may be called so."""
    if isinstance(part, Mapping):
        kept = {key: value for key, value in part.items() if is_named or key not in PROSE}
        return {
            key: _without_prose(value, is_named=key == "properties" and not is_named) for key, value in kept.items()
        }
    return [_without_prose(each) for each in part] if isinstance(part, list) else part
