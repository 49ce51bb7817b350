"""Layer 3: what a run in the sandbox decides, from a real pytest project to one that cannot run."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.contracts.sandbox import SandboxActionTrace, SandboxPolicy
from muniment.contracts.validation import validate
from muniment.errors import InvalidInput
from muniment.verify.sandbox import BubblewrapSandbox, Harness, finding, run_harness
from muniment.verify.sandbox.judging import Attempt, Judgement, attempt_of, judge
from muniment.verify.sandbox.port import Observation

pytestmark = pytest.mark.req("RC-17", "RC-25")

TRACE = SandboxActionTrace.from_wire(
    {"schema_version": "0.5.15", "trace_id": "t", "action_id": "a", "turn": 1, "tool": "execute_bash"}
)
SUITE = {
    "tests/test_words.py": b"from words import count\n\n\ndef test_words():\n    assert count('a b') == 2\n\n\n"
    b"def test_none():\n    assert count('') == 0\n",
}
RIGHT, WRONG = (
    b"def count(text):\n    return len(text.split())\n",
    b"def count(text):\n    return len(text.split(' '))\n",
)


def policy(**caps: int) -> SandboxPolicy:
    return SandboxPolicy.from_wire({"schema_version": "0.5.15", "caps": {"wall_ms": 20_000, **caps}})


@pytest.mark.parametrize(
    ("output", "outcome", "reasons"),
    [
        ({"words.py": RIGHT}, "OK", ()),
        ({"words.py": WRONG}, "FAIL", ("test_fail",)),
        ({"words.py": b"def count(:"}, "FAIL", ("test_fail",)),
        ({}, "FAIL", ("test_fail",)),
        ({"words.py": RIGHT, "tests/test_words.py": b"def test_words(): pass"}, "OK", ()),
        ({"words.py": WRONG, "tests/test_words.py": b"def test_words(): pass"}, "FAIL", ("test_fail",)),
        ({"words.py": b"import os\nos._exit(0)\n"}, "UNKNOWN", ("exec_unavailable",)),
        ({"words.py": b"import time\ntime.sleep(30)\n"}, "UNKNOWN", ("sandbox_timeout",)),
        ({"words.py": b"x = b'x' * (500 << 20)\n"}, "UNKNOWN", ("sandbox_denied",)),
    ],
    ids=["right", "wrong", "broken", "missing", "own-test", "own-test-wrong", "exits", "sleeps", "eats"],
)
def test_a_pytest_suite(bwrap: str, output: dict[str, bytes], outcome: str, reasons: tuple[str, ...]) -> None:
    sleeps = reasons == ("sandbox_timeout",)
    harness = Harness(pytest=("tests",), files=SUITE, policy=policy(mem_mb=128, wall_ms=3_000 if sleeps else 20_000))
    result = run_harness(harness, output, trace_id="trc_1")
    assert (result.outcome, result.reason_codes) == (outcome, reasons), result.seen[-1].stdout
    assert validate("SandboxActionTrace", result.traces[0].to_wire()) == []
    assert result.sandbox.actions_n == 1
    assert result.traces[0].trace_id == "trc_1"


@pytest.mark.parametrize(
    ("command", "outcome", "reasons"),
    [
        ("test $(cat a.txt) = a", "OK", ()),
        ("exit 3", "FAIL", ("test_fail",)),
        ("nonesuch", "UNKNOWN", ("exec_unavailable",)),
        ("head -c 5M /dev/zero", "UNKNOWN", ("sandbox_denied",)),
        ("exit $((RANDOM % 2))", "UNKNOWN", ("env_nondeterminism",)),
        ("touch left.txt; test $(ls | wc -l) = 2", "OK", ()),
    ],
)
def test_a_command(bwrap: str, command: str, outcome: str, reasons: tuple[str, ...]) -> None:
    runs = 12 if "RANDOM" in command else 2
    result = run_harness(Harness(command=command, policy=policy(), runs=runs), {"a.txt": b"a"}, trace_id="t")
    assert (result.outcome, result.reason_codes) == (outcome, reasons)
    assert len(result.seen) == (1 if outcome == "UNKNOWN" and runs == 2 else runs)


def test_without_a_sandbox_it_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding.shutil, "which", lambda name: None)
    monkeypatch.setattr(finding, "find_spec", lambda name: None)
    result = run_harness(Harness(command="true"), {}, trace_id="t", sandbox=BubblewrapSandbox())
    assert (result.outcome, result.reason_codes, result.seen) == ("UNKNOWN", ("exec_unavailable",), ())
    assert "apt-get install bubblewrap" in (result.message or "")
    switched_off = SandboxPolicy.from_wire({"schema_version": "0.5.15", "enabled": False})
    result = run_harness(Harness(command="true", policy=switched_off), {}, trace_id="t")
    assert (result.outcome, result.reason_codes) == ("UNKNOWN", ("sandbox_denied",))
    assert result.sandbox.enabled is False


def test_a_harness_is_one_thing() -> None:
    for wrong in ({}, {"command": "x", "pytest": ()}, {"command": "x", "runs": 0}, {"command": "x", "runs": 1000}):
        with pytest.raises(InvalidInput):
            Harness(**wrong)  # type: ignore[arg-type]


NO_PYTEST = "File \"<frozen runpy>\", line 189, in _run_module_as_main\nModuleNotFoundError: No module named 'py'\n"


@pytest.mark.parametrize(
    ("kind", "seen", "attempt"),
    [
        ("pytest", {"exit_code": 0, "stdout": "1 passed in 0.1s"}, Attempt("OK")),
        ("pytest", {"exit_code": 0, "stdout": "== 2 passed, 1 skipped in 1s =="}, Attempt("OK")),
        ("pytest", {"exit_code": 0, "stdout": "1 skipped, 2 passed in 1s"}, Attempt("OK")),
        ("pytest", {"exit_code": 0, "stdout": "3 skipped in 1s"}, Attempt("UNKNOWN", "exec_unavailable")),
        ("pytest", {"exit_code": 1, "stdout": "1 failed"}, Attempt("FAIL", "test_fail")),
        ("pytest", {"exit_code": 2}, Attempt("FAIL", "test_fail")),
        ("pytest", {"exit_code": 1, "stderr": NO_PYTEST}, Attempt("UNKNOWN", "exec_unavailable")),
        ("pytest", {"exit_code": 4}, Attempt("UNKNOWN", "exec_unavailable")),
        ("pytest", {"exit_code": 5}, Attempt("UNKNOWN", "exec_unavailable")),
        ("pytest", {"exit_code": 139}, Attempt("FAIL", "test_fail")),
        ("command", {"exit_code": 0}, Attempt("OK")),
        ("command", {"exit_code": 126}, Attempt("UNKNOWN", "exec_unavailable")),
        ("command", {"exit_code": 137, "error_class": "cap_exceeded"}, Attempt("UNKNOWN", "sandbox_denied")),
        ("command", {"error_class": "sandbox_timeout"}, Attempt("UNKNOWN", "sandbox_timeout")),
        ("command", {"error_class": "action_refused"}, Attempt("UNKNOWN", "sandbox_denied")),
        ("command", {}, Attempt("UNKNOWN", "sandbox_denied")),
    ],
)
def test_reading_one_run(kind: Any, seen: dict[str, Any], attempt: Attempt) -> None:
    assert attempt_of(Observation(ok=False, trace=TRACE, **seen), kind) == attempt


@pytest.mark.parametrize(
    ("attempts", "judgement"),
    [
        ([], Judgement("UNKNOWN", ("exec_unavailable",))),
        ([Attempt("OK")] * 3, Judgement("OK")),
        ([Attempt("FAIL", "test_fail")] * 2, Judgement("FAIL", ("test_fail",))),
        ([Attempt("OK"), Attempt("FAIL", "test_fail")], Judgement("UNKNOWN", ("env_nondeterminism",))),
        (
            [Attempt("OK"), Attempt("UNKNOWN", "sandbox_timeout")],
            Judgement("UNKNOWN", ("sandbox_timeout", "env_nondeterminism")),
        ),
        ([Attempt("UNKNOWN", "sandbox_denied")], Judgement("UNKNOWN", ("sandbox_denied",))),
    ],
)
def test_judging_them_together(attempts: list[Attempt], judgement: Judgement) -> None:
    assert judge(attempts) == judgement
