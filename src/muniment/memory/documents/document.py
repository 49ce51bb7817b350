"""A document from its source: what it says, its title, and its chunks, each a verbatim slice of what it says.

    chunk_text(source)       paragraphs
    chunk_markdown(source)   headings, fenced code, paragraphs; the text is the source
    chunk_html(source)       the same, of what the page says

The same source under the same policy gives the same chunks. Spans are half-open offsets in UTF-8 bytes of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from muniment.core.policy import CorpusPolicy
from muniment.core.requests import Expect, Request, checked, one_of
from muniment.errors import InvalidInput, TooLarge
from muniment.memory.documents.blocks import Block, front_title, markdown_blocks, plain_blocks
from muniment.memory.documents.packing import Packed, pack

__all__ = [
    "MEDIA_TYPES",
    "Document",
    "Passage",
    "chunk_html",
    "chunk_markdown",
    "chunk_text",
    "media_type_of",
    "read_document",
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
    """The headings it stands under, outermost first."""


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
    """What a document of these names holds, going by the first suffix that says it."""
    suffixes = (name.partition("?")[0].partition("#")[0].rpartition(".")[2].lower() for name in names)
    return next((_BY_SUFFIX[suffix] for suffix in suffixes if suffix in _BY_SUFFIX), "text/plain")


def read_document(
    source: str, media_type: str, policy: CorpusPolicy = _POLICY, clean: Callable[[str], str] | None = None
) -> Document:
    """The document. `clean` sees all that it says before it is cut, so that nothing hides behind a cut."""
    _check(source, media_type, policy)
    text, title = source.removeprefix("\ufeff"), None
    if media_type == "text/html":
        from muniment.memory.documents.page import read_page

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
    """A document as it was handed in."""

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
