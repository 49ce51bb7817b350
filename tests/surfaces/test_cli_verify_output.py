"""`muniment check verify-output`: one output against constraints, documents and a sandbox, as a script calls it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import muniment
from muniment.contracts.schemas import validate
from muniment.errors import SandboxFailure, SandboxUnavailable
from muniment.surfaces.cli.main import cli
from muniment.verify.sandbox.bubblewrap import BubblewrapSandbox, probe
from products import for_each

SOURCE = "The Eiffel Tower is 330 metres tall. It was finished in 1889."


def has_sandbox() -> bool:
    try:
        probe()
    except SandboxFailure:
        return False
    return True


needs_sandbox = pytest.mark.skipif(not has_sandbox(), reason="no bubblewrap here, or it is refused")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.txt").write_text("The Eiffel Tower is 330 metres tall.")
    (tmp_path / "bad.txt").write_text("The Eiffel Tower is 300 metres tall.")
    (tmp_path / "source.txt").write_text(SOURCE)
    (tmp_path / "c.yaml").write_text("- words: {max: 10}\n- not_contains: as an AI\n  severity: minor\n")
    (tmp_path / "good.py").write_text("def add(a, b):\n    return a + b\n")
    (tmp_path / "bad.py").write_text("def add(a, b):\n    return a - b\n")
    (tmp_path / "sly.py").write_text("raise SystemExit(0)\n")
    (tmp_path / "test_add.py").write_text("from solution import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n")
    return tmp_path


def call(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["check", "verify-output", *arguments], input=stdin)


@pytest.mark.req("RC-17", "RC-01")
def test_form_and_facts_speak_the_verdict(folder: Path) -> None:
    good = call("good.txt", "--constraints", "c.yaml", "--document", "source.txt")
    assert good.exit_code == 0
    assert re.fullmatch(r"PASS, outcome UNKNOWN, score 0\.[5-9]\d*\n", good.stdout)  # the checker's own chance
    bad = call("bad.txt", "--constraints", "c.yaml", "--document", "source.txt")
    assert bad.exit_code == 1
    assert bad.stdout.startswith("FAIL, outcome UNKNOWN, score 0.")
    assert "“330”" in bad.stdout
    long = call("-", "--constraints", "c.yaml", stdin="one two three four five six seven eight nine ten eleven")
    assert (long.exit_code, "  violated: FORMAT:WORDS" in long.stdout) == (1, True)
    minor = call("-", "--constraints", "c.yaml", stdin="I, as an AI")
    assert (minor.exit_code, minor.stdout.splitlines()[0]) == (1, "PARTIAL, outcome UNKNOWN, score 0.3")


def test_json_is_the_record(folder: Path) -> None:
    shown = call("bad.txt", "--document", "source.txt", "--json")
    record = json.loads(shown.stdout)
    assert validate("VerifierResult", record) == []
    assert record["fgfc"]["units"][0]["correction"] == "The Eiffel Tower is 330 metres tall."


@for_each(
    ("arguments", "code"),
    [
        (("good.txt",), "invalid_input"),
        (("missing.txt", "--constraints", "c.yaml"), "invalid_input"),
        (("good.txt", "--constraints", "missing.yaml"), "invalid_input"),
        (("good.txt", "--constraints", "source.txt"), "invalid_record"),
        (("good.txt", "--constraints", "typo.yaml"), "invalid_record"),
        (("good.txt", "--document", "missing.txt"), "invalid_input"),
        (("binary", "--constraints", "c.yaml"), "invalid_input"),
        ((".", "--constraints", "c.yaml"), "invalid_input"),
        (("good.txt", "--command", "true", "--pytest", "test_add.py"), "invalid_input"),
        (("good.txt", "--command", "true", "--runs", "0"), "invalid_input"),
        (("good.txt", "--pytest", "missing.py"), "invalid_input"),
        (("good.txt", "--constraints", "c.yaml", "--run", "r1", "--db", "none.db"), "invalid_input"),
    ],
)
def test_what_cannot_be_read_is_told_from_what_does_not_pass(
    folder: Path, arguments: tuple[str, ...], code: str
) -> None:
    (folder / "typo.yaml").write_text("- wrods: {max: 5}")
    (folder / "binary").write_bytes(b"\xff\xfe\x00")
    result = call(*arguments, "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert json.loads(result.stderr)["code"] == code


@pytest.mark.req("RC-17", "RC-25")
def test_without_a_sandbox_nothing_runs_and_nothing_passes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise SandboxUnavailable("bubblewrap is not installed", hint="install it")

    monkeypatch.setattr(BubblewrapSandbox, "open", missing)
    result = call("good.txt", "--constraints", "c.yaml", "--command", f"touch {folder}/ran; true")
    assert result.exit_code == 3
    assert "exec_unavailable" in result.stdout
    assert "install it" in result.stdout
    assert not (folder / "ran").exists()
    violated = call("-", "--constraints", "c.yaml", "--command", "true", stdin="a " * 20)
    assert violated.exit_code == 1  # what is known to be wrong is wrong, whatever could not be run


@pytest.mark.soak
@needs_sandbox
@pytest.mark.req("RC-17", "RC-25")
def test_execution_speaks_the_outcome(folder: Path) -> None:
    assert call("good.txt", "--command", "grep -q 330 output.txt").stdout == (
        "PASS, outcome OK, score 1\n  judge:    command\n"
    )
    failed = call("good.txt", "--command", "grep -q 300 output.txt")
    assert (failed.exit_code, failed.stdout.splitlines()[0]) == (1, "FAIL, outcome FAIL, score 0")
    suite = ("--pytest", "test_add.py", "--as", "solution.py")
    assert [call(name, *suite).exit_code for name in ("good.py", "bad.py", "sly.py")] == [0, 1, 3]
    assert call("good.txt", "--command", "nonesuch").exit_code == 3
    assert call("good.txt", "--command", "true", "--as", "../x").exit_code == 2


@pytest.mark.req("RC-17")
def test_a_result_is_kept_with_a_run(folder: Path) -> None:
    with muniment.open("m.db") as mem:
        mem.run(user_id="ana", session_id="s1", run_id="r1").observe("user", "How tall is the tower?")
    done = call("bad.txt", "--document", "source.txt", "--db", "m.db", "--run", "r1", "--json")
    assert done.exit_code == 1
    with muniment.open("m.db") as mem:
        kept = mem.resume("r1").run.verifications()
    assert [each.verdict for each in kept] == ["FAIL"]
    assert call("good.txt", "--constraints", "c.yaml", "--db", "m.db", "--run", "none").exit_code != 0
