"""Conversion of text to terms: stems, stop words, index terms, and query terms."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from functools import cache, partial
from hashlib import blake2b
from importlib import import_module
from itertools import chain, pairwise
from typing import Any, cast

from muniment.core.limits import Memo
from muniment.core.text.latin_names import spelled_hangul, spelled_katakana, spelled_names
from muniment.core.text.patterns import ascii_digits, lazy_pattern, numbers_in_han, plain_letters
from muniment.core.text.text_language import LATIN_LANGUAGES, language_signs, text_language
from muniment.core.text.word_lists import WordList

__all__ = [
    "ANALYZER_VERSION",
    "MONTHS",
    "NUMBER_WORDS",
    "analyze",
    "ascii_words",
    "date_at",
    "day_term",
    "irregular_forms",
    "korean_particles",
    "month_and_day",
    "month_term",
    "plain_number",
    "porter_stem",
    "stem",
    "stem_in",
    "stop_words",
    "take_dates",
    "term_hash",
    "term_hashes",
    "year_term",
]

_WORDS = WordList(__package__, "stopwords.txt")


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language, casefolded and without accents."""
    return frozenset(map(plain_letters, _WORDS.words(language)))


@cache
def korean_particles() -> tuple[str, ...]:
    """Return particles that follow a Korean noun, longest first; stripped if two syllables remain, or one of two."""
    return tuple(sorted(set(_WORDS.words("korean particles")), key=lambda particle: (-len(particle), particle)))


@cache
def _korean_endings() -> tuple[str, ...]:
    """Return particles of nouns and endings of verbs, longest first."""
    return tuple(
        sorted({*korean_particles(), *_WORDS.words("korean endings")}, key=lambda ending: (-len(ending), ending))
    )


_FORMS = WordList(__package__, "irregular_forms.txt")


@cache
def irregular_forms() -> dict[str, str]:
    """Map each form to its headword, whose stem is the term."""
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
"""Longer suffixes first where one ends another."""


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
    """Return the stem of a casefolded word; a word with other letters than a–z is its own stem."""
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    return porter_stem(irregular_forms().get(word, word))


@cache
def _stemmer_of(language: str) -> Callable[[], Any]:
    """Return the class of a published Snowball stemmer; loaded with the first word of its language."""
    name = "dutch_porter" if language == "dutch" else language
    module = import_module(f"snowballstemmer.{name}_stemmer")
    return cast("Callable[[], Any]", getattr(module, name.title().replace("_", "") + "Stemmer"))


def stem_in(language: str, word: str) -> str:
    """Return the Snowball stem of a word in lower case, in Russian or one of `LATIN_LANGUAGES`."""
    stemmer = _stemmer_of(language)()  # a stemmer holds its word while it works, so threads cannot share one
    return cast("str", stemmer.stemWord(word))


def porter_stem(word: str) -> str:
    """Stem by Porter (1980), with the two departures of his own later program (`bli`, `logi`)."""
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
    """Return whether there is a vowel, counting a y after a consonant or at the start."""
    classes = text.encode().translate(_CLASSES)
    return b"v" in classes or (len(text) > 1 and b"y" in classes)


def _measure(text: str) -> int:
    """Count vowels followed by a consonant: Porter's m. A y is a vowel except after a vowel."""
    classes = text.encode().translate(_CLASSES)
    if b"y" in classes:
        if classes.startswith(b"y"):
            classes = b"c" + classes[1:]
        classes = classes.replace(b"vy", b"vc").replace(b"y", b"v")
    return classes.count(b"vc")


def _ends_short(text: str) -> bool:
    """Return whether it ends like "hop": a consonant or nothing, a vowel, a consonant but w and x."""
    return text[-2:-1] in _VOWELS_OR_Y and text[-1] not in _NO_SHORT_END and text[-3:-2] not in _VOWELS


def _singular(word: str) -> str:
    if word.endswith("sses") or (word.endswith("ies") and len(word) > 4):
        return word[:-2]
    return word if word.endswith("ss") else word[:-1]


def _present(word: str) -> str:
    """Strip -ed and -ing."""
    end = word[-3:]
    if end == "eed":
        return word[:-1] if _measure(word[:-3]) else word
    rest = word[:-3] if end == "ing" else word[:-2] if end[-1] == "d" else ""
    return _mended(rest) if _has_vowel(rest) else word


def _mended(word: str) -> str:
    """Restore the e after removing -ed or -ing, or undouble the final consonant."""
    end = word[-2:]
    if end in _MENDED_BY_E:
        return word + "e"
    if end in _DOUBLED:
        return word[:-1]
    if _measure(word) == 1 and _ends_short(word):
        return word + "e"
    return word


