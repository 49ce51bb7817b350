"""Layer 3: what a run in the sandbox decides, from a real pytest project to one that cannot run."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.contracts.runs import SandboxActionTrace, SandboxPolicy
from muniment.contracts.schemas import validate
from muniment.errors import InvalidInput
from muniment.verify.sandbox import Harness, run_harness
from muniment.verify.sandbox import _mounts as finding
from muniment.verify.sandbox.bubblewrap import BubblewrapSandbox
from muniment.verify.sandbox.harness import Attempt, Judgement, SuiteReport, attempt_of, read_report, suite_attempt
from muniment.verify.sandbox.harness import confirm_failure as both_ways
from muniment.verify.sandbox.harness import decide as judge
from muniment.verify.sandbox.port import Observation
from products import for_each

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


@pytest.mark.soak
@for_each(
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
    has_failed_outside = outcome == "FAIL" or reasons == ("exec_unavailable",)  # looked at again in one process
    harness = Harness(pytest=("tests",), files=SUITE, policy=policy(mem_mb=128, wall_ms=3_000 if sleeps else 20_000))
    result = run_harness(harness, output, trace_id="trc_1")
    assert (result.outcome, result.reason_codes) == (outcome, reasons), result.seen[-1].stdout
    assert validate("SandboxActionTrace", result.traces[0].to_wire()) == []
    assert result.judge == "external_process"
    assert result.sandbox.actions_n == len(result.seen) == (3 if has_failed_outside else 2)
    assert {trace.trace_id for trace in result.traces} == {"trc_1"}


@for_each(
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
    for wrong in (
        {},
        {"command": "x", "pytest": ()},
        {"command": "x", "runs": 0},
        {"command": "x", "runs": 1000},
        {"pytest": (), "judge": "me"},
    ):
        with pytest.raises(InvalidInput):
            Harness(**wrong)  # type: ignore[arg-type]
    assert Harness(command="x").judge_kind == "command"
    assert Harness(pytest=()).judge_kind == "external_process"
    assert Harness(pytest=(), judge="in_process").judge_kind == "in_process"


NO_PYTEST = "File \"judge.py\", line 16, in <module>\nModuleNotFoundError: No module named 'pytest'\n"


@for_each(
    ("seen", "attempt"),
    [
        ({"exit_code": 0}, Attempt("OK")),
        ({"exit_code": 1}, Attempt("FAIL", "test_fail")),
        ({"exit_code": 126}, Attempt("UNKNOWN", "exec_unavailable")),
        ({"exit_code": 137, "error_class": "cap_exceeded"}, Attempt("UNKNOWN", "sandbox_denied")),
        ({"error_class": "sandbox_timeout"}, Attempt("UNKNOWN", "sandbox_timeout")),
        ({"error_class": "action_refused"}, Attempt("UNKNOWN", "sandbox_denied")),
        ({}, Attempt("UNKNOWN", "sandbox_denied")),
    ],
)
def test_reading_one_run_of_a_command(seen: dict[str, Any], attempt: Attempt) -> None:
    assert attempt_of(Observation(ok=False, trace=TRACE, **seen)) == attempt


@for_each(
    ("seen", "attempt"),
    [
        ({"exit_code": 0, "stdout": "2 passed in 0.1s"}, Attempt("UNKNOWN", "exec_unavailable")),
        ({"exit_code": 1, "stderr": NO_PYTEST}, Attempt("UNKNOWN", "exec_unavailable")),
        ({"exit_code": 1, "stderr": "ValueError"}, Attempt("FAIL", "test_fail")),
        ({"exit_code": 139}, Attempt("FAIL", "test_fail")),
        ({"error_class": "sandbox_timeout"}, Attempt("UNKNOWN", "sandbox_timeout")),
    ],
)
def test_a_run_without_a_report(seen: dict[str, Any], attempt: Attempt) -> None:
    """What is printed is no report."""
    assert suite_attempt(Observation(ok=False, trace=TRACE, **seen), None, None) == attempt


ENDED = Observation(ok=True, trace=TRACE, exit_code=0)


def report(results: dict[str, str] | None, exit_code: int = 0, **given: Any) -> SuiteReport:
    tests = ("a", "b")
    return SuiteReport(**{"expected": tests, "collected": tests, "results": results, "exit_code": exit_code} | given)


@for_each(
    ("told", "outcome"),
    [
        (report({"a": "passed", "b": "passed"}), "OK"),
        (report({"a": "passed", "b": "skipped"}), "OK"),
        (report({"a": "skipped", "b": "skipped"}), "UNKNOWN"),
        (report({"a": "passed", "b": "failed"}, 1), "FAIL"),
        (report({"a": "passed", "b": "failed"}, 0), "FAIL"),
        (report({}, 2, collected=()), "FAIL"),
        (report({"a": "passed"}), "UNKNOWN"),
        (report({"a": "passed", "b": "passed"}, collected=("b", "a")), "UNKNOWN"),
        (report({"a": "passed", "b": "passed", "c": "passed"}), "UNKNOWN"),
        (report({"a": "passed", "b": "surely"}), "UNKNOWN"),
        (report({"a": "passed", "b": "passed"}, doubts=("its own word",)), "UNKNOWN"),
        (report({"a": "passed", "b": "passed"}, 3), "UNKNOWN"),
        (report({"a": "passed", "b": "passed"}, expected=None), "UNKNOWN"),
        (report({}, 5, expected=(), collected=()), "UNKNOWN"),
        (report(None, 4), "UNKNOWN"),
    ],
)
def test_reading_a_report(told: SuiteReport, outcome: str) -> None:
    assert suite_attempt(ENDED, None, told).outcome == outcome


def test_a_report_counts_only_where_the_code_was_not_cut_off() -> None:
    told = report({"a": "passed", "b": "passed"})
    for error, reason in (("sandbox_timeout", "sandbox_timeout"), ("cap_exceeded", "sandbox_denied")):
        code = Observation(ok=False, trace=TRACE, error_class=error)  # type: ignore[arg-type]
        assert suite_attempt(ENDED, code, told) == Attempt("UNKNOWN", reason)


def test_a_report_knows_its_nonce() -> None:
    told = b'{"nonce": "n", "expected": ["a"], "collected": ["a"], "results": {"a": "passed"}, "exit": 0}'
    assert read_report(told, "n") == SuiteReport(("a",), ("a",), {"a": "passed"}, (), 0)
    for data, nonce in ((told, "m"), (b"", "n"), (b"[]", "n"), (b'{"nonce": "n"}', "n"), (told + told, "n")):
        assert read_report(data, nonce) is None
    assert read_report(b'{"nonce": "n", "expected": ["a"], "results": [1]}', "n") is None


def test_what_fails_outside_fails_if_it_fails_inside() -> None:
    failed = Attempt("FAIL", "test_fail")
    assert both_ways(failed) == failed
    assert both_ways(Attempt("UNKNOWN", "sandbox_timeout")).reason == "sandbox_timeout"
    assert (both_ways(Attempt("OK")).outcome, both_ways(Attempt("OK")).reason) == ("UNKNOWN", "exec_unavailable")


@for_each(
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
