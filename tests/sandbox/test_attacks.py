"""Attacks that must fail, each for real. `test_ordinary_user` runs this file again as an ordinary user.

Every attack is bounded by itself as well, a little above the cap, so that a cap that does not hold fails a test
and not the machine.
"""

from __future__ import annotations

import os
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_helpers import Opener, left_running

from muniment.errors import InvalidInput
from muniment.verify.sandbox import _running as running

pytestmark = pytest.mark.req("RC-25")


@pytest.fixture(params=["counted", "watched"] if os.geteuid() == 0 else ["watched"])
def held_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With a control group, where one can be made, and without."""
    if request.param == "watched":
        monkeypatch.setattr(running, "open_group", lambda limits: None)
    return str(request.param)


# -- using everything up ------------------------------------------------------------------------------

FORK_BOMB = """
import os, sys, time
made = 0
for _ in range(200):
    try:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        made += 1
    except OSError:
        break
print(made)
sys.stdout.flush()
time.sleep(0.3)
os._exit(0)
"""


def test_fork_bomb(open_session: Opener, held_by: str) -> None:
    seen = open_session({"bomb.py": FORK_BOMB.encode()}).execute_bash("exec python3 bomb.py")
    assert 5 <= int(seen.stdout) <= 24
    assert "processes" in seen.capped


def test_fork_bomb_of_the_shell_ends_at_the_wall(open_session: Opener, held_by: str) -> None:
    session = open_session(wall_ms=1_500)
    seen = session.execute_bash("ulimit -u 100 2>/dev/null; b() { b | b & b; }; b")
    assert seen.error_class == "sandbox_timeout" or "processes" in seen.capped
    assert seen.usage.processes_peak <= 24


THREADS = """
import threading, time
made = 0
try:
    for _ in range(200):
        threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
        made += 1
except RuntimeError:
    pass
print(made, flush=True)
import os; os._exit(0)
"""


def test_threads_count_as_processes(open_session: Opener, held_by: str) -> None:
    seen = open_session({"threads.py": THREADS.encode()}).execute_bash("python3 threads.py")
    assert 5 <= int(seen.stdout) <= 24


MEMORY = """
import os, mmap, sys, time
kind, megabytes, processes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for _ in range(processes - 1):
    if os.fork() == 0:
        break
kept = []
for _ in range(megabytes):
    flags = mmap.MAP_ANONYMOUS | (mmap.MAP_SHARED if kind == "shared" else mmap.MAP_PRIVATE)
    piece = mmap.mmap(-1, 1 << 20, flags=flags)
    piece.write(b"x" * (1 << 20))
    kept.append(piece)
    time.sleep(0.001)
