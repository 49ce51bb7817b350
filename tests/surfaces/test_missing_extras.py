"""What is said where an extra is not installed: which one, by a typed error, and before anything is written."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
import pytest

import muniment
from muniment.core.outside.system import EXTRAS
from muniment.surfaces.cli.main import cli
from without_packages import Answer, called_without

ROOT = Path(__file__).parents[2]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
EVERYTHING = sorted({module for extra in EXTRAS.values() for module in extra.modules})

ASKED: Mapping[str, Sequence[tuple[Sequence[str], Mapping[str, str]]]] = {
    "server": [(["serve"], {}), (["serve", "--workers", "2"], {}), (["serve", "--otel", "on"], {})],
    "mcp": [(["mcp", "--user", "ana"], {})],
    "proxy": [(["proxy", "--upstream", "http://127.0.0.1:9"], {})],
    "postgres": [
        (["facts", "--user", "ana", "--db", "postgresql://127.0.0.1:1/x"], {}),
        (["store", "tenants", "--db", "postgresql://127.0.0.1:1/x"], {}),
    ],
    "embed": [(["facts", "--user", "ana", "--db", "kept.db"], {"MUNIMENT_EMBEDDER": "e5-small"})],
    "tokens": [(["facts", "--user", "ana", "--db", "kept.db"], {"MUNIMENT_TOKENS": "splintr"})],
    "otel": [(["serve", "--otel", "on"], {})],
}
"""Extra → what needs it, with its settings. `client` is for the library alone, and `otlp` for requests in protobuf."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with muniment.open(tmp_path / "kept.db") as mem:
        mem.run(user_id="ana", session_id="s1").observe("user", "I moved to Berlin in May.")
    return tmp_path


def test_the_table_of_extras_is_that_of_the_project() -> None:
    assert set(EXTRAS) <= set(DECLARED)
    assert set(ASKED) == set(EXTRAS) - {"client", "otlp"}
    others = {"all", "integrations", "integrations-apart", "sandbox"}
    frameworks = (ROOT / "docs" / "guides" / "integrations.md").read_text("utf-8")
    for extra in set(DECLARED) - set(EXTRAS) - others:
        assert f"`{extra}`" in frameworks, extra


@pytest.mark.soak
@pytest.mark.parametrize("extra", sorted(ASKED))
def test_a_command_names_the_extra_that_it_needs(extra: str, folder: Path) -> None:
    before = sorted(path.name for path in folder.iterdir())
    for words, env in ASKED[extra]:
        answers = called_without(EXTRAS[extra].modules, [words, [*words, "--json"]], folder, env=env)
        assert [(said.code, said.stdout, said.raised) for said in answers] == [(1, "", None)] * 2, (words, answers)
        shown, error = answers[0].stderr, json.loads(answers[1].stderr)
        assert shown.startswith("error[missing_dependency]: "), shown
        assert f'hint: pip install "muniment[{extra}]"' in shown
        assert error["code"] == "missing_dependency"
        assert error["hint"].startswith(f'pip install "muniment[{extra}]"')
    assert sorted(path.name for path in folder.iterdir()) == before, "nothing was made"


@pytest.mark.parametrize("module", ["starlette", "uvicorn", "httptools"])
def test_a_server_with_a_part_missing_says_which(module: str, folder: Path) -> None:
    (said,) = called_without([module], [["serve", "--port", "0"]], folder)
    assert (said.code, said.raised) == (1, None)
    assert f"(no {module} here)" in said.stderr


def test_connecting_names_its_extra(folder: Path) -> None:
    script = """
import sys
sys.modules["httpx2"] = None
import muniment
try:
    muniment.connect("http://127.0.0.1:9")
except muniment.errors.MissingDependency as error:
    print(error.hint)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=folder)
    assert done.stdout.strip() == 'pip install "muniment[client]"'


# -- every command on the core alone --------------------------------------------------------------------


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from leaves(below, (*path, name))


def typed(path: tuple[str, ...], command: click.Command) -> list[str]:
    """The command with something at every place that has to be filled, on a store that is there."""
    words = list(path)
    known = {name for each in command.params for name in each.opts}
    for each in command.params:
        if isinstance(each, click.Argument) and each.required:
            words.append(each.type.choices[0] if isinstance(each.type, click.Choice) else "thing")
    return [
        *words,
        *(["--user", "ana"] if "--user" in known else []),
        *(["--db", "kept.db"] if "--db" in known else []),
    ]


LASTING = {("serve",), ("mcp",), ("proxy",), ("demo",), ("hook",), ("check", "sandbox")}
"""Tried above, and the demo in tests/house/test_core_alone.py; the sandbox runs a program."""


def test_on_the_core_alone_no_command_ends_in_a_traceback(folder: Path) -> None:
    every = [(path, command) for path, command in leaves(cli) if path not in LASTING]
    assert len(every) > 80
    calls = [typed(path, command) for path, command in every]
    helps = [[*path, "--help"] for path, _ in leaves(cli)]
    answers = called_without(EVERYTHING, [*calls, *helps], folder)
    wrong = [
        (words, said.raised) for words, said in zip([*calls, *helps], answers, strict=True) if said.raised is not None
    ]
    assert not wrong
    assert all(said.code == 0 for said in answers[len(calls) :]), "help needs nothing"
    used: list[Answer] = [said for said in answers[: len(calls)] if said.code == 0]
    assert len(used) > 20, "many of them answered"
