"""On a terminal nothing that is stored, named or sent moves the cursor, sets a title, hides or turns a line round."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import muniment
from effort import one_in
from muniment.surfaces.cli.main import cli
from muniment.surfaces.cli.terminal import echo, strong, style, visible
from products import for_each

ESCAPES = "\x1b]0;owned\x07 \x1b[2J \x1b[31mred\x1b[8mhidden\x1b[0m \x9b31m \r over \b\b \u202eturned \U000e0041tag"
HOSTILE = f"I live in Rome {ESCAPES} and I like tea."
OURS = re.compile(r"\x1b\[(?:0|1|[39][0-7])m")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("terminal")
    with muniment.open(str(made / "store.db")) as mem:
        run = mem.run(user_id="ana", session_id="s1", run_id="r1")
        said = run.observe("user", HOSTILE, ts="2026-01-01T00:00:00Z")
        run.remember("user.city", f"Rome {ESCAPES}", sources=[said.id])
        run.observe_tool("fetch", args={"url": "x"}, content=HOSTILE)
        build = run.compose("responder", query="Where do I live?")
        (made / "build").write_text(build.id)
    return made


def on_a_terminal(folder: Path, *arguments: str) -> str:
    """What a terminal would get of a command's stdout and stderr."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "muniment", *arguments]
    environment = {**os.environ, "TERM": "xterm", "MUNIMENT_DB": str(folder / "store.db")}
    process = subprocess.Popen(command, stdout=follower, stderr=follower, cwd=folder, env=environment, close_fds=True)
    os.close(follower)
    held = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        held += part
    process.wait()
    os.close(leader)
    return held.decode().replace("\r\n", "\n")


@for_each(
    "arguments",
    one_in(
        2,
        [
            ("compose", "responder", "--user", "ana", "--query", "Where do I live?", "--text"),
            ("compose", "responder", "--user", "ana", "--query", "Where do I live?", "--packet"),
            ("search", "--user", "ana", "Where do I live?"),
            ("memory", "episodes", "--user", "ana"),
            ("memory", "events", "--user", "ana"),
            ("why", "I live in Rome"),
            ("facts", "--user", "ana"),
            ("packet", "messages", "BUILD"),
            ("explain", "BUILD"),
            ("ingest", "no\x1b[2Jsuch\x1b]0;x\x07.jsonl"),
            ("check", "no\x1b[31msuch.yaml", "out\x1b[2J.txt"),
            ("check", "validate", "--kind", "MemoryPacket", "no\x1b[31msuch.json"),
            ("memory", "content", "no\x1b[31msuch"),
        ],
    ),
)
def test_no_command_lets_a_control_character_through(folder: Path, arguments: tuple[str, ...]) -> None:
    build = (folder / "build").read_text()
    shown = on_a_terminal(folder, *(build if each == "BUILD" else each for each in arguments))
    assert "Rome" in shown or arguments[0] in ("ingest", "check") or "such" in arguments[-1]
    left = OURS.sub("", shown)
    assert not [char for char in left if char != "\n" and char != "\t" and visible(char) != char], repr(left)


@pytest.mark.parametrize(
    "asked",
    [
        ("forget", "--user", f"ana{ESCAPES}"),
        ("forget", "--event", f"evt{ESCAPES}"),
        ("forget", "--user", "ana", "--session", f"s1{ESCAPES}"),
        ("corpus", "forget", "--corpus", "books", f"a{ESCAPES}"),
    ],
)
def test_a_question_is_not_written_over_by_the_name_it_asks_about(
    folder: Path, asked: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is about to be erased is read in the question: no name may set the cursor back and show another."""
    shown: list[str] = []

    def confirm(question: str, **_: object) -> None:
        shown.append(question)
        raise click.Abort

    monkeypatch.setattr(click, "confirm", confirm)
    monkeypatch.setenv("MUNIMENT_DB", str(folder / "store.db"))
    result = CliRunner().invoke(cli, asked)
    assert result.exit_code == 1
    assert len(shown) == 1
    assert visible(shown[0]) == shown[0]
    assert "owned" in shown[0]


def test_what_the_terminal_gets_is_the_text_with_signs_for_what_cannot_be_seen(folder: Path) -> None:
    shown = on_a_terminal(folder, "compose", "responder", "--user", "ana", "--query", "Where do I live?", "--text")
    assert "I live in Rome ␛]0;owned␇" in shown
    assert "<U+202E>turned" in shown


def test_elsewhere_a_text_is_written_as_it_is(folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    echo(f"{strong('own')} {HOSTILE}")
    echo(style("colour", fg="red"), err=True)
    out, err = capsysbinary.readouterr()
    assert (out.decode(), err) == (f"own {HOSTILE}\n", b"colour\n")


@for_each("text", ["plain", "two\nlines\tand a tab", "日本語 한국어 ñ", "👩‍👧 emoji", "🏳️‍🌈", "café"])
def test_what_people_write_stays(text: str) -> None:
    assert visible(text) == text
