"""What hooks put down and nobody wrote yet goes with a forget, and is never written after it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_hooks import event, hook, said, settled

import muniment
from muniment.core.outside.pending import hold_spools, may_read, pending_folder, put
from muniment.errors import InvalidInput, UnknownScope
from served_store import connected

SECRET = "patient SWORDFISH was moved to ward 7"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUNIMENT_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def mem(home: Path) -> Iterator[muniment.Memory]:
    with muniment.open(home / "a.db") as opened:
        yield opened


def result(text: str = SECRET, session: str = "s1", **more: Any) -> dict[str, Any]:
    return event("PostToolUse", session, tool_name="Bash", tool_response={"stdout": text, "stderr": ""}, **more)


def folder(home: Path) -> Path:
    return pending_folder(home / "home", str(home / "a.db"))


def waits(home: Path, text: str = SECRET, *, user: str = "ana", session: str = "s1", tenant: str = "default") -> None:
    put(folder(home), tenant, result(text, session), user=user, agent="agent")


def waiting(home: Path) -> list[Path]:
    return sorted(path for path in folder(home).glob("*") if path.suffix != ".lock")


def next_hook(home: Path, *more: str) -> None:
    done = hook(home, event("SessionStart", "later", source="startup"), "--repository", "none", *more)
    assert (done.returncode, done.stderr) == (0, "")


def told(mem: muniment.Memory, user: str = "ana", tenant: str = "default") -> list[str | None]:
    entries = mem.ledger.entries(user_id=user, tenant_id=tenant)
    return [entry.content for entry in entries if entry.kind == "tool_result"]


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("asked", [{"user_id": "ana"}, {"session": "s1"}, {"session": "s1", "user_id": "ana"}])
def test_what_waits_goes_with_its_scope(home: Path, mem: muniment.Memory, asked: dict[str, str]) -> None:
    mem.run(user_id="ana", session_id="s1").observe("user", "read the file")
    mem.run(user_id="bob", session_id="s2").observe("user", "hello")
    waits(home)
    waits(home)
    waits(home, "of bob", user="bob", session="s2")
    receipt = mem.forget(**asked)
    assert receipt.counts["waiting"] == 2
    assert "left_waiting" not in receipt.counts
    assert receipt.scrubbed
    assert SECRET not in "".join(path.read_text() for path in waiting(home))
    next_hook(home)
    assert told(mem) == []
    assert told(mem, "bob") == ["of bob"]


@pytest.mark.req("LG-07")
def test_what_waits_goes_with_its_tenant(home: Path, mem: muniment.Memory) -> None:
    mem.run(user_id="ana", session_id="s1", tenant_id="clinic").observe("user", "read the file")
    waits(home, tenant="clinic")
    waits(home, user="bob", tenant="clinic")
    waits(home, "elsewhere", tenant="other")
    assert mem.forget(tenant="clinic").counts["waiting"] == 2
    next_hook(home)
    assert (told(mem, tenant="clinic"), told(mem, "bob", "clinic")) == ([], [])
    assert told(mem, tenant="other") == ["elsewhere"]


@pytest.mark.req("LG-07")
def test_an_event_that_waits_once_more_goes_with_it(home: Path, mem: muniment.Memory) -> None:
    """A hook that was ended between writing an event and taking its file away leaves the file."""
    entry = mem.run(user_id="ana", session_id="s1").observe_tool("Bash", args={}, content=SECRET, ok=True)
    waits(home)
    waits(home, f"and then {SECRET}")
    waits(home, "another result")
    waits(home, user="bob")
    assert mem.forget(event=entry.id).counts["waiting"] == 2
    next_hook(home)
    assert told(mem) == [None, "another result"]
    assert told(mem, "bob") == [SECRET]


@pytest.mark.req("LG-07")
def test_a_short_event_takes_no_other_along(home: Path, mem: muniment.Memory) -> None:
    entry = mem.run(user_id="ana", session_id="s1").observe_tool("Bash", args={}, content="ok", ok=True)
    waits(home, "ok then")
    waits(home, "ok")
    assert mem.forget(event=entry.id).counts["waiting"] == 1
    next_hook(home)
    assert told(mem) == [None, "ok then"]


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("asked", [{"user_id": "ana"}, {"session": "s1"}, {"tenant": "default"}])
def test_a_scope_of_which_nothing_was_written_yet(home: Path, mem: muniment.Memory, asked: dict[str, str]) -> None:
    with pytest.raises(UnknownScope):
        mem.forget(**asked)
    waits(home)
    receipt = mem.forget(**asked)
    assert (receipt.counts["waiting"], receipt.erased, waiting(home)) == (1, (), [])
    assert mem.verify().ok


def test_a_session_of_two_users_is_asked_about(home: Path, mem: muniment.Memory) -> None:
    waits(home)
    waits(home, user="bob")
    with pytest.raises(InvalidInput, match="several users"):
        mem.forget(session="s1")
    assert len(waiting(home)) == 2
    mem.forget(session="s1", user_id="bob")
    assert len(waiting(home)) == 1


@pytest.mark.req("LG-07")
def test_the_spool_of_another_home_is_found_beside_the_store(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server or a program forgets that knows nothing of the home of who runs the hooks."""
    hook(home, result(tool_use_id="t1"), "--repository", "none")
    assert len(waiting(home)) == 1
    assert (home / "a.db-pending").stat().st_mode & 0o077 == 0, "nobody else reads it"
    monkeypatch.setenv("MUNIMENT_HOME", str(home / "elsewhere"))
    link = home / "linked.db"
    link.symlink_to(home / "a.db")
    with muniment.open(link) as mem, connected(mem, home) as remote:
        assert remote.forget(user_id="ana").counts["waiting"] == 1
    assert waiting(home) == []


