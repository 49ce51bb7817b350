"""Parse a document source into its text, title and chunks, each chunk a verbatim slice of the text.

    chunk_text(source)       paragraphs
    chunk_markdown(source)   headings, fenced code, paragraphs; the text is the source
    chunk_html(source)       the same, over the visible text of the page

The same source under the same policy gives the same chunks. Spans are half-open offsets in UTF-8 bytes of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from html import unescape
from typing import Annotated, Any, Literal, NamedTuple

from muniment.core.policy import CorpusPolicy
from muniment.core.requests import Expect, Request, checked, one_of
from muniment.core.text.sentences import sentence_spans
from muniment.errors import InvalidInput, TooLarge

__all__ = [
    "HEADING_CHARS_MAX",
    "MEDIA_TYPES",
    "VOID",
    "Block",
    "Document",
    "Packed",
    "Page",
    "Passage",
    "Tag",
    "chunk_html",
    "chunk_markdown",
    "chunk_text",
    "front_title",
    "markdown_blocks",
    "media_type_of",
    "pack",
    "plain_blocks",
    "read_document",
    "read_markup",
    "read_page",
]

MEDIA_TYPES = ("text/plain", "text/markdown", "text/html")
_BY_SUFFIX = {
    "htm": "text/html",
    "html": "text/html",
    "markdown": "text/markdown",
    "md": "text/markdown",
    "mdown": "text/markdown",
    "mkd": "text/markdown",
    "xhtml": "text/html",
}
_NUL_HINT = "convert the file to text first"
_POLICY = CorpusPolicy.model_construct()


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk of a document."""

    text: str
    start: int
    end: int
    headings: tuple[str, ...]
    """The enclosing headings, outermost first."""


@dataclass(frozen=True, slots=True)
class Document:
    title: str | None
    text: str
    chunks: tuple[Passage, ...]


def chunk_text(source: str, policy: CorpusPolicy = _POLICY) -> Document:
    return read_document(source, "text/plain", policy)


def chunk_markdown(source: str, policy: CorpusPolicy = _POLICY) -> Document:
    return read_document(source, "text/markdown", policy)


def chunk_html(source: str, policy: CorpusPolicy = _POLICY) -> Document:
    return read_document(source, "text/html", policy)


def media_type_of(*names: str) -> str:
    """Guess a document's media type from the first of its names with a known suffix."""
    suffixes = (name.partition("?")[0].partition("#")[0].rpartition(".")[2].lower() for name in names)
    return next((_BY_SUFFIX[suffix] for suffix in suffixes if suffix in _BY_SUFFIX), "text/plain")


def read_document(
    source: str, media_type: str, policy: CorpusPolicy = _POLICY, clean: Callable[[str], str] | None = None
) -> Document:
    """Parse and chunk a document. `clean` sees the whole text before it is cut, so that nothing hides behind a cut."""
    _check(source, media_type, policy)
    text, title = source.removeprefix("\ufeff"), None
    if media_type == "text/html":
        title, text = read_page(text)
    if clean is not None:
        text, title = clean(text), None if title is None else clean(title)
    if not text.strip():
        raise InvalidInput("the document holds no text", path="$.text")
    blocks = list(plain_blocks(text) if media_type == "text/plain" else markdown_blocks(text))
    if media_type == "text/markdown":
        title = front_title(text) or _first_heading(blocks)
    passages = tuple(_passages(text, pack(text, blocks, policy)))
    return Document(title[: policy.title_chars_max] if title else None, text, passages)


class SourceRequest(Request):
    """A document as submitted."""

    text: Annotated[
        str,
        Expect("a document is text, not {kind}", hint="decode bytes, or use add_file"),
        Expect("the text holds a NUL: it is not text", lambda text: "\x00" not in text, hint=_NUL_HINT),
    ]
    media_type: Annotated[str, one_of(MEDIA_TYPES, "{given!r:.60} is not a media type that is read here")]


