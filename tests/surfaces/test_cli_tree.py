"""The tree of commands: help, groups, slips, completion; every operation of the table is reached, or says why not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from cli_room import Commands, copied, in_folder
from click.shell_completion import ShellComplete, get_completion_class

import muniment
from muniment.surfaces.cli.calling import Command
from muniment.surfaces.cli.groups import made
from muniment.surfaces.cli.main import cli
from muniment.surfaces.cli.tree import MOVED, TREE, Entry, commands
from muniment.surfaces.operations.rows import OPERATIONS
from products import for_each

ALL = commands()
FIRST = ("demo", "ingest", "search", "compose", "explain", "why", "facts", "profile", "forget", "verify", "serve",
         "mcp", "proxy", "doctor")  # fmt: skip
FIXED = (*FIRST, "validate", "schema", "replay", "diff", "export", "import", "check")
"""Names that people and programs outside rely on."""
MUNIMENT = Commands()

_AGENTS = "what an agent does in its run: the library, HTTP and MCP have it"
_PEOPLE = "told together with others by one command"
_OWN = "the command has its own way there"
UNREACHED: dict[str, str] = {
    **dict.fromkeys(
        (
            "run.observe", "run.observe_tool", "run.finish", "run.patch", "run.working_state",
            "run.remember",
            "run.dispute", "run.retract", "run.procedure", "run.retire_procedure", "run.use_procedures", "run.insight",
            "run.judge_insight", "run.promote_insight", "run.propose", "run.decide", "run.used", "run.note",
            "run.push_working_set", "run.pop_working_set", "run.working_set", "run.select_rules", "run.fold",
            "run.learn", "run.lessons", "run.step", "run.claim", "run.verify_claim", "run.retract_claim",
            "run.conflict",
            "run.settle_conflict", "run.failure", "run.question", "run.close_question", "run.plan_next",
        ),
        _AGENTS,
    ),
    **dict.fromkeys(("run.state", "run.get", "run.content", "run.budgets", "run.fact", "study.sources"), _PEOPLE),
    "memory.changes": "for whoever keeps up with a store: a server's stream",
    "memory.resolve": "a pointer is a document; `run claims` resolves those of a run",
    "memory.forget_tenant": "is `forget --whole-tenant`",
    "run.profile": "is `profile`",
    "memory.build_packet": "is `replay --packet`",
    "memory.build_text": "is `replay --text`",
    "memory.build_inputs": "is `explain --json`",
    "memory.resolve_answer": "an answer is resolved where it was given, by whoever has it",
    "memory.add_documents": "is `corpus add`",
    "bank.reasoning_bank": "is `learn bank list`, as the contract's document",
    "study.finish": "a report that holds ends the research",
    **dict.fromkeys(
        (
            "threads.checkpoints", "threads.copy", "threads.forget", "threads.get", "threads.put", "threads.put_writes",
            "threads.thread_ids", "values.fill", "values.forget", "values.get", "values.history", "values.namespaces",
            "values.prolong", "values.put", "values.search", "values.sweep",
        ),
        "for frameworks that keep values and threads of their own here: LangGraph's store and checkpointer",
    ),
    "works.list": "long work is a server's", "works.get": "long work is a server's",
    "works.events": "long work is a server's",
}  # fmt: skip
"""Operations of the table that no command calls, and why."""


def command_at(path: tuple[str, ...]) -> click.Command:
    return made(path, ALL[path])


def rows() -> Iterator[tuple[tuple[str, ...], Command]]:
    import importlib

    for path, entry in ALL.items():
        module, _, name = entry.home.partition(":")
        home = module if "." in module else f"muniment.surfaces.cli.commands.{module}"
        yield path, getattr(importlib.import_module(home), name)


# -- help ---------------------------------------------------------------------------------------------


@for_each("path", ALL, ids=" ".join)
def test_every_command_says_what_it_is_for(path: tuple[str, ...]) -> None:
    shown = MUNIMENT.text(*path, "--help")
    summary = ALL[path].summary
    assert summary.endswith(".")
    assert len(summary) <= 100
    assert " ".join(summary.split()[:4]) in " ".join(shown.split())
    assert "--json" in shown
    for option in command_at(path).params:
        assert isinstance(option, click.Argument) or option.help, f"{option.name} says nothing"


@for_each("name", [name for name, entry in TREE.items() if entry.entries])
def test_the_help_of_a_group_fits_a_screen(name: str) -> None:
    shown = MUNIMENT.text(name, "--help").splitlines()
    assert len(shown) <= 36
    for inner in TREE[name].entries:
        assert inner == TREE[name].default or any(line.startswith(f"  {inner} ") for line in shown), inner


def test_the_first_screen_begins_with_what_people_do() -> None:
    shown = MUNIMENT.text("--help")
    assert len(shown.splitlines()) <= 42
    names = [line.split()[0] for line in shown.partition("Commands:")[2].splitlines() if line.startswith("  ")]
    assert tuple(names[: len(FIRST)]) == FIRST
    assert shown.index("Groups:") > shown.index("doctor")
    assert set(FIXED) <= set(TREE)


def test_a_group_that_is_a_command_shows_both() -> None:
    shown = MUNIMENT.text("check", "--help")
    assert "muniment check [OPTIONS] CONSTRAINTS [OUTPUT]..." in shown
    assert "or: muniment check COMMAND" in shown
    assert shown.index("--junit") < shown.index("verify-output")


def test_what_has_two_places_is_the_same_command() -> None:
    homes = {path[-1]: [each for each, entry in ALL.items() if entry.home == ALL[path].home] for path in ALL}
    for name in ("replay", "diff", "export", "import", "validate"):
        assert len(homes[name]) == 2
        assert TREE[name].hidden
    assert sum(len(set(each)) for each in homes.values() if len(set(each)) > 2) == 0


# -- the table ----------------------------------------------------------------------------------------


def test_every_operation_is_reached_or_says_why_not() -> None:
    named = {name for _, row in rows() for name in (row.operation, *row.calls) if name}
    known = {each.id for each in OPERATIONS}
    assert named <= known, sorted(named - known)
    assert known - named == set(UNREACHED), sorted((known - named) ^ set(UNREACHED))
    assert all(UNREACHED.values())


def test_a_command_takes_what_its_operation_takes() -> None:
    """But for what is left out by name, and cursors, for which a terminal has no second page: an argument that an
    operation gains is not forgotten here."""
    for path, row in rows():
        if row.row is not None and row.function is None:
            asked = {each.name for each in command_at(path).params}
            for parameter in row.row.signature.parameters:
                assert parameter.name in asked or parameter.name in (*row.left_out, "cursor"), (
                    f"{' '.join(path)}: {parameter.name}"
                )


# -- slips --------------------------------------------------------------------------------------------


@for_each(
    ("arguments", "said"),
    [
        (("serch", "x"), "Did you mean 'search'?"),
        (("rn",), "Did you mean 'run'?"),
        (("research", "statsu", "r1"), "Did you mean 'status'?"),
        (("lint", "r1"), "Did you mean 'rules lint'?"),
        (("check", "sandbx"), "Did you mean 'sandbox'?"),
        (("search", "x", "--usr", "ana"), "Did you mean '--user'?"),
        (("run", "claims", "r1", "--status", "verifid"), "Did you mean 'verified'?"),
        (("completion", "bsh"), "Did you mean 'bash'?"),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(arguments: tuple[str, ...], said: str) -> None:
    result = MUNIMENT.call(*arguments, "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    error = json.loads(result.stderr)
    assert (error["code"], error["hint"].startswith("muniment")) == ("invalid_input", True)
    assert said in error["message"]


@for_each("name", MOVED)
def test_a_name_that_has_moved_says_where_it_is(name: str) -> None:
    result = MUNIMENT.call(name)
    assert result.exit_code == 2
    assert f"`{name}` is now `{MOVED[name]}`." in result.stderr
    entries, found = TREE, Entry("")
    for part in MOVED[name].split():
        found = entries[part]
        entries = found.entries
    assert found.home or found.entries


def test_nothing_like_it_is_no_guess() -> None:
    assert "Did you mean" not in MUNIMENT.call("xyzzy").stderr


# -- completion ---------------------------------------------------------------------------------------


@for_each(
    ("typed", "incomplete", "found"),
    [
        ([], "s", ["search", "serve", "store"]),
        ([], "rep", []),
        (["run"], "sn", ["snapshot", "snapshots"]),
        (["learn", "bank"], "", ["list", "show", "logs", "drafts", "tidy"]),
        (["check"], "sa", ["sandbox"]),
        (["search", "x"], "--u", ["--user"]),
        (["run", "claims", "--status"], "v", ["verified"]),
        (["completion"], "", ["bash", "zsh", "fish"]),
    ],
)
def test_candidates_of_a_completion(typed: list[str], incomplete: str, found: list[str]) -> None:
    asked = ShellComplete(cli, {}, "muniment", "_MUNIMENT_COMPLETE")
    assert [each.value for each in asked.get_completions(typed, incomplete)] == found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_asks_this_program(shell: str) -> None:
    script = MUNIMENT.text("completion", shell)
    assert f"_MUNIMENT_COMPLETE={shell}_complete" in script
    assert MUNIMENT.document("completion", shell)["script"] == script.removesuffix("\n")
    assert get_completion_class(shell) is not None


def test_the_program_answers_a_shell() -> None:
    environ = {"_MUNIMENT_COMPLETE": "bash_complete", "COMP_WORDS": "muniment run cl", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-m", "muniment"],
        env={**environ, "PYTHONPATH": str(Path(muniment.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "plain,claims\n"


# -- documents ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module", name="filled")
def make_filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with something of everything that is listed."""
    path = tmp_path_factory.mktemp("filled") / "muniment.db"
    with muniment.open(path) as mem:
        run = mem.run(user_id="ana", session_id="s1", run_id="r1", objective="talk")
        said = run.observe("user", "I live in Lisbon.")
        run.remember("user.city", "Lisbon", sources=[said.id])
        run.extract()
        run.log.failure("fetch", "timeout", "the page did not load")
        run.log.question("Is it warm there?")
        run.log.compact(force=True)
        run.compose("responder", query="Where does she live?")
        mem.corpus("notes").add("Lisbon is warm.", document_id="n1")
    return path


