"""From the bytes that a server answered with to text that can be read and kept. Pure."""

from __future__ import annotations

import codecs
import re
import zlib
from typing import Literal, NamedTuple

from muniment.core.outside.http import BodyTooLarge
from muniment.memory.documents.page import read_page

__all__ = ["CODINGS", "PageText", "inflate", "kind_of", "media_type_of", "read_text"]

Kind = Literal["text/html", "text/markdown", "text/plain"]

CODINGS = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})
"""Content codings that `inflate` knows."""
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_MARKDOWN = frozenset({"text/markdown", "text/x-markdown"})
_PLAIN = re.compile(r"text/.+|application/(?:.+\+)?(?:json|xml)")
_LOOKS_LIKE_HTML = re.compile(rb"(?i)\s*+(?:<!--(?>.*?-->)\s*+)*+<(?:!doctype html|html|head|body)\b", re.DOTALL)
_HEAD_BYTES = 1024
_CHARSET = re.compile(r"(?i)charset\s*=\s*[\"']?([a-z0-9_-]{1,40})")
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_READ_AS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "utf-16": "utf-16-le",
}
"""Names that browsers take for a larger set than they say."""
_CODECS = re.compile(
    r"utf-8|utf-16-[lb]e|iso8859-\d+|cp125\d|cp866|cp874|cp932|cp949|koi8-[ru]|gb18030|big5|euc_jp|iso2022_jp"
)
"""What pages are written in; Python knows more, some of it no writing and some slow."""
_NOT_FREE = re.compile(r"(?i)\"isAccessibleForFree\"\s*:\s*\"?false\b")


class PageText(NamedTuple):
    text: str
    kind: Kind
    title: str | None
    free: bool
    """False where the page's own metadata (schema.org) says that it is not free to read."""


def media_type_of(header: str) -> str:
    """The media type of a Content-Type header, in lower case and without its parameters; "" where it says none."""
    return header.partition(";")[0].strip().lower()


def kind_of(media_type: str) -> Kind | None:
    """How something of this media type is read; None where it is not."""
    if media_type in _HTML:
        return "text/html"
    if media_type in _MARKDOWN:
        return "text/markdown"
    return "text/plain" if _PLAIN.fullmatch(media_type) else None


def inflate(data: bytes, coding: str, bytes_max: int) -> bytes:
    """Undo a content coding, up to a size: a small answer can be a very large page. `zlib.error` where it is broken."""
    if coding in ("", "identity"):
        return data
    try:
        return _inflate(data, zlib.MAX_WBITS | 32, bytes_max)
    except zlib.error:
        if coding != "deflate":
            raise
        return _inflate(data, -zlib.MAX_WBITS, bytes_max)  # without a header, as some servers take the name


def _inflate(data: bytes, window: int, bytes_max: int) -> bytes:
    inflater = zlib.decompressobj(window)
    made = inflater.decompress(data, bytes_max + 1)
    if len(made) > bytes_max:
        raise BodyTooLarge(f"the page is over {bytes_max} bytes")
    if not inflater.eof:
        raise zlib.error("it breaks off")
    return made


def read_text(data: bytes, content_type: str) -> PageText | None:
    """The text of a page, None where it holds none. An HTML page is kept as its source."""
    kind = kind_of(media_type_of(content_type))
    if not content_type.strip():
        kind = "text/html" if _LOOKS_LIKE_HTML.match(data[:_HEAD_BYTES]) else "text/plain"
    if kind is None or data.startswith(b"%PDF-"):
        return None
    text = _decode(data, content_type, kind)
    if "\x00" in text or not text.strip():
        return None
    if kind != "text/html":
        return PageText(text, kind, None, free=True)
    page = read_page(text)
    return PageText(text, kind, page.title or None, _NOT_FREE.search(text) is None) if page.text.strip() else None


def _decode(data: bytes, content_type: str, kind: Kind) -> str:
    """Decode a page by byte order mark, header or the page's own word, else as UTF-8 or what is most usual."""
    for mark, name in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    head = data[:_HEAD_BYTES].decode("ascii", "replace") if kind == "text/html" else ""
    for said in (content_type, head):
        found = _CHARSET.search(said)
        codec = _codec(found[1]) if found else None
        if codec is not None:
            return data.decode(codec, "replace")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _codec(label: str) -> str | None:
    try:
        name = codecs.lookup(label).name
    except LookupError:
        return None
    name = _READ_AS.get(name, name)
    return name if _CODECS.fullmatch(name) else None
