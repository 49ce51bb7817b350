"""Code that is wrong and wants to pass: it must not; where it shares a process with its tests, the result says so.

Every forgery here made the harness of old answer OK, which was learnt from as a pass. A third of them in every run,
all under a soak.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from forgeries import FORGERIES, RIGHT, SUITE, WRONG

import muniment
from effort import one_in
from muniment.contracts.runs import SandboxPolicy
from muniment.core.policy import LearnPolicy
from muniment.verify.results import is_pass
from muniment.verify.sandbox import Harness, HarnessResult, run_harness
from products import for_each

pytestmark = pytest.mark.req("RC-17", "RC-25")

TESTS = ("test_a.py", "test_b.py")
SMALL = SandboxPolicy.from_wire({"schema_version": "0.5.15", "caps": {"wall_ms": 30_000, "cpu_ms": 20_000}})


def run(output: dict[str, str], suite: dict[str, bytes] | None = None, **given: Any) -> HarnessResult:
    files = SUITE if suite is None else suite
    harness = Harness(pytest=TESTS if suite is None else tuple(suite), files=files, policy=SMALL, **given)
    return run_harness(harness, {path: text.encode() for path, text in output.items()}, trace_id="trc_1")


@pytest.fixture
def opened(request: pytest.FixtureRequest) -> Iterator[int]:
    """So many files that this process holds open while it judges."""
    with ExitStack() as held:
        for _ in range(request.param):
            held.enter_context(open(os.devnull, "rb"))
        yield request.param


@for_each("name", one_in(6, list(FORGERIES)))
def test_a_forgery_does_not_pass(bwrap: str, name: str) -> None:
    result = run(FORGERIES[name])
    assert result.judge == "external_process"
    assert result.outcome != "OK", result.seen[-1].stdout


INSIDE_PASSES = (
    "runtest", "always equal", "raises a skip", "code replaced", "memory written", "plugin registered", "nonce found",
)  # fmt: skip


@pytest.mark.parametrize("opened", [100], indirect=True)
def test_the_nonce_is_found_whatever_number_the_pipe_has(bwrap: str, opened: int) -> None:
    """A process that has much open hands over pipes of high numbers: what is tried here does not hang on them."""
    result = run(FORGERIES["nonce found"], judge="in_process")
    assert (result.outcome, result.judge) == ("OK", "in_process")
    assert run(FORGERIES["nonce found"]).outcome != "OK"


@pytest.mark.parametrize("name", one_in(6, INSIDE_PASSES))
def test_in_one_process_it_may_pass_and_is_named_so(bwrap: str, name: str) -> None:
    """Nothing can be kept from code that shares the process: the kind of judge says what the word is worth."""
    result = run(FORGERIES[name], judge="in_process")
    assert (result.outcome, result.judge) == ("OK", "in_process")
    assert result.judge not in LearnPolicy().judges


@for_each(
    "name", ["atexit", "conftest", "shadow pytest", "settings", "forks and writes", "system exit", "tests deselected"]
)
def test_what_a_process_can_be_kept_from_it_is(bwrap: str, name: str) -> None:
    """No conftest, plugin, settings or printed word of the output, and no other tests than the suite has."""
    assert run(FORGERIES[name], judge="in_process").outcome != "OK"


NAMED = {
    "sitecustomize.py": "import builtins\nbuiltins.AssertionError = KeyboardInterrupt\n",
    "usercustomize.py": "raise SystemExit(0)\n",
    "pytest.py": "raise SystemExit(0)\n",
    "_pytest/__init__.py": "raise SystemExit(0)\n",
    "pluggy.py": "raise SystemExit(0)\n",
    "pytest_forge.py": "def pytest_pyfunc_call(pyfuncitem):\n    return True\n",
    "forge.pth": "import os; os._exit(0)\n",
    "conftest.py": "def pytest_pyfunc_call(pyfuncitem):\n    return True\n",
    "tox.ini": "[pytest]\npython_functions = nothing\n",
    "setup.cfg": "[tool:pytest]\naddopts = --collect-only\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-k test_small'\n",
    "forge.dist-info/entry_points.txt": "[pytest11]\nforge = pytest_forge\n",
    "__pycache__/test_a.pyc": "",
    "wire.py": "raise SystemExit(0)\n",
    "judge.py": "raise SystemExit(0)\n",
    ".muniment/judge.py": "raise SystemExit(0)\n",
    ".muniment/serve.py": "raise SystemExit(0)\n",
    "test_a.py": "def test_small():\n    pass\n",
}


@pytest.mark.parametrize("judge", ["external_process", "in_process"])
def test_files_that_are_run_by_their_name(bwrap: str, judge: Any) -> None:
    """They change nothing: what is right passes, what is wrong fails, by either judge."""
    assert run({"solution.py": RIGHT, **NAMED}, judge=judge).outcome == "OK"
    assert run({"solution.py": WRONG, **NAMED}, judge=judge).outcome == "FAIL"


def test_a_module_named_like_pythons_own_is_not_judged(bwrap: str) -> None:
    """Whether `heapq` is the code's or Python's would decide: an empty one must not pass by Python's."""
    suite = {"test_heap.py": b"import heapq\n\n\ndef test_pop():\n    assert heapq.heappop([1]) == 1\n"}
    result = run({"heapq.py": ""}, suite)
    assert (result.outcome, result.reason_codes) == ("UNKNOWN", ("exec_unavailable",))
    assert "heapq" in (result.message or "")
    assert run({"solution.py": RIGHT, "heapq.py": ""}).outcome == "OK"