ON_RUN = ("log", "events", "claims", "conflicts", "failures", "questions", "verifications", "snapshots")
LISTS = [
    *(("run", name, "r1") for name in ON_RUN),
    *((*group, name) for group in (("learn", "plan"), ("learn", "bank"), ("learn", "reuse")) for name in ("list",)),
    *(("memory", name, "--user", "ana") for name in ("episodes", "candidates", "events")),
    ("memory", "history", "user.city", "--user", "ana"),
    ("learn", "bank", "logs"), ("learn", "bank", "drafts"), ("run", "list"), ("packet", "list"), ("rules", "list"),
    ("rules", "revisions"), ("research", "list"), ("store", "users"), ("store", "tenants"), ("store", "keys", "list"),
    ("corpus", "list", "--corpus", "notes"), ("facts", "--user", "ana"), ("search", "Lisbon", "--user", "ana"),
    ("why", "Lisbon"), ("schema", "list"), ("store", "rebuild"), ("run", "drift"),
]  # fmt: skip


@pytest.mark.parametrize("arguments", LISTS, ids=" ".join)
def test_a_listing_is_json_and_lines(
    arguments: tuple[str, ...], filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(filled, in_folder(tmp_path, monkeypatch))
    for line in MUNIMENT.text(*arguments, "--json").splitlines():
        assert isinstance(json.loads(line), dict)
    assert MUNIMENT.text(*arguments).strip()


def test_what_is_printed_is_what_the_table_sends(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied(filled, in_folder(tmp_path, monkeypatch))
    with muniment.open("muniment.db") as mem:
        shape = next(each for each in OPERATIONS if each.id == "memory.runs").shape
        assert MUNIMENT.document("run", "list") == {"runs": shape.encode(mem.runs())}
        (build,) = MUNIMENT.document("packet", "list")["builds"]
        messages = MUNIMENT.document("packet", "messages", build["build_id"])["messages"]
        again = mem.replay(build["build_id"])
        assert messages == again.to_openai()
        asked = ("packet", "messages", build["build_id"], "--no-query", "--no-cite")
        bare = MUNIMENT.document(*asked)["messages"]
        assert bare == again.to_openai(include_query=False, cite=False) != messages
        cached = MUNIMENT.document(*asked[:3], "--style", "anthropic", "--cache")["messages"]
        assert cached == again.to_anthropic(cache=True)
        assert "cache_control" in cached[0]["content"][0]
    content = MUNIMENT.document("memory", "content", MUNIMENT.document("run", "events", "r1")["events"][1]["id"])
    assert content["content"] == "I live in Lisbon."


def test_a_document_is_forgotten_when_somebody_agrees(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(filled, in_folder(tmp_path, monkeypatch))
    asked = ("corpus", "forget", "n1", "--corpus", "notes")
    assert json.loads(MUNIMENT.call(*asked, "--json").stderr)["hint"] == "add --yes to forget"
    assert MUNIMENT.call(*asked, stdin="n\n").exit_code == 1
    assert MUNIMENT.document(*asked, "--yes")["counts"]
    assert MUNIMENT.document("corpus", "list", "--corpus", "notes") == {"documents": []}


def test_turns_are_brought_to_an_embedder(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied(filled, in_folder(tmp_path, monkeypatch))
    assert "MUNIMENT_EMBEDDER" in MUNIMENT.failure("store", "reembed", code=2)["hint"]
    monkeypatch.setenv("MUNIMENT_EMBEDDER", "hash")
    assert MUNIMENT.document("store", "reembed")["turns"] >= 1
    assert "0 turns" in MUNIMENT.text("store", "reembed")
