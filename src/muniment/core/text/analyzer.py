"""From text to terms: stems, words that say nothing, what is indexed, and what a query is made of."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import blake2b
from itertools import chain
from typing import Literal

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import WordList

__all__ = [
    "ANALYZER_VERSION",
    "MONTHS",
    "analyze",
    "ascii_words",
    "day_term",
    "irregular_forms",
    "korean_particles",
    "month_term",
    "porter_stem",
    "stem",
    "stop_words",
    "term_hash",
    "term_hashes",
    "year_term",
]

_WORDS = WordList(__package__, "stopwords.txt")


@cache
def stop_words(language: Literal["english", "chinese", "korean"]) -> frozenset[str]:
    """The stop words of a language, casefolded."""
    return frozenset(_WORDS.words(language))


@cache
def korean_particles() -> tuple[str, ...]:
    """What follows a noun in Korean, longest first; stripped where two syllables are left, or one of two."""
    return tuple(sorted(set(_WORDS.words("korean particles")), key=lambda particle: (-len(particle), particle)))


_FORMS = WordList(__package__, "irregular_forms.txt")


@cache
def irregular_forms() -> dict[str, str]:
    """A form → the word it is filed under; the stem of that word is the term."""
    return {form: base for base, forms in _FORMS.pairs() for form in forms.split()}


_CLASSES = bytes(ord("v") if char in b"aeiou" else ord("y") if char == ord("y") else ord("c") for char in range(256))
"""Letter → vowel, consonant, or a y, which is either."""
_VOWELS, _VOWELS_OR_Y, _NO_SHORT_END = frozenset("aeiou"), frozenset("aeiouy"), frozenset("aeiouwxy")
_STEP_2_TEXT = (
    "ational>ate tional>tion enci>ence anci>ance izer>ize bli>ble alli>al entli>ent eli>e ousli>ous "
    "ization>ize ation>ate ator>ate alism>al iveness>ive fulness>ful ousness>ous aliti>al iviti>ive biliti>ble logi>log"
)
_STEP_3_TEXT = "icate>ic ative> alize>al iciti>ic ical>ic ful> ness>"
_STEP_4_TEXT = "ement al ance ence er ic able ible ant ment ent sion tion ou ism ate iti ous ive ize"
"""The longer first where one ends another."""


def _by_end(text: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Suffixes and what replaces them, by their last two letters: a word is compared with one or two of them."""
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for suffix, _, new in (pair.partition(">") for pair in text.split()):
        found[suffix[-2:]] = (*found.get(suffix[-2:], ()), (suffix, new))
    return found


_STEP_2, _STEP_3, _STEP_4 = _by_end(_STEP_2_TEXT), _by_end(_STEP_3_TEXT), _by_end(_STEP_4_TEXT)
_ENDS = _STEP_2.keys() | _STEP_3.keys() | _STEP_4.keys()
_PAST_ENDS = frozenset(("ed", "ng"))
_MENDED_BY_E = frozenset(("at", "bl", "iz"))
_DOUBLED = frozenset(letter * 2 for letter in "bcdfghjkmnpqrtvwxy")


def stem(word: str) -> str:
    """The stem of a casefolded word; what is not made of the letters a–z is its own stem."""
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    return porter_stem(irregular_forms().get(word, word))


def porter_stem(word: str) -> str:
    """Porter (1980), with the two departures of his own later program (`bli`, `logi`)."""
    if len(word) < 3:
        return word
    if word[-1] == "s":
        word = _singular(word)
    if word[-2:] in _PAST_ENDS:
        word = _present(word)
    if word[-1] == "y" and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    if word[-2:] in _ENDS:
        word = _without_suffixes(word)
    if word[-1] == "e":
        size = _measure(word[:-1])
        if size > 1 or (size == 1 and not _ends_short(word[:-1])):
            word = word[:-1]
    if word[-2:] == "ll" and _measure(word) > 1:
        word = word[:-1]
    return word