LIES: dict[str, dict[str, Any]] = {
    "an answer to another question": {"n": 99},
    "yes to everything": {"ok": True},
    "an object that is none": {"ok": ["object", 7777]},
    "an argument that is none": {"ok": ["given", 7]},
    "a tag that is none": {"ok": ["eval", "3"]},
    "a function that is not to be had": {"ok": ["builtin", "eval"]},
    "no value": {"ok": {"__class__": "int"}},
    "a number that is none": {"ok": ["int", "three"]},
    "an endless value": {"ok": json.loads('["list",[' * 150 + "]]" * 150)},
    "a class that is its own base": {
        "ok": ["object", 7777],
        "new": {"7777": {"kind": "class", "bases": [["object", 7777]]}},
    },
    "an object met twice": {"new": {"0": {"kind": "object", "name": "int"}}},
    "a callback that was not given": {"callback": 0, "args": [], "kwargs": []},
    "a skip": {"raise": {"class": ["builtin", "Skipped"], "args": [], "text": ""}},
    "an interrupt": {"raise": {"class": ["builtin", "KeyboardInterrupt"], "args": [], "text": ""}},
    "an exit": {"raise": {"class": ["builtin", "SystemExit"], "args": [0], "text": ""}},
    "no exception": {"raise": {"class": ["builtin", "int"], "args": [3], "text": ""}},
    "a doubt": {"doubt": "none of yours"},
}

_LIAR = """
import gc
def lie(told):
    for each in gc.get_objects():
        if type(each).__name__ == "Link" and "send" not in vars(each):
            each.send = lambda message, kept=each.send: kept(message | told)
"""


@for_each("name", one_in(6, list(LIES)))
def test_lies_on_the_wire_do_not_pass(bwrap: str, name: str) -> None:
    """The code shares a process with what answers the judge, and may answer what it likes."""
    code = f"{_LIAR}def add(a, b):\n    lie({LIES[name]!r})\n    return a - b\n"
    assert run({"solution.py": code}).outcome != "OK"


@pytest.mark.parametrize("opened", [0, 100], indirect=True)
def test_a_message_without_end_does_not_pass(bwrap: str, opened: int) -> None:
    code = (
        "import os\n"
        "def add(a, b):\n"
        "    for number in [n for n in map(int, os.listdir('/proc/self/fd')) if n >= 3]:\n"
        "        try:\n"
        "            os.write(number, b'\\xff' * 4)\n"
        "        except OSError:\n"
        "            pass\n"
        "    return a + b\n"
    )
    result = run({"solution.py": code})
    assert (result.outcome, result.reason_codes) == ("UNKNOWN", ("exec_unavailable",))


@for_each(
    ("answer", "asked"),
    [
        ("class X(str):\n    __eq__ = lambda self, other: True\n    __hash__ = str.__hash__\n", "== 'a'"),
        ("class X:\n    __ne__ = lambda self, other: True\n", "!= 3"),
        ("class X:\n    __lt__ = lambda self, other: True\n", "< 3"),
        ("class X:\n    __ge__ = lambda self, other: True\n", ">= 3"),
        ("class X:\n    __eq__ = lambda self, other: True\n", "in (1, 2)"),
        ("class X(list):\n    __eq__ = lambda self, other: True\n", "== [1, 2]"),
        ("class X(dict):\n    __eq__ = lambda self, other: True\n", "== {}"),
        ("class X(float):\n    __eq__ = __lt__ = __gt__ = __ge__ = lambda self, other: True\n", ">= 3.0"),
    ],
    ids=["text", "differs", "below", "at least", "one of", "list", "mapping", "float"],
)
def test_an_object_that_agrees_with_everything_decides_nothing(bwrap: str, answer: str, asked: str) -> None:
    suite = {"test_x.py": f"from solution import make\n\n\ndef test_x():\n    assert make() {asked}\n".encode()}
    result = run({"solution.py": f"{answer}def make():\n    return X()\n"}, suite)
    assert (result.outcome, result.reason_codes) == ("UNKNOWN", ("exec_unavailable",))
    assert (result.message or "").startswith("not judged: ")


