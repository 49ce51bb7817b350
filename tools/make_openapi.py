"""Write docs/reference/openapi.json, the HTTP surface as its rows and records describe it, and openapi-core.json."""

from __future__ import annotations

import sys
from pathlib import Path

from muniment.surfaces.operations.openapi import core_text, openapi_text

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
FILES = {FOLDER / "openapi.json": openapi_text, FOLDER / "openapi-core.json": core_text}

if __name__ == "__main__":
    if "--check" in sys.argv:
        stale = [file.name for file, text in FILES.items() if file.read_text("utf-8") != text()]
        sys.exit(f"{' and '.join(stale)} out of date: make generate" if stale else 0)
    for file, text in FILES.items():
        file.write_text(text(), "utf-8")