time.sleep(60)
"""


@pytest.mark.parametrize(
    "arguments", ["private 400 1", "shared 400 1", "private 40 8"], ids=["private", "shared", "many"]
)
def test_memory_hog(open_session: Opener, held_by: str, arguments: str) -> None:
    seen = open_session({"hog.py": MEMORY.encode()}).execute_bash(f"python3 hog.py {arguments}")
    assert (seen.error_class, "memory" in seen.capped) == ("cap_exceeded", True)


def test_memory_that_belongs_to_no_process_cannot_be_had(open_session: Opener) -> None:
    hidden = (
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.shmget(0, 1 << 20, 0o1600), ctypes.get_errno())\n"
        "try:\n    os.memfd_create('x')\nexcept OSError as error:\n    print(error.errno)\n"
    )
    seen = open_session({"hidden.py": hidden.encode()}).execute_bash("python3 hidden.py")
    assert seen.stdout.split() == ["-1", "1", "1"]


def test_pages_shared_after_a_fork_count_once(open_session: Opener) -> None:
    script = "import os,time\nx=b'x'*(40<<20)\nfor _ in range(4):\n    if os.fork()==0: break\ntime.sleep(0.3)\n"
    assert open_session({"share.py": script.encode()}).execute_bash("python3 share.py").ok


@pytest.mark.parametrize("folder", ["/scratch", "/tmp", "/dev/shm"])
def test_big_file(open_session: Opener, folder: str) -> None:
    session = open_session(mem_mb=200)
    seen = session.execute_bash(f"for i in 1 2 3 4; do head -c 8000000 /dev/zero > {folder}/f$i; done; du -sm {folder}")
    assert "disk" in seen.capped
    assert int(seen.stdout.split()[0]) <= 16
    assert session.execute_bash("rm -f /scratch/*; echo x > /scratch/y && cat /scratch/y").stdout == "x\n"


@pytest.mark.parametrize("folder", ["/scratch", "/tmp", "/dev/shm"])
def test_file_flood(open_session: Opener, folder: str) -> None:
    script = f"for i in range(60000):\n    open(f'{folder}/{{i}}', 'w').close()\n"
    session = open_session({"flood.py": script.encode()})
    seen = session.execute_bash("python3 flood.py")
    assert (seen.error_class, "files" in seen.capped) == ("cap_exceeded", True)
    assert session.execute_bash("ls /tmp /dev/shm | wc -l").ok is (folder != "/scratch")


def test_folders_too_deep_for_a_path(open_session: Opener) -> None:
    deep = (
        "import os\nfor _ in range(1500):\n    os.mkdir('a' * 50)\n    os.chdir('a' * 50)\nopen('end', 'w').close()\n"
    )
    session = open_session({"deep.py": deep.encode()})
    assert session.execute_bash("cd /tmp && python3 /scratch/deep.py && chmod 0 /tmp/*").ok
    assert session.execute_bash("ls -A /tmp; python3 deep.py").stdout == ""
    assert session.execute_bash("ls").ok


@pytest.mark.parametrize("stream", ["1", "2"])
def test_ten_gigabytes_of_output(open_session: Opener, stream: str) -> None:
    seen = open_session().execute_bash(f"head -c 10G /dev/zero >&{stream}")
    assert (seen.error_class, seen.capped) == ("cap_exceeded", ("output",))
    assert len(seen.stdout) + len(seen.stderr) == 200_000


@pytest.mark.timeout(120)
def test_sleeping_past_the_wall(open_session: Opener) -> None:
    token = f"3000.{secrets.randbelow(10**9)}"
    session = open_session(wall_ms=500)
    seen = session.execute_bash(f"trap '' TERM INT HUP; setsid sleep {token} & sleep {token}")
    assert (seen.error_class, seen.exit_code, seen.capped) == ("sandbox_timeout", None, ("wall",))
    assert left_running(token) == []
    again = session.execute_bash("echo more")
    assert (again.error_class, again.capped, again.stdout) == ("sandbox_timeout", ("wall",), "")


def test_burning_cpu_in_many_processes(open_session: Opener, held_by: str) -> None:
    session = open_session(cpu_ms=600, wall_ms=120_000)
    seen = session.execute_bash("for i in 1 2 3; do (while :; do :; done) & done; wait")
    assert (seen.error_class, "cpu" in seen.capped) == ("sandbox_timeout", True)


def test_limits_cannot_be_raised(open_session: Opener) -> None:
    seen = open_session().execute_bash(
        "ulimit -u 5000; ulimit -n 5000; ulimit -f unlimited; ulimit -t unlimited; ulimit -c 100;"
        "echo $(ulimit -Hu) $(ulimit -Hn) $(ulimit -Hc)"
    )
    processes, open_files, core = map(int, seen.stdout.split())
    assert processes <= 40
    assert (open_files, core) == (256, 0)


# -- looking out --------------------------------------------------------------------------------------


def test_files_of_the_host(open_session: Opener, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("of the host")
    tmp_path.chmod(0o755)
    session = open_session()
    seen = session.execute_bash(f"cat {secret} /etc/shadow /etc/hostname; cat /proc/1/root{secret}; ls -A {tmp_path}")
    assert "of the host" not in seen.stdout + seen.stderr
    assert seen.stdout == ""
    there = session.execute_bash("ls -A /").stdout.split()
    assert {"root", "home", "var", "run", "srv", "mnt", "media", "boot", "sys", "stage"}.isdisjoint(there)
    assert session.execute_bash("ls -A /tmp /scratch").stdout.split() == ["/scratch:", "/tmp:"]
    assert set(session.execute_bash("ls /etc").stdout.split()) <= {
        "alternatives", "group", "hosts", "ld.so.cache", "nsswitch.conf", "passwd",
    }  # fmt: skip
    assert "block" not in session.execute_bash("find /dev -type b -o -name mem -o -name 'sd*' -o -name 'vd*'").stdout
    assert session.execute_bash("find /dev -type b").stdout == ""


def test_environment_of_the_host(open_session: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUNIMENT_TEST_SECRET", "of-the-host")
    seen = open_session().execute_bash("env; cat /proc/*/environ | tr '\\0' '\\n'")
    assert "of-the-host" not in seen.stdout
    names = {line.partition("=")[0] for line in seen.stdout.splitlines()}
    assert names <= {
        "HOME", "LANG", "LD_LIBRARY_PATH", "OLDPWD", "PATH", "PWD", "PYTHONDONTWRITEBYTECODE", "SHLVL", "TERM",
        "TMPDIR", "_",
    }  # fmt: skip


def test_other_processes(open_session: Opener) -> None:
    seen = open_session().execute_bash("ls -d /proc/[0-9]* | wc -l; cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert int(seen.stdout.split()[0]) <= 5
    assert "pytest" not in seen.stdout


def test_memory_of_the_first_process_is_out_of_reach(open_session: Opener) -> None:
    """Bubblewrap's own process tells how an action ended. It runs under the same user."""
    session = open_session()
    script = (
        "import os\n"
        "for path in ('1/mem', '1/task/1/mem', 'self/../1/mem', 'thread-self/../../../1/mem', '1/maps'):\n"
        "    for flags in (os.O_RDWR, os.O_RDONLY):\n"
        "        try:\n"
        "            os.open(f'/proc/{path}', flags)\n"
        "            print('OPENED', path)\n"
        "        except OSError:\n"
        "            pass\n"
        "for path in ('/proc/1/fd', '/proc/1/root', '/proc/1/environ', '/proc/1/cwd', '/proc/1/maps'):\n"
        "    if os.path.lexists(path):\n"
        "        print('SEEN', path)\n"
        "try:\n"
        "    open('/proc/1/x', 'w')\n"
        "    print('WROTE')\n"
        "except OSError:\n"
        "    pass\n"
        "print('looked')\n"
    )
    session.str_replace_editor("create", "look.py", file_text=script)
    assert session.execute_bash("python3 look.py").stdout == "looked\n"
    assert session.execute_bash("umount /proc/1; ls -A /proc/1; mount -t proc p /tmp").stdout == ""


