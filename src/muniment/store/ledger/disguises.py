"""A text as a model may read it: without what no reader sees, without accents, and out of its disguise.

Letters of other scripts that look alike, figures for letters, letters apart, text written backwards, in ROT13, as
escapes, in base64 or hexadecimal. Each is a reading of its own, made only where something hints at it. Every step is
linear in the text.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
from collections import Counter
from collections.abc import Iterator
from unicodedata import normalize
from urllib.parse import unquote

from muniment.core.text.patterns import lazy_pattern

__all__ = ["HIDDEN_WORDS", "readings_of"]

_UNSEEN = lazy_pattern(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]"
)
"""What no reader sees, and may stand within a word to hide it from us."""
_TAGS = lazy_pattern("[\U000e0020-\U000e007e]")
"""Letters that no reader sees and a model may well read: each is an ASCII sign, so many places further on."""
_SELECTORS = lazy_pattern("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{8,}")
"""Signs that choose how a letter is drawn, many in a row: each is a byte that no reader sees."""
_TURNED_ROUND = lazy_pattern("[\u202e\u2067]([^\u202c\u2069]{4,4000})")
"""What is shown from right to left, and was written backwards to be read so."""
_ACCENTS = lazy_pattern("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]")
_ALIKE = str.maketrans(
    "аАеЕоОрРсСуУхХіІїјЈѕЅһқԁԛԝмМтТвВкКнНԍзпгԃиοαΑβΒεΕηΗικΙΚΜνΝΟρΡτΤυΥχΧωγςɡɪɴʀᴏᴇᴀʙᴄᴅꜰɢʜᴊᴋʟᴍᴘǫꜱᴛᴜᴠᴡʏᴢıℓ",
    "aaeeooppccyyxxiiijjsshkdqwmmttbbkkhhg3nrdnoaabbeennikikmvnopptt uuxxwys".replace(" ", "")
    + "ginroeabcdfghjklmpqstuvwyzil",
)
"""Letters of other scripts, and small capitals → the Latin letter that they look like."""
_ALIKE |= str.maketrans("ɑҽϲոտսցքհօɩʋɯɗɓⅼǀեԼӏ", "aecnsugphoivwdbllcll")
_FIGURES = str.maketrans("013457@$!|+", "oieastasilt")
_FIGURED = lazy_pattern(r"[A-Za-z][013457@$!|+]{1,3}[A-Za-z]|\b[013457@$][A-Za-z]{2,}")
_FIGURED_MIN = 3
_APART = lazy_pattern(r"(?<![^\W_])(?:[^\W\d_][ .\-_*·|]{1,6}){8,400}[^\W\d_](?![^\W_])")
"""Letters with a sign between each two of them."""
_BETWEEN = re.compile(r"[ .\-_*·|]{1,6}")
_BASE64 = lazy_pattern(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{20,8000}={0,2}(?![A-Za-z0-9+/_=-])")
_HEX = lazy_pattern(r"(?<![0-9A-Za-z])(?:(?:0x|\\x)?[0-9A-Fa-f]{2}[ :,]?){16,4000}(?![0-9A-Za-z])")
_HEX_SIGNS = re.compile(r"0x|\\x|[ :,]")
_BASE32 = lazy_pattern(r"(?<![A-Z2-7])[A-Z2-7]{32,8000}={0,6}(?![A-Za-z2-7=])")
_NUMBERS = lazy_pattern(r"(?<![\w.])(?:(?:[01]{8}|\d{2,3})[ ,]{1,2}){11,4000}(?:[01]{8}|\d{2,3})(?![\w.])")
_NUMBER = re.compile(r"\d+")
_ESCAPED = lazy_pattern(r"&\#?\w{2,8};|%20|(?:%[0-9A-Fa-f]{2}){2}|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}")
_CODE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\x([0-9A-Fa-f]{2})")
_DECODED_MAX = 16
_LETTERS_SHARE = 0.85
_WORDS = ("ignore", "instruction", "prompt", "system", "previous", "assistant", "disregard", "forget")
_COMMON = (
    "your",
    "with",
    "this",
    "from",
    "that",
    "have",
    "every",
    "about",
    "their",
    "request",
    "rules",
    "objective",
    "answer",
)
_ABROAD = (
    "nicht", "bitte", "nutzer", "anweisungen", "vous", "pour", "toutes", "utilisateur", "instrucciones", "todas",
    "usuario", "para",
)  # fmt: skip
_BACKWARDS = frozenset(word[::-1] for word in (*_WORDS, *_COMMON, *_ABROAD, "the"))
_TURNED = frozenset(codecs.encode(word, "rot13") for word in (*_WORDS, *_COMMON, *_ABROAD, "the", "and", "und", "que"))
"""Words that hardly any text is without, as they look backwards and in ROT13. None is a word by itself."""
_WORD = lazy_pattern(r"[^\W_]+")
_ITEM = lazy_pattern(r"(?m)^[ \t]*(?:[-*•>]|\d{1,3}[.)])?[ \t]*")
_SHORT_LINES, _SHORT_WORDS = 4, 4
HIDDEN_WORDS = (
    "ignoreprevious", "ignoreallprevious", "ignoreallinstr", "ignoretheabove", "ignoreyourinstr", "ignorepriorinstr",
    "disregardall", "disregardprevious", "disregardtheabove", "forgetallprevious", "forgetprevious",
    "revealyoursystemprompt", "revealthesystemprompt", "newinstructions:", "youarenowdan",
)  # fmt: skip
"""What orders come to when the spaces between their words are lost."""


def readings_of(text: str) -> Iterator[str]:
    """The readings of a text, in lower case, the plain one first."""
    plain = text if text.isascii() else _visible_text(text)
    lowered = _plain_letters(plain).lower()
    yield lowered
    if not text.isascii():
        for hidden in _hidden_from_sight(text):
            yield _plain_letters(hidden).lower()
    yield from _undisguised(plain, lowered)
    for hidden in _decoded(plain):
        shown = _plain_letters(hidden).lower()
        yield shown
        yield from _undisguised(hidden, shown)


def _hidden_from_sight(text: str) -> Iterator[str]:
    """What stands in a text in signs that are not drawn, and what is shown the other way round."""
    for match in _SELECTORS.finditer(text):
        yield bytes(_byte_of(sign) for sign in match[0]).decode("utf-8", "replace")
    for match in _TURNED_ROUND.finditer(text):
        yield match[1][::-1]


def _byte_of(sign: str) -> int:
    return ord(sign) - 0xFE00 if ord(sign) < 0xE0100 else ord(sign) - 0xE0100 + 16


def _visible_text(text: str) -> str:
    """What the text says to whoever reads it, tags for letters included."""
    return _UNSEEN.sub("", normalize("NFKC", _TAGS.sub(lambda tag: chr(ord(tag[0]) - 0xE0000), text)))


def _plain_letters(text: str) -> str:
    """Latin letters without their accents; other scripts as they are."""
    if text.isascii():
        return text
    return normalize("NFC", _ACCENTS.sub("", normalize("NFD", text)))


def _undisguised(text: str, lowered: str) -> Iterator[str]:
    if not text.isascii():
        alike = lowered.translate(_ALIKE)
        if alike != lowered:
            yield alike.lower()
    if len(_FIGURED.findall(text[:_LOOKED_AT])) >= _FIGURED_MIN:
        yield lowered.translate(_FIGURES)
    joined = _APART.sub(lambda found: _joined(found[0]), lowered)
    if joined != lowered:
        yield joined
    words = frozenset(_WORD.findall(lowered))
    if not words.isdisjoint(_BACKWARDS):
        turned = lowered[::-1]
        yield turned
        yield " ".join(turned.split()[::-1])
    if not words.isdisjoint(_TURNED):
        yield codecs.encode(lowered, "rot13")
    yield from _whole_lines(lowered)


def _whole_lines(text: str) -> Iterator[str]:
    """Lines of a few words each, as a list or the cells of a table, read on from one to the next."""
    lines = text.split("\n")
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if line.lstrip()[:1] == "|"]
    if len(rows) >= _SHORT_LINES:
        for column in range(min(_COLUMNS_MAX, max(map(len, rows)))):
            yield " ".join(row[column] for row in rows if column < len(row))
    short = [line for line in lines if 0 < len(line.split()) <= _SHORT_WORDS]
    if len(short) >= _SHORT_LINES and len(rows) < len(short):
        yield " ".join(_ITEM.sub("", "\n".join(short)).split())


_COLUMNS_MAX = 8


_LOOKED_AT = 20_000
"""Characters in which figures for letters are counted: enough to tell."""


def _joined(letters: str) -> str:
    """Letters put together: the sign that stands most often is between letters, any other between words."""
    signs = Counter(_BETWEEN.findall(letters))
    usual = min(signs, key=lambda sign: (-signs[sign], sign))
    return _BETWEEN.sub(lambda found: "" if found[0] == usual else " ", letters)


def _decoded(text: str) -> Iterator[str]:
    """What stands in it as escapes, base64 or hexadecimal and is text."""
    if _ESCAPED.search(text) is not None:
        shown = _CODE.sub(lambda found: chr(int(found[1] or found[2], 16)), unquote(html.unescape(text)))
        yield shown.encode("utf-8", "replace").decode()
    found: list[str] = []
    for match in _BASE32.finditer(text):
        found.append(_text_of(_from_base32(match[0])))
        if len(found) >= _DECODED_MAX:
            break
    for match in _NUMBERS.finditer(text):
        found.append(_text_of(_from_numbers(match[0])))
        if len(found) >= 2 * _DECODED_MAX:
            break
    for match in _BASE64.finditer(text):
        found.append(_text_of(_from_base64(match[0])))
        if len(found) >= 3 * _DECODED_MAX:
            break
    for match in _HEX.finditer(text):
        signs = _HEX_SIGNS.sub("", match[0])
        found.append(_text_of(bytes.fromhex(signs[: len(signs) // 2 * 2])))
        if len(found) >= 4 * _DECODED_MAX:
            break
    said = "\n".join(part for part in found if part)
    if said:
        yield said


def _from_base32(signs: str) -> bytes:
    body = signs.rstrip("=")
    try:
        return base64.b32decode(body + "=" * (-len(body) % 8))
    except binascii.Error:
        return b""


def _from_numbers(signs: str) -> bytes:
    """Numbers of letters, in tens or in twos."""
    told = [int(number, 2 if len(number) == 8 else 10) for number in _NUMBER.findall(signs)]
    return bytes(number for number in told if number < 256)


def _from_base64(signs: str) -> bytes:
    body = signs.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4))
    except binascii.Error:
        return b""


def _text_of(data: bytes) -> str:
    """The bytes as text, if they are words; else nothing."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ""
    told = sum(char.isalpha() or char.isspace() for char in text)
    has_words = " " in text or not text.isascii()  # Chinese and Japanese have no blanks
    return text if has_words and told >= _LETTERS_SHARE * len(text) else ""
