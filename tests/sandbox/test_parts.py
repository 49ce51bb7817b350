"""The parts of the sandbox that touch nothing: caps, arguments, the filter of calls, the allowlist, edits, traces."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from muniment.contracts.runs import SandboxPolicy
from muniment.errors import InvalidInput
from muniment.verify.sandbox._mounts import Tools, Tree, action_arguments, environment, stage_arguments
from muniment.verify.sandbox._network import allows, may_reach, parse_entries, parse_target
from muniment.verify.sandbox._running import (
    DEFAULTS,
    Descriptors,
    Limits,
    limit_script,
    limits_of,
    open_group,
    resource_limits,
)
from muniment.verify.sandbox._seccomp import MACHINES, filter_program, instructions
from muniment.verify.sandbox.bubblewrap import insert_text, listing, numbered, parts_of, replace_text
from muniment.verify.sandbox.traces import Change, Entry, Fetches, Outcome, changes, make_trace, sandbox_block
from products import for_each

pytestmark = pytest.mark.req("RC-25")


def policy(**wire: Any) -> SandboxPolicy:
    return SandboxPolicy.from_wire({"schema_version": "0.5.15", **wire})


# -- caps ---------------------------------------------------------------------------------------------


def test_nothing_is_without_limit() -> None:
    assert limits_of(policy()) == DEFAULTS
    assert limits_of(policy(caps={"wall_ms": None})) == DEFAULTS
    made = limits_of(policy(caps={"wall_ms": 5, "processes": 7, "files": 9, "output_bytes": 11}))
    assert (made.wall_ms, made.processes, made.files, made.output_bytes) == (5, 7, 9, 11)


@for_each("caps", [{"mem_mb": 0}, {"wall_ms": -1}, {"processes": True}, {"files": "9"}, {"threads": 3}])
def test_a_cap_that_makes_no_sense(caps: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        limits_of(policy(caps=caps))


def test_what_is_left() -> None:
    left = Limits(max_turns=2, wall_ms=100, cpu_ms=100).after(wall_ms=60, cpu_ms=120)
    assert (left.max_turns, left.wall_ms, left.cpu_ms) == (1, 40, 0)


def test_resource_limits_as_a_line_of_bash() -> None:
    wanted = resource_limits(Limits(cpu_ms=1_500, disk_mb=2, mem_mb=10, processes=5), counted=False)
    assert wanted["RLIMIT_CPU"] == 3
    assert wanted["RLIMIT_DATA"] == 2058 << 20
    assert "RLIMIT_DATA" not in resource_limits(DEFAULTS, counted=True)
    line = limit_script(wanted, {"RLIMIT_NOFILE": 64, "RLIMIT_CPU": -1})
    assert line == 'ulimit -c 0 -t 3 -f 2048 -l 64 -q 0 -n 64 -u 6 -d 2107392 && exec "$@"'


# -- arguments ----------------------------------------------------------------------------------------

TOOLS = Tools("/usr/bin/bwrap", "/usr/bin/bwrap", "/usr/bin/nsenter")


def action(**given: Any) -> list[str]:
    chosen: dict[str, Any] = {"stage_pid": 7, "workdir": "/scratch", "share_net": False, "is_root": False, **given}
    command = ["bash", "-c", "--", "x; y"]
    return action_arguments(TOOLS, command, {"HOME": "/scratch"}, Descriptors(3, 4, 5), **chosen)


def test_an_action_shares_nothing() -> None:
    made = action()
    assert made[-5:] == ["--", "bash", "-c", "--", "x; y"]
    for needed in ("--unshare-all", "--new-session", "--die-with-parent", "--clearenv", "--seccomp"):
        assert needed in made
    assert made[made.index("--cap-drop") + 1] == "ALL"
    assert "--share-net" not in made
    assert "--share-net" in action(share_net=True)
    writable = [made[at + 1] for at, word in enumerate(made) if word == "--bind"]
    assert writable == ["/stage/scratch/work", "/stage/scratch/tmp", "/stage/scratch/shm"]


def test_root_steps_down_first() -> None:
    made = action(is_root=True)
    assert made[:4] == ["/usr/bin/nsenter", "--target", "7", "--mount"]
    assert made[4:9] == ["--setgid", "65534", "--setuid", "65534", "--"]
    assert "--user" in action()
    assert "--user" not in made


def test_a_stage() -> None:
    root = Tree((("/usr", "/usr"), ("/x/passwd", "/etc/passwd")), (("usr/bin", "/bin"),))
    made = stage_arguments(TOOLS, Tree((), ()), root, workdir="/scratch", disk_mb=3, is_root=True)
    text = " ".join(made)
    assert "--unshare-user" not in text
    assert "--perms 0755 --dir /stage/root/etc" in text
    assert "--ro-bind /x/passwd /stage/root/etc/passwd" in text
    assert f"--size {3 << 20} --tmpfs /stage/scratch" in text
    assert made[-2:] == ["--", "/bin/cat"]


def test_the_environment_is_ours_alone() -> None:
    plain = environment("/scratch", library_path=None, has_packages=False, proxy_port=None)
    assert set(plain) == {"HOME", "LANG", "PATH", "PYTHONDONTWRITEBYTECODE", "TERM", "TMPDIR"}
    more = environment("/scratch", library_path="/opt/python/lib", has_packages=True, proxy_port=3128)
    assert more["https_proxy"] == "http://127.0.0.1:3128"
    assert more["PYTHONPATH"] == "/opt/packages"


# -- the filter of system calls -----------------------------------------------------------------------

ALLOW, KILL = 0x7FFF0000, 0x80000000


def judged(machine: str, number: int, first: int = 0, second: int = 0, arch: int | None = None) -> int:
    """Runs the program as the kernel would."""
    data = {0: number, 4: MACHINES[machine].audit if arch is None else arch, 16: first, 24: second}
    steps, at, loaded = instructions(machine), 0, 0
    while True:
        code, jt, jf, k = steps[at]
        at += 1
        if code == 0x20:
            loaded = data[k]
        elif code == 0x06:
            return k
        else:
            holds = {0x15: loaded == k, 0x35: loaded >= k, 0x45: bool(loaded & k)}[code]
            at += jt if holds else jf


def refusal(number: int) -> int:
    return 0x00050000 | number


@pytest.mark.parametrize(
    ("machine", "ptrace", "mount", "clone", "socket", "ioctl", "read", "clone3"),
    [("x86_64", 101, 165, 56, 41, 16, 0, 435), ("aarch64", 117, 40, 220, 198, 29, 63, 435)],
)
def test_calls_that_are_refused(
    machine: str, ptrace: int, mount: int, clone: int, socket: int, ioctl: int, read: int, clone3: int
) -> None:
    assert judged(machine, ptrace) == judged(machine, mount) == refusal(errno.EPERM)
    assert judged(machine, read) == ALLOW
    assert judged(machine, clone3) == refusal(errno.ENOSYS)
    assert judged(machine, clone, first=0x11) == ALLOW
    assert judged(machine, clone, first=0x3D0F00) == ALLOW  # a thread
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert judged(machine, clone, first=flag | 0x11) == refusal(errno.EPERM)
    assert {family: judged(machine, socket, first=family) == ALLOW for family in (1, 2, 10, 16, 17, 38, 40, 44)} == {
        1: True, 2: True, 10: True, 16: True, 17: False, 38: False, 40: False, 44: False,
    }  # fmt: skip
    assert judged(machine, ioctl, second=0x5412) == refusal(errno.EPERM)
    assert judged(machine, ioctl, second=0x5401) == ALLOW
    assert judged(machine, read, arch=0x40000003) == KILL
    assert len(filter_program(machine)) == 8 * len(instructions(machine))
    assert all(max(step.jt, step.jf) < 256 for step in instructions(machine))


def test_the_other_numbers_of_x86_are_refused() -> None:
    assert judged("x86_64", 0x40000000) == judged("x86_64", 0x40000000 | 165) == KILL


# -- the allowlist ------------------------------------------------------------------------------------


def test_what_an_allowlist_lets_through() -> None:
    entries = parse_entries(["example.com", "API.example.org.:8443", "*.cdn.example:443", "[2001:db8::1]:80"])
    let = [("example.com", 443), ("api.example.org", 8443), ("a.cdn.example", 443), ("a.b.cdn.example", 443)]
    let += [("2001:db8::1", 80)]
    kept = [("example.com", 80), ("evil-example.com", 443), ("example.com.evil", 443), ("cdn.example", 443)]
    kept += [("acdn.example", 443), ("api.example.org", 443), ("*.cdn.example", 443)]
    assert all(allows(entries, *target) for target in let)
    assert not any(allows(entries, *target) for target in kept)


@for_each("entry", ["", "a b", "http://x", "x:0", "x:70000", "x:y", "*", "*.", "[::1", "[::1]x:1", "x:1:2", "ex*mple"])
def test_an_entry_that_cannot_be_read(entry: str) -> None:
    with pytest.raises(InvalidInput):
        parse_entries([entry])


def test_targets() -> None:
    assert parse_target("EXAMPLE.com.:443") == ("example.com", 443)
    for wrong in ("example.com", "example.com:", "a@b:1", "a/b:1", "a:+1", "a:１"):
        with pytest.raises(ValueError):  # noqa: PT011
            parse_target(wrong)


def test_addresses_inside_are_reached_only_when_named() -> None:
    inside = [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "::1",
        "fe80::1%eth0",
        "::ffff:127.0.0.1",
        "0.0.0.0",
        "fd00::1",
    ]
    assert not any(may_reach("name.example", address) for address in inside)
    assert may_reach("127.0.0.1", "127.0.0.1")
    assert may_reach("localhost", "127.0.0.1")
    assert may_reach("name.example", "93.184.216.34")


# -- edits --------------------------------------------------------------------------------------------


def test_paths_of_the_scratch() -> None:
    assert parts_of("/scratch/a/./b//c", "/scratch") == ("a", "b", "c")
    assert parts_of("a", "/scratch") == ("a",)
    assert parts_of("/scratch", "/scratch") == parts_of(".", "/scratch") == ()
    for wrong in ("/scratches/a", "/etc/passwd", "../a", "a/../b", "/scratch/..", "a\0b"):
        with pytest.raises(InvalidInput):
            parts_of(wrong, "/scratch")


def test_replacing() -> None:
    made, around = replace_text("a\nb\nc\n", "b", "B\nB")
    assert made == "a\nB\nB\nc\n"
    assert around.split("\n")[1] == "     2\tB"
    assert replace_text("a b", " b", None)[0] == "a"
    for old in ("x", "", None):
        with pytest.raises(InvalidInput):
            replace_text("a", old, "b")
    with pytest.raises(InvalidInput, match=r"occurs 2 times \(lines 1, 3\)"):
        replace_text("a\nb\na", "a", "b")


def test_inserting() -> None:
    assert insert_text("a\nb", 0, "x")[0] == "x\na\nb"
    assert insert_text("a\nb", 2, "x\n")[0] == "a\nb\nx"
    for line, text in ((3, "x"), (-1, "x"), (None, "x"), (0, None)):
        with pytest.raises(InvalidInput):
            insert_text("a\nb", line, text)


def test_viewing() -> None:
    assert numbered("a\nb\nc", (2, -1)) == "     2\tb\n     3\tc"
    for view_range in ((0, 1), (2, 1), (1, 9), (1,)):
        with pytest.raises(InvalidInput):
            numbered("a\nb", view_range)
    assert listing(["b", "a/x", "a/y/z", ".git/x", "a/.x"]) == "a/\na/x\na/y/\nb"


# -- traces -------------------------------------------------------------------------------------------


def trace(**given: Any) -> Any:
    chosen: dict[str, Any] = {
        "trace_id": "t", "action_id": "a", "turn": 1, "tool": "execute_bash", "args": {}, "outcome": Outcome(True),
        "change": Change({}, ()), "fetches": Fetches(), **given,
    }  # fmt: skip
    return make_trace(**chosen).to_wire()


def test_long_arguments_are_cut_without_half_a_secret() -> None:
    key = "ghp_" + "a1" * 18
    text = "x" * 3_979 + " " + key + " " + "y" * 19_999
    kept = trace(args={"file_text": text})["args"]["file_text"]
    assert key[:10] not in kept
    assert kept.endswith("… [24,020 characters]")
    assert len(kept) < 4_100
    assert trace(args={"command": "\ud800", "path": None})["args"] == {"command": "\\ud800"}


def test_a_file_that_was_touched_is_not_written() -> None:
    before = {"a": Entry(1, "x", (1,)), "b": Entry(1, "y", (2,)), "c": Entry(1, "z")}
    after = {"a": Entry(1, "x", (9,)), "b": Entry(1, "Y", (2,)), "d": Entry(4, None)}
    made = changes(before, after)
    assert (list(made.written), made.deleted) == (["b", "d"], ("c",))


def test_many_files_are_counted_and_not_all_named() -> None:
    made = trace(change=Change({f"/scratch/{n}": Entry(2, "x") for n in range(900)}, ()))["io"]
    assert (len(made["files_written"]), made["files_written_n"], made["bytes_written"]) == (500, 900, 1_800)


def test_a_session_in_counts() -> None:
    allowed = policy(network="allowlist", allowlist=["x"])
    assert sandbox_block(allowed, []).to_wire() == {
        "enabled": True, "image_id": None, "network": "allowlist", "allowlist": ["x"], "turns": 0, "actions_n": 0,
        "files_read_n": 0, "files_written_n": 0, "external_fetch_n": 0, "exec_fail_n": 0, "traces_ref": [],
    }  # fmt: skip


# -- control groups -----------------------------------------------------------------------------------


def test_control_groups(tmp_path: Path) -> None:
    """On files that look like one: what is asked of the kernel, and what is read back."""
    (tmp_path / "cgroup.controllers").touch()
    dead = tmp_path / "muniment-999999999-0"
    dead.mkdir()
    group = open_group(Limits(mem_mb=10, disk_mb=6, processes=5), tmp_path, own="0::/none\n")
    assert group is not None
    folder = group.folder
    assert folder.parent == tmp_path
    assert not dead.exists()
    assert (folder / "memory.max").read_text() == str(32 << 20)
    assert (folder / "pids.max").read_text() == "6"
    group.add(12)
    assert (folder / "cgroup.procs").read_text() == "12\n"
    (folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    (folder / "memory.events").write_text("low 0\noom_kill 1\n")
    (folder / "pids.events").write_text("max 0\n")
    assert (group.cpu_ms(), group.was_out_of_memory(), group.was_out_of_processes()) == (2_500, True, False)


def test_without_the_right_to_make_one_there_is_none(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    assert open_group(DEFAULTS, missing, own="0::/\n") is None
    for own in ("3:memory:/\n2:pids:/\n", "0::/\n"):
        assert open_group(DEFAULTS, tmp_path, own=own) is None  # a folder that is no control group
    assert os.listdir(tmp_path) == []
