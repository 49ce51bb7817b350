"""`muniment check sandbox` and what `doctor` says of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from muniment.surfaces.cli.main import cli
from muniment.verify.sandbox import _mounts as finding

pytestmark = pytest.mark.req("RC-25")


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_a_line_and_a_program(bwrap: str) -> None:
    line = call("check", "sandbox", "--", "echo one | tr a-z A-Z; exit 3")
    assert (line.stdout, line.exit_code) == ("ONE\n", 3)
    program = call("check", "sandbox", "--", "printf", "%s|", "a b", "$x", "--help")
    assert (program.stdout, program.exit_code) == ("a b|$x|--help|", 0)


def test_what_was_met_is_said(bwrap: str, tmp_path: Path) -> None:
    slow = call("check", "sandbox", "--wall", "0.3", "--", "sleep", "20")
    assert (slow.exit_code, slow.stderr) == (124, "sandbox: it was stopped at its wall time\n")
    loud = call("check", "sandbox", "--output", "10", "--", "yes")
    assert (loud.exit_code, loud.stdout) == (137, "y\n" * 5)
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({"schema_version": "0.5.15", "caps": {"wall_ms": 200}, "workdir": "/testbed"}))
    given = tmp_path / "given.txt"
    given.write_text("given")
    both = call(
        "check",
        "sandbox",
        "--policy",
        str(policy),
        "--wall",
        "20",
        "--file",
        str(given),
        "--json",
        "--",
        "cat",
        "given.txt",
    )
    told = json.loads(both.stdout)
    assert (told["ok"], told["stdout"], told["exit_code"], both.exit_code) == (True, "given", 0, 0)
    assert told["trace"]["tool"] == "execute_bash"


def test_folders_are_given_whole(bwrap: str, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner/a.txt").write_text("a")
    (folder / "link").symlink_to("/etc/passwd")
    assert call("check", "sandbox", "--file", str(folder), "--", "find . -type f").stdout == "./project/inner/a.txt\n"


def test_wrong_questions() -> None:
    assert call("check", "sandbox", "--mem", "0", "--", "true").exit_code == 2
    assert call("check", "sandbox", "--policy", "none.json", "--", "true").exit_code == 2
    assert call("check", "sandbox", "--file", "none.txt", "--", "true").exit_code == 2
    assert call("check", "sandbox").exit_code == 2


def test_options_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({"schema_version": "0.5.15", "caps": [1]}))
    for given in (
        ("--wall", "inf"),
        ("--cpu", "nan"),
        ("--policy", str(policy), "--wall", "1"),
        ("--file", "/dev/zero"),
    ):
        refused = call("check", "sandbox", *given, "--", "true")
        assert (refused.exit_code in (1, 2), refused.exception.__class__) == (True, SystemExit), given
        assert refused.stderr.startswith("error[invalid_"), given


@pytest.mark.soak
def test_without_a_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding.shutil, "which", lambda name: None)
    monkeypatch.setattr(finding, "find_spec", lambda name: None)
    refused = call("check", "sandbox", "--json", "--", "touch /tmp/never")
    assert refused.exit_code == 125
    assert json.loads(refused.stderr)["code"] == "exec_unavailable"
    told = json.loads(call("doctor", "--json").stdout)["sandbox"]
    assert told["state"] == "exec_unavailable"
    assert "bubblewrap" in told["error"]["hint"]
    assert "apt-get install bubblewrap" in call("doctor").stdout


def test_doctor_says_which(bwrap: str) -> None:
    assert json.loads(call("doctor", "--json").stdout)["sandbox"] == {"state": "ok", "bwrap": bwrap}
