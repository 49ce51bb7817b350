"""Every test that the attack list rests on is there, and every attack on it rests on one."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from products import for_each

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")
LIST = PAGE.partition("## The attack list\n")[2].partition("\n## ")[0]
NAMED = re.findall(r"^  - `([^`]+)::([^`]+)`$", LIST, re.MULTILINE)

ASKED = (
    "Guessing a key", "Oversized bodies", "Slow clients", "Header tricks", "Path traversal", "XSS", "CSRF", "SSRF",
    "SQL and full-text syntax", "Cross-tenant", "A fuzzed session", "OpenAPI", "Forged dumps", "Prompt injection",
    "Escapes", "Secrets at the door", "Replays", "Scope smuggling",
)  # fmt: skip
"""What the list must hold, whatever else it holds."""


@cache
def functions_of(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@for_each(("path", "name"), NAMED, ids=lambda each: each.rpartition("/")[2])
def test_each_test_that_is_named_is_there(path: str, name: str) -> None:
    assert (ROOT / path).is_file(), f"no {path}"
    assert name.startswith("test_")
    assert name in functions_of(path), f"{path} has no {name}"


def test_each_attack_rests_on_a_test() -> None:
    attacks = re.split(r"^- ", LIST, flags=re.MULTILINE)[1:]
    assert len(attacks) >= len(ASKED)
    for attack in attacks:
        assert re.search(r"^  - `tests/", attack, re.MULTILINE), attack
    for asked in ASKED:
        assert any(asked in attack.partition("\n")[0] for attack in attacks), f"nothing on: {asked}"


def test_every_line_below_an_attack_is_a_test() -> None:
    assert len(re.findall(r"^  - ", LIST, re.MULTILINE)) == len(NAMED)
