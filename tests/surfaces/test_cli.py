"""The command line by hand: every command, in text and JSON, with good and bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_room import in_folder
from click.testing import CliRunner, Result

import muniment
from muniment.store.engines import _sqlite_residue
from muniment.surfaces.cli.demo import story
from muniment.surfaces.cli.main import cli
from muniment.surfaces.cli.tree import TREE
from products import for_each

EVENTS = (
    '{"role":"user","content":"I moved to Berlin in May.","ts":"2026-05-03T10:00:00Z","speaker":"Ana"}\n'
    '{"role":"assistant","content":"Noted."}\n'
    '{"role":"tool","content":"12 °C","tool":{"name":"weather","args":{"city":"Berlin"},"ok":true}}\n'
)
CHAT: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "x"}}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Berlin"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "12 C"},
        {"role": "user", "name": "ana", "content": "thanks"},
    ]
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    in_folder(tmp_path, monkeypatch)
    (tmp_path / "events.jsonl").write_text(EVENTS, "utf-8")
    (tmp_path / "chat.json").write_text(json.dumps(CHAT), "utf-8")
    return tmp_path


def call(*args: str, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(cli, list(args), input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def failure(result: Result) -> dict[str, Any]:
    """The one JSON document a failing command writes to stderr."""
    assert result.exit_code in (1, 2)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    error: dict[str, Any] = json.loads(line)
    assert set(error) <= {"code", "message", "path", "hint", "details"}
    return error


def test_ingest_events_and_chat(folder: Path) -> None:
    result = call("ingest", "events.jsonl", "chat.json", "--user", "ana", "--json")
    assert result.exit_code == 0, result.stderr
    told = {"db": "muniment.db", "events": 8, "sessions": 2, "already_present": 0, "without_text": 0}
    assert json.loads(result.stdout) == told
    with muniment.open("muniment.db") as mem:
        events = list(mem.ledger.entries(user_id="ana", session_id="events"))[1:]
        assert [(event.role, event.content) for event in events] == [
            ("user", "I moved to Berlin in May."),
            ("assistant", "Noted."),
            ("tool", "12 °C"),
        ]
        assert events[0].ts == "2026-05-03T10:00:00.000000Z"
        assert events[0].speaker == "Ana"
        chat = list(mem.ledger.entries(user_id="ana", session_id="chat"))[1:]
        assert [event.kind for event in chat] == ["system", "message", "message", "tool_result", "message"]
        assert chat[1].content == "hi"
        assert chat[1].metadata == {"parts": [{"type": "image_url"}]}
        assert chat[3].tool is not None
        assert chat[3].tool.to_wire() == {"name": "weather", "args": {"city": "Berlin"}, "ok": True}
        assert chat[4].speaker == "ana"


def test_ingest_again_writes_nothing_twice(folder: Path) -> None:
    for _ in range(2):
        assert call("ingest", "events.jsonl", "--user", "ana").exit_code == 0
    (folder / "events.jsonl").write_text(EVENTS + '{"role":"user","content":"more"}\n', "utf-8")
    assert call("ingest", "events.jsonl", "--user", "ana").exit_code == 0
    with muniment.open("muniment.db") as mem:
        assert [event.role for event in mem.ledger.entries(user_id="ana")].count("user") == 2
        assert mem.verify().ok
    assert call("ingest", "events.jsonl", "--user", "ana", "--again").exit_code == 0
    with muniment.open("muniment.db") as mem:
        assert [event.role for event in mem.ledger.entries(user_id="ana")].count("user") == 4


def test_ingest_tells_what_was_there_and_what_has_no_words(folder: Path) -> None:
    picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}]}
    (folder / "pictures.json").write_text(json.dumps([picture, {"role": "user", "content": "my cat"}]), "utf-8")
    first = json.loads(call("ingest", "pictures.json", "--user", "ana", "--json").stdout)
    assert (first["events"], first["already_present"], first["without_text"]) == (2, 0, 1)
    again = call("ingest", "pictures.json", "events.jsonl", "--user", "ana")
    assert "2 of them were there already" in again.stdout
    assert "1 hold no text" in again.stdout
    third = json.loads(call("ingest", "pictures.json", "--user", "ana", "--json").stdout)
    assert (third["events"], third["already_present"]) == (2, 2)


def test_extract_proposes_facts_with_their_quotes(folder: Path) -> None:
    lines = '{"role":"user","content":"I live in Lisbon."}\n{"role":"assistant","content":"I live in a server."}\n'
    assert call("ingest", "-", "--user", "ana", "--session", "s1", stdin=lines).exit_code == 0
    found = json.loads(call("memory", "extract", "--user", "ana", "--json").stdout)
    assert found["messages"] == 2
    (candidate,) = found["candidates"]
    assert (candidate["key"], candidate["value"], candidate["status"]) == ("user.location", "Lisbon", "promoted")
    assert candidate["quote"] == "I live in Lisbon"
    again = json.loads(call("memory", "extract", "--user", "ana", "--json").stdout)
    assert again["candidates"][0]["candidate_id"] == candidate["candidate_id"]
    shown = call("memory", "extract", "--user", "ana", "--session", "s1").stdout
    assert "user.location: Lisbon" in shown
    assert "“I live in Lisbon”" in shown
    assert "nothing in them" in call("memory", "extract", "--user", "ana", "--session", "other").stdout
    assert failure(call("memory", "extract", "--json"))["hint"]


def test_extract_tells_whose_words_it_leaves_aside(folder: Path) -> None:
    said = [("Ana", "I live in Lisbon."), ("Bob", "I live in Oslo."), ("Bob", "I like tea.")]
    both = [{"role": "user", "name": name, "content": text} for name, text in said]
    (folder / "alone.json").write_text(json.dumps(both[:1]), "utf-8")
    (folder / "both.json").write_text(json.dumps(both), "utf-8")
    assert call("ingest", "alone.json", "--user", "u-1").exit_code == 0
    assert "user.location: Lisbon" in call("memory", "extract", "--user", "u-1").stdout
    assert call("ingest", "both.json", "--user", "u-2").exit_code == 0
    told = json.loads(call("memory", "extract", "--user", "u-2", "--json").stdout)
    assert told["candidates"] == []
    assert [(each["speaker"], each["messages"]) for each in told["unheard"]] == [("Ana", 1), ("Bob", 2)]
    shown = call("memory", "extract", "--user", "u-2").stdout
    assert "left aside: 2 of 'Bob'" in shown
    assert "user.name" in shown


def test_ingest_reads_scopes_and_stdin(folder: Path) -> None:
    lines = "".join(
        json.dumps({"role": "user", "content": f"{user} {session}", "user_id": user, "session_id": session}) + "\n"
        for user in ("ana", "bob")
        for session in ("s1", "s2")
    )
    result = call("ingest", "-", "--db", "many.db", "--json", stdin=lines)
    told = json.loads(result.stdout)
    assert (told["db"], told["events"], told["sessions"]) == ("many.db", 4, 4)
    several = (
        json.dumps([{"role": "user", "content": "a"}]) + "\n" + json.dumps([{"role": "user", "content": "b"}]) + "\n"
    )
    assert call("ingest", "-", "--db", "many.db", "--user", "cy", "--session", "t", stdin=several).exit_code == 0
    with muniment.open("many.db") as mem:
        assert {event.scope.session_id for event in mem.ledger.entries(user_id="cy")} == {"t", "t-2"}


@for_each(
    ("line", "path", "code"),
    [
        ('{"role":"user"}', "$.content", "invalid_record"),
        ('{"role":"alien","content":"x"}', "$.role", "invalid_record"),
        ('{"role":"user","content":"x","typo":1}', "$.typo", "invalid_record"),
        ('{"role":"user","content":"x","ts":"soon"}', "$.ts", "invalid_input"),
        ('{"role":"user","content":3}', "$.content", "invalid_input"),
        ('{"role":"user","content":"x","user_id":3}', "$.user_id", "invalid_input"),
        ("[1]", "$[0]", "invalid_input"),
        ("17", "$", "invalid_input"),
        ('{"role":"user","content":NaN}', "$", "invalid_json"),
        ('{"role":"user","role":"user","content":"x"}', "$.role", "invalid_json"),
        ("[" * 400 + "]" * 400, None, "invalid_json"),
        ("nonsense", "$", "invalid_json"),
    ],
)
def test_ingest_refuses_and_writes_nothing(folder: Path, line: str, path: str | None, code: str) -> None:
    (folder / "bad.jsonl").write_text(EVENTS + line + "\n", "utf-8")
    error = failure(call("ingest", "bad.jsonl", "--user", "ana", "--json"))
    assert error["code"] == code
    assert error["message"].startswith("bad.jsonl:4: ")
    if path is not None:
        assert error["path"] == path
    assert not (folder / "muniment.db").exists()


def test_ingest_refuses_bytes_that_are_not_utf8(folder: Path) -> None:
    (folder / "bad.jsonl").write_bytes(b'{"role":"user","content":"\xff"}\n')
    assert failure(call("ingest", "bad.jsonl", "--user", "ana", "--json"))["code"] == "invalid_json"


def test_ingest_wants_to_know_whose_memory(folder: Path) -> None:
    error = failure(call("ingest", "events.jsonl", "--json"))
    assert (error["path"], error["code"]) == ("$.user_id", "invalid_input")
    assert "--user" in error["hint"]


def test_export_import_round_trip(folder: Path) -> None:
    assert call("ingest", "events.jsonl", "chat.json", "--user", "ana").exit_code == 0
    assert call("export", "dump.jsonl").exit_code == 0
    first = call("import", "dump.jsonl", "--db", "other.db", "--json")
    assert json.loads(first.stdout)["written"]["entries"] == 10
    again = call("import", "-", "--db", "other.db", "--json", stdin=(folder / "dump.jsonl").read_text("utf-8"))
    assert json.loads(again.stdout)["skipped"]["entries"] == 10
    assert call("export", "--db", "other.db").stdout_bytes == (folder / "dump.jsonl").read_bytes()
    one = call("export", "--user", "ana", "--session", "chat").stdout.splitlines()
    assert {json.loads(line)["row"]["session_id"] for line in one if '"table":"entries"' in line} == {"chat"}
    assert not list(folder.glob("*.part"))


def test_export_and_import_refuse(folder: Path) -> None:
    assert call("ingest", "events.jsonl", "--user", "ana").exit_code == 0
    assert failure(call("export", "--session", "events", "--json"))["path"] == "$.user"
    assert failure(call("export", "--user", "zoe", "--json"))["code"] == "unknown_scope"
    assert failure(call("export", "no/such/folder/dump", "--json"))["code"] == "invalid_input"
    assert failure(call("export", "--db", "none.db", "--json"))["path"] == "$.db"
    call("export", "dump.jsonl")
    text = (folder / "dump.jsonl").read_text("utf-8")
    for name, altered, code in (
        ("altered", text.replace("Noted", "Nated"), "chain_broken"),
        ("cut", "".join(text.splitlines(keepends=True)[:-2]), "invalid_input"),
        ("foreign", EVENTS, "invalid_input"),
    ):
        (folder / name).write_text(altered, "utf-8")
        assert failure(call("import", name, "--db", "new.db", "--json"))["code"] == code
        assert not (folder / "new.db").exists()
    assert failure(call("import", "missing", "--db", "new.db", "--json"))["code"] == "invalid_input"


def test_verify_says_what_is_broken(folder: Path) -> None:
    import sqlite3
    from contextlib import closing

    assert call("ingest", "events.jsonl", "--user", "ana").exit_code == 0
    assert call("verify").exit_code == 0
    with closing(sqlite3.connect("muniment.db")) as db, db:
        db.execute("UPDATE entries SET body = replace(body, 'Berlin', 'Munich') WHERE seq = 2")
    result = call("verify", "--json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["ok"] is False
    assert (report["broken"][0]["seq"], report["broken"][0]["reason"]) == (2, "the content was altered")
    shown = call("verify")
    assert shown.exit_code == 1
    assert "seq 2" in shown.stdout


def test_forget_asks_and_gives_a_receipt(folder: Path) -> None:
    assert call("ingest", "events.jsonl", "--user", "ana").exit_code == 0
    assert call("forget", "--user", "ana", stdin="n\n").exit_code == 1
    assert b"Berlin" in (folder / "muniment.db").read_bytes() + _wal(folder)
    result = call("forget", "--user", "ana", "--json", "--yes")
    receipt = json.loads(result.stdout)
    assert receipt["counts"]["entries"] == 4
    assert receipt["scrubbed"] is True
    assert b"Berlin" not in (folder / "muniment.db").read_bytes() + _wal(folder)
    assert failure(call("forget", "--user", "bob", "--json", "--yes"))["code"] == "unknown_scope"
    assert failure(call("forget", "--json"))["code"] == "invalid_input"
    assert failure(call("forget", "--user", "ana", "--json"))["hint"] == "add --yes to forget"
    assert failure(call("forget", "--event", "evt_x", "--json", "--yes"))["code"] == "not_found"
    assert failure(call("forget", "--fact", "fact_x", "--json", "--yes"))["code"] == "not_found"


def test_scrub_rebuilds_and_says_what_waited(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sqlite_residue, "_CHECKPOINT_WAIT_S", 0.1)
    import sqlite3
    from contextlib import closing

    assert call("ingest", "events.jsonl", "--user", "ana").exit_code == 0
    call("forget", "--user", "ana", "--json", "--yes")
    result = call("store", "scrub", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"clean": True, "due": False, "note": "rebuilt the file", "receipts": 0}
    assert "0 receipts had waited" in call("store", "scrub").stdout
    with closing(sqlite3.connect(folder / "muniment.db", isolation_level=None)) as held:
        held.execute("BEGIN")
        held.execute("SELECT count(*) FROM entries").fetchone()
        call("ingest", "events.jsonl", "--user", "bob")
        result = call("store", "scrub")
    assert result.exit_code == 1
    assert "something is left: scrub again" in result.stdout


def _wal(folder: Path) -> bytes:
    wal = folder / "muniment.db-wal"
    return wal.read_bytes() if wal.exists() else b""


@pytest.mark.soak
def test_doctor(folder: Path) -> None:
    nothing = json.loads(call("doctor", "--json").stdout)
    assert nothing["store"]["state"] == "none"
    assert not (folder / "muniment.db").exists()
    call("ingest", "events.jsonl", "--user", "ana")
    found = json.loads(call("doctor", "--json").stdout)
    assert (found["store"]["state"], found["store"]["engine"], found["store"]["tenants"]) == ("ok", "sqlite", 1)
    (folder / "text.db").write_text("not a database, not at all, but long enough to look at")
    broken = call("doctor", "--db", "text.db", "--json")
    assert broken.exit_code == 1
    assert json.loads(broken.stdout)["store"]["error"]["code"] == "not_a_database"
    assert "secret" not in call("doctor", "--db", "postgresql://u:secret@127.0.0.1:1/x").stdout


def test_demo_tells_its_story(folder: Path) -> None:
    result = call("demo")
    assert result.exit_code == 0, result.output
    for piece in (
        "1 · What your agent is handed",
        "2 · Why, and how to check it",
        "trace      I booked a place without sesame [",
        "mark [99] names no evidence",
        "after later writes: True",
        "the content was altered",
        "bytes of the store: 0",
        "names the receipt: rcp_",
    ):
        assert piece in result.output, piece


@pytest.mark.req("TM-16", "TM-18")
def test_every_packet_of_the_demo_is_complete_and_true() -> None:
    """All that Ana said of herself is there, the draft only with the request for it, and nothing is added."""
    calendar = story.Calendar()
    with muniment.open(":memory:", clock=calendar) as mem:
        story.record_chats(mem, calendar)
        own = [text for _, turns in story.CHATS for role, text in turns if role == "user"]
        for purpose in ("planner", "tool", "responder"):
            for task in story.TASKS:
                run = mem.run(user_id="ana", session_id="2026-06-10")
                build = run.compose(purpose, query=task, max_tokens=story.TOKENS)
                assert [text for text in own if text not in build.text] == []
                assert "EpiPen" in build.text.partition("## Said")[0]
                assert build.text.count("I am vegan") == 1
                assert task not in build.text
                assert not build.packet.long_term.facts
                said = {each.quote for each in build.packet.short_term.key_quotes or ()}
                spoken = [text for _, turns in story.CHATS for _, text in turns]
                assert all(any(quote in text for text in spoken) for quote in said)


def test_settings_come_in_order(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "own.toml").write_text('db = "file.db"\nuser = "toml"\n[policy.ledger]\nredact_secrets = false\n')
    monkeypatch.setenv("MUNIMENT_CONFIG", "own.toml")
    secret = "AKIA" + "ABCDEFGHIJKLMNOP"
    (folder / "e.jsonl").write_text(json.dumps({"role": "user", "content": secret}) + "\n")
    assert json.loads(call("ingest", "e.jsonl", "--json").stdout)["db"] == "file.db"
    with muniment.open("file.db") as mem:
        assert [event.content for event in mem.ledger.entries(user_id="toml")][1] == secret
    monkeypatch.setenv("MUNIMENT_DB", "env.db")
    assert json.loads(call("ingest", "e.jsonl", "--json").stdout)["db"] == "env.db"
    assert json.loads(call("ingest", "e.jsonl", "--db", "arg.db", "--json").stdout)["db"] == "arg.db"
    monkeypatch.setenv("MUNIMENT_CONFIG", "none.toml")
    assert "MUNIMENT_CONFIG" in failure(call("verify", "--json"))["hint"]
    monkeypatch.delenv("MUNIMENT_CONFIG")
    (folder / "muniment.toml").write_text("dbb = 1")
    assert "dbb" in failure(call("verify", "--json"))["message"]


def test_every_command_has_help_and_loads() -> None:
    shown = call("--help").stdout
    for name, entry in TREE.items():
        result = call(name, "--help")
        assert result.exit_code == 0
        assert (f"\n  {name} " in shown) is not entry.hidden


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from muniment.surfaces.cli.main import cli\n"
        "try: cli(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'pydantic', 'sqlite3', 'psycopg', 'rich', 'numpy'} & set(sys.modules)\n"
        "sys.exit(f'--help imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.req("X-04")
def test_the_same_error_over_library_and_command_line(folder: Path) -> None:
    call("ingest", "events.jsonl", "--user", "ana")
    shown = failure(call("forget", "--user", "bob", "--json", "--yes"))
    with muniment.open("muniment.db") as mem, pytest.raises(muniment.MunimentError) as caught:
        mem.forget(user_id="bob")
    assert shown == caught.value.to_dict()


@pytest.mark.parametrize(
    "arguments", [["search", "--json"], ["search", "x", "--k", "abc", "--json"], ["bogus", "--json"]]
)
def test_usage_errors_have_the_same_shape(arguments: list[str], folder: Path) -> None:
    done = call(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    error = json.loads(done.stderr)
    assert error["code"] == "invalid_input"
    assert error["hint"].endswith("--help")


def test_the_demo_as_json(folder: Path) -> None:
    told = json.loads(call("demo", "--json").stdout)["lines"]
    assert any("after later writes: True" in line for line in told)