def _check(source: Any, media_type: str, policy: CorpusPolicy) -> None:
    checked(SourceRequest, text=source, media_type=media_type)
    try:
        size = len(source.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"the text holds a lone surrogate at character {error.start}", path="$.text", hint="decode it as UTF-8"
        ) from None
    if size > policy.document_bytes_max:
        raise TooLarge(
            f"a document of {size} bytes is over the limit of {policy.document_bytes_max}",
            path="$.text",
            hint="split it, or raise corpus.document_bytes_max in the policy",
        )


def _first_heading(blocks: list[Block]) -> str | None:
    return next((block.title for block in blocks if block.kind == "heading" and block.level == 1), None)


def _passages(text: str, packed: list[Packed]) -> Iterator[Passage]:
    at = offset = 0
    for chunk in packed:
        offset += len(text[at : chunk.start].encode())
        said = text[chunk.start : chunk.end]
        size = len(said.encode())
        yield Passage(said, offset, offset + size, chunk.headings)
        at, offset = chunk.end, offset + size


# -- packing -------------------------------------------------------------------------------------------
#
# Pack blocks into chunks: filled up to a size, cut at headings, then paragraphs, then sentences, then words.


_CLUSTER_CHARS_MAX = 32
_JOINER = "\u200d"
_WORD_SHARE = 4
"""A sentence end in the first quarter of the available size is not used as a cut; a later word boundary is."""

Path = tuple[str, ...]


class Packed(NamedTuple):
    """A chunk: a span of characters and the headings that enclose all of it."""

    start: int
    end: int
    headings: Path


class _Piece(NamedTuple):
    start: int
    end: int
    is_heading: bool
    path: Path


def pack(text: str, blocks: Iterable[Block], policy: CorpusPolicy) -> list[Packed]:
    """Split a text into chunks, in order, with only white space between them."""
    packer = _Packer(text, policy)
    for block in blocks:
        packer.add(block)
    return packer.finish()


class _Packer:
    def __init__(self, text: str, policy: CorpusPolicy) -> None:
        self._text = text
        self._policy = policy
        self._outline: list[tuple[int, str]] = []
        """(level, title) of the enclosing headings."""
        self._held: list[_Piece] = []
        self._has_body = False
        self._done: list[Packed] = []

    def add(self, block: Block) -> None:
        policy = self._policy
        is_heading = block.kind == "heading"
        if is_heading:
            self._outline = [(level, title) for level, title in self._outline if level < block.level]
            self._outline.append((block.level, block.title))
            if self._has_body and self._held[-1].end - self._held[0].start >= policy.chunk_chars_min:
                self._close()
        path = tuple(title for _, title in self._outline if title)
        begins = self._held[0].start if self._held and not self._has_body else block.start
        fits = block.end - (block.start if block.kind == "fence" else begins) <= policy.chunk_chars_max
        spans = [(block.start, block.end)] if fits else _cut(self._text, block, policy.chunk_chars)
        for start, end in spans:
            self._place(_Piece(start, end, is_heading, path))

    def _place(self, piece: _Piece) -> None:
        while self._held:
            limit = self._policy.chunk_chars if self._has_body else self._policy.chunk_chars_max
            if piece.end - self._held[0].start <= limit:
                break
            self._close()
        self._held.append(piece)
        self._has_body = self._has_body or not piece.is_heading

    def _close(self) -> None:
        """End the chunk. Trailing headings move to the next chunk, with the text below them."""
        kept = len(self._held)
        while self._has_body and self._held[kept - 1].is_heading:
            kept -= 1
        pieces, self._held, self._has_body = self._held[:kept], self._held[kept:], False
        self._emit(pieces)

    def _emit(self, pieces: list[_Piece]) -> None:
        chunk = Packed(pieces[0].start, pieces[-1].end, _shared_path(pieces))
        last = self._done[-1] if self._done else None
        if (
            last is not None
            and not pieces[0].is_heading
            and chunk.headings == last.headings
            and chunk.end - chunk.start < self._policy.chunk_chars_min
            and chunk.end - last.start <= self._policy.chunk_chars_max
        ):
            self._done[-1] = last._replace(end=chunk.end)  # the rest of a section, too short for a chunk of its own
        else:
            self._done.append(chunk)

    def finish(self) -> list[Packed]:
        if self._held:
            self._emit(self._held)
        return self._done


