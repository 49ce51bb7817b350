"""The core alone: the demo needs no extra, and the main job none of the rooms that register with the core."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from muniment.errors import InvalidInput
from muniment.store.derivation import Derivation, declare
from without_packages import called_without

ROOT = Path(__file__).parents[2]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def core_distributions() -> set[str]:
    """What is installed with the package where no extra is asked for."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    waiting, found = list(declared), {"muniment"}
    while waiting:
        needed = waiting.pop()
        name = normal(re.match(r"[\w.-]+", needed)[0])  # type: ignore[index]
        if name not in found and "extra ==" not in needed:
            found.add(name)
            try:
                waiting += metadata.requires(name) or ()
            except metadata.PackageNotFoundError:  # of another system or an older Python
                continue
    return found


@pytest.mark.slow
def test_the_demo_needs_no_extra(tmp_path: Path) -> None:
    core = core_distributions()
    extras = [
        module for module, owners in metadata.packages_distributions().items() if not {normal(o) for o in owners} & core
    ]
    assert {"starlette", "mcp", "psycopg", "onnxruntime", "pytest"} <= set(extras)
    (said,) = called_without(extras, [["demo"]], tmp_path)
    assert (said.code, said.raised) == (0, None), said.stderr
    assert said.stdout.startswith("1 · ")
    assert not said.stderr


CORE = ("contracts", "core", "store", "memory", "runs", "packets", "handles")
"""The rooms that run without the others, which register with them where they are installed."""

MAIN_JOB = """
import muniment

mem = muniment.open("agent.db")
run = mem.run(user_id="ana", agent_id="support", session_id="s1")
home = run.observe("user", "I moved to Berlin in May.")
run.observe_tool("weather", args={"city": "Berlin"}, content="12 degrees", ok=True)
assert [hit.id for hit in run.search("where does she live?", k=1)] == [home.id]
run.remember("user.city", "Berlin", sources=[home.id])
run.patch(goal="book dinner", expected_version=0)
build = run.compose("responder", query="Where should we eat?", max_tokens=512)
assert "Berlin" in build.text
assert mem.replay(build.id).packet_bytes == build.packet_bytes
dump = list(mem.export())
run.finish(stop_reason="OBJECTIVE_ACHIEVED")
assert mem.verify().ok
with muniment.open(":memory:") as copy:
    copy.import_(dump)
    assert copy.verify().ok
mem.forget(user_id="ana")
assert not mem.run(user_id="ana", agent_id="support", session_id="s2").search("Berlin")
assert mem.verify().ok
mem.close()
print("done")
"""


def install_core(folder: Path) -> Path:
    """Put a copy of the core, and metadata that registers nothing, where an interpreter finds them first."""
    (folder / "muniment").mkdir(parents=True)
    source = ROOT / "src/muniment"
    for path in source.glob("*.py"):
        shutil.copy(path, folder / "muniment")
    for room in CORE:
        shutil.copytree(source / room, folder / "muniment" / room, ignore=shutil.ignore_patterns("__pycache__"))
    register(folder, "muniment")
    return folder


def register(folder: Path, distribution: str, entry_points: str = "") -> None:
    """Write the metadata of an installed distribution."""
    info = folder / f"{distribution}-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 0\n", "utf-8")
    (info / "entry_points.txt").write_text(entry_points, "utf-8")


def run_program(program: str, folder: Path, *paths: Path) -> str:
    """Run a program in a folder of its own, with these places first on its path; returns what it printed."""
    folder.mkdir(exist_ok=True)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_core_does_the_main_job_without_the_other_rooms(tmp_path: Path) -> None:
    assert run_program(MAIN_JOB, tmp_path / "work", install_core(tmp_path / "core")) == "done\n"


