"""Reading documents from files and pipes: one JSON document, or one a line, or one text, in bounded memory.

A file is read line by line when it is called `.jsonl` or `.ndjson`, or when it does not parse as one document and
its lines look like documents. Whatever is wrong with a document is its error, never a crash.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from muniment.core.canonical import parse_json
from muniment.errors import InvalidInput, MunimentError, TooLarge

__all__ = ["DOCUMENT_BYTES_MAX", "LINE_SUFFIXES", "Document", "read_all", "read_documents", "read_one", "read_text"]

DOCUMENT_BYTES_MAX = 32 * 1024 * 1024
LINE_SUFFIXES = (".jsonl", ".ndjson")
_SKIP_BYTES = 1024 * 1024

_Line = tuple[int, bytes | None]  # number, content; None when over the limit


@dataclass(frozen=True, slots=True)
class Document:
    """One document and where it stood: its data, or why there is none."""

    file: str
    line: int
    data: Any = None
    error: MunimentError | None = None


def read_documents(name: str) -> Iterator[Document]:
    """The documents of a file, `-` for stdin; raises `InvalidInput` when it cannot be read."""
    with _opened(name) as stream:
        lines = _lines(stream)
        if not name.endswith(LINE_SUFFIXES):
            whole = _whole_document(name, lines)
            if isinstance(whole, Document):
                yield whole
                return
            lines = whole
        for number, content in lines:
            yield _document(name, number, content)


def read_all(name: str) -> list[Any]:
    """What all documents of a file hold; the first that cannot be read is the error, with its line."""
    found = list(read_documents(name))
    for document in found:
        if document.error is not None:
            document.error.message = f"{name}, line {document.line}: {document.error.message}"
            raise document.error
    return [document.data for document in found]


def read_one(name: str, path: str, hint: str = "one JSON object") -> Any:
    """What the one document of a file holds."""
    documents = read_all(name)
    if len(documents) != 1:
        raise InvalidInput(f"{name} holds {len(documents)} documents", path=path, hint=hint)
    return documents[0]


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    try:
        if name == "-":
            yield sys.stdin.buffer
        else:
            with Path(name).open("rb") as stream:
                yield stream
    except OSError as error:
        raise InvalidInput(f"cannot read {name}: {error.strerror or error}", hint="check the path") from None


def _lines(stream: BinaryIO) -> Iterator[_Line]:
    """Lines that are not blank, with their numbers; a line over the limit is skipped without being held."""
    number = 0
    while line := stream.readline(DOCUMENT_BYTES_MAX + 1):
        number += 1
        if len(line) > DOCUMENT_BYTES_MAX and not line.endswith(b"\n"):
            del line
            while (rest := stream.readline(_SKIP_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield number, None
        elif line.strip():
            yield number, line


def _document(name: str, number: int, content: bytes | None) -> Document:
    if content is None:
        limit = DOCUMENT_BYTES_MAX
        return Document(name, number, error=TooLarge(f"a document over the limit of {limit} bytes", path="$"))
    try:
        return Document(name, number, data=parse_json(content.strip(b" \t\r\n"), max_bytes=DOCUMENT_BYTES_MAX))
    except MunimentError as error:
        return Document(name, number, error=error)


def _whole_document(name: str, lines: Iterator[_Line]) -> Document | Iterator[_Line]:
    """The one document of a file, or its lines (those already read included) when it holds one a line."""
    first = next(lines, None)
    if first is None:
        return _document(name, 1, b"")
    if first[1] is None or _is_complete(first[1]):
        return _chain([first], lines)
    held, size = [first], len(first[1])
    for line in lines:
        held.append(line)
        size += len(line[1] or b"") or DOCUMENT_BYTES_MAX
        if size > DOCUMENT_BYTES_MAX:
            break
    second_is_document = len(held) > 1 and held[1][1] is not None and _is_complete(held[1][1], b"{")
    if size > DOCUMENT_BYTES_MAX:
        return _chain(held, lines) if second_is_document else _document(name, 1, None)
    whole = _document(name, first[0], _joined(held))
    if whole.error is None or len(held) == 1:
        return whole
    return _chain(held, lines) if second_is_document or not _is_opening(first[1]) else whole


def _joined(held: list[_Line]) -> bytes:
    """The lines as one text; blank lines between them are put back, so that positions in messages hold."""
    parts, at = [], held[0][0]
    for number, content in held:
        parts.append(b"\n" * (number - at) + (content or b""))
        at = number + 1
    return b"".join(parts)


def _chain(held: list[_Line], rest: Iterator[_Line]) -> Iterator[_Line]:
    yield from held
    yield from rest


def _is_complete(line: bytes, opening: bytes = b"") -> bool:
    """Is this line a JSON text by itself, however objectionable?"""
    return line.lstrip().startswith(opening) and _error_place(line) is None


def _is_opening(line: bytes) -> bool:
    """Could this line be the first of a longer document? Then what is wrong with it is that it ends."""
    place = _error_place(line)
    return place is None or place >= len(line.decode("utf-8", "replace").rstrip())


def _error_place(line: bytes) -> int | None:
    text = line.decode("utf-8", "replace").rstrip()
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return len(text) if error.msg.startswith("Unterminated") else error.pos
    except (RecursionError, ValueError):
        return None
    return None


def read_text(name: str) -> str:
    """A text file, or stdin for `-`, whole."""
    try:
        raw = sys.stdin.buffer.read(DOCUMENT_BYTES_MAX + 1) if name == "-" else _read(name)
    except OSError as error:
        raise InvalidInput(f"cannot read {name}: {error.strerror or error}", hint="check the path") from None
    if len(raw) > DOCUMENT_BYTES_MAX:
        raise InvalidInput(f"{name} is over the limit of {DOCUMENT_BYTES_MAX} bytes", hint="split it")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{name} is not UTF-8: byte {error.start}", hint="re-encode the file") from None


def _read(name: str) -> bytes:
    with Path(name).open("rb") as stream:
        return stream.read(DOCUMENT_BYTES_MAX + 1)
