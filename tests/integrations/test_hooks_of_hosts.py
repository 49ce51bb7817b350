"""What current versions of the hosts say, in the words they say it in (taken from runs of Claude Code 2.1.197, Codex
0.169 and Gemini CLI 0.61), and what is told once.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.test_hooks import event, hook, said, settled, told

import muniment
from muniment.errors import StorageFailure
from muniment.integrations.hooks import handle
from muniment.surfaces.hosts.events import read_event, read_lines, read_result


@pytest.fixture
def mem() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as opened:
        yield opened


def ask(mem: muniment.Memory, prompt: str, session: str = "s1", **more: Any) -> str:
    return told(handle(mem, event("UserPromptSubmit", session, prompt=prompt, **more), user_id="ana"))


def learn(mem: muniment.Memory, key: str, value: str) -> None:
    run = mem.run(user_id="ana", session_id="before")
    source = run.observe("user", f"Our {key} is {value}.", metadata={"n": len(list(mem.ledger.entries(user_id="ana")))})
    run.remember(key, value, sources=[source.id])


# -- facts ----------------------------------------------------------------------------------------------------


def test_a_fact_is_told_once_in_a_session_until_it_says_something_else(mem: muniment.Memory) -> None:
    learn(mem, "linter", "ruff")
    question = "Which linter do we use?"
    first = ask(mem, question)
    assert "ruff" in first
    assert ask(mem, "Is the linter quick, and which linter is it?") == "", "the host has it in its window"
    assert "ruff" in ask(mem, question, "s2"), "another session has not"
    learn(mem, "linter", "pylint")
    assert "pylint" in ask(mem, "Which linter do we use now?")
    assert ask(mem, "Which linter, please?") == ""


def test_after_a_compaction_facts_are_told_again(mem: muniment.Memory) -> None:
    learn(mem, "linter", "ruff")
    assert "ruff" in ask(mem, "Which linter do we use?")
    handle(mem, event("PreCompact", trigger="auto"), user_id="ana")
    handle(mem, event("PostCompact", compact_summary="We spoke."), user_id="ana")
    assert "ruff" in told(handle(mem, event("SessionStart", source="compact"), user_id="ana"))
    assert ask(mem, "Which linter do we use?") == ""


def test_a_fact_that_is_excluded_as_it_stands_is_left_out_of_a_packet(mem: muniment.Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    learn(mem, "linter", "ruff")
    learn(mem, "editor", "vim")
    build = run.compose("responder", query="Which linter, which editor?")
    assert len(build.fact_versions) == 2
    linter = next(name for name in build.fact_versions if "ruff" in build.text and _key(build, name) == "linter")
    again = run.compose("responder", query="Which linter, which editor?", exclude=[linter])
    assert [fact.fact_key for fact in again.packet.long_term.facts] == ["editor"]
    assert "excluded" in str(again.packet.explain.to_wire()), "and it is said why"
    learn(mem, "linter", "pylint")
    changed = run.compose("responder", query="Which linter, which editor?", exclude=[linter])
    assert "pylint" in changed.text


def _key(build: Any, name: str) -> str:
    ids = {fact.fact_id: fact.fact_key for fact in build.packet.long_term.facts}
    return str(ids[name.rpartition("@")[0]])


# -- compactions ----------------------------------------------------------------------------------------------


def lines(path: Path, *entries: dict[str, Any]) -> str:
    with path.open("a") as file:
        file.writelines(json.dumps(entry) + "\n" for entry in entries)
    return str(path)


def test_a_compaction_that_did_not_come_about_tells_nothing_again(mem: muniment.Memory, tmp_path: Path) -> None:
    """Claude Code says PreCompact, and then finds that there is too little to compact."""
    mem.run(user_id="ana", session_id="before").observe("user", "Retries belong in transport.py.")
    where = {"transcript_path": lines(tmp_path / "t.jsonl", {"type": "mode"})}
    assert "transport.py" in ask(mem, "Where do retries belong?", **where)
    handle(mem, event("PreCompact", trigger="manual", **where), user_id="ana")
    assert ask(mem, "Where do retries belong, again?", **where) == ""


@pytest.mark.parametrize(
    "boundary",
    [
        {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"},
        {"type": "compacted", "payload": {"message": "We spoke of retries."}},
        {"$set": {"messages": [{"type": "user", "content": [{"text": "<state_snapshot>x</state_snapshot>"}]}]}},
    ],
    ids=["claude-code", "codex", "gemini-cli"],
)
def test_a_compaction_is_known_by_the_transcript_too(
    mem: muniment.Memory, tmp_path: Path, boundary: dict[str, Any]
) -> None:
    """Where no hook told of it, or the hook failed."""
    mem.run(user_id="ana", session_id="before").observe("user", "Retries belong in transport.py.")
    where = {"transcript_path": lines(tmp_path / "t.jsonl", {"type": "mode"})}
    assert "transport.py" in ask(mem, "Where do retries belong?", **where)
    lines(tmp_path / "t.jsonl", boundary)
    assert "transport.py" in ask(mem, "Where do retries belong, again?", **where)
    assert ask(mem, "Where do retries belong, once more?", **where) == ""


def test_a_compaction_before_anything_was_said_in_a_session_that_is_taken_up_again(mem: muniment.Memory) -> None:
    ask(mem, "The limit is 40 MB.")
    handle(mem, event("SessionEnd"), user_id="ana")
    assert handle(mem, event("PreCompact", trigger="auto"), user_id="ana") == {}


def test_what_a_host_sums_up_in_a_subagent_of_no_kind_is_nobodys_answer() -> None:
    own = event("SubagentStop", agent_id="a1", agent_type="", last_assistant_message="<summary>…</summary>")
    assert read_event(own) is None
    assert (
        read_event(event("SubagentStop", agent_id="a1", agent_type="Explore", last_assistant_message="Found."))
        is not None
    )


# -- Gemini CLI -----------------------------------------------------------------------------------------------


def test_a_packet_before_the_users_words_is_not_the_users_words(mem: muniment.Memory) -> None:
    """Gemini CLI hands what the start told back with the first prompt."""
    packet = "<hook_context>Evidence from memory.\n[1] user: Retries.\n</hook_context>\n\n"
    handle(mem, event("BeforeAgent", prompt=f"{packet}Where do retries live?"), user_id="ana")
    assert said(mem) == [("user", "Where do retries live?")]


def test_what_comes_before_every_request_is_no_compression() -> None:
    assert read_event(event("PreCompress", trigger="auto")) is None
    assert read_event(event("PreCompress", trigger="manual")) is not None


def test_a_session_that_gemini_resumes_is_told_again_what_it_was_told(mem: muniment.Memory) -> None:
    mem.run(user_id="ana", session_id="before").observe("user", "Retries belong in transport.py.")
    at = {"timestamp": "2026-11-17T12:00:00Z"}
    start = told(handle(mem, event("SessionStart", source="startup", **at), user_id="ana"))
    assert "transport.py" in start
    assert "transport.py" in told(handle(mem, event("SessionStart", source="resume", **at), user_id="ana"))
    assert told(handle(mem, event("SessionStart", source="resume"), user_id="ana")) == "", "others keep it"


# -- tools ----------------------------------------------------------------------------------------------------

_CODEX = "Chunk ID: 1a\nWall time: 0.1 seconds\nProcess exited with code {}\nOriginal token count: 4\nOutput:\n{}\n"
_RUNS = "Chunk ID: 1a\nWall time: 9.1 seconds\nProcess running with session ID 7\nOutput:\nso far"


def _gemini(told: str) -> dict[str, str]:
    return {"llmContent": f"<untrusted_context>\nOutput: {told}\n</untrusted_context>", "returnDisplay": "x"}


RESULTS = [
    ("plain", "plain", True),
    ("Exit code 3\noops", "oops", True),
    (_CODEX.format(0, "hi"), "hi", True),
    (_CODEX.format(4, "no"), "no", False),
    (_RUNS, "so far", True),
    ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nbad\nOutput:\nmore", "bad\nOutput:\nmore", False),
    (_gemini("hi\nProcess Group PGID: 1"), "hi", True),
    (_gemini("a\nb\nExit Code: 4\nProcess Group PGID: 1"), "a\nb", False),
    (_gemini("(empty)\nProcess Group PGID: 1"), "", True),
    (_gemini("x\nSignal: 9\nProcess Group PGID: 1"), "x", False),
    (_gemini("Error: none of ours"), "Error: none of ours", True),
    ({"stdout": "a\n", "stderr": ""}, "a", True),
    ({"is_error": True, "content": "no"}, "no", False),
    ([{"type": "text", "text": "a"}, {"type": "image"}, "b"], 'a\n{"type": "image"}\nb', True),
    ({"content": [{"type": "text", "text": "a"}]}, "a", True),
    ([], "", True),
    (None, "", True),
]


@pytest.mark.parametrize(("answer", "text", "ok"), RESULTS)
def test_what_a_command_printed_is_kept_and_whether_it_worked(answer: Any, text: str, ok: bool) -> None:
    assert read_result(answer) == (text, ok)


def test_tools_of_ours_are_known_in_a_namespace_and_what_a_host_says_itself_is_left_out(mem: muniment.Memory) -> None:
    def item(number: int, **payload: Any) -> dict[str, Any]:
        return {"timestamp": f"2026-11-17T12:00:0{number}Z", "type": "response_item", "payload": payload}

    call = {"type": "function_call", "name": "search_memory", "namespace": "mcp__muniment", "call_id": "c1"}
    summary = item(3, type="message", role="assistant", content=[{"type": "output_text", "text": "Summed up."}])
    read = read_lines(
        json.dumps(entry)
        for entry in (
            item(1, **call, arguments="{}"),
            item(2, type="function_call_output", call_id="c1", output="Wall time: 1 seconds\nOutput:\n{}"),
            summary | {"metadata": {"compaction_output": True}},
            {"type": "assistant", "message": {"model": "<synthetic>", "content": "Not enough messages to compact."}},
        )
    )
    assert [(turn.tool, turn.text) for turn in read.turns] == [("mcp__muniment.search_memory", "{}")]


# -- what is put down -----------------------------------------------------------------------------------------


@pytest.mark.soak
def test_an_answer_is_kept_though_the_host_ends_its_hooks(tmp_path: Path) -> None:
    """`claude -p` ends hooks that run in the background as soon as it has answered."""
    command = [sys.executable, "-P", "-m", "muniment.integrations.hooks", "--db", str(tmp_path / "a.db")]
    env = {**os.environ, "MUNIMENT_HOME": str(tmp_path / "home")}
    hook(tmp_path, event("UserPromptSubmit", prompt="Where?"), "--repository", "none")
    with subprocess.Popen(
        [*command, "--user", "ana", "--repository", "none"], env=env, stdin=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(event("Stop", last_assistant_message="There.")).encode())
        process.stdin.close()
        assert process.wait(60) == 0
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # nothing of it is left in the host's group
    settled(tmp_path)
    with muniment.open(tmp_path / "a.db") as mem:
        assert said(mem) == [("user", "Where?"), ("assistant", "There.")]


def test_a_prompt_is_kept_though_nothing_could_be_told(mem: muniment.Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise StorageFailure("the disk is gone")

    monkeypatch.setattr("muniment.handles.run.Run.compose", fail)
    with pytest.raises(StorageFailure):
        ask(mem, "We deploy on Fridays.")
    assert said(mem) == [("user", "We deploy on Fridays.")]


def test_what_one_user_did_is_not_written_as_anothers(tmp_path: Path) -> None:
    """Two people's hooks on one account and one store: what waits says whose it is."""
    result = event("PostToolUse", tool_name="Bash", tool_response="a.py")
    hook(tmp_path, result, "--repository", "none")
    hook(tmp_path, event("SessionStart", "s2"), "--repository", "none", "--user", "bob")
    with muniment.open(tmp_path / "a.db") as mem:
        assert said(mem) == [("tool", "a.py")]
        assert not [each for each in mem.ledger.entries(user_id="bob") if each.kind == "tool_result"]