ATTACHED = """
import muniment
from muniment.errors import MissingDependency, NotFound

mem = muniment.open()
run = mem.run(user_id="ana")
run.observe("user", "I moved to Berlin in May.")
faces = {
    "learning": [
        lambda: mem.bank(user_id="ana"), lambda: mem.runner(str, str, user_id="ana"), lambda: mem.learning,
        lambda: run.learning, lambda: run.finish(verifier_result={"verdict": "PASS"}),
        lambda: muniment.open(lessons=str),
    ],
    "rules": [lambda: mem.rulebook(user_id="ana")],
    "research": [lambda: mem.research("Why?", user_id="ana"), lambda: mem.open_research("r")],
    "verify": [lambda: run.verify("x"), lambda: run.verifications(), lambda: mem.store.evaluate([])],
    "moving": [lambda: list(mem.store.export_memory(user_id="ana")), lambda: mem.store.import_memory([b"{}"]),
               lambda: mem.store.import_from("mem0", ["x"])],
    "traces": [lambda: mem.ledger.ingest_otel({}, user_id="ana")],
}
for room, calls in faces.items():
    for number, call in enumerate(calls):
        try:
            call()
        except MissingDependency as error:
            assert f"muniment.{room}" in str(error) and error.hint, (room, number, error)
        else:
            raise AssertionError((room, number))
assert list(mem.store.attention()) == []
assert mem.store.overview() is not None
first, second = (run.compose("responder", query=query) for query in ("Where?", "When?"))
mem.diff(first.id, second.id)
mem.log.preview(first.id, max_tokens=512)
print("named")
"""


def test_what_attaches_to_the_core_is_named_where_it_is_missing(tmp_path: Path) -> None:
    assert run_program(ATTACHED, tmp_path / "work", install_core(tmp_path / "core")) == "named\n"


A_PACKAGE = '''
"""Counts the words of what users say: a kind of item that another package adds."""

from muniment.store.derivation import Derivation, Projections
from muniment.store.items import Change


def count_words(entry, lookup):
    if entry.role != "user":
        return []
    return [
        Change(
            id=f"cnt_{entry.id}",
            kind="word_count",
            status="counted",
            body={"words": len(entry.content.split())},
            created_at=entry.recorded_at,
            trust=entry.trust,
            sources=(entry.id,),
            user_id=entry.scope.user_id,
            agent_id=entry.scope.agent_id,
            session_id=entry.scope.session_id,
            run_id=entry.scope.run_id,
        )
    ]


def projections():
    without = lambda item, lost: None
    return Projections((Derivation("word_count", without, listens=frozenset({"message"}), project=count_words),))
'''

ITS_USER = """
import muniment

mem = muniment.open("agent.db")
run = mem.run(user_id="ana", agent_id="support", session_id="s1")
event = run.observe("user", "I moved to Berlin in May.")
run.observe("assistant", "Noted.")
run.observe("user", "Thanks.")
counts = []
for step in (lambda: None, mem.store.rebuild, lambda: mem.forget(event=event.id)):
    step()
    report = mem.verify()
    assert report.ok
    counts.append(report.derived)
print(counts)
"""


def test_a_package_adds_a_kind_that_is_rebuilt_verified_and_forgotten(tmp_path: Path) -> None:
    core, package = install_core(tmp_path / "core"), tmp_path / "package"
    package.mkdir()
    (package / "word_counts.py").write_text(A_PACKAGE, "utf-8")
    without = json.loads(run_program(ITS_USER, tmp_path / "without", core))
    register(package, "word_counts", "[muniment.projections]\nword-counts = word_counts:projections\n")
    with_it = json.loads(run_program(ITS_USER, tmp_path / "with", core, package))
    assert [more - less for more, less in zip(with_it, without, strict=True)] == [2, 2, 1]


def test_two_packages_that_add_one_kind_are_refused() -> None:
    kind = Derivation("word_count", without=lambda item, lost: None)
    with pytest.raises(InvalidInput, match="two installed packages declare items of the kind 'word_count'"):
        declare(kind, Derivation("word_count", without=lambda item, lost: None))
