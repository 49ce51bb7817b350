"""The contracts: a digest of each exported schema, and documents with the exact result of validating them."""

from __future__ import annotations

import json
import tempfile
from hashlib import sha256
from pathlib import Path

from public_names import call

from muniment.contracts.schemas import validate
from muniment.contracts.semantics import check_semantics
from muniment.core.canonical import canonical_text

VECTORS = Path(__file__).parent / "vectors.jsonl"


def exported_schemas() -> dict[str, bytes]:
    """Read what `muniment schema export` writes, by file name."""
    with tempfile.TemporaryDirectory() as folder:
        assert call("schema", "export", folder)[0] == 0
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def schemas() -> list[str]:
    return [f"{sha256(data).hexdigest()}  {name}" for name, data in exported_schemas().items()]


def vectors() -> list[str]:
    """The documents of the golden itself, validated anew: what is wrong by shape and, where nothing is, by meaning.

    A new document is added to the file by hand, as {"kind": …, "document": …}; writing the golden fills in the rest.
    """
    found = []
    for line in VECTORS.read_text("utf-8").removesuffix("\n").split("\n"):
        vector = json.loads(line)
        kind, document = vector["kind"], vector["document"]
        issues = validate(kind, document)
        meant = [] if issues else check_semantics(kind, document)
        result = {
            "kind": kind, "document": document, "valid": not issues,
            "errors": [[issue.code, issue.path] for issue in issues],
            "semantic": [[issue.code, issue.path] for issue in meant],
        }  # fmt: skip
        found.append(canonical_text(result))
    return found