def test_an_object_that_holds_everything_decides_nothing(bwrap: str) -> None:
    suite = {"test_x.py": b"from solution import make\n\n\ndef test_x():\n    assert 3 in make()\n"}
    code = "class X:\n    __contains__ = lambda self, other: True\ndef make():\n    return X()\n"
    assert run({"solution.py": code}, suite).outcome == "UNKNOWN"


def test_a_test_that_is_skipped_after_the_code_was_asked_decides_nothing(bwrap: str) -> None:
    suite = {
        "test_x.py": b"import pytest\nimport solution\n\n\ndef test_a():\n    assert True\n\n\n"
        b"def test_b():\n    if not solution.ready():\n        pytest.skip('not ready')\n"
        b"    assert solution.add(1, 1) == 2\n"
    }
    result = run({"solution.py": "def ready():\n    return False\n"}, suite)
    assert result.outcome == "UNKNOWN"


def test_tests_that_the_output_counts_decide_nothing(bwrap: str) -> None:
    """How many tests there are may not be the output's to say."""
    suite = {
        "test_x.py": b"import pytest\nimport solution\n\n\n@pytest.mark.parametrize('n', solution.CASES)\n"
        b"def test_x(n):\n    assert n == n\n"
    }
    for judge in ("external_process", "in_process"):
        result = run({"solution.py": "CASES = [1, 2]\n"}, suite, judge=judge)
        assert result.outcome == "UNKNOWN", judge


def test_tests_of_the_output_judge_nothing(bwrap: str) -> None:
    output = {"solution.py": WRONG, "tests/test_own.py": "def test_own():\n    pass\n"}
    harness = Harness(pytest=("tests",), policy=SMALL)
    result = run_harness(harness, {path: text.encode() for path, text in output.items()}, trace_id="trc_1")
    assert result.outcome == "UNKNOWN"


# -- walls --------------------------------------------------------------------------------------------


def test_the_code_sees_neither_judge_nor_suite(bwrap: str) -> None:
    code = (
        "import os\n"
        "def look():\n"
        "    found = []\n"
        "    for top, _, names in os.walk('/scratch'):\n"
        "        found += [name for name in names if name.startswith('test_') or name in ('judge.py', 'job.json')]\n"
        "    for number in os.listdir('/proc'):\n"
        "        if number.isdigit():\n"
        "            try:\n"
        "                line = open(f'/proc/{number}/cmdline').read()\n"
        "            except OSError:\n"
        "                continue\n"
        "            found += [line] if 'judge' in line else []\n"
        "    return found\n"
        "def pipes():\n"
        "    return sum(os.readlink(f'/proc/self/fd/{n}').startswith('pipe:') for n in os.listdir('/proc/self/fd')\n"
        "               if os.path.lexists(f'/proc/self/fd/{n}'))\n"
    )
    suite = {
        "test_x.py": b"import solution\n\n\ndef test_x():\n    assert solution.look() == []\n\n\n"
        b"def test_pipes():\n    assert solution.pipes() == 4  # output, errors, questions, answers\n"
    }
    assert run({"solution.py": code}, suite).outcome == "OK"


# -- learning -----------------------------------------------------------------------------------------


def fold(judge: str, output: dict[str, str], policy: Any = None) -> tuple[Any, Any, Any]:
    """Verify a run by a suite, and fold it: the result, the fold, the log."""
    with muniment.open(":memory:", **({} if policy is None else {"policy": policy})) as mem:
        run = mem.run(user_id="ana", session_id="s", run_id="run_1")
        run.observe("user", "Write add.")
        run.observe("assistant", output["solution.py"])
        harness = Harness(pytest=TESTS, files=SUITE, policy=SMALL, judge=judge)  # type: ignore[arg-type]
        files = {path: text.encode() for path, text in output.items()}
        result = run.verify(output["solution.py"], harness=harness, files=files)
        folded = run.finish(verifier_result=result, intent={"domain_tag": "code"})
        (log,) = mem.bank(user_id="ana").event_logs()
        return result, folded, log


@for_each("name", ["atexit", "runtest", "conftest", "shadow pytest", "always equal"])
def test_a_forgery_teaches_nothing(bwrap: str, name: str) -> None:
    for judge in ("external_process", "in_process"):
        result, folded, log = fold(judge, FORGERIES[name])
        assert result.model_extra["judge"]["kind"] == judge
        assert folded.produced.reuse_state_ids == (), judge
        assert not is_pass(log.verifier.verdict, log.verifier.outcome), judge
        assert (log.verifier.model_extra or {})["judge"] == judge
