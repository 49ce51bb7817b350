"""Write THIRD_PARTY_LICENSES: what others wrote and the wheel carries, each with its licence in full.

Two kinds of it: what Vite bundled into the inspector (it lists that itself, in dist/licenses.json), and data made from
others' data, whose licence lies beside it. Packages that are installed beside muniment are not in the wheel and bring
their own. `--check` writes nothing, and fails where the file is stale or a licence is none that we know to be free.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

__all__ = ["FREE", "PAGE", "Part", "bundled", "derived", "page"]

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "THIRD_PARTY_LICENSES"
BUNDLED = ROOT / "src" / "muniment" / "surfaces" / "inspector" / "dist" / "licenses.json"
WORDNET = ROOT / "src" / "muniment" / "verify" / "facts" / "data" / "WORDNET_LICENSE"
FREE = frozenset({"MIT", "ISC", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "LicenseRef-WordNet"})
"""Licences that let anybody ship it under Apache-2.0, where their text goes along."""
_RULE = "-" * 100


class Part(NamedTuple):
    name: str
    version: str
    license: str
    text: str
    place: str
    """Where in the wheel it is."""


def bundled(listed: Path = BUNDLED) -> list[Part]:
    """What Vite put into the page."""
    found = json.loads(listed.read_text("utf-8"))
    return [
        Part(each["name"], each["version"], each["identifier"], each["text"], "the inspector")
        for each in sorted(found, key=lambda each: each["name"])
    ]


def derived() -> list[Part]:
    """Data made from others' data: NOTICE says which files, and by which script."""
    apache = (ROOT / "LICENSE").read_text("utf-8")
    return [
        Part("language-detection", "profiles", "Apache-2.0", apache, "verify/data/languages.bin"),
        Part(
            "WordNet",
            "3.0",
            "LicenseRef-WordNet",
            WORDNET.read_text("utf-8"),
            "verify/facts/data/relations.bin",
        ),
        Part(
            "o200k vocabulary",
            "tiktoken",
            "MIT",
            (ROOT / "tools" / "tiktoken_license.txt").read_text("utf-8"),
            "core/text/data/token_filter.bin",
        ),
    ]


def page(parts: list[Part]) -> str:
    listed = "".join(f"  {each.name} {each.version}  {each.license}  ({each.place})\n" for each in parts)
    texts = "".join(f"\n{_RULE}\n{each.name} {each.version}\n{_RULE}\n\n{each.text.strip()}\n" for each in parts)
    return f"What others wrote and muniment's wheel carries. tools/make_licenses.py wrote this.\n\n{listed}{texts}"


def main() -> None:
    if not BUNDLED.is_file():
        sys.exit("the inspector is not built, so what is bundled into it is not known: make inspector")
    parts = [*bundled(), *derived()]
    unknown = [
        f"{each.name} is under {each.license}, which nobody looked at" for each in parts if each.license not in FREE
    ]
    if unknown:
        sys.exit("\n".join(unknown))
    written = page(parts)
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(written, "utf-8")
    elif not PAGE.is_file() or PAGE.read_text("utf-8") != written:
        sys.exit("THIRD_PARTY_LICENSES is stale: python tools/make_licenses.py")


if __name__ == "__main__":
    main()