@pytest.mark.req("LG-07")
def test_what_no_forget_could_see_is_not_written_after_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a hook on another machine, which writes into the same server."""
    waits(home)
    waits(home, "of bob", user="bob")
    with muniment.open(home / "a.db") as mem:
        mem.run(user_id="ana", session_id="s1").observe("user", "read the file")
        monkeypatch.setenv("MUNIMENT_HOME", str(home / "elsewhere"))
        assert "waiting" not in mem.forget(user_id="ana").counts
        assert len(waiting(home)) == 2
        waits(home, "after it")
        next_hook(home)
        assert waiting(home) == []
        assert told(mem) == ["after it"]
        assert told(mem, "bob") == ["of bob"]


@pytest.mark.req("LG-07")
def test_a_receipt_says_what_could_not_be_read(home: Path, mem: muniment.Memory) -> None:
    mem.run(user_id="ana", session_id="s1").observe("user", "read the file")
    waits(home)
    waiting(home)[0].with_name("5-1-aa.unreadable").write_text(f'{{"torn": "{SECRET}')
    receipt = mem.forget(user_id="ana")
    assert (receipt.counts["waiting"], receipt.counts["left_waiting"], receipt.scrubbed) == (1, 1, False)
    assert "1 event that hooks put down could not be read" in receipt.note


@pytest.mark.req("LG-07")
def test_what_was_set_aside_goes_too(home: Path, mem: muniment.Memory) -> None:
    waits(home, f"{SECRET} \ud800")
    next_hook(home)
    assert [path.suffix for path in waiting(home)] == [".unreadable"]
    assert mem.forget(user_id="ana").counts["waiting"] == 1
    assert waiting(home) == []


@pytest.mark.req("LG-07")
def test_a_hook_leaves_alone_what_is_being_forgotten(home: Path, mem: muniment.Memory) -> None:
    waits(home)
    with hold_spools(str(home / "a.db")):
        next_hook(home)
        hook(home, event("Stop", last_assistant_message="done"), "--repository", "none")
    assert (told(mem), len(waiting(home))) == ([], 2)
    next_hook(home)
    settled(home)
    assert told(mem) == [SECRET]


@pytest.mark.req("LG-07")
def test_a_receipt_says_that_a_hook_was_writing(
    home: Path, mem: muniment.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muniment.core.outside.pending._HOLD_SECONDS_MAX", 0.05)
    mem.run(user_id="ana", session_id="s1").observe("user", "read the file")
    waits(home)
    with may_read(folder(home)) as is_free:
        assert is_free
        receipt = mem.forget(user_id="ana")
    assert (receipt.counts["left_waiting"], receipt.scrubbed) == (1, False)


@pytest.mark.req("LG-07")
def test_a_transcript_brings_back_nothing_that_was_forgotten(home: Path, mem: muniment.Memory) -> None:
    transcript = home / "t.jsonl"
    told = [("user", "2020-01-01T10:00:00Z", "and ward 7?"), ("assistant", "2020-01-01T10:00:01Z", SECRET)]
    told += [("assistant", "2999-01-01T10:00:00Z", "Later.")]
    lines = [
        {"type": role, "timestamp": at, "message": {"role": role, "content": [{"type": "text", "text": text}]}}
        for role, at, text in told
    ]
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))
    mem.run(user_id="ana", session_id="s1").observe("user", "read the file")
    mem.forget(user_id="ana")
    hook(home, event("UserPromptSubmit", prompt="go on", transcript_path=str(transcript)), "--repository", "none")
    assert [text for _, text in said(mem) if text] == ["Later.", "go on"]


@pytest.mark.req("LG-07")
def test_the_command_forgets_what_waits(home: Path) -> None:
    hook(home, event("UserPromptSubmit", prompt="read the file"), "--repository", "none")
    hook(home, result(tool_use_id="t1"), "--repository", "none")
    command = [sys.executable, "-P", "-m", "muniment", "forget", "--user", "ana", "--yes", "--json"]
    done = subprocess.run([*command, "--db", str(home / "a.db")], capture_output=True, text=True, check=True, cwd=home)
    assert json.loads(done.stdout)["counts"]["waiting"] == 1
    next_hook(home)
    with muniment.open(home / "a.db") as mem:
        assert told(mem) == []