def _has_vowel(text: str) -> bool:
    """A y is one behind a consonant, or before anything."""
    classes = text.encode().translate(_CLASSES)
    return b"v" in classes or (len(text) > 1 and b"y" in classes)


def _measure(text: str) -> int:
    """How often a vowel is followed by a consonant: Porter's m. A y is a vowel behind anything but a vowel."""
    classes = text.encode().translate(_CLASSES)
    if b"y" in classes:
        if classes.startswith(b"y"):
            classes = b"c" + classes[1:]
        classes = classes.replace(b"vy", b"vc").replace(b"y", b"v")
    return classes.count(b"vc")


def _ends_short(text: str) -> bool:
    """Does it end as "hop" does: a consonant or nothing, a vowel, a consonant but w and x?"""
    return text[-2:-1] in _VOWELS_OR_Y and text[-1] not in _NO_SHORT_END and text[-3:-2] not in _VOWELS


def _singular(word: str) -> str:
    if word.endswith("sses") or (word.endswith("ies") and len(word) > 4):
        return word[:-2]
    return word if word.endswith("ss") else word[:-1]


def _present(word: str) -> str:
    """Without -ed and -ing."""
    end = word[-3:]
    if end == "eed":
        return word[:-1] if _measure(word[:-3]) else word
    rest = word[:-3] if end == "ing" else word[:-2] if end[-1] == "d" else ""
    return _mended(rest) if _has_vowel(rest) else word


def _mended(word: str) -> str:
    """What is left after -ed and -ing gets its e back, or loses its doubled consonant."""
    end = word[-2:]
    if end in _MENDED_BY_E:
        return word + "e"
    if end in _DOUBLED:
        return word[:-1]
    if _measure(word) == 1 and _ends_short(word):
        return word + "e"
    return word


def _without_suffixes(word: str) -> str:
    """Each step takes the first of its suffixes that the word has, if enough is left before it."""
    for step in (_STEP_2, _STEP_3):
        for suffix, new in step.get(word[-2:], ()):
            if word.endswith(suffix):
                rest = word[: -len(suffix)]
                word = rest + new if _measure(rest) else word
                break
    for suffix, _ in _STEP_4.get(word[-2:], ()):
        if word.endswith(suffix):
            rest = word[:-3] if suffix in ("sion", "tion") else word[: -len(suffix)]
            return rest if _measure(rest) > 1 else word
    return word


ANALYZER_VERSION = "a2"
"""Changes whenever the same text may give other terms: an index made by another version has to be built again."""

_CACHE_MAX = 1 << 16
_WORD_CHARS_MAX = 64
"""Longer runs are cut: they are keys, hashes and noise, and nobody asks for the tail of one."""

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sept sep",
            "october oct",
            "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}
"""English names of months, casefolded → 1…12."""
_MONTH_WORDS = frozenset(MONTHS)

_COUNTING = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty"
)
_NUMBER_WORDS = {word: str(value) for value, word in enumerate(_COUNTING.split(), start=2)} | {
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "hundred": "100",
    "thousand": "1000",
}


@cache
def _settled() -> dict[str, tuple[str, ...]]:
    """Words of ASCII whose terms follow no rule."""
    numbers = {word: (number,) for word, number in _NUMBER_WORDS.items()}
    return numbers | dict.fromkeys(stop_words("english") | MONTHS.keys(), ())


_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff々〇"
_KANA = "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
_HANGUL = "\uac00-\ud7a3"
_CJK = _HAN + _KANA + _HANGUL

