"""`muniment corpus` by hand: files added, listed, found, shown, taken back; errors in the one shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_room import in_folder
from click.testing import CliRunner, Result

from muniment.surfaces.cli.main import cli


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    in_folder(tmp_path, monkeypatch)
    (tmp_path / "crane.md").write_text("# Crane\n\nIt lifts forty tons.\n", "utf-8")
    (tmp_path / "soup.html").write_text("<title>Soup</title><p>Soup \x1b[31mat noon.", "utf-8")
    return tmp_path


def call(*args: str, code: int = 0, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(cli, ["corpus", *args, "--corpus", "yard"], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result


def document(*args: str) -> Any:
    (line,) = call(*args, "--json").stdout.splitlines()
    return json.loads(line)


def test_a_corpus_from_files(folder: Path) -> None:
    added = [json.loads(line) for line in call("add", "crane.md", "soup.html", "--json").stdout.splitlines()]
    assert [each["document_id"] for each in added] == ["crane.md", "soup.html"]
    assert [each["title"] for each in added] == ["Crane", "Soup"]
    (folder / "crane.md").write_text("# Crane\n\nIt lifts fifty tons.\n", "utf-8")
    again = call("add", "crane.md", "soup.html").stdout
    assert "crane.md  revision 2  [live]  Crane  1 chunk, 30 bytes" in again
    assert "soup.html  revision 1" in again
    listed = document("list")["documents"]
    assert [(each["document_id"], each["revision"]) for each in listed] == [("soup.html", 1), ("crane.md", 2)]
    assert len(document("list", "--all")["documents"]) == 3
    (hit,) = document("search", "how many tons?", "--k", "1")["hits"]
    assert (hit["kind"], hit["text"]) == ("chunk", "# Crane\n\nIt lifts fifty tons.")
    assert "in crane.md, Crane" in call("search", "-", stdin="tons").stdout
    shown = document("show", hit["id"])
    assert shown["chunks"][0]["span"] == {"start": 0, "end": 29}
    assert "document" not in shown
    assert document("show", "crane.md", "--revision", "1")["chunks"][0]["status"] == "superseded"
    text = call("show", "crane.md").stdout
    assert "    It lifts fifty tons." in text
    assert hit["id"] in text
    assert "\x1b[31m" not in call("show", "soup.html").stdout
    assert document("retract", "crane.md", "--reason", "sold")["status"] == "retracted"
    assert "[retracted: sold]" in call("list", "--all").stdout
    assert call("search", "tons").stdout == "nothing found in the corpus yard\n"


def test_a_private_corpus_is_named_by_its_user(folder: Path) -> None:
    call("add", "crane.md", "--user", "ana", "--id", "mine", "--title", "My crane", "--type", "text/plain")
    assert document("list")["documents"] == []
    (mine,) = document("list", "--user", "ana")["documents"]
    assert (mine["document_id"], mine["title"], mine["media_type"]) == ("mine", "My crane", "text/plain")
    assert call("list").stdout == "no documents in the corpus yard\n"


@pytest.mark.parametrize(
    ("args", "code", "error", "said"),
    [
        (("add", "none.md"), 2, "invalid_input", "none.md"),
        (("add", "."), 2, "invalid_input", "directory"),
        (("add", "binary"), 2, "invalid_input", "UTF-8"),
        (("add", "empty.md"), 2, "invalid_input", "empty.md: the document holds no text"),
        (("add", "crane.md", "--type", "application/pdf"), 2, "invalid_input", "application/pdf"),
        (("add", "crane.md", "soup.html", "--id", "x"), 2, "invalid_input", "one file"),
        (("show", "nothing"), 1, "not_found", "nothing"),
        (("show", "chk_nothing"), 1, "not_found", "chk_nothing"),
        (("retract", "nothing", "--reason", "why"), 1, "not_found", "nothing"),
        (("search", "x", "--k", "0"), 2, "invalid_input", "k should"),
    ],
)
def test_errors_have_the_one_shape(folder: Path, args: tuple[str, ...], code: int, error: str, said: str) -> None:
    (folder / "binary").write_bytes(b"\xff\xfe\x00")
    (folder / "empty.md").write_text(" \n")
    call("add", "crane.md")
    result = call(*args, "--json", code=code)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    problem = json.loads(line)
    assert problem["code"] == error
    assert said in problem["message"]
    assert f"error[{error}]" in call(*args, code=code).stderr


def test_reading_makes_no_store(folder: Path) -> None:
    for args in (("list",), ("search", "x"), ("show", "x"), ("retract", "x", "--reason", "y")):
        assert "no store" in call(*args, code=2).stderr
    assert not (folder / "muniment.db").exists()
