"""Every turn of every chat set of the shared data, one after the other."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["ChatTurn", "turns_of"]


class ChatTurn(NamedTuple):
    """What somebody said, and in which set."""

    of_set: str
    role: str
    text: str


def turns_of(data: Path) -> Iterator[ChatTurn]:
    """The turns of `retrieval/*.jsonl.gz`, in order."""
    for path in sorted((data / "retrieval").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                scope = json.loads(line)
                for session in scope["sessions"]:
                    for turn in session["turns"]:
                        yield ChatTurn(scope["set"], turn["role"], turn["text"])