_TOKEN = lazy_pattern(rf"[{_HAN}{_KANA}]+|[{_HANGUL}]+|\d+(?:[.,:]\d+)*(?:st|nd|rd|th|s)?(?![^\W\d_])|[^\W_{_CJK}]+")
_ASCII_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*(?:st|nd|rd|th|s)?(?![a-z])|[a-z0-9]+")
_MONTH_NAMES = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_DATE = lazy_pattern(
    rf"(?<![\w])(?:(?P<iso_y>\d{{4}})[-/.](?P<iso_m>\d{{1,2}})[-/.](?P<iso_d>\d{{1,2}})(?!\d)"
    rf"|(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?: of)?[ -](?P<m1>{_MONTH_NAMES})\b\.?(?:,?[ -](?P<y1>\d{{4}})\b)?"
    rf"|(?P<m2>{_MONTH_NAMES})\b\.? (?:the )?(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,? (?P<y2>\d{{4}})\b)?"
    rf"|(?P<m3>{_MONTH_NAMES})\b\.?,?(?: of)? (?P<y3>\d{{4}})\b"
    r"|(?:(?P<zy>\d{4}) ?[年년] ?)?(?P<zm>\d{1,2}) ?[月월](?: ?(?P<zd>\d{1,2}) ?[日号일])?)",
)
_BARE_MONTH = lazy_pattern(
    r"\b(january|february|april|june|july|august|september|october|november|december)\b"
    r"|\b(?:in|of|since|until|till|by|last|next|this|early|late|mid|every|during|before|after|from|to)[ -](may|march)\b"
)
_DIGIT = re.compile(r"\d")
_ASCII_WORDS = bytes(char if chr(char).isalnum() and char < 128 else 0x20 for char in range(256)).lower()
"""Byte → itself in lower case where it is a letter or a digit of ASCII, else a space."""
_MORE_THAN_WORDS = re.compile(r"[0-9](?:[.,:][0-9]|[A-Za-z]|[0-9]{3}[-/.][0-9])")
"""An ASCII text without any of these has no date in digits, and its tokens are its runs of letters and digits."""
_MAY_BE_DATE = re.compile(r"\d(?:\d{3}[-/.]\d| ?[月월])")
"""What a date holds that does not name its month by a word."""


def year_term(year: int) -> str:
    return str(year)


def month_term(month: int) -> str:
    return f"#m{month}"


def day_term(month: int, day: int) -> str:
    return f"#d{month}-{day}"


def ascii_words(text: str) -> list[str]:
    """The runs of letters and digits of an ASCII text, in lower case."""
    return text.encode().translate(_ASCII_WORDS).decode().split()


def analyze(text: str, words: Sequence[str] | None = None) -> list[str]:
    """The terms of a text in reading order, repeated as often as they stand there.

    `words` are the `ascii_words` of an ASCII text, where the caller has them.
    """
    if text.isascii():
        folded, pattern, is_plain = text.lower(), _ASCII_TOKEN, _MORE_THAN_WORDS.search(text) is None
    else:
        folded, pattern, is_plain = _fold(text), _TOKEN, False
    tokens: Sequence[str] = (words or ascii_words(text)) if is_plain else pattern.findall(folded)
    terms: list[str] = []
    # Every date has the name of a month, or a year or a sign beside its digits.
    if not _MONTH_WORDS.isdisjoint(tokens) or not (is_plain or _MAY_BE_DATE.search(folded) is None):
        left = _take_dates(folded, terms)
        if left != folded:
            tokens = pattern.findall(left)
    terms.extend(chain.from_iterable(map(_TERMS.__getitem__, tokens)))
    return terms


def _fold(text: str) -> str:
    """NFKC and casefold; accents on Latin letters go, so that "Rogério" and "Rogerio" are one name."""
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    if text.isascii() or not _ACCENTED.search(text):
        return unicodedata.normalize("NFKC", text)
    kept = [char for char in unicodedata.normalize("NFKD", text) if not "\u0300" <= char <= "\u036f"]
    return unicodedata.normalize("NFKC", "".join(kept))


_CJK_SIGN = lazy_pattern(f"[{_HAN}{_KANA}]")
_ACCENTED = lazy_pattern("[\u00c0-\u024f\u0300-\u036f\u1e00-\u1eff]")


