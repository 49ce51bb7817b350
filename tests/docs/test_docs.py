"""What the documentation says is true: snippets run, commands exist, figures are measured, links lead somewhere."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import pytest
from page_player import MUNIMENT, blocks_of, is_shown

from model_server import Chat, Server, serving
from muniment.surfaces.cli.main import TREE
from muniment.surfaces.settings import NAMES
from planted_model import HOLDS
from products import for_each
from warm_commands import captured

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
GUIDES = sorted((ROOT / "docs" / "guides").rglob("*.md"))
PLAYER = Path(__file__).parent / "page_player.py"
APART = ("crewai", "strands", "dspy")
"""Pages on packages that have an environment of their own: their tests in tests/integrations play them there."""
COLD = ("README.md",)
"""Played by a process that loads by itself, as a reader's does; the others by one that has the library loaded."""
DATABASE = "DATABASE_URL"
REPLICA = "REPLICA_ADDRESS"
MODEL = "MODEL_URL"
ROLES = ("owner", "app")
RECORDED = {
    "README.md": ("Congratulations! Noted.", "Try a nut-free place in Berlin [1]."),
    "chat.md": ("Nice to meet you, Ana.", "How about Thai, without peanuts [1]?", "I do not know."),
    "start.md": ("A nice city.", "Go to a museum.", "You live in Berlin."),
}
"""What a model answered on the way through a page."""


READ = tuple(
    {"turn": turn, "speaker": "user", "key": key, "value": value, "quote": said, **HOLDS}
    for turn, key, value, said in (
        ("t1", "user.location", "Lisbon", "the new flat is in Lisbon"),
        ("t2", "person.marta.employer", "hospital", "My sister Marta works at the hospital"),
        ("t2", "user.employer", "NASA", "works at the hospital"),
        ("t2", "user.likes", "metro", "the metro any good"),
    )
)
"""What a model read in the turns of the page on extracting."""


def played(page: Path) -> str:
    return "\n".join(block.body for block in blocks_of(page.read_text("utf-8")))


def url_as(url: str, role: str) -> str:
    """The same database as another role, without a password of its own."""
    return f"{url}{'&' if '?' in url else '?'}options={quote(f'-c role={role}')}"


@contextmanager
def own_database(dsn: str) -> Iterator[str]:
    """A database of the page's own; it and the roles that a page makes, named agents_…, go afterwards."""
    import psycopg

    name = f"docs_{os.getpid()}_{secrets.token_hex(3)}"
    parts = urlsplit(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" ENCODING UTF8 TEMPLATE template0')
        try:
            yield urlunsplit(parts._replace(path=f"/{name}"))
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
            made = connection.execute("SELECT rolname FROM pg_roles WHERE rolname LIKE 'agents\\_%'").fetchall()
            for (role,) in made:
                connection.execute(f'DROP ROLE "{role}"')


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if played(page) and page.stem not in APART], ids=lambda page: page.name
)
def test_snippets_run_and_print_what_is_shown(
    page: Path, tmp_path: Path, muniment_line: str, warm_place: str | None, request: pytest.FixtureRequest
) -> None:
    body = played(page)
    place = None if page.name in COLD else warm_place
    for command in ("curl", "openssl"):
        if re.search(rf"^{command} |[|(] ?{command} ", body, re.MULTILINE) and shutil.which(command) is None:
            pytest.skip(f"{page.name} cannot be played: there is no {command} on this machine")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
    environ[MUNIMENT] = muniment_line
    if "OpenAI()" in body:
        pytest.importorskip("openai", reason=f"{page.name} cannot be played: the package openai is not installed")
        server = request.getfixturevalue("model")
        server.answers += [Chat().says(said) for said in RECORDED[page.name]]
        environ |= {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "none"}
    if MODEL in body:
        server = request.getfixturevalue("reader")
        environ |= {MODEL: f"{server.url}/v1"}
    if REPLICA in body:
        primary, replica = request.getfixturevalue("pair")
        with own_database(primary.dsn) as url:
            play(page, place, tmp_path, environ | {"PRIMARY_URL": url, REPLICA: replica.address})
        return
    if DATABASE not in body:
        play(page, place, tmp_path, environ)
        return
    with own_database(request.getfixturevalue("postgres_dsn")) as url:
        play(
            page,
            place,
            tmp_path,
            environ | {DATABASE: url, **{f"{role.upper()}_URL": url_as(url, f"agents_{role}") for role in ROLES}},
        )


@pytest.mark.parametrize("name", APART)
def test_a_page_that_is_not_played_here_is_played_by_its_own_tests(name: str) -> None:
    tests = (ROOT / "tests" / "integrations" / f"test_{name}.py").read_text("utf-8")
    assert f'play_page("{name}.md")' in tests
    assert f'"{name}"' in (ROOT / "tools" / "test.py").read_text("utf-8")


@pytest.fixture
def model() -> Iterator[Server]:
    """A model of which the answers to the pages were recorded."""
    with serving() as server:
        yield server


