"""The rooms of the house in figures: modules, lines, who imports whom.

    python tools/rooms.py             a table
    python tools/rooms.py --json      the same as one document

Lines are those of code: neither blank nor comment nor docstring. Fan-out is how many other rooms a room imports from,
fan-in how many import from it.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import tokenize
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "muniment"


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Every module of the package, by its dotted name without the package's own."""
    return {".".join(path.relative_to(root).with_suffix("").parts): path for path in sorted(root.rglob("*.py"))}


def room_of(name: str) -> str:
    """The room that a module stands in; what stands in none is the public face."""
    return name.partition(".")[0] if "." in name else "(face)"


def imports_of(text: str) -> set[str]:
    """The modules of the package that a text names in its imports, wherever they stand."""
    named: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("muniment."):
            named |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
        elif isinstance(node, ast.Import):
            named |= {each.name for each in node.names if each.name.startswith("muniment.")}
    return {name.removeprefix("muniment.") for name in named}


def code_lines(text: str) -> int:
    """Lines that hold code: neither blank nor comment nor docstring."""
    told: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            told |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    idle = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in idle:
            code |= set(range(token.start[0], token.end[0] + 1))
    return len(code - told)


def rooms(root: Path = ROOT) -> dict[str, dict[str, int]]:
    """Figures by room."""
    found: dict[str, dict[str, int]] = {}
    edges: set[tuple[str, str]] = set()
    known = modules(root)
    for name, path in known.items():
        text = path.read_text("utf-8")
        room = found.setdefault(room_of(name), {"modules": 0, "lines": 0})
        room["modules"] += 1
        room["lines"] += code_lines(text)
        targets = {each for each in imports_of(text) if each in known or f"{each}.__init__" in known}
        edges |= {(room_of(name), room_of(each)) for each in targets}
    for name, room in found.items():
        room["fan_in"] = sum(1 for source, target in edges if target == name != source)
        room["fan_out"] = sum(1 for source, target in edges if source == name != target)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--root", type=Path, default=ROOT, help="the package's folder")
    options = parser.parse_args()
    found = rooms(options.root)
    if options.json:
        print(json.dumps(found, indent=2))
        return
    print(f"{'room':14} {'modules':>7} {'lines':>7} {'fan-in':>7} {'fan-out':>7}")
    for name, room in found.items():
        print(f"{name:14} {room['modules']:7} {room['lines']:7} {room['fan_in']:7} {room['fan_out']:7}")
    print(f"{'':14} {sum(r['modules'] for r in found.values()):7} {sum(r['lines'] for r in found.values()):7}")


if __name__ == "__main__":
    main()
