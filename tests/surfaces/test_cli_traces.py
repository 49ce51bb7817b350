"""`muniment ingest --otel`: files of traces, read whole before anything is written (MV-07)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import muniment
from muniment.surfaces.cli.main import cli

CAPTURED = Path(__file__).parents[1] / "unit" / "traces" / "captured"
STRANDS, OPENAI = CAPTURED / "strands.traces.json", CAPTURED / "openai-v2-chat.logs.json"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("MUNIMENT_USER", "MUNIMENT_DB", "MUNIMENT_TENANT"):
        monkeypatch.delenv(name, raising=False)


def run(*args: str | Path, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, [*map(str, args), "--db", "a.db"], input=stdin)


def test_files_are_written_once_and_the_report_says_what(tmp_path: Path) -> None:
    first = json.loads(run("ingest", STRANDS, OPENAI, "--otel", "--user", "bo", "--json").stdout)
    assert (first["spans"], first["logs"], first["messages"], first["results"]) == (9, 15, 8, 2)
    assert {(each["user_id"], each["written"]) for each in first["sessions"]} == {("ana", 7), ("bo", 7)}
    assert first["left_out"] == {"no_conversation": 3}
    again = run("ingest", STRANDS, OPENAI, "--otel", "--user", "bo")
    assert "0 messages and 0 tool results" in again.stdout
    assert "nothing was written twice" in again.stdout


def test_standard_input_is_read(tmp_path: Path) -> None:
    done = run("ingest", "-", "--otel", stdin=STRANDS.read_bytes())
    assert done.exit_code == 0
    assert "ana: session conv-7 of travel, 7 new" in done.stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((OPENAI, "--otel"), "whose memory is this?"),
        ((STRANDS, "--otel", "--session", "s"), "a trace names its own session"),
        ((STRANDS, "--otel", "--again"), "a span is written once"),
        (("nothing.json", "--otel"), "nothing.json"),
        (("broken.json", "--otel", "--user", "bo"), "broken.json: not JSON"),
        ((STRANDS, "broken.pb", "--otel", "--user", "bo"), "broken.pb: not OTLP"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_written(tmp_path: Path, args: tuple[str | Path, ...], said: str) -> None:
    Path("broken.json").write_text('{"resourceSpans": [')
    Path("broken.pb").write_bytes(b"\x0a\xff")
    done = run("ingest", *args)
    assert done.exit_code != 0
    assert said in done.stderr
    assert "hint:" in done.stderr
    with muniment.open("a.db") as mem:
        assert list(mem.store.users()) == []
