"""Every command by a table: its help, its answer as text and as JSON, and its refusals, which change nothing."""

from __future__ import annotations

import importlib
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from cli_room import Commands, copied, in_folder
from click.shell_completion import ShellComplete

import muniment
from muniment.surfaces.cli._command import Command, _spell_hint
from muniment.surfaces.cli.main import TREE, cli, list_commands, load_command
from muniment.testing.stories import QUESTION, RuleStory
from products import for_each

ALL = list_commands()
FIXED = (
    "demo", "ingest", "search", "compose", "explain", "why", "facts", "profile", "forget", "verify", "serve", "mcp",
    "proxy", "doctor", "validate", "schema", "replay", "diff", "export", "import", "check", "eval", "install",
    "uninstall", "store", "completion",
)  # fmt: skip
"""Names that people and programs outside rely on."""
MUNIMENT = Commands()
ANA = ("--user", "ana")
CHAT = '{"role": "user", "content": "I live in Lisbon.", "session_id": "s2"}\n'


class Filled(NamedTuple):
    store: Path
    names: dict[str, str]


@pytest.fixture(scope="module", name="filled")
def make_filled(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """A store with a bit of everything, and the ids in it."""
    path = tmp_path_factory.mktemp("filled") / "muniment.db"
    with muniment.open(path) as mem:
        draft = RuleStory(mem).teach()
        rule = mem.rulebook(user_id="ana").add("Answer in one line.").id
        run = mem.run(user_id="ana", agent_id="solver", session_id="s1", run_id="r1", objective="talk")
        event = run.observe("user", "I live in Lisbon. My name is Ana.")
        fact = run.remember("user.city", "Lisbon", sources=[event.id])
        run.log.claim("She lives there.", evidence=[{"event_id": event.id, "quote": "Lisbon"}], status="verified")
        run.log.failure("fetch", "timeout", "the page did not load")
        run.log.question("Is it warm there?")
        run.log.compact(force=True)
        first = run.compose("responder", query="Where does she live?")
        run.observe("user", "I moved to Berlin.")
        second = run.compose("responder", query="Where does she live?")
        mem.corpus("notes").add("Lisbon is warm.", document_id="n1")
        lesson = mem.bank(user_id="ana").add_lesson("Ask for the size first.", when="ordering")
    names = {
        "RULE": rule, "DRAFT": draft, "EVENT": event.id, "FACT": fact.fact_id, "A": first.id, "B": second.id,
        "LESSON": lesson.lesson_id, "PLAN": lesson.plan_id or "", "QUESTION": QUESTION,
    }  # fmt: skip
    return Filled(path, names)


@pytest.fixture
def store(filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    in_folder(tmp_path, monkeypatch)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MUNIMENT_RESEARCH_DIR", str(tmp_path / "research"))
    refill(filled)
    return filled.names


def refill(filled: Filled) -> None:
    """The working folder as it was: a table's rows share a fixture."""
    here = Path.cwd()
    for file in here.iterdir():
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    copied(filled.store, here)
    (here / "chat.jsonl").write_text(CHAT, "utf-8")
    (here / "note.md").write_text("# Note\n\nPorto is rainy.\n", "utf-8")
    (here / "rules.yaml").write_text("- not_empty\n", "utf-8")
    (here / "out.txt").write_text("fine\n", "utf-8")
    (here / "asked.jsonl").write_text(
        '{"question": "Where does she live?", "answers": ["Lisbon"], "user_id": "ana"}\n', "utf-8"
    )
    (here / "agents.py").write_text(
        "def agent(task):\n    return '24'\n\ndef verifier(output, task):\n    return output.text == '24'\n", "utf-8"
    )


ANSWERS: dict[str, tuple[str, int, str]] = {
    # arguments, exit code, a piece of the text
    "demo": ("", 0, "her words left in the bytes of the store: 0"),
    "ingest": ("chat.jsonl --user ana", 0, "1 event in 1 session"),
    "search": ("Lisbon --user ana", 0, "I live in Lisbon."),
    "compose": ("responder --query city --user ana", 0, "Evidence from memory"),
    "explain": ("A", 0, "replays to the same bytes"),
    "why": ("Lisbon", 0, "from: EVENT"),
    "replay": ("A", 0, "Evidence from memory"),
    "diff": ("A B", 0, "Berlin"),
    "facts": ("--user ana", 0, "Lisbon  [active"),
    "profile": ("--user ana", 0, "I live in Lisbon"),
    "extract": ("--user ana", 0, "nothing is left to be read"),
    "forget": ("--event EVENT --yes", 0, "receipt "),
    "verify": ("", 0, "every chain holds"),
    "export": ("all.jsonl", 0, "lines in all.jsonl"),
    "doctor": ("", 0, "Everything that the settings ask for is here."),
    "install": ("--list", 0, "claude-code"),
    "uninstall": ("claude-code", 0, "nothing of ours is there"),
    "completion": ("bash", 0, "_MUNIMENT_COMPLETE"),
    "run list": ("", 0, "r1  "),
    "run show": ("r1", 0, "“Lisbon”"),
    "run turns": ("--run r1", 0, "PACKET for responder"),
    "run snapshot": ("r1", 0, "talk"),
    "run resume": ("r1", 0, "begins with snapshot 1"),
    "memory events": ("--user ana", 0, "I live in Lisbon."),
    "memory episodes": ("--user ana", 0, "I live in Lisbon."),
    "memory extract": ("--user ana", 0, "user.name"),
    "memory candidates": ("--user ana", 0, "no candidates"),
    "packet list": ("", 0, "Where does she live?"),
    "packet preview": ("A --max-tokens 300", 0, "composed from the candidates"),
    "corpus add": ("note.md --corpus notes", 0, "note.md"),
    "corpus list": ("--corpus notes", 0, "n1"),
    "corpus search": ("warm --corpus notes", 0, "Lisbon is warm."),
    "corpus show": ("n1 --corpus notes", 0, "Lisbon is warm."),
    "corpus forget": ("n1 --corpus notes --yes", 0, "receipt "),
    "learn lessons": ("--user ana --stage candidate", 0, "Ask for the size first."),
    "learn lesson show": ("LESSON", 0, "Ask for the size first."),
    "learn lesson sign": ("LESSON --signed-by rosa", 0, "active"),
    "learn lesson drop": ("LESSON --reason no", 0, "retired"),
    "learn lesson add": ("'Pack nuts apart.' --when packing --user ana", 0, "to undo this"),
    "learn recall": ("count --user ana", 0, "hint"),
    "learn fold": ("r1 --verdict PASS --outcome OK", 0, "to undo this"),
    "learn undo": ("PLAN", 0, "APPLIED"),
    "learn rollout": ("What? --user ana --agent agents:agent --verifier agents:verifier", 0, "passed, after 1 attempt"),
    "rules list": ("--user ana", 0, "RULE"),
    "rules show": ("RULE", 0, "Answer in one line."),
    "rules add": ("'Be brief.' --user ana", 0, "to end it"),
    "rules submit": ("DRAFT", 0, "drafted"),
    "rules advance": ("--user ana --agent agents:agent --verifier agents:verifier --max-calls 4", 0, "of the agent"),
    "rules watch": ("--user ana", 0, "no rules"),
    "rules report": ("RULE", 1, "missing"),
    "rules retire": ("RULE --reason no", 0, "retired"),
    "rules rollback": ("--user ana --to 0 --dry-run", 0, "nothing was done"),
    "research init": ("QUESTION --user ana --run-id dr_1", 0, "muniment research route dr_1"),
    "store tenants": ("", 0, "default"),
    "store users": ("", 0, "ana"),
    "store overview": ("", 0, "events:"),
    "store backup": ("copy.db", 0, "copy.db: "),
    "store restore": ("muniment.db --db new.db --yes", 0, "new.db"),
    "store upkeep": ("", 0, ""),
    "store rebuild": ("", 0, "items:"),
    "store scrub": ("", 0, "the store's files"),
    "store keys create": ("app --tenant default --keys keys.json", 0, "mun_"),
    "store keys list": ("--keys keys.json", 0, "no keys"),
    "check": ("rules.yaml out.txt", 0, "out.txt: holds"),
    "check init": ("first.yaml", 0, "written: first.yaml"),
    "check verify-output": ("out.txt --constraints rules.yaml", 0, "PASS"),
    "eval": ("asked.jsonl", 0, "1 question"),
    "eval init": ("first.jsonl", 0, "first.jsonl: "),
    "schema list": ("", 0, "MemoryPacket"),
    "schema show": ("MemoryPacket", 0, "$schema"),
    "schema export": ("schemas", 0, "schemas in schemas"),
}
"""Of the commands that answer on the filled store: arguments, exit code, and a piece of what a person reads."""
ELSEWHERE = {
    "serve", "mcp", "proxy", "hook",  # serve until they are stopped
    "import", "validate", "run view", "store upgrade", "store reembed", "check sandbox",  # tests of their own
    "bill", "run bill", "packet in-view",  # tests/integrations/test_packets_in_view.py
    "store keys rotate", "store keys revoke", "run unlock", "rules promote",  # walks in test_cli_walks
    *(f"research {name}" for name in ("route", "prompt", "ingest", "pivot", "source", "pack", "check", "status")),
}  # fmt: skip


def arguments_of(name: str, names: dict[str, str]) -> list[str]:
    return [*name.split(), *(names.get(word, word) for word in shlex.split(ANSWERS[name][0]))]


def test_the_table_has_every_command() -> None:
    names = {" ".join(path).removesuffix(" outputs").removesuffix(" questions") for path in ALL}
    assert names - set(ANSWERS) == ELSEWHERE
    assert set(ANSWERS) <= names


@for_each("name", ANSWERS)
def test_every_command_answers(name: str, store: dict[str, str], filled: Filled) -> None:
    refill(filled)
    _, code, piece = ANSWERS[name]
    asked = arguments_of(name, store)
    shown = MUNIMENT.call(*asked)
    assert shown.exit_code == code, shown.output
    assert "Traceback" not in shown.output
    assert store.get(piece, piece).replace("EVENT", store["EVENT"]) in shown.stdout + shown.stderr


@for_each("name", ANSWERS)
def test_every_command_has_a_json_answer(name: str, store: dict[str, str], filled: Filled) -> None:
    refill(filled)
    done = MUNIMENT.call(*arguments_of(name, store), "--json")
    assert done.exit_code == ANSWERS[name][1], done.output
    lines = done.stdout.splitlines()
    assert lines or name in ("store keys list",)
    assert all(isinstance(json.loads(line), dict) for line in lines)


# -- refusals -----------------------------------------------------------------------------------------


@for_each("path", ALL, ids=" ".join)
def test_an_unknown_option_is_refused_in_the_common_shape(path: tuple[str, ...], store: dict[str, str]) -> None:
    typed = [word for word in path if word not in ("outputs", "questions")]
    done = MUNIMENT.call(*typed, "--no-such-option", "--json")
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    error = json.loads(done.stderr)
    assert error["code"] in ("invalid_input", "missing_dependency")
    assert error["hint"].startswith(f"muniment {typed[0]}")


def _needs_user() -> Iterator[str]:
    for name, (typed, _, _) in ANSWERS.items():
        if (
            "--user ana" in typed
            and name not in ("import", "learn lessons", "learn lesson add", "extract")
            and not (name.startswith(("rules", "run")))
        ):
            yield name


@for_each("name", _needs_user())
def test_a_missing_user_is_named_and_nothing_is_written(name: str, store: dict[str, str]) -> None:
    asked = arguments_of(name, store)
    at = asked.index("--user")
    before = Path("muniment.db").read_bytes()
    error = MUNIMENT.failure(*asked[:at], *asked[at + 2 :], code=2)
    assert (error["code"], error["path"]) in (("invalid_input", "$.user"), ("invalid_input", "$.user_id"))
    assert "--user" in error["hint"]
    assert Path("muniment.db").read_bytes() == before


CREATORS = {"ingest", "learn lesson add", "learn rollout", "rules add", "research init", "corpus add", "store restore"}
NO_STORE = {
    "demo", "doctor", "completion", "install", "uninstall", "check", "check init", "check verify-output",
    "store keys create", "store keys list", "store backup",
}  # fmt: skip


@for_each("name", sorted(set(ANSWERS) - CREATORS - NO_STORE - {each for each in ANSWERS if each.startswith("schema")}))
def test_reading_creates_no_store(name: str, store: dict[str, str], tmp_path: Path, filled: Filled) -> None:
    refill(filled)
    for file in tmp_path.glob("muniment.db*"):
        file.unlink()
    done = MUNIMENT.call(*arguments_of(name, store), "--json")
    error = json.loads(done.stderr)
    assert (done.exit_code, error["path"]) == (2, "$.db"), done.output
    assert not (tmp_path / "muniment.db").exists()


@for_each(
    ("typed", "code", "path"),
    [
        ("search", "invalid_input", "$.query"),
        ("compose", "invalid_input", "$.purpose"),
        ("corpus list", "invalid_input", "$.corpus_id"),
        ("serve --port many", "invalid_input", "$.port"),
        ("replay bld_nothing", "not_found", None),
        ("explain bld_nothing", "not_found", None),
        ("diff bld_1 bld_2", "not_found", None),
        ("run show run_nobody", "not_found", None),
        ("run snapshot run_nobody", "not_found", None),
        ("run snapshot r1 --take --sequence 1", "invalid_input", "$.take"),
        ("run unlock run_nobody --reason x", "not_found", None),
        ("memory events --user ana --limit x", "invalid_input", None),
        ("search x --user ana -k 0", "invalid_input", None),
        ("search x --user ana --k 0", "invalid_input", "$.k"),
        ("search x --user ana --within [1]", "invalid_input", "$.within"),
        ("compose clown --user ana --query x", "invalid_input", None),
        ("compose tool --user ana --cues {bad", "invalid_input", "$.cues"),
        ("compose tool --user ana --text --packet", "invalid_input", "$.json"),
        ("compose tool --user ana --run r9", "invalid_input", "$.session"),
        ("compose tool --user ana --policy missing.toml", "invalid_input", "$.policy"),
        ("packet preview bld_nothing", "not_found", None),
        ("forget", "invalid_input", "$.forget"),
        ("forget --event evt_nothing --yes", "not_found", None),
        ("export --session s1", "invalid_input", "$.user"),
        ("import missing.jsonl", "invalid_input", None),
        ("import all.jsonl --from nobody", "invalid_input", None),
        ("ingest missing.jsonl --user ana", "invalid_input", "$.file"),
        ("ingest chat.jsonl --user ana --index-later", "invalid_input", "$.index_later"),
        ("ingest chat.jsonl --user ana --bulk --again", "invalid_input", "$.again"),
        ("corpus add a.md b.md --corpus notes --id x", "invalid_input", "$.id"),
        ("corpus show nothing --corpus notes", "not_found", None),
        ("learn fold r1 --outcome OK", "invalid_input", "$.verdict"),
        ("learn fold r1", "invalid_input", "$.result"),
        ("learn recall x --user ana --intent colour=red", "invalid_input", "$.intent"),
        ("learn recall x --run run_nobody", "not_found", None),
        ("learn lesson show tac_nothing", "not_found", None),
        ("learn lessons --user ana --agent a", "invalid_input", "$.agent"),
        ("learn lessons --stage unheard", "invalid_input", "$.stage"),
        ("learn undo plan_nothing", "not_found", None),
        ("learn rollout x --user ana --agent nowhere:f --verifier agents:verifier", "invalid_input", "$.agent"),
        ("learn rollout x --user ana --agent agents --verifier agents:verifier", "invalid_input", "$.agent"),
        ("rules show rule_nothing", "not_found", None),
        ("rules promote RULE --signed-by rosa", "wrong_stage", None),
        ("rules submit missing.json", "invalid_input", None),
        ("rules rollback --user ana --to -1 --dry-run", "invalid_input", "$.to"),
        ("rules add x --ttl forever", "invalid_input", None),
        ("research status dr_nothing", "not_found", None),
        ("research init --user ana", "invalid_input", "$.question"),
        ("research init QUESTION --user ana --limit few", "invalid_input", "$.limits"),
        ("store restore missing.db --yes", "not_found", None),
        ("store backup copy.db --db :memory:", "invalid_input", "$.db"),
        ("store keys create app --tenant * --user ana", "invalid_input", "$.user"),
        ("store keys revoke key_nothing", "not_found", None),
        ("store upkeep --kind dust", "invalid_input", None),
        ("check missing.yaml out.txt", "invalid_input", "$.file"),
        ("check rules.yaml", "invalid_input", "$.outputs"),
        ("check rules.yaml out.txt --repeats 2", "invalid_input", "$.repeats"),
        ("check init rules.yaml", "conflict", "$.file"),
        ("eval missing.jsonl", "invalid_input", "$.file"),
        ("eval asked.jsonl --min luck=.5", "invalid_input", "$.min"),
        ("validate chat.jsonl --kind Nothing", "unknown_kind", None),
        ("schema show Nothing", "unknown_kind", None),
        ("verify --resume nonsense", "invalid_input", None),
        ("install nobody", "invalid_input", None),
    ],
)
def test_bad_input_is_refused_with_a_code_a_path_and_a_hint_and_changes_nothing(
    typed: str, code: str, path: str | None, store: dict[str, str]
) -> None:
    before = Path("muniment.db").read_bytes()
    done = MUNIMENT.call(*(store.get(word, word) for word in typed.split()), "--json")
    assert done.exit_code in (1, 2), done.output
    assert done.stdout == ""
    error = json.loads(done.stderr)
    assert error["code"] == code, error
    assert path is None or error["path"] == path, error
    assert "mem." not in error.get("hint", "")
    assert "Traceback" not in done.output
    assert Path("muniment.db").read_bytes() == before
    shown = MUNIMENT.call(*(store.get(word, word) for word in typed.split()))
    assert shown.exit_code == done.exit_code
    assert shown.stderr.startswith(f"error[{code}]: ")


@pytest.mark.req("X-04")
def test_the_same_error_from_the_library_and_the_command_line(store: dict[str, str]) -> None:
    with muniment.open("muniment.db") as mem, pytest.raises(muniment.errors.NotFound) as refused:
        mem.replay("bld_nothing")
    assert MUNIMENT.failure("replay", "bld_nothing") == refused.value.to_dict()


@for_each(
    ("hint", "spelled"),
    [
        ("mem.runs() lists those there are", "`muniment run list` lists those there are"),
        ("mem.log.snapshot(run_id) has it", "`muniment run snapshot` has it"),
        ("book.promote(rule_id, signed_by='rosa') first", "`muniment rules promote` first"),
        ("mem.nothing() is no operation", "mem.nothing() is no operation"),
        ("open(..., embedder=…)", "set MUNIMENT_EMBEDDER, or embedder in muniment.toml"),
        ("no call at all", "no call at all"),
    ],
)
def test_hints_name_commands(hint: str, spelled: str) -> None:
    assert _spell_hint(hint) == spelled


def test_what_cannot_be_asked_is_refused_or_stopped(store: dict[str, str]) -> None:
    for asked in (("forget", "--event", store["EVENT"]), ("corpus", "forget", "n1", "--corpus", "notes")):
        assert json.loads(MUNIMENT.call(*asked, "--json").stderr)["path"] == "$.yes"
        stopped = MUNIMENT.call(*asked, stdin="n\n")
        assert stopped.exit_code == 1
        assert "nothing was done" in stopped.stderr


# -- help and completion ------------------------------------------------------------------------------


def commands_by_path() -> Iterator[tuple[tuple[str, ...], Command]]:
    for path, entry in ALL.items():
        module, _, name = entry.home.partition(":")
        yield path, getattr(importlib.import_module(module), name)


@for_each("path", ALL, ids=" ".join)
def test_every_command_explains_itself_and_every_option(path: tuple[str, ...]) -> None:
    shown = MUNIMENT.text(*path, "--help")
    summary = ALL[path].summary
    assert summary.endswith(".")
    assert len(summary) <= 100
    assert " ".join(summary.split()[:4]) in " ".join(shown.split())
    assert "--json" in shown
    for option in load_command(path[-1], ALL[path]).params:
        assert isinstance(option, click.Argument) or option.help, f"{option.name} has no help"


def test_a_command_takes_what_its_operation_takes() -> None:
    """Except cursors and what is left out by name: an argument that an operation gains appears on the command line."""
    for path, command in commands_by_path():
        if command.row is not None and command.function is None:
            asked = {each.name for each in load_command(path[-1], ALL[path]).params}
            taken = {each.name for each in command.signature.parameters}
            assert taken - {"cursor", *command.left_out} <= asked, " ".join(path)


def test_the_first_screen_names_what_people_rely_on() -> None:
    shown = MUNIMENT.text("--help")
    assert len(shown.splitlines()) <= 48
    assert set(FIXED) <= set(TREE)
    for name, entry in TREE.items():
        assert entry.hidden or f"\n  {name} " in shown
    for name, entry in TREE.items():
        if entry.entries:
            assert len(MUNIMENT.text(name, "--help").splitlines()) <= 36


@for_each(
    ("arguments", "suggestion"),
    [
        (("serch", "x"), "Did you mean 'search'?"),
        (("rn",), "Did you mean 'run'?"),
        (("research", "statsu", "r1"), "Did you mean 'status'?"),
        (("rollout", "r1"), "Did you mean 'learn rollout'?"),
        (("check", "sandbx"), "Did you mean 'sandbox'?"),
        (("search", "x", "--usr", "ana"), "Did you mean '--user'?"),
        (("completion", "bsh"), "Did you mean 'bash'?"),
    ],
)
def test_a_misspelling_is_answered_with_the_nearest_name(arguments: tuple[str, ...], suggestion: str) -> None:
    error = json.loads(MUNIMENT.call(*arguments, "--json").stderr)
    assert (error["code"], error["hint"].startswith("muniment")) == ("invalid_input", True)
    assert suggestion in error["message"]
    assert "Did you mean" not in MUNIMENT.call("xyzzy").stderr


@for_each(
    ("typed", "incomplete", "found"),
    [
        ([], "s", ["search", "serve", "store", "schema"]),
        ([], "rep", ["replay"]),
        (["run"], "s", ["show", "snapshot"]),
        (["learn", "lesson"], "", ["show", "sign", "drop", "add"]),
        (["check"], "sa", ["sandbox"]),
        (["search", "x"], "--u", ["--user"]),
        (["completion"], "", ["bash", "zsh", "fish"]),
    ],
)
def test_completion(typed: list[str], incomplete: str, found: list[str]) -> None:
    asked = ShellComplete(cli, {}, "muniment", "_MUNIMENT_COMPLETE")
    assert [each.value for each in asked.get_completions(typed, incomplete)] == found


def _loaded(*arguments: str, cwd: Path) -> set[str]:
    """The modules that a command loads in a process of its own."""
    script = (
        "import sys, json, contextlib, io\n"
        "from muniment.surfaces.cli.main import cli\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    cli.main(json.loads(sys.argv[1]), standalone_mode=False)\n"
        "print(json.dumps(sorted(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(arguments)], capture_output=True, text=True, check=True, cwd=cwd
    )
    return set(json.loads(done.stdout))


def test_commands_load_only_what_they_need(filled: Filled, tmp_path: Path) -> None:
    copied(filled.store, tmp_path)
    shown = _loaded("--help", cwd=tmp_path)
    assert not {each for each in shown if each.split(".")[0] in ("pydantic", "numpy", "rich", "sqlite3")}
    searched = _loaded("search", "Lisbon", "--user", "ana", cwd=tmp_path)
    for name in (
        "muniment.learning",
        "muniment.rules",
        "muniment.research",
        "muniment.surfaces.http",
        "rich",
        "httpx2",
    ):
        assert not {each for each in searched if each == name or each.startswith(f"{name}.")}, name


def wire_of(value: Any) -> Any:
    return json.loads(json.dumps(value))


def test_json_is_what_the_operation_sends(store: dict[str, str]) -> None:
    from muniment.surfaces.operations.rows import OPERATIONS

    with muniment.open("muniment.db") as mem:
        shape = next(each for each in OPERATIONS if each.id == "memory.runs").shape
        assert MUNIMENT.document("run", "list") == {"runs": wire_of(shape.encode(mem.runs()))}