def _without_suffixes(word: str) -> str:
    """Remove, in each step, the first of its suffixes that the word has, if enough is left before it."""
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


ANALYZER_VERSION = "a5"
"""Changed whenever the same text may give other terms: an index of another version must be rebuilt."""

_CACHE_MAX = 1 << 16
_WORD_CHARS_MAX = 64
"""Longer runs are cut: they are keys, hashes and noise, and their tails are never searched."""

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
NUMBER_WORDS = {word: str(value) for value, word in enumerate(_COUNTING.split(), start=2)} | {
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "hundred": "100",
    "thousand": "1000",
}
"""English words for numbers, casefolded → in digits."""


_NUMBERS = WordList(__package__, "numbers.txt")


@cache
def _settled(language: str = "english") -> dict[str, tuple[str, ...]]:
    """Words with irregular terms, without accents: numbers, months, and stop words."""
    if language == "english":
        numbers = {word: (number,) for word, number in NUMBER_WORDS.items()}
        return numbers | dict.fromkeys(stop_words("english") | MONTHS.keys(), ())
    numbers = {plain_letters(word): (number,) for number, words in _NUMBERS.pairs(language) for word in words.split()}
    months = enumerate(map(plain_letters, _NUMBERS.words(f"{language} months")), start=1)
    named = {word: (month_term(number),) for number, word in months if word not in MONTHS}
    return named | numbers | dict.fromkeys(stop_words(language), ())


_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff々〇"
_KANA = "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
_HANGUL = "\uac00-\ud7a3"
_THAI = "\u0e01-\u0e3a\u0e40-\u0e4e"
_CJK = _HAN + _KANA + _HANGUL + _THAI

_TOKEN = lazy_pattern(
    rf"[{_HAN}{_KANA}]{{1,{_WORD_CHARS_MAX}}}|[{_HANGUL}]+|[{_THAI}]{{1,{_WORD_CHARS_MAX}}}"
    rf"|\d+(?:[.,:]\d+)*(?:st|nd|rd|th|s)?(?![^\W\d_])|[^\W_{_CJK}]+"
)
_ASCII_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*(?:st|nd|rd|th|s)?(?![a-z])|[a-z0-9]+")
_MONTH_NAMES = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_DATE = lazy_pattern(
    rf"(?<![\w])(?:(?P<iso_y>\d{{4}})[-/.](?P<iso_m>\d{{1,2}})[-/.](?P<iso_d>\d{{1,2}})(?!\d)"
    r"|(?<!\d[-/.])(?P<one>\d{1,2})(?P<mark>[-/.])(?P<two>\d{1,2})(?P=mark)(?P<yn>(?:19|20)\d{2})(?![-/.]?\d)"
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
_MORE_THAN_WORDS = re.compile(r"[0-9](?:[.,:][0-9]|[A-Za-z]|[0-9]{3}[-/.][0-9]|[-/][0-9]{1,2}[-/][0-9]{4})")
"""An ASCII text without any of these has no date in digits, and its tokens are its runs of letters and digits."""
_MAY_BE_DATE = re.compile(r"\d(?:\d{3}[-/.]\d|[-/.]\d{1,2}[-/.]\d{4}| ?[月월])")
"""A date must match this, unless it names its month by a word."""


def year_term(year: int) -> str:
    return str(year)


def month_term(month: int) -> str:
    return f"#m{month}"


def day_term(month: int, day: int) -> str:
    return f"#d{month}-{day}"


def month_and_day(one: int, two: int, mark: str) -> tuple[int, int] | None:
    """Order two numbers before a year as month and day, by their separator: with points the day comes first, else the
    one that cannot be a month. None if ambiguous.
    """
    if mark == "." or one > 12 or one == two:
        return two, one
    return (one, two) if two > 12 else None


def ascii_words(text: str) -> list[str]:
    """Return the runs of letters and digits of an ASCII text, in lower case."""
    return text.encode().translate(_ASCII_WORDS).decode().split()


@cache
def _telling() -> frozenset[str]:
    """Words that make an ASCII text more than plain English: names of months, and small words of other languages."""
    return _MONTH_WORDS | language_signs()


def analyze(text: str, words: Sequence[str] | None = None) -> list[str]:
    """Return the terms of a text in reading order, with repetitions.

    Words are stemmed in the language that the text is written in. In a language other than English the unstemmed words
    are added: a short text gives little evidence of its language, and a name belongs to none.

    `words` are the `ascii_words` of an ASCII text, where the caller has them.
    """
    if text.isascii():
        composed = folded = text.lower()
        if text.isalpha() and folded not in _telling():  # a word by itself
            return list(_TERMS[folded])
        pattern, is_plain = _ASCII_TOKEN, _MORE_THAN_WORDS.search(text) is None
    else:
        composed = _composed(text)
        folded, pattern, is_plain = plain_letters(composed), _TOKEN, False
    tokens: Sequence[str] = (words or ascii_words(text)) if is_plain else pattern.findall(folded)
    terms: list[str] = []
    known = _TERMS
    is_told = not _telling().isdisjoint(tokens)
    if composed != folded or (is_told and not language_signs().isdisjoint(tokens)):
        language = text_language(composed, tokens)
        if language is not None:
            known, folded = _TERMS_IN[language], composed
            tokens = tokens if is_plain else pattern.findall(composed)
    # Every date has the name of a month, or a year or a sign next to its digits.
    if (is_told and not _MONTH_WORDS.isdisjoint(tokens)) or not (is_plain or _MAY_BE_DATE.search(folded) is None):
        left = take_dates(folded, terms)
        if left != folded:
            tokens = pattern.findall(left)
    terms.extend(chain.from_iterable(map(known.__getitem__, tokens)))
    if not text.isascii():
        terms.extend(map(stem, spelled_names(text, stop_words("russian"))))
    return terms


def _composed(text: str) -> str:
    """Normalise by NFKC and casefold, with one apostrophe and ASCII digits; final long vowels of Japanese words are
    dropped.
    """
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold().replace("’", "'"))
    return text if _OTHER_SCRIPT.search(text) is None else _LONG_END.sub("", ascii_digits(text))


