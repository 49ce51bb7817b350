"""The words of the guides: links from where a guide first uses one to its entry in docs/glossary.md.

    python tools/glossary.py             name what pages use without a link; exit code 1 where there is any
    python tools/glossary.py --write     link the first use of each such word

Only a word that means one thing in plain sentences is linked (`LINKED`); others are defined there too. Code, headings,
tables, links, comments and what tools write into a page are left as they are.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

__all__ = ["GLOSSARY", "LINKED", "entries", "linked", "pages", "unlinked"]

ROOT = Path(__file__).parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"
LINKED = (
    "arm", "bank", "baseline recipe", "canary", "corpus", "cue", "dead zone", "fold", "gate", "grader",
    "harness", "holdout", "insight", "ladder", "lesson", "packet", "pointer", "receipt", "rulebook", "runner",
    "sequential bound", "snapshot", "study", "tactic", "tenant", "tombstone", "verifier",
)  # fmt: skip
"""The words that guides link. Not among them is a word that is also a plain one (build, mark, seed, turn), or one that
others use for something of theirs (guardrail in frameworks, bucket in object stores)."""
_ROW = re.compile(r'^\| <a id="([^"]+)"></a>([^|]+?) \| ([^|]+?) \|', re.MULTILINE)
_KEPT = re.compile(
    r"^```.*?^```$|^<!-- figures:.*?^<!-- /figures:[^\n]*$|<!--.*?-->|^ {4}[^\n]*$|^#[^\n]*$|^\|[^\n]*$"
    r"|`[^`\n]+`|!?\[[^\]]*\]\([^)]*\)|<[^>\n]+>",
    re.MULTILINE | re.DOTALL,
)
"""What is no plain sentence of a page."""


def entries() -> Mapping[str, str]:
    """What each word of the guides means."""
    return {word: meaning for _, word, meaning in _ROW.findall(GLOSSARY.read_text("utf-8"))}


def pages() -> list[Path]:
    docs = ROOT / "docs"
    return [docs / "start.md", *sorted((docs / "tutorials").glob("*.md")), *sorted((docs / "guides").rglob("*.md"))]


def unlinked(page: Path, text: str) -> list[str]:
    """The words that a page uses in its sentences without a link to their entries."""
    return [word for word in LINKED if _anchor(page, word) not in text and _first(text, word) is not None]


def linked(page: Path, text: str) -> str:
    """The page with the first use of each word linked."""
    for word in unlinked(page, text):
        found = _first(text, word)
        assert found is not None
        text = f"{text[: found[0]]}[{text[slice(*found)]}]({_anchor(page, word)}){text[found[1] :]}"
    return text


def _anchor(page: Path, word: str) -> str:
    return f"{Path(os.path.relpath(GLOSSARY, page.parent)).as_posix()}#{word.replace(' ', '-')}"


def _first(text: str, word: str) -> tuple[int, int] | None:
    """Where a page first uses a word in a sentence, also in the plural."""
    many = f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
    looked = re.compile(rf"(?<![\w/*-])(?:{word}|{many}|{word.capitalize()}|{many.capitalize()})(?![\w/-]|\.md)")
    for begin, end in _sentences(text):
        found = looked.search(text, begin, end)
        if found:
            return found.span()
    return None


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """The stretches of a page that are plain sentences."""
    begin = 0
    for kept in _KEPT.finditer(text):
        yield begin, kept.start()
        begin = kept.end()
    yield begin, len(text)


def main(arguments: list[str]) -> int:
    missing = 0
    for page in pages():
        text = page.read_text("utf-8")
        words = unlinked(page, text)
        if words and "--write" in arguments:
            page.write_text(linked(page, text), "utf-8")
        elif words:
            missing += 1
            print(f"{page.relative_to(ROOT)}: {', '.join(words)}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
