"""The words of a predicate, each with its place."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, cast

from muniment.core.text.patterns import lazy_pattern
from muniment.errors import InvalidInput

__all__ = ["KEYWORDS", "Kind", "Token", "complain", "tokenize"]

Kind = Literal["name", "string", "number", "sign", "end"]

KEYWORDS = ("true", "false", "null", "in")

_TOKEN = lazy_pattern(
    r"""(?x)
    (?P<space>[ \t\r\n]+)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<number>(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    | (?P<string>"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*')
    | (?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%<>!().,\[\]])
    """
)
_ESCAPE = lazy_pattern(r"\\(?:u([0-9A-Fa-f]{4})|(.))")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}
_SURROGATE = lazy_pattern("[\ud800-\udfff]")


class Token(NamedTuple):
    kind: Kind
    text: str  # of a string, what it says
    at: int


def complain(message: str, source: str, at: int, hint: str | None = None, path: str | None = None) -> InvalidInput:
    """An error that says where: line and column count characters from 1."""
    line, column = source.count("\n", 0, at) + 1, at - source.rfind("\n", 0, at)
    where = f"{message}, at line {line}, column {column}"
    return InvalidInput(where, path=path, hint=hint, details={"line": line, "column": column, "text": source})


def tokenize(source: str, path: str | None = None) -> list[Token]:
    tokens: list[Token] = []
    at = 0
    while at < len(source):
        found = _TOKEN.match(source, at)
        if found is None:
            raise complain(_strange(source, at), source, at, _hint(source, at), path)
        kind, text = found.lastgroup, found[0]
        if kind == "string":
            tokens.append(Token("string", _unescape(text, source, at, path), at))
        elif kind in ("name", "number", "sign"):
            tokens.append(Token(cast("Kind", kind), text, at))
        at = found.end()
        if kind == "number" and at < len(source) and (source[at].isalnum() or source[at] == "_"):
            raise complain(f"{text + source[at]!r} is not a number", source, at, None, path)
    tokens.append(Token("end", "", len(source)))
    return tokens


def _unescape(quoted: str, source: str, at: int, path: str | None) -> str:
    def one(found: re.Match[str]) -> str:
        if found[1] is not None:
            return chr(int(found[1], 16))
        plain = _ESCAPES.get(found[2])
        if plain is None:
            place = at + 1 + found.start()
            raise complain(f"unknown escape \\{found[2]}", source, place, r"one of \n \t \r \\ \" \' \u4e2d", path)
        return plain

    said = _ESCAPE.sub(one, quoted[1:-1])
    if _SURROGATE.search(said):
        raise complain("half of a surrogate pair", source, at, "write the character itself", path)
    return said


def _strange(source: str, at: int) -> str:
    return "a string that does not end" if source[at] in "\"'" else f"{source[at]!r} has no place in a predicate"


def _hint(source: str, at: int) -> str | None:
    if source[at] in "\"'":
        return "close it on the same line with the same quotation mark"
    if source[at] in "=&|~":
        return {"=": "equality is ==", "&": "and is &&", "|": "or is ||", "~": 'patterns: x.like("a*")'}[source[at]]
    if not source[at].isascii():
        return 'text of any language stands between quotation marks, a name as ["名"] after its parent'
    return None