_CJK_SIGN = lazy_pattern(f"[{_HAN}{_KANA}]")
_KANA_SIGN = lazy_pattern(f"[{_KANA}]")
_OTHER_SCRIPT = lazy_pattern("[\u0370-\u1dff\u1f00-\u1fff\u2e80-\ud7ff]")
_LONG_END = lazy_pattern("\u30fc(?<=[\u30a1-\u30fa]\u30fc)(?![\u30a1-\u30fc])")


def take_dates(folded: str, terms: list[str]) -> str:
    """Add the terms of the dates written out in a folded text; returns the text without them."""

    def take(match: re.Match[str]) -> str:
        read = _read_date(match)
        if read is None:
            return match[0]
        year, month, day = read
        terms.append(month_term(month))
        if day:
            terms.append(day_term(month, day))
        if year is not None:
            terms.append(year_term(year))
        return " "

    if _DIGIT.search(folded):  # but for a month alone, every date has one
        folded = _DATE.sub(take, folded)
    for plain, ambiguous in _BARE_MONTH.findall(folded):
        terms.append(month_term(MONTHS[plain or ambiguous]))
    return folded


def _read_date(match: re.Match[str]) -> tuple[int | None, int, int] | None:
    """Return year, month and day (0 for a whole month) of a date written out; None where it is not a date."""
    found = match.groupdict()
    if found["mark"]:
        read = month_and_day(int(found["one"]), int(found["two"]), found["mark"])
        if read is None:
            return None
        found["iso_m"], found["iso_d"], found["iso_y"] = *map(str, read), found["yn"]
    month_text = found["iso_m"] or found["m1"] or found["m2"] or found["m3"] or found["zm"]
    month = MONTHS.get(month_text) or (int(month_text) if month_text.isdecimal() else 0)
    day_text = found["iso_d"] or found["d1"] or found["d2"] or found["zd"]
    day = int(day_text) if day_text else 0
    if not 1 <= month <= 12 or day > 31 or (day_text and not day):
        return None
    year = found["iso_y"] or found["y1"] or found["y2"] or found["y3"] or found["zy"]
    return int(year) if year else None, month, day


def date_at(folded: str, start: int) -> tuple[date, int] | None:
    """Return the day of a year written out at this place of a folded text, and its end."""
    match = _DATE.match(folded, start)
    read = _read_date(match) if match is not None else None
    if match is None or read is None:
        return None
    try:
        return date(read[0] or 0, read[1], read[2]), match.end()
    except ValueError:
        return None


class _Terms(Memo[str, tuple[str, ...]]):
    """A cached map of tokens to their terms."""

    def __init__(self, make: Callable[[str], tuple[str, ...]]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, token: str) -> tuple[str, ...]:
        if len(self) >= _CACHE_MAX:
            self.clear()
        self[token] = terms = self._make(token[:_WORD_CHARS_MAX])
        return terms


