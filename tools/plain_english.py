"""How long the sentences of the documentation are, page by page, and which are too long.

    python tools/plain_english.py                 a table of all pages that people read from top to bottom
    python tools/plain_english.py PAGE …          the same of some, with their longest sentences

Only plain sentences count: no code, tables, headings, or figures that a tool writes. A name in code is one word, and a
list of such names is one too, so that a list of settings is no long sentence. It judges length and nothing else.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

__all__ = ["LONG", "opening", "pages", "sentences", "words"]

ROOT = Path(__file__).parent.parent
LONG = 25
"""A sentence of more words is long."""
_APART = re.compile(r"^```.*?^```$|^<!-- figures:.*?^<!-- /figures:[^\n]*$|<!--.*?-->", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ")
_NAMES = re.compile(r"Code(?:(?:, (?:and |or )?| and | or | / )Code)+")
_END = re.compile(r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)[\"”')]*\s+")
_WORD = re.compile(r"\w[\w'’/.-]*")


def pages() -> list[Path]:
    """The pages that people read: no reference, no decisions, no list of clauses or attacks."""
    docs = ROOT / "docs"
    named = (
        "index",
        "start",
        "installing",
        "concepts",
        "architecture",
        "cookbook",
        "troubleshooting",
        "recall",
        "peers",
    )
    return [
        *(docs / f"{name}.md" for name in named),
        *sorted((docs / "tutorials").glob("*.md")),
        *sorted((docs / "guides").rglob("*.md")),
    ]


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs and items of lists, each on one line."""
    kept: list[str] = []
    for line in [*_APART.sub("", text).splitlines(), ""]:
        is_item = _ITEM.match(line) is not None
        is_apart = not line.strip() or line.startswith(("#", "|", "<", "![")) or (line.startswith("    ") and not kept)
        if kept and (is_apart or is_item):
            yield " ".join(kept)
            kept = []
        if not is_apart:
            kept.append(_ITEM.sub("", line).strip())


def opening(text: str) -> str:
    """What stands straight below the title of a page; nothing where that is no paragraph."""
    after = text.split("\n", 1)[1].lstrip("\n").split("\n\n", 1)[0]
    return "" if after.startswith(("#", "|", "<", "!", "    ", "```", "- ")) else " ".join(after.split())


def sentences(text: str) -> list[str]:
    """The sentences of a page, with names in code as one word."""
    return [each for paragraph in paragraphs(text) for each in _END.split(_plain(paragraph)) if _WORD.search(each)]


def words(sentence: str) -> int:
    return len(_WORD.findall(sentence))


def _plain(paragraph: str) -> str:
    text = re.sub(r"`[^`]*`", "Code", paragraph)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\*\*?([^*]+)\*\*?", r"\1", text)
    return _NAMES.sub("Code", text)


def main(arguments: list[str]) -> int:
    asked = [Path(each).resolve() for each in arguments]
    every: list[int] = []
    print(f"{'page':44} {'sentences':>9} {'median':>6} {'95 %':>5} {'longest':>7} {'over ' + str(LONG):>7}")
    for page in asked or pages():
        told = sentences(page.read_text("utf-8"))
        _row(str(page.relative_to(ROOT)), [words(each) for each in told])
        every += [words(each) for each in told]
        for each in sorted(told, key=words, reverse=True)[:5] if asked else ():
            print(f"    {words(each)}: {each}")
    _row("all", every)
    return 0


def _row(name: str, lengths: list[int]) -> None:
    ordered = sorted(lengths)
    late = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    long = sum(each > LONG for each in ordered)
    print(f"{name:44} {len(ordered):9} {median(ordered):6.0f} {late:5} {ordered[-1]:7} {long:7}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
