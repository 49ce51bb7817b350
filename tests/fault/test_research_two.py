"""Two at one research run: one moves, the other is told, and no file is ever half of each (RP-07)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from research_desk import Crash, Open, begin, crash, files, in_step, meddled, opener

from muniment.errors import ArtifactEdited, Conflict, Forgotten, StaleState, StorageBusy
from muniment.handles.study import Study
from muniment.research import run_directory
from muniment.research.run_directory import RunDirectory
from muniment.testing.stories import PAGES, TOOL_USE, draft_for, output_for, walk_to

ENGINES = ["sqlite", "postgres"]


@pytest.fixture(params=ENGINES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    dsn = request.getfixturevalue("postgres_dsn") if request.param == "postgres" else ""
    with opener(request.param, tmp_path, dsn) as store:
        yield store


MOVES: list[tuple[str, Callable[[Study], Any]]] = [
    ("wave1", lambda study: study.ingest("p1", output_for("p1"), tool_use=TOOL_USE)),
    ("wave1", lambda study: study.give_up("p1", "no")),
    ("wave1", lambda study: study.route()),
    ("synthesis", lambda study: study.citations()),
    ("synthesis", lambda study: study.pack()),
    ("synthesis", lambda study: study.synthesis_input()),
    ("synthesis", lambda study: study.check("# x")),
    ("synthesis", lambda study: study.resume()),
]


@pytest.mark.req("RP-07")
def test_who_comes_second_is_told_and_nothing_changes(tmp_path: Path) -> None:
    with opener("sqlite", tmp_path) as opened:
        study = begin(opened(), tmp_path / "dr_1")
        other = opened("b").open_research("dr_1")
        for stage in ("wave1", "synthesis"):
            walk_to(study, stage)
            before = files(study.directory)
            for _, move in (each for each in MOVES if each[0] == stage):
                with RunDirectory(study.directory).locked(), pytest.raises(StorageBusy):
                    move(other)
                assert files(study.directory) == before
        assert in_step(other)
        other.check("# x")


HOLD = """
import sys, time
from muniment.research.run_directory import RunDirectory
with RunDirectory(sys.argv[1]).locked():
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.mark.req("RP-07")
def test_a_process_that_is_killed_gives_up_the_directory(tmp_path: Path) -> None:
    with opener("sqlite", tmp_path) as opened:
        study = begin(opened(), tmp_path / "dr_1")
        with subprocess.Popen([sys.executable, "-c", HOLD, str(study.directory)], stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"held\n"
            with pytest.raises(StorageBusy):
                study.route()
            assert study.manifest().revision == 1
            other.kill()
        study.route()
        assert in_step(study)


def race(study: Study, told: list[type[Exception]]) -> None:
    """Go on until the run is done, whoever moves it."""
    while True:
        manifest = study.manifest()
        try:
            match manifest.stage:
                case "done":
                    return
                case "init":
                    study.route(expected_revision=manifest.revision)
                case "wave1" if "waiting" in manifest.standings.values():
                    waiting = next(each for each, state in manifest.standings.items() if state == "waiting")
                    study.ingest(waiting, output_for(waiting), tool_use=TOOL_USE, expected_revision=manifest.revision)
                case "wave1" if manifest.pivot is None:
                    study.pivot(expected_revision=manifest.revision)
                case "wave1":
                    study.supply(PAGES)
                    study.citations(expected_revision=manifest.revision)
                case "citations":
                    study.pack(expected_revision=manifest.revision)
                case _:
                    study.check(draft_for(study.synthesis_input()), expected_revision=manifest.revision)
        except (StorageBusy, StaleState) as error:
            told.append(type(error))


def whole_history(study: Study) -> None:
    lines = [json.loads(line) for line in files(study.directory)["audit.jsonl"].splitlines()]
    assert [line["revision"] for line in lines] == list(range(1, len(lines) + 1))
    assert [line["stage"] for line in lines] == ["init", *["wave1"] * 5, "citations", "synthesis", "done"]
    assert study.manifest().revision == len(lines)
    assert in_step(study)


@pytest.mark.soak
@pytest.mark.req("RP-07")
def test_two_threads_race_through_a_run(opened: Open, tmp_path: Path) -> None:
    mem = opened()
    study = begin(mem, tmp_path / "dr_1")
    told: list[type[Exception]] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            race(mem.open_research("dr_1"), told)
        except BaseException as error:  # noqa: BLE001 - told in the main thread
            raised.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert raised == []
    whole_history(study)
    assert mem.verify().ok


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("RP-07")
def test_two_processes_race_through_a_run(tmp_path: Path) -> None:
    with opener("sqlite", tmp_path) as opened:
        mem = opened()
        study = begin(mem, tmp_path / "dr_1")
        command = [sys.executable, __file__, str(tmp_path / "store.db")]
        env = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
        both = [subprocess.Popen([*command, seed], env=env, stderr=subprocess.PIPE) for seed in ("b", "c")]
        for process in both:
            _, error = process.communicate(timeout=120)
            assert process.returncode == 0, error.decode()[-2000:]
        whole_history(study)
        assert mem.verify().ok
        assert mem.store.rebuild().repaired == ()


@pytest.mark.req("RP-07")
def test_with_two_directories_the_store_says_who_was_first(opened: Open, tmp_path: Path) -> None:
    """A lock on a directory does not help where each has one of its own: another machine, say."""
    mem, other = opened("a"), opened("b")
    study = begin(mem, tmp_path / "one")
    elsewhere = other.open_research("dr_1", directory=tmp_path / "two")
    elsewhere.resume()
    assert files(tmp_path / "one") == files(tmp_path / "two")

    meddled(mem).before = elsewhere.route
    with pytest.raises(StaleState):
        study.route()
    assert study.manifest().revision == 2
    assert study.manifest().history[-1].stage == "wave1"
    study.route()  # what was behind is put right first
    assert in_step(study)

    with pytest.raises(ArtifactEdited, match=r"manifest\.json is of revision 2, the store is at 3"):
        elsewhere.give_up("p1", "no")
    assert elsewhere.manifest().revision == 3
    elsewhere.resume()
    assert files(tmp_path / "one") == files(tmp_path / "two")


@pytest.mark.req("RP-07")
def test_a_commit_that_is_refused_leaves_no_mark(tmp_path: Path) -> None:
    """Else the next call would write over what somebody edited, as if a crash had left it."""
    with opener("sqlite", tmp_path) as opened:
        mem = opened()
        study = begin(mem, tmp_path / "dr_1")

        def busy() -> None:
            raise StorageBusy("somebody else writes")

        meddled(mem).before = busy
        with pytest.raises(StorageBusy):
            study.route()
        assert in_step(study)
        (study.directory / "gates.json").write_text("{}")
        with pytest.raises(ArtifactEdited, match=r"gates\.json"):
            study.route()


@pytest.mark.req("RP-07")
def test_a_reader_that_waited_does_not_write_an_older_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its look and its turn, somebody moved the run and died."""
    with opener("sqlite", tmp_path) as opened:
        mem = opened()
        study = begin(mem, tmp_path / "dr_1")
        walk_to(study, "synthesis")
        reader = mem.open_research("dr_1")
        turn = reader._directory.locked

        def moved_first() -> Any:
            with monkeypatch.context() as patched:
                patched.setattr(run_directory, "publish", lambda *_: crash())
                with pytest.raises(Crash):
                    study.pack()
            return turn()

        monkeypatch.setattr(reader._directory, "locked", moved_first, raising=False)
        before = study.manifest().revision
        reader.synthesis_input()
        assert study.manifest().revision == before + 1
        assert in_step(study)


@pytest.mark.req("RP-07")
def test_a_directory_is_one_runs(tmp_path: Path) -> None:
    with opener("sqlite", tmp_path) as opened:
        mem = opened()
        study = begin(mem, tmp_path / "dr_1")
        walk_to(study, "synthesis")
        before = files(study.directory)
        with pytest.raises(Conflict) as refused:
            begin(mem, tmp_path / "dr_1", run_id="dr_2")
        assert refused.value.path == "$.directory"
        second = begin(mem, tmp_path / "dr_2", run_id="dr_2")
        astray = mem.open_research("dr_2", directory=tmp_path / "dr_1")
        with pytest.raises(ArtifactEdited):
            astray.route()
        with pytest.raises(Conflict) as refused:
            astray.resume()
        assert refused.value.path == "$.directory"
        assert files(study.directory) == before
        mem.forget(session="dr_2")
        assert files(study.directory) == before
        assert not second.directory.exists()


# -- forgetting while somebody moves ------------------------------------------------------------------


@pytest.mark.req("LG-07")
def test_a_run_that_is_being_moved_is_not_forgotten_under_it(tmp_path: Path) -> None:
    with opener("sqlite", tmp_path) as opened:
        mem = opened()
        study = begin(mem, tmp_path / "dr_1")
        walk_to(study, "wave1")
        before = files(study.directory)
        with RunDirectory(study.directory).locked(), pytest.raises(StorageBusy):
            mem.forget(user_id="ana")
        assert files(study.directory) == before
        assert in_step(study)
        assert mem.forget(user_id="ana").counts["files"] == len(before)


@pytest.mark.req("LG-07")
def test_nobody_writes_the_files_anew_before_the_store_has_forgotten(tmp_path: Path) -> None:
    with opener("sqlite", tmp_path) as opened:
        mem = opened()
        study = begin(mem, tmp_path / "dr_1")
        walk_to(study, "synthesis")
        other = opened("b").open_research("dr_1")
        told: list[BaseException] = []

        def resumed() -> None:
            with pytest.raises(StorageBusy) as caught:
                other.resume()
            told.append(caught.value)

        meddled(mem).inside = resumed
        mem.forget(user_id="ana")
        assert told
        assert not study.directory.exists()
        with pytest.raises(Forgotten):
            other.resume()
        assert not any(path.is_file() and path.name != ".lock" for path in tmp_path.glob("dr_1/**/*"))


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("when", ["before", "inside", "after"])
def test_a_crash_in_the_middle_of_a_forget(tmp_path: Path, when: str) -> None:
    """Before the store has forgotten, the run stands and its files can be had again; after, it is all gone."""
    with opener("sqlite", tmp_path) as opened:
        mem = opened()
        study = begin(mem, tmp_path / "dr_1")
        walk_to(study, "synthesis")
        before = files(study.directory)
        setattr(meddled(mem), when, crash)
        with pytest.raises(Crash):
            mem.forget(user_id="ana")
        again = opened("b")
        assert again.verify().ok
        if when == "after":
            with pytest.raises(Forgotten):
                again.open_research("dr_1")
        else:
            taken_up = again.open_research("dr_1")
            taken_up.resume()
            assert files(study.directory) == before
            assert again.forget(user_id="ana").scrubbed
        assert not study.directory.exists() or not files(study.directory)
        assert again.store.rebuild().repaired == ()


if __name__ == "__main__":
    with opener("sqlite", Path(sys.argv[1]).parent) as store:
        race(store(sys.argv[2]).open_research("dr_1"), [])
