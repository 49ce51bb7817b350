"""The goldens by name: what the code makes today, and the file that it is held against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import unified_diff
from itertools import islice
from pathlib import Path

from contract_results import schemas, vectors
from ledger_script import ledger
from public_names import commands, error_codes, signatures

FOLDER = Path(__file__).parent
GOLDENS: Mapping[str, Callable[[], list[str]]] = {
    "ledger.jsonl": ledger,
    "schemas.txt": schemas,
    "vectors.jsonl": vectors,
    "errors.txt": error_codes,
    "signatures.txt": signatures,
    "commands.txt": commands,
}
SHOWN_MAX = 12


def read(name: str) -> list[str]:
    return (FOLDER / name).read_text("utf-8").removesuffix("\n").split("\n")


def write(name: str) -> None:
    text = "\n".join(GOLDENS[name]())
    (FOLDER / name).write_text(f"{text}\n", "utf-8")


def fault(name: str, made: list[str]) -> str | None:
    """Say what differs from the golden, and what to do about it; None where nothing does."""
    changed = [line for line in unified_diff(read(name), made, n=0, lineterm="") if line[:2] not in ("--", "++", "@@")]
    if not changed:
        return None
    shown = [f"    {line:.400}" for line in islice(changed, SHOWN_MAX)]
    left = [f"    … and {len(changed) - SHOWN_MAX} lines more"] if len(changed) > SHOWN_MAX else []
    return "\n".join(
        [
            f"the golden {name} is not what the code makes (- frozen, + now):", *shown, *left,
            f"If the change is meant, run `python tests/goldens/write.py {name}`,",
            "and say in the commit message which golden changed and why (docs/stability.md).",
        ]
    )  # fmt: skip
