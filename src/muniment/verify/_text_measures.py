"""Measures of a text: counts, its language, and personal data in it. Pure.

- A word is a run of letters, digits and underscores; a Han or kana character counts on its own.
- A sentence ends at `.`, `!` or `?` before white space or a closing sign, and at `。`, `！`, `？`. A full stop after an
  abbreviation or an initial does not end one, nor does a line break; a list number with a full stop counts as one.
- Paragraphs are separated by blank lines, or by a given separator.

Languages are recognised by a script that only one language uses, or else by n-gram counts in `data/languages.bin`,
which come from the profiles of language-detection (Copyright 2010-2014 Cybozu Labs, Inc., Apache License 2.0) and are
made by `tools/make_language_table.py`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from zlib import decompress

import numpy as np

from muniment.core.limits import remembered
from muniment.core.text.analyzer import stop_words
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import read_data

_WORD = lazy_pattern(r"\w+")
_IDEOGRAPHS = lazy_pattern("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")

_END = lazy_pattern(r"(?s)[.!?](?=[)\";}\]*:@'({\[!?]|\s+\S)|[。！？]+(?=.)")
_TOKEN_BEFORE = lazy_pattern(r"[^\s()\"`{\[:;&#*@}\],]+\Z")
_NEXT = lazy_pattern(r"\s+(?:[(\"'\[{*]*)(\S+)")
_INITIAL = lazy_pattern(r"[^\W\d]")
_NUMBER = lazy_pattern(r"-?[.,]?\d[\d,.-]*")
_LABEL = lazy_pattern(r"(?:^|\n)[ \t]*\w\Z")
_CLOSING = lazy_pattern(r"[\"')\]}]+(?=\s|\Z)")
_ABBREVIATIONS_TEXT = """
mr mrs ms dr prof st sr jr rev hon gen col maj capt lt sgt sen rep gov pres ph.d m.d b.a m.a b.sc m.sc
inc ltd co corp bros dept vs jan feb aug sept oct nov dec ave blvd rd mt ft
u.s u.k u.n u.s.a e.u d.c n.y l.a a.m p.m a.d b.c e.g i.e cf viz approx
"""
_ABBREVIATIONS = frozenset(_ABBREVIATIONS_TEXT.split())
"""Abbreviated titles, firms, months, streets, countries, hours and Latin terms, as in any style guide."""

_HEADING = lazy_pattern(r" {0,3}(#{1,6})(?=[ \t])")
_FENCE = lazy_pattern(r" {0,3}(`{3,}|~{3,})")
_BLANK_LINES = lazy_pattern(r"\n[ \t]*\n\s*")


def word_count(text: str) -> int:
    count = len(_WORD.findall(text))
    if not text.isascii():
        count += sum(len(run) - 1 for run in _IDEOGRAPHS.findall(text))
    return count


def sentence_count(text: str) -> int:
    """Count sentences: at least one, unless the text is blank."""
    text = text.strip()
    if not text:
        return 0
    count, start = 1, 0
    for found in _END.finditer(text):
        sign = found[0]
        if sign == "." and not _ends_sentence(text, start, found.start()):
            continue
        end = found.end()
        closing = _CLOSING.match(text, end)
        if closing is not None:
            end = closing.end()
        if end >= len(text):
            break
        count += 1
        start = end
    return count


def _ends_sentence(text: str, start: int, dot: int) -> bool:
    """True if the full stop at `dot` ends a sentence that began at `start`."""
    if text[dot + 1 : dot + 2] == "." or text[dot - 1 : dot] == ".":
        return False
    found = _TOKEN_BEFORE.search(text, max(start, dot - 40), dot)
    token = found[0] if found is not None else ""
    following = _NEXT.match(text, dot + 1)
    after = following[1] if following is not None else ""
    bare = token.lower()
    is_initial = len(token) == 1 and _INITIAL.match(token) is not None
    if not is_initial and bare not in _ABBREVIATIONS and bare.rpartition("-")[2] not in _ABBREVIATIONS:
        return not (after[:1].islower() and _NUMBER.fullmatch(token))
    if not after[:1].isupper():
        return False
    if is_initial and _LABEL.search(text, max(0, dot - 20), dot):
        return True  # a list item's letter
    return after.lower().strip(".,;:!?'\"") in stop_words("english")


def split_paragraphs(text: str, separator: str | None = None) -> list[str]:
    """Split a text into paragraphs; with a separator, empty ones inside are kept and counted."""
    if separator is None:
        return [part for part in _BLANK_LINES.split(text.strip()) if part.strip()]
    parts = text.split(separator)
    if not parts[0].strip():
        del parts[0]
    if parts and not parts[-1].strip():
        del parts[-1]
    return parts


def bullet_count(text: str) -> int:
    """Count lines that begin with `-`, or with a single `*` followed by text."""
    lines = [line.lstrip() for line in text.split("\n")]
    last = len(lines) - 1
    return sum(
        line.startswith("-") or (line.startswith("*") and (line[1:2] or (number < last and "\n") or "*") != "*")
        for number, line in enumerate(lines)
    )


def find_headings(text: str) -> list[tuple[int, str]]:
    """Markdown headings outside code fences: level and text."""
    found, fence = [], ""
    for line in text.split("\n"):
        opening = _FENCE.match(line)
        if opening is not None and (not fence or opening[1].startswith(fence)):
            fence = "" if fence else opening[1]
        elif not fence and (heading := _HEADING.match(line)) is not None:
            found.append((len(heading[1]), line[heading.end() :].strip().rstrip("#").rstrip()))
    return found


# -- languages -----------------------------------------------------------------------------------------

TEXT_CHARS_MAX = 10_000
_STEPS = 24  # steps per nat in the table
_DIGEST = "8a75e2ae76cb4e6899dcde4175b4990c6e68e3ce9e624588f0d0a3ee546ebfba"  # digest of languages.bin
_WORD_CHARS_MAX = 64

ALIASES = {"zh-cn": "zh", "zh-tw": "zh", "nb": "no", "nn": "no", "iw": "he", "in": "id", "fil": "tl", "ji": "yi"}
"""Language codes treated as another one."""

_OWN_SCRIPTS = (
    ("ko", "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"),
    ("th", "\u0e00-\u0e7f"),
    ("ta", "\u0b80-\u0bff"),
    ("te", "\u0c00-\u0c7f"),
    ("bn", "\u0980-\u09ff"),
    ("gu", "\u0a80-\u0aff"),
    ("pa", "\u0a00-\u0a7f"),
    ("kn", "\u0c80-\u0cff"),
    ("ml", "\u0d00-\u0d7f"),
    ("he", "\u0590-\u05ff"),
    ("el", "\u0370-\u03ff\u1f00-\u1fff"),
    ("ja", "\u3040-\u30ff"),
    ("zh", "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"),
)
_KANA_SHARE = 0.1  # kana among kana and Han: below it, the text is Chinese with a borrowed sign

_PAGE = lazy_pattern(r"https?://[-\w.?&~;+=/#]{1,2000}")
_MAIL = lazy_pattern(r"[-.\w]{1,64}@[-.\w]{1,255}")
_LATIN = lazy_pattern("[A-Za-z]")
_NOT_LATIN = lazy_pattern("[\u0300-\u1dff\u1f00-\uffff\U00010000-\U0010ffff]")
_LETTER = lazy_pattern(r"[^\W\d_]")
_OWN = {code: lazy_pattern(f"[{chars}]") for code, chars in _OWN_SCRIPTS}
_ANY_OWN = lazy_pattern("[" + "".join(chars for _, chars in _OWN_SCRIPTS) + "]")

_BLANKS = [code for code in range(0x80) if not chr(code).isalpha()] + [0xA0, 0xAB, 0xB0, 0xBB, *range(0x2000, 0x2070)]
_PLAIN: dict[int, str] = {
    **dict.fromkeys(_BLANKS, " "),
    **dict.fromkeys(range(0x1EA0, 0x1F00), "\u1ec3"),  # the many Vietnamese vowels count as one
    0x219: "\u015f",
    0x21B: "\u0163",
    0x6CC: "\u064a",
}


class Detected(NamedTuple):
    """The detected language, the number of letters it is based on, and its lead over the next one in nats."""

    code: str
    letters: int
    margin: float


def known_languages() -> tuple[str, ...]:
    """All codes that `detect_language` can return."""
    return tuple(sorted({*_table().codes, *(code for code, _ in _OWN_SCRIPTS)}))


def detect_language(text: str, *, literal: bool = False) -> Detected | None:
    """Detect the likeliest language; None if the text gives no indication.

    A text mostly in capitals is lowercased first. With `literal` capitals are kept, so runs of them carry no weight, as
    in common detectors.
    """
    text = _PAGE.sub(" ", text[:TEXT_CHARS_MAX])
    if "@" in text:
        text = _MAIL.sub(" ", text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        latin, other = len(_LATIN.findall(text)), len(_NOT_LATIN.findall(text))
        if latin * 2 < other:
            text = _LATIN.sub("", text)
        own = len(_ANY_OWN.findall(text))
        if own and own > len(_LETTER.findall(_ANY_OWN.sub("", text))):
            return _by_script(text, own)
    words = text.translate(_PLAIN).split()
    if not literal and sum(map(str.isupper, words)) * 2 > len(words):
        words = [word.lower() for word in words]
    return _by_counts(words)


def _by_script(text: str, letters: int) -> Detected:
    counts = {code: len(pattern.findall(text)) for code, pattern in _OWN.items()}
    japanese = counts["ja"] > _KANA_SHARE * (counts["ja"] + counts["zh"])
    counts["ja" if japanese else "zh"] += counts.pop("zh" if japanese else "ja")
    code, best = max(counts.items(), key=lambda item: item[1])
    return Detected(code, letters, float(2 * best - letters))


def _by_counts(words: list[str]) -> Detected | None:
    table = _table()
    rows, times, letters = [], [], 0
    for word, count in Counter(words).items():
        scores = _scores(word[:_WORD_CHARS_MAX])
        if scores is not None:
            rows.append(scores)
            times.append(count)
            letters += len(word) * count
    if not letters:
        return None
    scores_of = np.frombuffer(b"".join(rows), dtype=np.uint16).reshape(len(rows), len(table.codes))
    total = np.array(times, dtype=np.float64) @ scores_of  # integers far below 2**53: exact in any order
    best = int(total.argmax())
    second = float(np.partition(total, -2)[-2])
    return Detected(table.codes[best], letters, (float(total[best]) - second) / _STEPS)


@remembered(32768)
def _scores(word: str) -> bytes | None:
    """A word's score for each language, 16 bits each, summed over its n-grams; None if it has no known n-gram."""
    table = _table()
    padded = f" {word} "
    places = []
    for end in range(1, len(padded)):
        if padded[end].isupper() and padded[end - 1].isupper():
            continue
        for start in range(max(0, end - 2), end + 1):
            place = table.places.get(padded[start : end + 1])
            if place is not None:
                places.append(place)
    return table.levels[places].sum(axis=0, dtype=np.uint16).tobytes() if places else None


