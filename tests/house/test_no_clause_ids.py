"""What a user reads says what it means: clause ids and sections of the contracts stand in the source alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click

from muniment.surfaces.cli.main import cli
from products import for_each

ROOT = Path(__file__).parents[2]
CLAUSE = re.compile(r"\b(?:X|LG|MP|RC|CS|RP|MV|BL|UK|TM)-\d\d\b")
SECTION = re.compile(r"§ ?\d|\b00[0-3],? §|\(00[0-3]\b|\bSSOT\b")

FOR_CONTRIBUTORS = (ROOT / "docs" / "decisions", ROOT / "docs" / "architecture.md", ROOT / "docs" / "requirements.md")
PAGES = [
    page
    for page in (ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "llms.txt", *sorted((ROOT / "docs").rglob("*")))
    if page.suffix in (".md", ".svg", ".txt", ".json") and not {page, *page.parents} & set(FOR_CONTRIBUTORS)
]
SCHEMAS = sorted((ROOT / "schemas").glob("*.json"))
INSPECTOR = sorted(path for path in (ROOT / "inspector" / "src").rglob("*.ts*") if path.name != "openapi.d.ts")
SOURCES = sorted((ROOT / "src").rglob("*.py"))


def ids_in(text: str) -> list[str]:
    return [*CLAUSE.findall(text), *SECTION.findall(text)]


@for_each("path", [*PAGES, *SCHEMAS, *INSPECTOR], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_page_cites_a_clause(path: Path) -> None:
    found = [
        f"line {number}: {', '.join(ids)}"
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if (ids := ids_in(line))
    ]
    assert not found, f"{found}; say it in words (a comment of the source may keep the id), then `make generate`"


def commands(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None, name
            yield from commands(inner, click.Context(inner, info_name=name, parent=context))


def test_no_help_cites_a_clause() -> None:
    found = list(commands(cli, click.Context(cli, info_name="muniment")))
    assert len(found) > 50
    for context in found:
        assert not ids_in(context.get_help()), context.command_path


def said(tree: ast.AST) -> Iterator[ast.Constant]:
    """The texts of a module that run: all but its docstrings and the words below a field."""
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield node


def test_no_message_cites_a_clause() -> None:
    """An issue's `code` may be one: it is what a program compares, and the message beside it says what is meant."""
    cited = [path for path in SOURCES if ids_in(path.read_text("utf-8"))]
    assert cited, "docstrings cite clauses: else nothing was looked at"
    for path in cited:
        for node in said(ast.parse(path.read_text("utf-8"))):
            if not CLAUSE.fullmatch(node.value):
                assert not ids_in(node.value), f"{path.relative_to(ROOT)}:{node.lineno}: {node.value:.80}"


@for_each(
    ("text", "is_cited"),
    [
        ("the seven sections (MP-01)", True),
        ("RC-10 … RC-13", True),
        ("a step (002)", True),
        ("as 001 §4.6 says", True),
        ("SHA-25, X-100, RFC 8785", False),
        ("a code of 3 digits: 002", False),
    ],
)
def test_what_counts_as_citing(text: str, is_cited: bool) -> None:
    assert bool(ids_in(text)) is is_cited
