"""Write docs/reference/openapi.json: the HTTP surface as its rows and records describe it."""

from __future__ import annotations

import sys
from pathlib import Path

from muniment.surfaces.operations.openapi import openapi_text

FILE = Path(__file__).parent.parent / "docs" / "reference" / "openapi.json"

if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if FILE.read_text("utf-8") == openapi_text() else "openapi.json is out of date: make openapi")
    FILE.write_text(openapi_text(), "utf-8")
