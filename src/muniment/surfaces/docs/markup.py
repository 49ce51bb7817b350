"""Words of the document as HTML: everything is escaped, and only code, emphasis, paragraphs and lists are made."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape
from typing import Any

__all__ = ["code_block", "inline", "json_block", "prose", "table"]

_CODE = re.compile(r"`([^`]*)`")
_STRONG = re.compile(r"\*\*([^*]*)\*\*")


def inline(words: str) -> str:
    """A line of words."""
    return _STRONG.sub(r"<strong>\1</strong>", _CODE.sub(r"<code>\1</code>", escape(words)))


def prose(words: str) -> str:
    """Paragraphs, and lists of lines that begin with a dash."""
    made = []
    for part in words.split("\n\n"):
        lines = part.strip().splitlines()
        if lines and lines[0].startswith("- "):
            items = re.split(r"^- ", part.strip(), flags=re.MULTILINE)[1:]
            made.append("<ul>" + "".join(f"<li>{inline(' '.join(item.split()))}</li>" for item in items) + "</ul>")
        elif lines:
            made.append(f"<p>{inline(' '.join(part.split()))}</p>")
    return "".join(made)


def code_block(text: str, label: str) -> str:
    """Text as it is typed; it scrolls of itself, so it can be reached by the keyboard."""
    return f'<pre tabindex="0" role="region" aria-label="{escape(label)}"><code>{escape(text)}</code></pre>'


def json_block(value: Any, label: str) -> str:
    return code_block(json.dumps(value, ensure_ascii=False, indent=2), label)


def table(caption: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table whose cells are HTML already; the first of a row names it."""
    columns = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    lines = []
    for first, *others in rows:
        cells = "".join(f"<td>{cell}</td>" for cell in others)
        lines.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{columns}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )
