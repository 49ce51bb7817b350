"""Write docs/reference as the code has it: API, commands, constraints, settings, HTTP, logs, MCP, metrics, schemas,
errors and the format of a store.

`--check` writes nothing, and fails where a page is not what the code says.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from reference import api, cli, constraints, errors, format, http, logs, mcp, metrics, schemas, settings

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
PAGES: Mapping[str, Callable[[], str]] = {
    "api.md": api.page,
    "cli.md": cli.page,
    "constraints.md": constraints.page,
    "errors.md": errors.page,
    "format.md": format.page,
    "http.md": http.page,
    "logs.md": logs.page,
    "mcp.md": mcp.page,
    "metrics.md": metrics.page,
    "schemas.md": schemas.page,
    "settings.md": settings.page,
}


def main(arguments: list[str]) -> int:
    is_check, stale = "--check" in arguments, []
    for name, page in PAGES.items():
        file, text = FOLDER / name, page()
        if file.is_file() and file.read_text("utf-8") == text:
            continue
        stale.append(name)
        if not is_check:
            file.write_text(text, "utf-8")
    if stale:
        print(f"docs/reference: {'not what the code says' if is_check else 'written'}: {', '.join(stale)}")
    return 1 if stale and is_check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
