"""Two processes that are sent spans of one conversation write each message once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from traced import chat, export, said, span, text

import muniment
from muniment.traces import ingesting

CONVERSATION = {"gen_ai.conversation.id": "c1", "user.id": "ana"}
FIRST = [text("user", "I live in Oslo.")]
NOTED = [text("assistant", "Noted.")]
SECOND = [*FIRST, *NOTED, text("user", "And I work in Bergen.")]
OTHER = """
import sys, muniment
with muniment.open(sys.argv[1]) as mem:
    mem.ledger.ingest_otel(sys.stdin.read())
"""


def test_a_session_that_another_process_wrote_meanwhile_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.sqlite"
    first = export(span(1, chat(FIRST, NOTED, **CONVERSATION)))
    second = export(span(2, chat(SECOND, [text("assistant", "Fine.")], **CONVERSATION), at=50))
    waiting = [json.dumps(first)]
    load = ingesting.load_talk

    def load_and_wait(*args: Any) -> Any:
        loaded = load(*args)
        if waiting:  # the other process comes between reading and writing
            subprocess.run([sys.executable, "-c", OTHER, str(path)], input=waiting.pop(), text=True, check=True)
        return loaded

    with muniment.open(path) as mem:
        monkeypatch.setattr(ingesting, "load_talk", load_and_wait)
        report = mem.ledger.ingest_otel(second)
        told = [content for _, content in said(mem)]
        assert mem.verify().ok
    assert told == ["I live in Oslo.", "Noted.", "And I work in Bergen.", "Fine."]
    assert (report.messages, report.known) == (2, 2)