def _take_dates(folded: str, terms: list[str]) -> str:
    """Add the terms of the dates written out in a folded text; what is returned has them cut out."""

    def take(match: re.Match[str]) -> str:
        found = match.groupdict()
        month_text = found["iso_m"] or found["m1"] or found["m2"] or found["m3"] or found["zm"]
        month = MONTHS.get(month_text) or (int(month_text) if month_text.isdecimal() else 0)
        day_text = found["iso_d"] or found["d1"] or found["d2"] or found["zd"]
        day = int(day_text) if day_text else 0
        if not 1 <= month <= 12 or day > 31 or (day_text and not day):
            return match[0]
        year = found["iso_y"] or found["y1"] or found["y2"] or found["y3"] or found["zy"]
        terms.append(month_term(month))
        if day:
            terms.append(day_term(month, day))
        if year:
            terms.append(year_term(int(year)))
        return " "

    if _DIGIT.search(folded):  # but for a month alone, every date has one
        folded = _DATE.sub(take, folded)
    for plain, ambiguous in _BARE_MONTH.findall(folded):
        terms.append(month_term(MONTHS[plain or ambiguous]))
    return folded


class _Terms(dict[str, tuple[str, ...]]):
    """Token → its terms, remembered."""

    def __missing__(self, token: str) -> tuple[str, ...]:
        if len(self) >= _CACHE_MAX:
            self.clear()
        self[token] = terms = _terms_of_token(token[:_WORD_CHARS_MAX])
        return terms


_TERMS = _Terms()


def _terms_of_token(token: str) -> tuple[str, ...]:
    if token.isascii():
        settled = _settled().get(token)
        if settled is not None:
            return settled
        return (_number(token) if token[0].isdigit() else stem(token),)
    first = token[0]
    if "\uac00" <= first <= "\ud7a3":
        return _hangul(token)
    if _is_cjk(first):
        return _han(token)
    return (token,)


def _is_cjk(char: str) -> bool:
    return _CJK_SIGN.match(char) is not None


def _number(token: str) -> str:
    """1,000 → 1000; 7th → 7; 2.50 → 2.5; 1990s → 1990s; what only starts with a digit stays a word."""
    if token.isdigit():
        return token.lstrip("0") or "0"
    body = token.rstrip("abcdefghijklmnopqrstuvwxyz")
    tail = token[len(body) :]
    if tail not in ("", "st", "nd", "rd", "th"):
        return token
    whole, dot, fraction = body.replace(",", "").partition(".")
    if not whole.isdecimal() or not (fraction.isdecimal() or not dot):
        return body
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + ("." + fraction if fraction else "")


def _han(run: str) -> tuple[str, ...]:
    """Every pair of neighbours and every sign."""
    pairs = [run[at : at + 2] for at in range(len(run) - 1)]
    small = stop_words("chinese")
    return tuple(term for term in (*run, *pairs) if term not in small)


def _hangul(run: str) -> tuple[str, ...]:
    """Pairs of syllables, the syllables of the word without its particle, and the one it starts with (`^`)."""
    if run in stop_words("korean"):
        return ()
    root = run
    for particle in korean_particles():
        if len(run) > len(particle) and run.endswith(particle) and (len(run) - len(particle) > 1 or len(run) == 2):
            root = run[: -len(particle)]
            break
    pairs = [run[at : at + 2] for at in range(len(run) - 1)]
    return ("^" + run[0], *root, *pairs)


class _Hashes(dict[str, int]):
    """Term → its hash, remembered."""

    def __missing__(self, term: str) -> int:
        if len(self) >= _CACHE_MAX:
            self.clear()
        data = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        self[term] = number = int.from_bytes(data, "big")
        return number


_HASHES = _Hashes()


def term_hash(term: str) -> int:
    """A stable unsigned 64-bit number for a term."""
    return _HASHES[term]


def term_hashes(terms: Iterable[str]) -> Iterator[int]:
    """`term_hash` of each."""
    return map(_HASHES.__getitem__, terms)
