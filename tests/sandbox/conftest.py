"""A sandbox to test: skipped, with the reason, where this machine cannot build one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from sandbox_helpers import Opener

from muniment.contracts.runs import SandboxPolicy
from muniment.core.outside.system import CountingIds
from muniment.errors import SandboxFailure
from muniment.verify.sandbox.bubblewrap import BubblewrapSandbox, probe

SMALL = {
    "wall_ms": 20_000,
    "cpu_ms": 20_000,
    "mem_mb": 96,
    "disk_mb": 16,
    "processes": 24,
    "files": 2_000,
    "output_bytes": 200_000,
}


@pytest.fixture(scope="session")
def bwrap() -> str:
    """The bubblewrap that works here."""
    try:
        return probe()
    except SandboxFailure as error:
        pytest.skip(f"NO SANDBOX, its tests did not run: {error.message} ({error.hint})")


@pytest.fixture
def open_session(bwrap: str) -> Iterator[Opener]:
    """Opens sessions under small caps and closes them; caps by their names, the rest of a policy too."""
    with ExitStack() as opened:

        def opener(files: dict[str, bytes] | None = None, packages: tuple[str, ...] = (), **given: Any) -> Any:
            caps = {name: given.pop(name) for name in list(given) if name in {*SMALL, "max_turns"}}
            wire = {"schema_version": "0.5.15", "caps": {**SMALL, **caps}, **given}
            sandbox = BubblewrapSandbox(ids=CountingIds(), packages=packages)
            return opened.enter_context(sandbox.open(SandboxPolicy.from_wire(wire), files, trace_id="trc_1"))

        yield opener