class _Table(NamedTuple):
    codes: tuple[str, ...]
    places: dict[str, int]
    levels: Any


@cache
def _table() -> _Table:
    head, _, body = decompress(read_data(__package__, "languages.bin", _DIGEST)).partition(b"\0")
    codes, *grams = head.decode().split("\n")
    names = tuple(codes.split(" "))
    levels = np.frombuffer(body, dtype=np.uint8).reshape(len(names), len(grams))
    return _Table(names, {gram: place for place, gram in enumerate(grams)}, np.ascontiguousarray(levels.T))


# -- personal data -------------------------------------------------------------------------------------

PersonalKind = Literal["email", "phone", "card", "iban", "ssn", "ip"]
PERSONAL_KINDS: tuple[PersonalKind, ...] = ("email", "phone", "card", "iban", "ssn", "ip")

_EMAIL = lazy_pattern(r"(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}")
_PHONE = lazy_pattern(r"(?<![\w.+-])(?:\+\d|\(\d|\d)[\d ()./-]{5,24}\d(?!\w)(?![.-]\d)")
_CARD = lazy_pattern(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![ -]?\d)(?!\w)")
_IBAN = lazy_pattern(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}(?![A-Za-z0-9])")
_SSN = lazy_pattern(r"(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])")
_IP_ADDRESS = lazy_pattern(
    r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})(?![\w:])(?!\.\d)"
)
_DATE = lazy_pattern(r"\d{4}[-./ ]\d{1,2}[-./ ]\d{1,2}|\d{1,2}[-./ ]\d{1,2}[-./ ]\d{4}")
_PHONE_DIGITS = range(9, 16)
_CARD_DIGITS = range(13, 20)