def _shared_path(pieces: list[_Piece]) -> Path:
    """The headings shared by all the pieces; if all are headings, the path of the last."""
    paths = [piece.path for piece in pieces if not piece.is_heading] or [pieces[-1].path]
    first, last = min(paths), max(paths)
    size = 0
    while size < len(first) and size < len(last) and first[size] == last[size]:
        size += 1
    return first[:size]


# -- cutting long blocks ------------------------------------------------------------------------------


def _cut(text: str, block: Block, size: int) -> Iterator[tuple[int, int]]:
    """Split a block into pieces of at most `size`, each ending at a natural pause if there is one."""
    at = block.start
    while block.end - at > size:
        end = _line_end(text, at, size) if block.kind == "fence" else _sentence_end(text, at, size)
        end = end or _word_end(text, at, size) or _character_end(text, at, size)
        bare = text[at:end].rstrip()
        yield at, at + len(bare)
        at = end
        while text[at].isspace():
            at += 1
    yield at, block.end


def _line_end(text: str, at: int, size: int) -> int:
    return max(text.rfind("\n", at, at + size), text.rfind("\r", at, at + size)) + 1


def _sentence_end(text: str, at: int, size: int) -> int:
    spans = sentence_spans(text[at : at + size])
    end = spans[-2][1] if len(spans) > 1 else 0
    return at + end if end * _WORD_SHARE >= size else 0