def test_an_action_has_no_descriptor_but_its_own(open_session: Opener) -> None:
    """Neither the pipe on which bubblewrap tells the exit code, nor that of its filter."""
    assert open_session().execute_bash("ls /proc/self/fd | wc -w").stdout == "4\n"  # three, and that of ls itself


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[tuple[int, Path, str]]:
    """A port, a socket in a folder open to all, and an abstract socket of the host, each of which greets."""
    path, name = tmp_path / "host.sock", f"muniment-{secrets.token_hex(4)}"
    tmp_path.chmod(0o755)
    servers = [socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)]
    servers[1].bind(str(path))
    servers[2].bind(f"\0{name}")
    path.chmod(0o777)

    def greet(server: socket.socket) -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client:
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfrom host!")

    for server in servers:
        server.listen()
        threading.Thread(target=greet, args=(server,), daemon=True).start()
    yield servers[0].getsockname()[1], path, name
    for server in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


CONNECT = """
import socket, sys
def tried(what):
    try:
        what()
        print("REACHED")
    except OSError as error:
        print(type(error).__name__)
def unix(address):
    one = socket.socket(socket.AF_UNIX)
    one.connect(address)
    print(one.recv(100))
port, path, name = int(sys.argv[1]), sys.argv[2], sys.argv[3]
tried(lambda: socket.create_connection(("127.0.0.1", port), 2))
tried(lambda: socket.create_connection(("::1", port), 2))
tried(lambda: socket.create_connection(("1.1.1.1", 80), 2))
tried(lambda: socket.create_connection(("169.254.169.254", 80), 2))
tried(lambda: socket.getaddrinfo("example.com", 80))
tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("8.8.8.8", 53)))
tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
tried(lambda: socket.socket(17, socket.SOCK_RAW))
tried(lambda: socket.socket(40, socket.SOCK_STREAM))
tried(lambda: unix(path))
tried(lambda: unix("\\0" + name))
"""


@pytest.mark.parametrize("network", ["off", "allowlist"])
def test_network(open_session: Opener, listening: tuple[int, Path, str], network: str) -> None:
    """By address, by name, without a connection, raw, past namespaces, through sockets of the host."""
    port, path, name = listening
    session = open_session({"connect.py": CONNECT.encode()}, network=network)
    seen = session.execute_bash(f"python3 connect.py {port} {path} {name}")
    assert seen.exit_code == 0, seen.stderr
    assert len(seen.stdout.split()) == 11
    assert "REACHED" not in seen.stdout
    assert seen.trace.to_wire()["net"]["used"] is False


# -- getting out --------------------------------------------------------------------------------------