class PersonalData(NamedTuple):
    """One item of personal data and its span."""

    kind: PersonalKind
    start: int
    end: int


def find_personal_data(
    text: str, kinds: Collection[str] = PERSONAL_KINDS, allow: Collection[str] = ()
) -> Iterator[PersonalData]:
    """Yield personal data kind by kind, except allowed values, which are compared without case, blanks and hyphens."""
    fine = {_plain_data(each) for each in allow}
    for kind in PERSONAL_KINDS:
        if kind not in kinds:
            continue
        pattern, is_one = _PERSONAL[kind]
        for found in pattern.finditer(text):
            if _plain_data(found[0]) not in fine and is_one(found[0]):
                yield PersonalData(kind, found.start(), found.end())


def _plain_data(text: str) -> str:
    return re.sub(r"[\s()./-]", "", text).casefold() if "@" not in text else text.strip().casefold()


def _digits(text: str) -> str:
    return "".join(sign for sign in text if sign.isdecimal())


def _is_phone(text: str) -> bool:
    """True for a number with a country or trunk prefix, or in groups, that is not a date, a card or a plain long
    figure.
    """
    digits = _digits(text)
    if len(digits) not in _PHONE_DIGITS or _DATE.fullmatch(text.strip()):
        return False
    is_grouped = len(re.findall(r"\d+", text)) in (3, 4) and _SSN.fullmatch(text) is None
    return is_grouped or text.startswith(("+", "(", "0"))


def _is_card(text: str) -> bool:
    digits = _digits(text)
    if len(digits) not in _CARD_DIGITS or len(set(digits)) == 1:
        return False
    doubled = [int(sign) * (1 + at % 2) for at, sign in enumerate(reversed(digits))]
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0


def _is_iban(text: str) -> bool:
    plain = text.replace(" ", "")
    if not 15 <= len(plain) <= 34:
        return False
    return int("".join(str(int(sign, 36)) for sign in plain[4:] + plain[:4])) % 97 == 1


def _is_ip(text: str) -> bool:
    """True for a public address: not this machine, a private network or a documentation range."""
    try:
        return ip_address(text).is_global
    except ValueError:
        return False


def _always(_text: str) -> bool:
    return True


_PERSONAL: Mapping[PersonalKind, tuple[re.Pattern[str], Callable[[str], bool]]] = MappingProxyType(
    {
        "email": (_EMAIL, _always),
        "phone": (_PHONE, _is_phone),
        "card": (_CARD, _is_card),
        "iban": (_IBAN, _is_iban),
        "ssn": (_SSN, _always),
        "ip": (_IP_ADDRESS, _is_ip),
    }
)
