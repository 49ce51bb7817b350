"""No command prints a password that the address of a store carries: in what people read, in JSON, in questions."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import muniment.surfaces.cli as cli
from muniment.surfaces.cli._command import Call
from muniment.surfaces.settings import load_settings, shown_db

SECRET = "s3cret"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("postgresql://ana:s3cret@db:5432/mem", "postgresql://ana@db:5432/mem"),
        ("postgresql://ana:s3cret@a,b/mem?schema=x", "postgresql://ana@a,b/mem?schema=x"),
        ("postgresql://ana:@s3cret@db/mem", "postgresql://ana@db/mem"),
        ("postgresql://ana:s3cret/s3cret?s3cret#s3cret@db/mem", "postgresql://ana@db/mem"),
        ("postgresql://:s3cret@db/mem", "postgresql://@db/mem"),
        ("postgresql://db/mem?user=ana&password=s3cret&schema=x", "postgresql://db/mem?user=ana&password=…&schema=x"),
        ("postgresql://db/mem?sslpassword=s3cret", "postgresql://db/mem?sslpassword=…"),
        ("postgresql://db/mem?PASSWORD=s3cret", "postgresql://db/mem?PASSWORD=…"),
        (
            "postgresql://ana@db/mem?replica=ana:s3cret@r:5&schema=x",
            "postgresql://ana@db/mem?replica=ana%40r%3A5&schema=x",
        ),
        (
            "postgresql://ana:s3cret@db/mem?replica=postgresql%3A%2F%2Fana%3As3cret%40r%3A5%2Fmem",
            "postgresql://ana@db/mem?replica=postgresql%3A%2F%2Fana%40r%3A5%2Fmem",
        ),
        (
            "postgresql://db/mem?replica=postgresql%3A%2F%2Fr%2Fmem%3Fuser%3Dana%26password%3Ds3cret&schema=x",
            "postgresql://db/mem?replica=postgresql%3A%2F%2Fr%2Fmem%3Fuser%3Dana%26password%3D…&schema=x",
        ),
        (
            "postgresql://db/mem?r%65plica=postgresql://r/mem%3Fpass%2577ord=s3cret",
            "postgresql://db/mem?r%65plica=postgresql%3A%2F%2Fr%2Fmem%3Fpass%2577ord%3D…",
        ),
        ("postgresql://db/mem?replica=r:5432,q:5433", "postgresql://db/mem?replica=r:5432,q:5433"),
        ("postgresql://db/mem?pass%77ord=s3cret&schema=x", "postgresql://db/mem?pass%77ord=…&schema=x"),
        ("postgresql://db/mem?%50ASSWORD=s3cret", "postgresql://db/mem?%50ASSWORD=…"),
        ("postgresql://db/mem?password=se#s3cret", "postgresql://db/mem?password=…"),
        ("postgresql://db/mem?password=se@s3cret&user=ana", "postgresql://db/mem?password=…&user=ana"),
        ("postgresql://db:5432/mem", "postgresql://db:5432/mem"),
        ("agent.db", "agent.db"),
        ("at@home.db", "at@home.db"),
        (":memory:", ":memory:"),
    ],
)
def test_an_address_is_shown_without_its_password(given: str, shown: str) -> None:
    assert shown_db(given) == shown
    assert SECRET not in shown
    assert load_settings({"db": given}, {}).shown_db == shown


def test_a_command_that_is_spelled_out_has_none() -> None:
    call = Call({"db": f"postgresql://ana:{SECRET}@db/mem", "tenant_id": "acme"})
    assert (
        call.spell_command("learn", "undo", "x") == "muniment learn undo x --db postgresql://ana@db/mem --tenant acme"
    )


def test_no_command_puts_the_address_itself_into_a_text() -> None:
    """Every `settings.db` of the command line goes to what opens a store or compares it, none into what is printed."""
    printed = []
    for path in sorted(Path(cli.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Dict | ast.JoinedStr):
                continue
            for part in node.values:
                value = part.value if isinstance(part, ast.FormattedValue) else part
                if isinstance(value, ast.Attribute) and value.attr == "db" and "settings" in ast.unparse(value.value):
                    printed.append(f"{path.name}:{node.lineno}")
    assert printed == []
