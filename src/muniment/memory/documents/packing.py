"""Blocks into chunks: filled up to a size, cut at headings, then paragraphs, then sentences, then words."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from muniment.core.policy import CorpusPolicy
from muniment.core.text.sentences import sentence_spans
from muniment.memory.documents.blocks import Block

__all__ = ["Packed", "pack"]

_CLUSTER_CHARS_MAX = 32
_JOINER = "\u200d"
_WORD_SHARE = 4
"""A sentence that ends in the first quarter of what may be taken is no place to cut: a word further on is."""

Path = tuple[str, ...]


class Packed(NamedTuple):
    """A chunk: a span of characters and the headings that all of it stands under."""

    start: int
    end: int
    headings: Path


class _Piece(NamedTuple):
    start: int
    end: int
    is_heading: bool
    path: Path


def pack(text: str, blocks: Iterable[Block], policy: CorpusPolicy) -> list[Packed]:
    """The chunks of a text, in order; between them there is white space alone."""
    packer = _Packer(text, policy)
    for block in blocks:
        packer.add(block)
    return packer.finish()


class _Packer:
    def __init__(self, text: str, policy: CorpusPolicy) -> None:
        self._text = text
        self._policy = policy
        self._outline: list[tuple[int, str]] = []
        """(level, title) of the headings in force."""
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
        """End the chunk. Headings at its end begin the next one, with what they are the headings of."""
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
            self._done[-1] = last._replace(end=chunk.end)  # the rest of a section, too short to stand alone
        else:
            self._done.append(chunk)

    def finish(self) -> list[Packed]:
        if self._held:
            self._emit(self._held)
        return self._done


def _shared_path(pieces: list[_Piece]) -> Path:
    """The headings that all of the pieces stand under; of headings alone, the last one's."""
    paths = [piece.path for piece in pieces if not piece.is_heading] or [pieces[-1].path]
    first, last = min(paths), max(paths)
    size = 0
    while size < len(first) and size < len(last) and first[size] == last[size]:
        size += 1
    return first[:size]


# -- cutting what is too long -------------------------------------------------------------------------


def _cut(text: str, block: Block, size: int) -> Iterator[tuple[int, int]]:
    """A block in pieces of at most `size`, each ending where a reader would pause, if there is such a place."""
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
    """The last place to cut at that does not part what is seen as one character."""
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
