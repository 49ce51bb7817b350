"""The files of a run (RP-07): whole or not there, behind no link, one mover at a time, and erased by name alone."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from muniment.errors import InvalidInput, StorageBusy, StorageFailure, StorageFull, StorageReadOnly
from muniment.research.run_directory import RunDirectory, default_root


def erase(run: RunDirectory, paths: list[str]) -> int:
    removed = run.empty(paths)
    run.vanish()
    return removed


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "runs" / "r1")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def everything(run: RunDirectory) -> list[str]:
    return sorted(str(path.relative_to(run.path)) for path in run.path.rglob("*"))


# -- where ------------------------------------------------------------------------------------------------


@pytest.mark.req("RP-07")
@pytest.mark.parametrize("given", [None, "", "relative/config", "~/config"])
def test_the_usual_place_is_under_the_home_folder(monkeypatch: pytest.MonkeyPatch, given: str | None) -> None:
    monkeypatch.setenv("HOME", "/srv/somebody")
    environ = {} if given is None else {"XDG_CONFIG_HOME": given}
    assert default_root(environ) == Path("/srv/somebody/.config/opencode/research-runs")


@pytest.mark.req("RP-07")
def test_the_usual_place_follows_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_root({"XDG_CONFIG_HOME": "/etc/x"}) == Path("/etc/x/opencode/research-runs")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/etc/y")
    assert RunDirectory.of("run_1").path == Path("/etc/y/opencode/research-runs/run_1")


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(StorageFailure) as caught:
        default_root({})
    assert "XDG_CONFIG_HOME" in caught.value.hint
    assert default_root({"XDG_CONFIG_HOME": "/etc/x"}) == Path("/etc/x/opencode/research-runs")


@pytest.mark.parametrize("run_id", ["", ".", "..", ".hidden", "a/b", "../x", "a b", "ü", "a\n", "a" * 201])
def test_an_id_that_is_no_name_of_a_folder_is_refused(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(InvalidInput):
        RunDirectory.of(run_id, tmp_path)


# -- files ------------------------------------------------------------------------------------------------


@pytest.mark.req("RP-07")
def test_files_are_written_read_and_removed(run: RunDirectory) -> None:
    assert run.read("manifest.json") is None
    run.remove("manifest.json")
    assert not run.path.exists()
    run.write("manifest.json", b"{}")
    run.write("summaries/p1.md", b"# One\n")
    run.write("summaries/p1.md", b"# Two\n")
    run.write("empty", b"")
    assert run.read("manifest.json") == b"{}"
    assert run.read("summaries/p1.md") == b"# Two\n"
    assert run.read("empty") == b""
    assert everything(run) == ["empty", "manifest.json", "summaries", "summaries/p1.md"]
    run.remove("summaries/p1.md")
    run.remove("summaries/p1.md")
    assert run.read("summaries/p1.md") is None


def test_files_are_their_owners_alone(run: RunDirectory) -> None:
    before = os.umask(0)
    try:
        run.write("summaries/p1.md", b"x")
        with run.locked():
            run.mark_pending(3)
    finally:
        os.umask(before)
    for path in (run.path, run.path.parent, run.path / "summaries"):
        assert mode_of(path) == 0o700
    for name in ("summaries/p1.md", ".lock", ".pending"):
        assert mode_of(run.path / name) == 0o600


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "..",
        "../x",
        "a/../x",
        "a/..",
        "./a",
        "/etc/passwd",
        "a/b/c",
        "a//b",
        "a/",
        "/a",
        ".lock",
        ".pending",
        "a/.b",
        "A",
        "a b",
        "a\\b",
        "a\n",
        "a\x00b",
        "ü",
        "a:b",
        "a" * 201,
    ],
)
def test_other_names_are_refused(run: RunDirectory, path: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: run.read(path),
        lambda: run.write(path, b"x"),
        lambda: run.remove(path),
        lambda: erase(run, [path]),
    ]
    for call in calls:
        with pytest.raises(InvalidInput):
            call()
    assert not run.path.exists()


def test_the_files_of_a_folder_are_listed(run: RunDirectory) -> None:
    assert run.paths("summaries") == []
    for name in ("p2.md", "p1.md"):
        run.write(f"summaries/{name}", b"x")
    (run.path / "summaries" / "My notes").write_bytes(b"mine")
    (run.path / "summaries" / "folder").mkdir()
    (run.path / "summaries" / "link.md").symlink_to("p1.md")
    (run.path / "summaries" / ".p1.md.1-2.tmp").write_bytes(b"half")
    (run.path / "linked").symlink_to("summaries")
    assert run.paths("summaries") == ["summaries/p1.md", "summaries/p2.md"]
    assert run.paths("linked") == []
    for folder in ("", "..", ".", "a/b", "/etc"):
        with pytest.raises(InvalidInput):
            run.paths(folder)


# -- whole or not at all ----------------------------------------------------------------------------------


@pytest.mark.req("RP-07")
@pytest.mark.parametrize(
    ("call", "code", "named"),
    [
        ("fsync", errno.ENOSPC, StorageFull),
        ("fsync", errno.EDQUOT, StorageFull),
        ("replace", errno.EROFS, StorageReadOnly),
        ("replace", errno.EACCES, StorageReadOnly),
        ("open", errno.EACCES, StorageReadOnly),
        ("fsync", errno.EIO, StorageFailure),
        ("open", errno.EMFILE, StorageFailure),
    ],
)
def test_a_write_that_fails_is_named_and_leaves_what_was_there(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, call: str, code: int, named: type[StorageFailure]
) -> None:
    run.write("a.json", b"old")

    def fail(*_args: object, **_options: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, fail)
        with pytest.raises(named) as caught:
            run.write("a.json", b"new")
    assert type(caught.value) is named
    assert caught.value.details["location"] == str(run.path / "a.json")
    assert run.read("a.json") == b"old"
    assert everything(run) == ["a.json"]


@pytest.mark.req("RP-07")
def test_a_file_over_the_limit_of_the_system_leaves_what_was_there(run: RunDirectory) -> None:
    run.write("a.json", b"old")
    script = (
        "import resource, signal, sys\n"
        "from muniment.research.run_directory import RunDirectory\n"
        "from muniment.errors import StorageFull\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n    RunDirectory(sys.argv[1]).write('a.json', b'x' * 100_000)\n"
        "except StorageFull:\n    sys.exit(7)\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(run.path)], check=False).returncode == 7
    assert run.read("a.json") == b"old"
    assert everything(run) == ["a.json"]


@pytest.mark.req("RP-07")
def test_a_writer_that_is_killed_leaves_whole_files(run: RunDirectory) -> None:
    contents = {bytes([letter]) * 300_000 for letter in b"abc"}
    run.write("a.md", min(contents))
    script = (
        "import sys\nfrom muniment.research.run_directory import RunDirectory\n"
        "run = RunDirectory(sys.argv[1])\n"
        "print('ready', flush=True)\n"
        "while True:\n    for letter in b'abc':\n        run.write('a.md', bytes([letter]) * 300_000)\n"
    )
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-c", script, str(run.path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            for _ in range(20):
                assert run.read("a.md") in contents
            writer.send_signal(signal.SIGKILL)
        assert run.read("a.md") in contents
    run.sweep()
    assert everything(run) == ["a.md"]


def test_sweeping_takes_our_temporary_files_alone(run: RunDirectory, tmp_path: Path) -> None:
    run.write("summaries/p1.md", b"x")
    outside = tmp_path / "outside"
    outside.mkdir()
    kept = [
        outside / ".p1.md.1-2.tmp",
        run.path / ".mine.tmp",
        run.path / "p1.md.1-2.tmp",
        run.path / ".p1.md.1-2.tmp~",
    ]
    swept = [run.path / ".manifest.json.1-2.tmp", run.path / "summaries" / ".p1.md.77-88.tmp"]
    for path in kept + swept:
        path.write_bytes(b"half")
    (run.path / "linked").symlink_to(outside)
    run.sweep()
    assert all(path.exists() for path in kept)
    assert not any(path.exists() for path in swept)
    RunDirectory(tmp_path / "nowhere").sweep()


# -- links ------------------------------------------------------------------------------------------------


@pytest.mark.req("RP-07")
def test_nothing_is_written_or_read_through_a_linked_folder(run: RunDirectory, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "p1.md").write_bytes(b"theirs")
    run.write("manifest.json", b"{}")
    (run.path / "summaries").symlink_to(outside)
    with pytest.raises(StorageFailure, match="link"):
        run.write("summaries/p1.md", b"ours")
    assert run.read("summaries/p1.md") is None
    run.remove("summaries/p1.md")
    erase(run, ["summaries/p1.md"])
    assert (outside / "p1.md").read_bytes() == b"theirs"
    assert sorted(os.listdir(outside)) == ["p1.md"]


@pytest.mark.req("RP-07")
def test_a_linked_file_is_replaced_and_not_followed(run: RunDirectory, tmp_path: Path) -> None:
    outside = tmp_path / "secret"
    outside.write_bytes(b"theirs")
    run.write("b.md", b"x")
    (run.path / "a.md").symlink_to(outside)
    assert run.read("a.md") is None
    run.write("a.md", b"ours")
    assert outside.read_bytes() == b"theirs"
    assert not (run.path / "a.md").is_symlink()
    assert run.read("a.md") == b"ours"


def test_linked_marks_are_not_followed(run: RunDirectory, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    run.path.mkdir(parents=True)
    (run.path / ".lock").symlink_to(outside)
    with pytest.raises(StorageFailure, match="link"), run.locked():
        pass
    assert not outside.exists()
    outside.write_bytes(b"5")
    (run.path / ".pending").symlink_to(outside)
    assert run.pending() is None
    run.mark_pending(2)
    assert (run.pending(), outside.read_bytes()) == (2, b"5")


def test_a_linked_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "real")
    run = RunDirectory(tmp_path / "run")
    with pytest.raises(StorageFailure, match="link"):
        run.write("a.md", b"x")
    assert os.listdir(tmp_path / "real") == []


def test_what_is_no_file_is_not_read_and_does_not_block(run: RunDirectory) -> None:
    run.write("file", b"x")
    os.mkfifo(run.path / "pipe")
    (run.path / "folder").mkdir()
    assert run.read("pipe") is None
    assert run.read("folder") is None
    assert run.read("file/inside") is None
    with pytest.raises(StorageFailure):
        run.write("folder", b"x")
    with pytest.raises(StorageFailure):
        run.write("file/inside", b"x")
    assert everything(run) == ["file", "folder", "pipe"]


# -- one at a time ----------------------------------------------------------------------------------------


@pytest.mark.req("RP-07")
def test_a_second_mover_is_told_at_once(run: RunDirectory) -> None:
    with run.locked():
        with pytest.raises(StorageBusy) as caught, RunDirectory(run.path).locked():
            pass
        assert str(run.path) in caught.value.message
        assert caught.value.hint
    with run.locked():
        pass


@pytest.mark.req("RP-07")
def test_threads_exclude_each_other(run: RunDirectory) -> None:
    inside, seen, busy = 0, [], []
    start = threading.Barrier(8)

    def move() -> None:
        nonlocal inside
        start.wait()
        for _ in range(15):
            try:
                with run.locked():
                    inside += 1
                    seen.append(inside)
                    run.write("a.md", b"x")
                    inside -= 1
            except StorageBusy:
                busy.append(1)

    threads = [threading.Thread(target=move) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) == {1}
    assert len(seen) + len(busy) == 120


@pytest.mark.req("RP-07")
def test_processes_exclude_each_other_and_a_dead_one_holds_nothing(run: RunDirectory) -> None:
    script = (
        "import sys\nfrom muniment.research.run_directory import RunDirectory\n"
        "with RunDirectory(sys.argv[1]).locked():\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(run.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StorageBusy), run.locked():
            pass
        holder.send_signal(signal.SIGKILL)
    with run.locked():
        pass


def test_the_lock_is_given_back_after_an_error(run: RunDirectory) -> None:
    with pytest.raises(KeyError), run.locked():
        raise KeyError
    with run.locked():
        pass


def test_a_lock_on_a_file_that_was_erased_meanwhile_counts_for_nothing(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, turns = fcntl.flock, []

    def erased_before(handle: int, operation: int) -> None:
        if not turns:
            erase(run, [])
        turns.append(handle)
        flock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", erased_before)
    with run.locked():
        assert len(turns) == 2
        with pytest.raises(StorageBusy), run.locked():
            pass


def test_locking_and_erasing_at_once_leaves_one_holder(run: RunDirectory) -> None:
    inside, seen = 0, []
    start = threading.Barrier(4)

    def move() -> None:
        nonlocal inside
        start.wait()
        for _ in range(30):
            try:
                with run.locked():
                    inside += 1
                    seen.append(inside)
                    run.write("a.md", b"x")
                    inside -= 1
                    erase(run, ["a.md"])
            except StorageBusy:
                pass

    threads = [threading.Thread(target=move) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) == {1}


# -- what is under way ------------------------------------------------------------------------------------


@pytest.mark.req("RP-07")
def test_what_is_under_way_is_marked(run: RunDirectory) -> None:
    assert run.pending() is None
    run.mark_pending(4)
    assert run.pending() == 4
    run.mark_pending(5)
    assert RunDirectory(run.path).pending() == 5
    run.clear_pending()
    run.clear_pending()
    assert run.pending() is None


@pytest.mark.parametrize("mark", [b"", b"five", b"-1", b"1" * 50, b"\xff", "５".encode()])
def test_a_mark_that_cannot_be_read_is_still_a_mark(run: RunDirectory, mark: bytes) -> None:
    run.write("a.md", b"x")
    (run.path / ".pending").write_bytes(mark)
    assert run.pending() == 0


# -- forgetting -------------------------------------------------------------------------------------------


@pytest.mark.req("LG-07")
def test_erasing_leaves_nothing_of_ours(run: RunDirectory) -> None:
    paths = ["manifest.json", "summaries/p1.md", "wave1/p1.md"]
    with run.locked():
        for path in paths:
            run.write(path, b"x")
        run.mark_pending(2)
        (run.path / "wave1" / ".p1.md.1-2.tmp").write_bytes(b"half")
        assert erase(run, [*paths, "never/written"]) == 3
    assert not run.path.exists()
    assert run.path.parent.exists()
    assert erase(run, paths) == 0


@pytest.mark.req("LG-07")
def test_erasing_takes_nothing_that_is_not_named(run: RunDirectory) -> None:
    run.write("manifest.json", b"x")
    run.write("summaries/p1.md", b"x")
    (run.path / "summaries" / "notes.txt").write_text("mine")
    (run.path / "My Notes").mkdir()
    (run.path / "todo.md").write_text("mine")
    with run.locked():
        assert erase(run, ["manifest.json", "summaries/p1.md"]) == 2
    assert everything(run) == [".lock", "My Notes", "summaries", "summaries/notes.txt", "todo.md"]


def test_a_directory_that_may_not_be_written_is_named(run: RunDirectory) -> None:
    if os.geteuid() == 0:
        pytest.skip("optional: root may write anywhere")
    run.write("a.md", b"x")
    run.path.chmod(0o500)
    try:
        with pytest.raises(StorageReadOnly):
            run.write("b.md", b"x")
        with pytest.raises(StorageReadOnly), run.locked():
            pass
        assert run.read("a.md") == b"x"
    finally:
        run.path.chmod(0o700)
