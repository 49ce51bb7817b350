"""Reads the field tables out of the Rulecraft document (001): for every kind, path → (type, marker).

`python tests/conformance/rulecraft_table.py` writes `rulecraft_v0_5_15.fields.json`, the committed copy.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from contract_cases import seed_text

COMMITTED = Path(__file__).parent / "rulecraft_v0_5_15.fields.json"
Table = dict[str, dict[str, list[str]]]

_LINE = re.compile(
    r'(?P<indent> *)(?P<dash>- )?(?:"?(?P<name>[\w<>]+)"?:(?: |$))?(?P<type>[^#]*?)\s*(?:#\s*(?P<note>.*))?$'
)


def read_table(document: str) -> Table:
    table: Table = {}
    for block in re.findall(r"```yaml\n(.*?)```", document, re.DOTALL):
        _read_block(block, table)
    return table


def _read_block(block: str, table: Table) -> None:
    stack: list[tuple[int, str]] = []
    kind = ""
    for line in block.splitlines():
        match = _LINE.match(line)
        if not line.strip() or line.strip().startswith("#") or match is None:
            continue
        depth, name, dash = len(match["indent"]), match["name"], match["dash"]
        if depth == 0:
            kind, stack = name, []
            table[kind] = {}
            continue
        while stack and stack[-1][0] >= depth:
            stack.pop()
        if dash:  # an item of an array: its own level, then perhaps its first field
            parent = (stack[-1][1] if stack else "") + "[]"
            stack.append((depth, parent))
            depth += 2
            if name is None:
                table[kind][parent] = [match["type"].strip(), ""]
                continue
        path = f"{stack[-1][1]}.{name}" if stack else name
        marker = re.match(r"(MUST|SHOULD|MAY)\b", match["note"] or "")
        table[kind][path] = [match["type"].strip(), marker[1] if marker else ""]
        stack.append((depth, path))


if __name__ == "__main__":
    text = seed_text("001")
    assert text is not None
    COMMITTED.write_text(json.dumps(read_table(text), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
