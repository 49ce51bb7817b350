"""The goldens by name: what the code makes today, and the file that it is held against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import SequenceMatcher
from itertools import zip_longest
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
SHOWN_MAX, BEFORE, WIDTH = 4, 60, 200
"""How many differing lines are shown, and how much of each."""


def read(name: str) -> list[str]:
    return (FOLDER / name).read_text("utf-8").removesuffix("\n").split("\n")


def write(name: str) -> None:
    text = "\n".join(GOLDENS[name]())
    (FOLDER / name).write_text(f"{text}\n", "utf-8")


def fault(name: str, made: list[str]) -> str | None:
    """Say what differs from the golden, and what to do about it; None where nothing does."""
    frozen = read(name)
    found = [
        pair
        for tag, *at in SequenceMatcher(None, frozen, made, autojunk=False).get_opcodes()
        if tag != "equal"
        for pair in zip_longest(frozen[at[0] : at[1]], made[at[2] : at[3]], fillvalue="")
    ]
    if not found:
        return None
    shown = [line for pair in found[:SHOWN_MAX] for line in _difference(*pair)]
    left = [f"    … and {len(found) - SHOWN_MAX} lines more"] if len(found) > SHOWN_MAX else []
    return "\n".join(
        [
            f"the golden {name} is not what the code makes (- frozen, + now):", *shown, *left,
            f"If the change is meant, run `python tests/goldens/write.py {name}`,",
            "and say in the commit message which golden changed and why (docs/stability.md).",
        ]
    )  # fmt: skip


def _difference(frozen: str, made: str) -> list[str]:
    """Both lines, from a little before the place where they part."""
    parted = next((at for at, (one, other) in enumerate(zip(frozen, made, strict=False)) if one != other), 0)
    start = max(0, parted - BEFORE)
    cut = "…" if start else ""
    return [f"    {sign} {cut}{line[start : start + WIDTH]}" for sign, line in (("-", frozen), ("+", made)) if line]