def _terms_of_token(token: str) -> tuple[str, ...]:
    if token.isascii():
        settled = _settled().get(token)
        if settled is not None:
            return settled
        return (plain_number(token) if token[0].isdigit() else stem(token),)
    first = token[0]
    if "\u0400" <= first <= "\u04ff":
        return _cyrillic(token)
    if "\uac00" <= first <= "\ud7a3":
        return _hangul(token)
    if "\u0e01" <= first <= "\u0e4e":
        return _thai(token)
    if _is_cjk(first):
        return _han(token)
    return (token,)


def _terms_in_language(language: str, token: str) -> tuple[str, ...]:
    """Return a word's stem, and its term in an English text if that differs."""
    plain = plain_letters(token)
    settled = _settled(language).get(plain)
    if settled is not None:
        return settled
    if not (plain.isascii() and plain.isalpha()):
        return _terms_of_token(plain)
    written = stem(plain)
    stemmed = plain_letters(stem_in(language, token))
    return (stemmed,) if stemmed == written else (stemmed, written)


_TERMS = _Terms(_terms_of_token)
_TERMS_IN = {language: _Terms(partial(_terms_in_language, language)) for language in LATIN_LANGUAGES}

_RUSSIAN = lazy_pattern("[а-яё]+")


def _cyrillic(token: str) -> tuple[str, ...]:
    """Return the stem by Russian rules, whichever Cyrillic language it is, so that its forms agree."""
    token = token.replace("ё", "е")
    settled = _settled("russian").get(token)
    if settled is not None:
        return settled
    return (stem_in("russian", token) if _RUSSIAN.fullmatch(token) else token,)


def _is_cjk(char: str) -> bool:
    return _CJK_SIGN.match(char) is not None


def plain_number(token: str) -> str:
    """Normalise a number: 1,000 → 1000; 7th → 7; 2.50 → 2.5; 1990s → 1990s; other words are kept."""
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


_PARTICLE = "的"
"""A word begins after it."""
_NEXT_WORD = lazy_pattern("[\u3041-\u309f][^\u3041-\u309f]|[\u30a1-\u30ff][^\u30a1-\u30ff]")
"""Word starts in Japanese: changes from kana to other characters."""


def _han(run: str) -> tuple[str, ...]:
    """Return each pair of neighbours and each character but kana; numbers, and Latin spellings of katakana."""
    small = stop_words("chinese") | stop_words("japanese")
    signs = [sign for sign in run if len(run) == 1 or _KANA_SIGN.match(sign) is None]
    pairs = [run[at : at + 2] for at in range(len(run) - 1) if run[at] != _PARTICLE]
    if len(signs) < len(run):
        pairs = [pair for pair in pairs if _NEXT_WORD.match(pair) is None]
    spelled = map(stem, spelled_katakana(run))
    return (*[term for term in (*signs, *pairs) if term not in small], *numbers_in_han(run), *spelled)


_THAI_TONE = lazy_pattern("[\u0e47-\u0e4e]")
_THAI_CLUSTER = lazy_pattern("[\u0e40-\u0e44]?[\u0e01-\u0e2f][\u0e31\u0e34-\u0e3a]*|.")


def _thai(run: str) -> tuple[str, ...]:
    """Return pairs of neighbours, as Thai has no blanks between words; a consonant includes its vowels, and no tone."""
    clusters = _THAI_CLUSTER.findall(_THAI_TONE.sub("", run))
    return tuple(["".join(pair) for pair in pairwise(clusters)] or clusters)


def _hangul(run: str) -> tuple[str, ...]:
    """Return, for a word without its particle or ending: the syllables, their pairs, the first and all (`^`)."""
    if run in stop_words("korean"):
        return ()
    kept = 2 if len(run) > 2 else 1
    root = next((run[: -len(end)] for end in _korean_endings() if run.endswith(end, kept)), run)
    pairs = [root[at : at + 2] for at in range(len(root) - 1)]
    return ("^" + run[0], *root, *pairs, "^" + root, *map(stem, spelled_hangul(root)))


class _Hashes(Memo[str, int]):
    """A cached map of terms to their hashes."""

    def __missing__(self, term: str) -> int:
        if len(self) >= _CACHE_MAX:
            self.clear()
        data = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        self[term] = number = int.from_bytes(data, "big")
        return number


_HASHES = _Hashes()


def term_hash(term: str) -> int:
    """Return a stable unsigned 64-bit number for a term."""
    return _HASHES[term]


def term_hashes(terms: Iterable[str]) -> Iterator[int]:
    """`term_hash` of each."""
    return map(_HASHES.__getitem__, terms)