def _word_end(text: str, at: int, size: int) -> int:
    for end in range(at + size, at + size // _WORD_SHARE, -1):
        if text[end].isspace():
            return end
    return 0


def _character_end(text: str, at: int, size: int) -> int:
    """The last cut position that does not split a grapheme."""
    end = at + size
    for back in range(min(_CLUSTER_CHARS_MAX, size - 1)):
        if not _continues(text, end - back):
            return end - back
    return end


def _continues(text: str, at: int) -> bool:
    char = text[at]
    return (
        unicodedata.category(char) in ("Mn", "Mc", "Me")
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or _JOINER in (char, text[at - 1])
    )


# -- blocks --------------------------------------------------------------------------------------------
#
# The blocks of a text: headings, fenced code and paragraphs, as spans of characters. Nothing is rewritten.


HEADING_CHARS_MAX = 200
"""Maximum characters of a heading kept in a path. Its whole text is in its chunk."""
_FRONT_CHARS_MAX = 16_000

_LINE = re.compile(r"[^\r\n]+")
_BREAKS = ("", "\n", "\r", "\r\n")
"""Separators allowed between two lines of one paragraph."""
_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(={2,}|-{2,})[ \t]*$")
_NO_HEADING = re.compile(r"\s*(?:[-*+>|]|\d{1,9}[.)])")
"""Lines that dashes below do not turn into a heading: items, quotes, rows."""
_FENCE = re.compile(r"[ \t]{0,16}(`{3,}+(?=[^`]*$)|~{3,}+)")
_FRONT = re.compile(r"---[ \t]*\r?\n(?:.*\n)*?---[ \t]*$", re.MULTILINE)
_FRONT_TITLE = re.compile(r"^title:[ \t]*([^\r\n]*)", re.MULTILINE)


class Block(NamedTuple):
    """A stretch of text best kept together, with no white space at either end."""

    start: int
    end: int
    kind: Literal["heading", "fence", "prose"] = "prose"
    level: int = 0
    title: str = ""


def plain_blocks(text: str) -> Iterator[Block]:
    """Paragraphs: runs of lines without a blank line."""
    start = end = 0
    for found in _LINE.finditer(text):
        if found[0].isspace():
            continue
        if end and not _adjoin(text, end, found.start()):
            yield _trimmed(text, start, end)
            start = found.start()
        elif not end:
            start = found.start()
        end = found.end()
    if end:
        yield _trimmed(text, start, end)


def _adjoin(text: str, end: int, start: int) -> bool:
    return start - end <= 2 and text[end:start] in _BREAKS


def markdown_blocks(text: str) -> Iterator[Block]:
    """Headings, fences and the paragraphs between them; front matter is a paragraph."""
    reader = _MarkdownReader(text)
    front = _front_matter(text)
    if front is not None:
        yield _trimmed(text, 0, front)
    for found in _LINE.finditer(text, front or 0):
        yield from reader.read(found.start(), found.end())
    yield from reader.finish()


def _front_matter(text: str) -> int | None:
    """The offset at which the front matter ends, or None if there is none."""
    found = _FRONT.match(text, 0, _FRONT_CHARS_MAX) if text.startswith("---") else None
    return None if found is None else found.end()


def front_title(text: str) -> str | None:
    """The title given in the front matter."""
    front = _front_matter(text)
    found = None if front is None else _FRONT_TITLE.search(text, 0, front)
    return None if found is None else found[1].strip().strip("\"'").strip() or None


class _MarkdownReader:
    """A line-by-line Markdown reader; at any time a paragraph, a fence or nothing is open."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._start = self._end = 0
        self._lines = 0
        """Lines of the open paragraph."""
        self._fence = ""
        """The marker that opened the current fence."""

    def read(self, start: int, end: int) -> Iterator[Block]:
        line = self._text[start:end]
        if self._fence:
            self._end = end
            bare = line.strip()
            if len(bare) >= len(self._fence) and not bare.strip(self._fence[0]):
                yield from self.finish()
            return
        if line.isspace() or (self._lines and not _adjoin(self._text, self._end, start)):
            yield from self.finish()
            if line.isspace():
                return
        yield from self._open(line, start, end)

    def _open(self, line: str, start: int, end: int) -> Iterator[Block]:
        fence, heading = _FENCE.match(line), _HEADING.match(line)
        if fence is not None:
            yield from self.finish()
            self._fence, self._start, self._end = fence[1], start, end
        elif heading is not None:
            yield from self.finish()
            yield self._heading(start, end, len(heading[1]), line[heading.end() :])
        elif self._lines == 1 and (underline := _UNDERLINE.match(line)) and self._may_be_heading():
            title = self._text[self._start : self._end]
            yield self._heading(self._start, end, 1 if underline[1][0] == "=" else 2, title)
            self._lines = 0
        else:
            self._start = self._start if self._lines else start
            self._end, self._lines = end, self._lines + 1

    def _may_be_heading(self) -> bool:
        return _NO_HEADING.match(self._text, self._start, self._end) is None

    def _heading(self, start: int, end: int, level: int, title: str) -> Block:
        bare = title.strip()
        open_ended = bare.rstrip("#")
        if not open_ended or open_ended[-1] in " \t":
            bare = open_ended.rstrip()
        place = _trimmed(self._text, start, end)
        return Block(place.start, place.end, "heading", level, bare[:HEADING_CHARS_MAX])

    def finish(self) -> Iterator[Block]:
        """Close the open block; an unclosed fence runs to the end."""
        if self._fence or self._lines:
            block = _trimmed(self._text, self._start, self._end)
            yield block._replace(kind="fence") if self._fence else block
        self._fence, self._lines = "", 0


def _trimmed(text: str, start: int, end: int) -> Block:
    """Trim white space from both ends of a non-blank span."""
    while text[start].isspace():
        start += 1
    while text[end - 1].isspace():
        end -= 1
    return Block(start, end)


# -- page ----------------------------------------------------------------------------------------------
#
# The visible content of an HTML page, as Markdown: title, headings, paragraphs, lists, rows and code, without
# navigation and other furniture.


_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(
    (
        "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "div", "dl", "dt",
        "fieldset", "figcaption", "figure", "form", "header", "html", "legend", "li", "main", "ol", "p", "section",
        "summary", "tbody", "tfoot", "thead", "ul",
    )
)  # fmt: skip
_SILENT = frozenset(
    (
        "audio", "canvas", "datalist", "iframe", "noembed", "noframes", "noscript", "object", "script", "select",
        "style", "svg", "template", "textarea", "video",
    )
)  # fmt: skip
"""Elements whose content no reader sees as text."""
_FURNITURE = frozenset(("button", "dialog", "footer", "menu", "nav"))
_FURNITURE_ROLES = frozenset(("contentinfo", "menu", "menubar", "navigation", "search", "toolbar"))
_DEPTH_MAX = 8
_BREAK = "\x00"
"""A line break within a paragraph; a NUL never occurs in a source."""
_MARKUP = re.compile(r"^(?=#{1,6}(?:\s|$)|`{3}|~{3}|-{2,}$|={2,}$)", re.MULTILINE)
"""Paragraph text that Markdown would interpret as markup."""
_TICKS = re.compile(r"`{3,}")


class Page(NamedTuple):
    title: str | None
    text: str
    """Markdown; empty if the page has no text."""


def read_page(source: str) -> Page:
    """Read a page without its furniture, or with it if there is nothing else."""
    page = _Reader(skips_furniture=True).read(source)
    return page if page.text else _Reader(skips_furniture=False).read(source)


class _Reader:
    """A page reader: tracks the open elements and collects their text."""

    def __init__(self, *, skips_furniture: bool) -> None:
        self._skips_furniture = skips_furniture
        self._open: list[str] = []
        self._counts: Counter[str] = Counter()
        """Open elements by name."""
        self._skipped_from: int | None = None
        """The number of open elements up to and including the one being skipped."""
        self._title: list[str] | None = None
        """The title's text while it is open."""
        self._page_title = ""
        self._writer = _Writer()

    def read(self, source: str) -> Page:
        for token in read_markup(source):
            if isinstance(token, str):
                self._hear(token)
                continue
            self._end_title()
            if token.is_end:
                self._end(token.name)
            else:
                self._start(token)
        self._end_title()
        self._close_down_to(0)
        title = self._page_title or self._writer.first_heading
        return Page(title or None, self._writer.finish())

    def _hear(self, text: str) -> None:
        if self._title is not None:
            self._title.append(text)
        elif self._skipped_from is None:
            self._writer.hear(text)

    def _end_title(self) -> None:
        if self._title is not None:
            self._page_title = self._page_title or _collapsed("".join(self._title))
            self._title = None

    def _start(self, tag: Tag) -> None:
        if tag.name in VOID:
            if self._skipped_from is None:
                self._writer.begin(tag.name)
            return
        self._open.append(tag.name)
        self._counts[tag.name] += 1
        if self._skipped_from is not None:
            return
        if tag.name == "title":
            self._title = []
        elif self._is_left_out(tag):
            self._skipped_from = len(self._open)
        else:
            self._writer.begin(tag.name)

    def _is_left_out(self, tag: Tag) -> bool:
        if tag.name in _SILENT:
            return True
        if not self._skips_furniture:
            return False
        if tag.name in _FURNITURE:
            return True
        if not tag.rest or tag.name in ("html", "body"):
            return False
        given = tag.attributes()
        return (
            given.get("hidden", "until-found") != "until-found"
            or given.get("aria-hidden", "").lower() == "true"
            or given.get("role", "").lower() in _FURNITURE_ROLES
        )

    def _end(self, name: str) -> None:
        """Close the element and everything still open inside it. A stray end tag separates its surroundings."""
        if self._counts[name]:
            size = len(self._open)
            while self._open[size - 1] != name:
                size -= 1
            self._close_down_to(size - 1)
        elif self._skipped_from is None and name in ("br", "p"):
            self._writer.begin(name)

    def _close_down_to(self, size: int) -> None:
        while len(self._open) > size:
            name = self._open.pop()
            self._counts[name] -= 1
            if self._skipped_from is None:
                self._writer.end(name)
            elif len(self._open) < self._skipped_from:
                self._skipped_from = None


class _Writer:
    """Builds Markdown blocks from start tags, end tags and text."""

    def __init__(self) -> None:
        self.first_heading = ""
        self._heard: list[str] = []
        self._pre: list[str] | None = None
        """The text of an open preformatted block."""
        self._lists: list[int] = []
        """The next number of each open list; 0 for unordered lists."""
        self._mark = ""
        """The prefix of the next paragraph, for example a list marker."""
        self._row: list[str] | None = None
        """The cells of an open row."""
        self._blocks: list[str] = []
        self._last = ""
        """The kind of the last block written."""

    def hear(self, text: str) -> None:
        (self._heard if self._pre is None else self._pre).append(text)

    def begin(self, name: str) -> None:
        if name == "br":
            self.hear(_BREAK if self._pre is None else "\n")
        elif self._pre is not None:
            return
        elif name in _HEADINGS or name in ("hr", "pre", "table", "tr"):
            self._end_row()
            self._flush()
            self._pre = [] if name == "pre" else None
            self._row = [] if name == "tr" else None
        elif name in ("td", "th"):
            self._begin_cell()
        elif name in _BLOCKS:
            self._flush()
            self._begin_list_or_item(name)

    def _begin_cell(self) -> None:
        """Begin a cell, closing an open one; outside a row, begin a row as well."""
        if self._row is None:
            self._flush()
            self._row = []
        elif text := self._said():
            self._row.append(text.replace("\n", " "))

    def _begin_list_or_item(self, name: str) -> None:
        if name in ("ol", "ul"):
            self._lists.append(1 if name == "ol" else 0)
        elif name == "li":
            number = self._lists[-1] if self._lists else 0
            if number:
                self._lists[-1] = number + 1
            depth = min(max(len(self._lists) - 1, 0), _DEPTH_MAX)
            self._mark = "  " * depth + (f"{number}. " if number else "- ")

    def end(self, name: str) -> None:
        if name == "pre":
            self._end_pre()
        elif self._pre is not None:
            return
        elif name in _HEADINGS:
            self._end_heading(_HEADINGS[name])
        elif name in ("td", "th") and self._row is not None:
            self._row.append(self._said().replace("\n", " "))
        elif name in ("tr", "table"):
            self._end_row()
        elif name in _BLOCKS or name in ("td", "th"):
            self._flush()
            if name in ("ol", "ul") and self._lists:
                self._lists.pop()
            elif name == "li":
                self._mark = ""

    def finish(self) -> str:
        self._end_pre()
        self._end_row()
        self._flush()
        return "".join(self._blocks)

    def _said(self) -> str:
        text, self._heard = "".join(self._heard), []
        return "\n".join(filter(None, map(_collapsed, text.split(_BREAK))))

    def _flush(self) -> None:
        """End a paragraph. Inside a row it only separates words."""
        if self._row is not None:
            self._heard.append(" ")
            return
        text = self._said()
        if text:
            self._write("item" if self._mark else "paragraph", self._mark + _escaped(text))
            self._mark = ""

    def _end_heading(self, level: int) -> None:
        text = self._said().replace("\n", " ").rstrip(" ¶")
        if text:
            self._write("heading", f"{'#' * level} {text}")
            if level == 1:
                self.first_heading = self.first_heading or text

    def _end_row(self) -> None:
        if self._row is None:
            return
        row, self._row = [*self._row, self._said().replace("\n", " ")], None
        while row and not row[-1]:
            row.pop()
        if row:
            self._write("row", _escaped(" | ".join(row).strip()))

    def _end_pre(self) -> None:
        if self._pre is None:
            return
        text, self._pre = "".join(self._pre).strip("\r\n").rstrip(), None
        if text.strip():
            fence = "`" * (1 + max((len(ticks) for ticks in _TICKS.findall(text)), default=2))
            self._write("code", f"{fence}\n{text}\n{fence}")

    def _write(self, kind: str, text: str) -> None:
        """Write a block. Items and rows are separated by one newline, other blocks by a blank line."""
        if self._blocks:
            self._blocks.append("\n" if kind == self._last and kind in ("item", "row") else "\n\n")
        self._blocks.append(text)
        self._last = kind


def _collapsed(text: str) -> str:
    return " ".join(text.split())


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\", text)


# -- markup --------------------------------------------------------------------------------------------
#
# HTML as tags and text, tag soup included: any text is valid input, and no part is read twice. The standard library's
# parser rescans unfinished tags, so that a page of 150 kB can block it for minutes. This one follows the tokenizer of
# the HTML standard, which never backtracks.


_RAW = frozenset(("script", "style", "title", "textarea", "xmp", "noembed", "noframes", "iframe"))
"""Elements whose content is raw text up to their end tag."""
VOID = frozenset(
    (
        "area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta", "param", "source", "track",
        "wbr",
    )
)  # fmt: skip
"""Elements without an end tag."""
_TAG = re.compile(r"</?+([A-Za-z][^\s/>]*+)")
_QUOTED_REST = re.compile(r"""[^"'>]*+(?:(?:"[^"]*+"|'[^']*+')[^"'>]*+)*+>""")
_ATTRIBUTE = re.compile(r"""([^\s=/"'>]++)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'>]++))?+""")


class Tag(NamedTuple):
    name: str
    is_end: bool
    rest: str
    """The text after the name."""

    def attributes(self) -> dict[str, str]:
        """Map attribute names to values, "" if there is none; the first of duplicate names wins."""
        found: dict[str, str] = {}
        for match in _ATTRIBUTE.finditer(self.rest):
            found.setdefault(match[1].lower(), unescape((match[2] or "").strip("\"'")))
        return found


def read_markup(source: str) -> Iterator[Tag | str]:
    """Tags and the text between them, entities decoded. Comments, declarations, scripts and styles yield nothing."""
    return _MarkupReader(source).read()


class _MarkupReader:
    def __init__(self, source: str) -> None:
        self._source = source
        self._last_bracket = source.rfind(">")
        self._last_comment_end = source.rfind("-->")
        self._quotes_close = True
        """False once a tag with unbalanced quotes is met; from then on a tag ends at the next bracket."""
        self._unclosed: set[str] = set()
        """Raw elements with no further end tag."""

    def read(self) -> Iterator[Tag | str]:
        source, at = self._source, 0
        while True:
            begins = source.find("<", at, self._last_bracket + 1)
            if begins < 0:
                if at < len(source):
                    yield unescape(source[at:])
                return
            if begins > at:
                yield unescape(source[at:begins])
            named = _TAG.match(source, begins)
            if named is not None:
                at = self._tag_end(begins, named.end())
                tag = Tag(named[1].lower(), source[begins + 1] == "/", source[named.end() : at - 1])
                yield tag
                if tag.name in _RAW and not tag.is_end:
                    text, at = self._raw(tag.name, at)
                    if text:
                        yield text
            elif source.startswith(("<!", "<?", "</"), begins):
                at = self._comment_end(begins)
            else:
                yield "<"
                at = begins + 1

    def _tag_end(self, begins: int, at: int) -> int:
        if self._quotes_close:
            found = _QUOTED_REST.match(self._source, at)
            if found is not None:
                return found.end()
            self._quotes_close = False
        ends = self._source.find(">", begins)
        return ends + 1

    def _comment_end(self, begins: int) -> int:
        source = self._source
        if source.startswith("<!--", begins) and begins + 2 <= self._last_comment_end:
            return source.find("-->", begins + 2) + 3
        return source.find(">", begins) + 1

    def _raw(self, name: str, at: int) -> tuple[str, int]:
        """The text of a raw element and its end. An unclosed element is treated as an ordinary tag, unless its content
        is never visible.
        """
        is_silent = name in ("script", "style")
        found = None
        if name not in self._unclosed:
            found = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(self._source, at)
        if found is None:
            self._unclosed.add(name)
            return "", len(self._source) if is_silent else at
        return "" if is_silent else unescape(self._source[at : found.start()]), found.start()