@pytest.fixture
def reader() -> Iterator[Server]:
    """A model that reads the turns of a page; of what comes later it says that it states nothing."""
    with serving() as server:
        answers = [READ, []]
        server.answers += [Chat().says(json.dumps({"facts": facts})) for facts in answers]
        yield server


def test_the_first_program_runs_whatever_the_model_cites(tmp_path: Path, model: Server) -> None:
    """As a newcomer pastes it: the first page's Python until its first command."""
    pytest.importorskip("openai")
    blocks = blocks_of((ROOT / "README.md").read_text("utf-8"))[:2]
    assert [block.language for block in blocks] == ["python", "python"]
    answers = ["Try a nut-free place in Berlin.", "Try Thai [7].", "Berlin [1], or so [1][9]."]
    for answer in answers:
        model.answers += [Chat().says(said) for said in ("Congratulations!", answer)]
    program = "\n".join(block.body for block in blocks)
    each_in_its_folder = (
        "import os, sys\n"
        "for place in sys.argv[1:]:\n"
        "    os.mkdir(place), os.chdir(place)\n"
        f"    exec({program!r}, {{'__name__': '__main__'}})\n"
        "    os.chdir('..')\n"
    )
    environ = {**os.environ, "OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": "none"}
    command = [sys.executable, "-c", each_in_its_folder, "none", "wrong", "right"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    said = "I moved to Berlin in May. I am allergic to nuts."
    ends = [f"{answer}\n{said}\n" if "[1]" in answer else f"{answer}\n" for answer in answers]
    assert re.fullmatch(".*".join(["", *map(re.escape, ends)]), done.stdout, re.DOTALL), done.stdout


def play(page: Path, place: str | None, folder: Path, environ: dict[str, str]) -> None:
    done = captured(place, PLAYER, str(page), cwd=folder, env=environ, strict=True)
    assert done.returncode == 0, done.stderr


@for_each(
    ("shown", "printed", "is_true"),
    [
        ("one\ntwo", "one\ntwo\n", True),
        ("one", "one\ntwo\n", False),
        ("one\n…", "one\ntwo\nthree\n", True),
        ("evt_…: said", "evt_01: said\n", True),
        ("evt_…: said", "evt_01: denied\n", False),
        ("a.c", "abc\n", False),
        ("", "anything\n", False),
    ],
)
def test_what_is_shown_is_what_is_printed(shown: str, printed: str, is_true: bool) -> None:
    assert is_shown(shown, printed) is is_true


@for_each("page", PAGES, ids=lambda page: page.name)
def test_commands_in_pages_exist(page: Path) -> None:
    shell = "\n".join(block.body for block in blocks_of(page.read_text("utf-8")) if block.language == "sh")
    named = re.findall(r"^muniment ([a-z][\w-]*)", shell, re.MULTILINE)
    named += re.findall(r"^    muniment ([\w-]+)", page.read_text("utf-8"), re.MULTILINE)
    assert set(named) <= set(TREE)


@for_each("page", PAGES, ids=lambda page: page.name)
def test_make_targets_in_pages_exist(page: Path) -> None:
    rules = re.findall(r"^([a-z][\w -]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    targets = " ".join(rules).split()
    named = re.findall(r"(?:`|^ {4})make ([a-z][\w-]*)", page.read_text("utf-8"), re.MULTILINE)
    assert set(named) <= set(targets)


@for_each("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


@for_each("page", [*GUIDES, ROOT / "docs" / "guarantees.md"], ids=lambda page: page.name)
def test_tests_that_a_page_names_exist(page: Path) -> None:
    """A statement that names its proof has one."""
    for path, name in re.findall(r"`(tests/[\w/]+(?:\.py)?)(?:::(\w+))?`", page.read_text("utf-8")):
        assert (ROOT / path).exists(), path
        assert not name or f"def {name}(" in (ROOT / path).read_text("utf-8"), f"{path}::{name}"


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs" / "start.md").read_text("utf-8")
    for name in NAMES:
        assert f"MUNIMENT_{name.upper()}" in text


def test_figures_are_the_measured_ones() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "figures.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_every_promise_names_what_holds_it() -> None:
    rows = re.findall(r"^\| \*\*.*\|$", (ROOT / "docs" / "guarantees.md").read_text("utf-8"), re.MULTILINE)
    assert len(rows) >= 13
    assert [row for row in rows if "`tests/" not in row.split("|")[3]] == []


def test_every_cell_of_the_comparison_has_its_source() -> None:
    """Each memory of the README's table has a section, and each column a row there with a place to look it up."""
    table = re.search(r"^## Compared with others\n.*?(?=^## )", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    assert table is not None
    heads, _, *rows = [line.split("|")[1:-1] for line in table[0].splitlines() if line.startswith("|")]
    columns = [head.strip() for head in heads[1:]]
    page = (ROOT / "docs" / "compare.md").read_text("utf-8")
    sections = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    for row in rows:
        name = row[0].strip(" *").split(",")[0]
        (section,) = [text for title, text in sections.items() if title.startswith(name)]
        sourced = {cells[1].strip(): cells[3] for line in section.splitlines() if len(cells := line.split("|")) == 5}
        assert [column for column in columns if "](" not in sourced.get(column, "")] == [], name