def test_links_and_dots_in_the_editor(open_session: Opener, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("of the host")
    tmp_path.chmod(0o777)
    outside.chmod(0o666)
    session = open_session({"plain.txt": b"plain"})
    session.execute_bash(
        f"ln -s {outside} file; ln -s {tmp_path} folder; ln -s / root; ln -s /proc/self/root proc;"
        "ln -s plain.txt near; mkfifo pipe; ln -s ../../../../etc/passwd up"
    )
    paths = ["file", "folder/outside.txt", f"root{outside}", f"proc{outside}", "near", "pipe", "up", "pipe/x"]
    paths += [
        "../outside.txt",
        f"/scratch/../..{outside}",
        str(outside),
        "/etc/passwd",
        "/scratchx/y",
        "a/../../b",
        "x\0y",
    ]
    for path in paths:
        for seen in (
            session.str_replace_editor("view", path),
            session.str_replace_editor("str_replace", path, old_str="of the host", new_str="changed"),
            session.str_replace_editor("insert", path, insert_line=0, new_str="changed"),
            session.str_replace_editor("create", path, file_text="changed"),
        ):
            assert not seen.ok, path
            assert seen.error_class == "invalid_action"
            assert "of the host" not in seen.stdout
    assert session.submit("done", paths=["file"]).files == {}
    assert outside.read_text() == "of the host"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside.txt"]


def test_files_given_cannot_leave_the_scratch(open_session: Opener) -> None:
    for path in ("../x", "/etc/x", "a/../../x", ""):
        with pytest.raises(InvalidInput):
            open_session({path: b"x"})


def test_writing_outside(open_session: Opener) -> None:
    seen = open_session().execute_bash(
        "for f in /x /usr/x /usr/bin/x /etc/x /etc/passwd /dev/x /opt/x /lib/x /run/x /proc/sys/kernel/core_pattern"
        " /proc/sysrq-trigger /sys/x; do (echo x > $f) 2>/dev/null && echo WROTE $f; done; true"
    )
    assert seen.stdout.replace("WROTE\n", "") == ""


CALLS = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = {"x86_64": {"ptrace": 101, "process_vm_readv": 310, "mount": 165, "unshare": 272, "bpf": 321,
    "userfaultfd": 323, "keyctl": 250, "perf_event_open": 298, "kexec_load": 246, "open_by_handle_at": 304,
    "io_uring_setup": 425, "clone": 56, "setns": 308, "chroot": 161},
  "aarch64": {"ptrace": 117, "process_vm_readv": 270, "mount": 40, "unshare": 97, "bpf": 280, "userfaultfd": 282,
    "keyctl": 219, "perf_event_open": 241, "kexec_load": 104, "open_by_handle_at": 265, "io_uring_setup": 425,
    "clone": 220, "setns": 268, "chroot": 51}}[os.uname().machine]
for name, number in NUMBERS.items():
    first = {"ptrace": 16, "unshare": 0x10000000, "clone": 0x10000000 | 17}.get(name, 0)
    answer = libc.syscall(number, first, os.getppid(), 0, 0, 0)
    print(name, answer, ctypes.get_errno())
    if name == "clone" and answer == 0:
        os._exit(0)
"""


def test_ptrace_and_other_calls(open_session: Opener) -> None:
    seen = open_session({"calls.py": CALLS.encode()}).execute_bash("python3 calls.py")
    assert seen.exit_code == 0, seen.stderr
    for line in seen.stdout.splitlines():
        name, answer, number = line.split()
        assert (answer, number) == ("-1", "38" if name == "io_uring_setup" else "1"), line


def test_setuid_and_namespaces(open_session: Opener) -> None:
    session = open_session(disk_mb=32)
    seen = session.execute_bash("grep -E '^(CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status")
    assert seen.stdout.split() == [
        "CapPrm:", "0" * 16, "CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1", "Seccomp:", "2",
    ]  # fmt: skip
    seen = session.execute_bash("cp /usr/bin/id /scratch/id; chmod 6755 /scratch/id; /scratch/id -u; id -u; id -ru")
    assert seen.stdout.split() == ["1000"] * 3
    for command in (
        "su -c id",
        "mount -t tmpfs x /tmp",
        "unshare -Ur id",
        "unshare -n id",
        "chroot / id",
        "nsenter -t 1 -m id",
    ):
        assert not session.execute_bash(command).ok, command
    setuid = "import os\nfor call in (os.setuid, os.setgid):\n    try:\n        call(0)\n        print('ROOT')\n"
    setuid += "    except OSError:\n        pass\n"
    session.str_replace_editor("create", "setuid.py", file_text=setuid)
    assert session.execute_bash("python3 setuid.py").stdout == ""


def test_background_processes_end_with_the_action(open_session: Opener) -> None:
    token = f"30.{secrets.randbelow(10**9)}"
    session = open_session()
    seen = session.execute_bash(
        f"nohup sleep {token} & (setsid sleep {token} &) ; (sleep 0.2; echo late > late.txt) & disown; echo gone"
    )
    assert (seen.ok, seen.stdout) == (True, "gone\n")
    assert left_running(token) == []
    time.sleep(0.4)
    assert session.execute_bash("ls").stdout == ""
    assert session.execute_bash("pgrep -c sleep").stdout == "0\n"


def test_killing_the_runner(open_session: Opener) -> None:
    session = open_session()
    seen = session.execute_bash(f"kill -9 {os.getpid()}; kill -9 1; kill -9 -1; echo alive")
    assert seen.exit_code in (0, 137, None)
    assert session.execute_bash("echo here").stdout == "here\n"


def test_nothing_outlives_a_killed_runner(bwrap: str, tmp_path: Path) -> None:
    token = f"30.{secrets.randbelow(10**9)}"
    script = (
        "from muniment.verify.sandbox.bubblewrap import BubblewrapSandbox\n"
        "from muniment.contracts.runs import SandboxPolicy\n"
        "policy = SandboxPolicy(schema_version='0.5.15')\n"
        "with BubblewrapSandbox().open(policy, trace_id='t') as session:\n"
        f"    session.execute_bash('setsid sleep {token} & sleep {token}')\n"
    )
    runner = subprocess.Popen([sys.executable, "-c", script])
    deadline = time.monotonic() + 120
    while len([line for line in left_running(token) if "'sleep" in line]) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left_running(token) != []
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    while left_running(token) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left_running(token) == []


TRICKS = [
    "'; echo BROKEN; '", '"; echo BROKEN; "', "$(echo BROKEN)", "`echo BROKEN`", "a\nb", "--help", "-c", "\\", "!!",
    "é 한 \t", "%s", "*", "~", "--", "${IFS}", "'\"'\"'", "",
]  # fmt: skip


def test_quoting_tricks(open_session: Opener) -> None:
    """Text reaches a command as it is, whatever the shell or bubblewrap would make of it."""
    session = open_session({"say.py": b"import sys\nsys.stdout.write(repr(sys.argv[1:]))"})
    assert session.execute_bash(shlex.join(["python3", "say.py", *TRICKS])).stdout == repr(TRICKS)
    for text in TRICKS[:6]:
        assert session.execute_bash(shlex.join(["printf", "%s", text])).stdout == text


def test_a_command_is_never_an_option(open_session: Opener) -> None:
    session = open_session()
    for command in ("--version", "-c id", "--bind / /host", "-x"):
        seen = session.execute_bash(command)
        assert (seen.exit_code, seen.error_class) == (127, "exit_nonzero"), command
        assert "not found" in seen.stderr
    assert session.execute_bash("echo a\0b").error_class == "invalid_action"
    assert session.execute_bash("echo " + "x" * 200_000).error_class == "invalid_action"


def test_what_is_closed_to_us_is_not_the_end(open_session: Opener) -> None:
    """An action may take away every right to its own files: the next one goes on."""
    session = open_session({"a/b.txt": b"x", "c/d.txt": b"x", "e.txt": b"x"})
    seen = session.execute_bash(
        "mkdir /tmp/t; touch /tmp/t/u; chmod 0 a e.txt /tmp/t; chmod 400 c; chmod 0 /tmp /dev/shm ."
    )
    assert seen.ok, seen.stderr
    assert session.execute_bash("chmod -R u+rwX .; cat a/b.txt c/d.txt e.txt; ls -A /tmp").stdout == "xxx"


def test_files_with_holes_are_not_read_for_ever(open_session: Opener) -> None:
    script = "for n in range(1500):\n    with open(f'{n}', 'wb') as f:\n        f.truncate(16 << 20)\n"
    seen = open_session({"holes.py": script.encode()}).execute_bash("python3 holes.py")
    assert seen.ok, seen.stderr
    assert seen.trace.to_wire()["io"]["files_written_n"] == 1500
    assert list(seen.trace.to_wire()["io"]["digests"].values()).count(None) > 400


def test_names_that_are_no_text(open_session: Opener) -> None:
    session = open_session()
    seen = session.execute_bash("touch $'\\xff' $'a\\nb' '$(id)' -- -rf; ls -A | wc -l")
    assert seen.ok
    assert "/scratch/\\xff" in seen.trace.to_wire()["io"]["files_written"]
    assert session.execute_bash("printf '\\xff\\xfe'").stdout == "\ufffd\ufffd"
