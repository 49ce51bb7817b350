"""Runs pytest on a suite in a sandbox and tells, over a pipe, which tests there are and what came of each.

    judge.main([JOB, RESULTS, SOURCE, SINK])

JOB is a file, read and removed first. `outside`: nothing of the output is here, and its modules are stubs that ask
the code in its own sandbox, over SOURCE and SINK. `inside`: the output lies beside the suite and runs in this process,
which it can then change as it likes. `collect`: only the tests are counted. The tests are counted, in a process of
their own, before anything of the code is asked; RESULTS has one line, written at the very end, with the nonce of
the job.
"""

import contextlib
import json
import os
import sys
from typing import Any

import pytest
from finders import Blanks, Finder  # type: ignore[import-not-found]
from remote import Remote  # type: ignore[import-not-found]
from wire import Link  # type: ignore[import-not-found]

FIXED = ("-q", "-rN", "--color=no", "-p", "no:cacheprovider")


class Reporter:
    """What pytest says of its tests."""

    def __init__(self, remote: Remote | None = None) -> None:
        self._remote = remote
        self._contacts = 0
        self.collected: list[str] = []
        self.results: dict[str, str] = {}
        self.doubts: list[str] = []
        self.broken = False
        """Something could not be collected."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.collected = [item.nodeid for item in session.items]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.broken = self.broken or report.failed

    def pytest_runtest_logstart(self) -> None:
        self._contacts = 0 if self._remote is None else self._remote.contacts

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        known = self.results.get(report.nodeid)
        if report.failed:
            self.results[report.nodeid] = "failed"
        elif report.skipped:
            self.results[report.nodeid] = known or "skipped"
            if self._remote is not None and self._remote.contacts != self._contacts:
                self.doubts.append("a test was skipped after the code had been asked")
        elif report.when == "call":
            self.results[report.nodeid] = known or "passed"


def collect(args: list[str]) -> list[str] | None:
    """The ids of the tests as they are without the code, counted in a process of their own; None where that fails."""
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            reporter = Reporter()
            sys.meta_path.append(Blanks())
            pytest.main([*FIXED, "--collect-only", *args], [reporter])
        with os.fdopen(sink, "w") as file:
            json.dump(None if reporter.broken else reporter.collected, file)
        os._exit(0)
    os.close(sink)
    with os.fdopen(source) as file:
        said = file.read()
    os.waitpid(child, 0)
    found = json.loads(said) if said else None
    return None if found is None else [str(each) for each in found]


def main(given: list[str]) -> None:
    """Count the tests, run them, and tell."""
    job_path, results, *wires = given
    with open(job_path, encoding="utf-8") as file:
        job: dict[str, Any] = json.load(file)
    os.unlink(job_path)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # what happens to be installed is no part of the test
    for name in ("finders", "judge", "nearness", "remote", "stubs", "wire"):
        sys.modules.pop(name, None)  # suite and output may have modules of these names
    sys.path[0] = os.getcwd()  # as `python -m pytest` does
    nonce, args = job["nonce"], list(job["args"])
    said: dict[str, Any] = {"nonce": nonce, "expected": job.get("expected")}
    if job["mode"] != "inside":
        said["expected"] = collect(args)
    if job["mode"] != "collect" and said["expected"] is not None:
        remote = Remote(Link(*map(int, wires))) if job["mode"] == "outside" else None
        if remote is not None:
            sys.meta_path.insert(0, Finder(remote, job["modules"]))
        reporter = Reporter(remote)
        code = int(pytest.main([*FIXED, *args], [reporter]))
        doubts = [*reporter.doubts, *(() if remote is None else remote.doubts)]
        said |= {"collected": reporter.collected, "results": reporter.results, "doubts": doubts, "exit": code}
    with os.fdopen(int(results), "w") as file:
        json.dump(said, file)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