def test_what_can_never_be_written_is_set_aside_and_stops_nothing(tmp_path: Path) -> None:
    bad = event("PostToolUse", tool_name="Bash", tool_response="a\ud800b")
    hook(tmp_path, bad, "--repository", "none")
    waiting = list((tmp_path / "home" / "pending").rglob("*.json"))
    assert len(waiting) == 1
    done = hook(tmp_path, event("SessionStart", "s2"), "--repository", "none")
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "home" / "pending").rglob("*.json"))


@pytest.mark.soak
def test_modules_that_lie_in_the_repository_are_not_run(tmp_path: Path) -> None:
    from muniment.surfaces.hosts.hosts import HOSTS, Setup

    (tmp_path / "json.py").write_text("raise SystemExit(9)")
    for name, host in HOSTS.items():
        for edit in host.edits(Setup("user", tmp_path, tmp_path, {}, db=str(tmp_path / "a.db"), user="ana")):
            server = edit.server or {}
            words = server.get("command", [])
            listed = words if isinstance(words, list) else [words, *server.get("args", ())]
            assert not listed or "-P" in listed, name
            assert all(" -P -m " in json.dumps(each) for each in (edit.hooks or {}).values()), name
    setup = Setup("user", tmp_path, tmp_path, {}, db=str(tmp_path / "a.db"), user="ana")
    done = subprocess.run(
        ["sh", "-c", setup.hook("claude-code")], cwd=tmp_path, capture_output=True, text=True, check=False,
        input=json.dumps(event("UserPromptSubmit", prompt="Hello.", cwd=str(tmp_path))),
        env={**os.environ, "MUNIMENT_HOME": str(tmp_path / "home")},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["", " "])
def test_a_store_that_is_named_empty_is_refused(tmp_path: Path, name: str) -> None:
    env = {**os.environ, "HOME": str(tmp_path), "MUNIMENT_HOME": str(tmp_path / "home")}
    env.pop("MUNIMENT_DB", None)

    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", *words]
        return subprocess.run(
            command, cwd=tmp_path, env=env | more, capture_output=True, text=True, check=False, input="{}"
        )

    for done in (
        run("muniment", "install", "claude-code", "--db", name),
        run("muniment", "install", "claude-code", "--user", name),
        run("muniment", "search", "x", "--user", "ana", "--db", name),
        run("muniment", "search", "x", "--user", "ana", MUNIMENT_DB=name),
        run("muniment.integrations.hooks", "--db", name),
        run("muniment.integrations.hooks", MUNIMENT_DB=name),
    ):
        assert done.returncode in (1, 2), done.args
        assert "invalid_input" in done.stderr, done.args
        assert "empty" in done.stderr, done.args
    with pytest.raises(muniment.errors.InvalidInput):
        muniment.open(name)
    assert list(tmp_path.iterdir()) == []
