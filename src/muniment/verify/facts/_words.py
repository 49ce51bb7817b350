"""Tokenise a text into words, each with its place, a comparable key, and its sort.

English words are stemmed; numbers have one form however they are written ("1,100", "five million", "5m"); months and
weekdays are dates; runs of Han and kana are split into character pairs, and Hangul words lose their particle. Total and
pure: any string gives a list of words. `data/lexicon.txt` holds small closed tables of verbs, pronouns, negation,
modality and links, `data/units.txt` units of measure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence, Set
from functools import cache, partial
from typing import Literal, NamedTuple

from muniment.core.limits import remembered
from muniment.core.text.analyzer import MONTHS, korean_particles, stem, stop_words
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import WordList

# -- the lexicon ---------------------------------------------------------------------------------------

_LEXICON = WordList(__package__, "lexicon.txt")


def _lexicon_words(section: str) -> frozenset[str]:
    return frozenset(_LEXICON.words(section))


def _stems(section: str) -> frozenset[str]:
    return frozenset(map(stem, _LEXICON.words(section)))


GENDER = {word: gender for gender, words in _LEXICON.pairs("gender") for word in words.split()}
"""A third-person pronoun → the gender it refers to."""
POSSESSIVE = _lexicon_words("possessive")

MODALITY = {word: int(degree) for degree, words in _LEXICON.pairs("modality") for word in words.split()}
"""Words of certainty → 0 possible, 1 likely, 2 certain."""

LINKS = {
    form: sense for sense, words in _LEXICON.pairs("links") for word in words.split() for form in (word, stem(word))
}
"""A word that links two clauses, or its stem → the kind of link."""
OPPOSED_LINKS = {"cause": "contrast", "contrast": "cause", "earlier": "later", "later": "earlier"}

AUXILIARY = _lexicon_words("auxiliary")
"""Words that precede a verb."""
ARTICLES = _lexicon_words("articles")
"""Words that never directly precede a verb."""
PASSIVE = _lexicon_words("passive")

PREPOSITIONS = _lexicon_words("prepositions") | _stems("prepositions")
"""Words whose phrases are no side of a verb."""
CIRCUMSTANCE_BEFORE = _lexicon_words("circumstance before")
"""Words that introduce the time or place of an event."""
PERIODS = _stems("periods")
"""Units of time and distance."""

WEIGHTY_STOP_WORDS = _lexicon_words("stop words of weight")
"""Stop words of the index on which a claim may depend."""
TURNS = _lexicon_words("turns")
"""Transitions and forms of address, which claim nothing."""

NOT_ALONE = _lexicon_words("not alone")
"""Words that after "not" do not negate: not only."""
_NEGATION = _lexicon_words("negation")
_NEGATION_ZH = _lexicon_words("negation chinese")
_NEGATION_KO, _NEGATION_KO_WORDS = _lexicon_words("negation korean"), _lexicon_words("negation korean words")


@cache
def verb_stems() -> frozenset[str]:
    """Stems of the common verbs."""
    return _stems("verbs")


@cache
def denying_stems() -> frozenset[str]:
    """Stems of words that negate without a "not"."""
    return _stems("denying")


def may_negate(text: str, keys: Set[str]) -> bool:
    """Return whether any word of a text can negate. `keys` are those of its words, so that most texts are decided at
    once.
    """
    return not text.isascii() or not _NEGATION.isdisjoint(keys)


def negates(text: str, key: str) -> bool:
    """True if the word negates; `text` as written, `key` as compared."""
    if text.isascii():
        return key in _NEGATION
    if "\uac00" <= text[0] <= "\ud7a3":
        return text in _NEGATION_KO_WORDS or any(part in text for part in _NEGATION_KO)
    return text[0] in _NEGATION_ZH or key == "not"


# -- words ----------------------------------------------------------------------------------------------

Kind = Literal["word", "name", "number", "date", "small"]


class Word(NamedTuple):
    """A word: its place, the key it is compared by, its sort; `small` words carry no content."""

    text: str
    start: int
    end: int
    key: str
    kind: Kind


_word: Callable[[tuple[str, int, int, str, Kind]], Word] = partial(tuple.__new__, Word)
"""Make a word from its parts directly, as the constructor call is a measurable cost for so many words."""
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々〇\u3041-\u3096\u30a1-\u30fa\u30fc-\u30ff"
_HANGUL = "\uac00-\ud7a3"
_TOKEN = lazy_pattern(
    rf"[{_HAN}]+|[{_HANGUL}]+|\d{{4}}-\d{{2}}-\d{{2}}(?!\d)|(?:[A-Z]\.){{2,}}[A-Z]?|[A-Z]\.[A-Z]\b|[A-Z]+-?\d+\b|\d[A-Z]\b|\d+(?:[.,:]\d+)*"
    rf"|[^\W\d_{_HAN}{_HANGUL}]+(?:['’](?:s|t|re|ve|ll|d|m)\b)?"
)
_ISO = lazy_pattern(r"(\d{4})-(\d{2})-(\d{2})")
_WORD_CHARS_MAX = 64
"""Longer runs are compared by their beginning: they are keys, hashes and noise."""
_AMERICA = frozenset(("US", "U.S", "U.S.", "USA", "U.S.A", "U.S.A."))
_QUARTER = lazy_pattern(r"q([1-4])|([1-4])q")
_WEEKDAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday"
_WEEKDAYS = {name: f"#w{number}" for number, name in enumerate(_WEEKDAY_NAMES.split())}
_SMALL = (stop_words("english") - WEIGHTY_STOP_WORDS) | TURNS


def read_words(text: str) -> list[Word]:
    """The words of a text in reading order. Names are recognised only by their capital."""
    found = list(_TOKEN.finditer(text))
    words: list[Word] = []
    at = 0
    while at < len(found):
        token = found[at]
        body = token[0]
        start, end = token.span()
        plain = _plain_key(body[:_WORD_CHARS_MAX])
        if plain is not None:
            words.append(_word((body, start, end, *plain)))
            at += 1
            continue
        number = None
        iso = _ISO.fullmatch(body)
        if iso and 1 <= int(iso[2]) <= 12:
            words.extend(_date(iso, start))
        elif body[0].isdecimal() and body[-1].isdecimal():
            number = read_number(text, found, at)
        elif is_cjk(body[0]):
            after = text[end : end + 2].strip()[:1]
            words.extend([_hangul(body, start, after)] if is_hangul(body[0]) else _han(body, start))
        else:
            number = spelled_number(found, at)
            if number is None:
                words.append(Word(body, start, end, *_latin_key(body[:_WORD_CHARS_MAX])))
        if number is not None:
            kind: Kind = "date" if number.key[0] == "#" else "number"
            words.append(Word(text[start : number.end], start, number.end, number.key, kind))
        at += number.tokens if number is not None else 1
    return words


def _date(iso: re.Match[str], start: int) -> Iterator[Word]:
    """Read 2023-05-07 as the words of "7 May 2023"."""
    for part, key in ((1, iso[1]), (2, f"#m{int(iso[2])}"), (3, str(int(iso[3])))):
        left, right = iso.span(part)
        yield Word(iso[part], start + left, start + right, key, "date" if part == 2 else "number")


def is_cjk(char: str) -> bool:
    """True for a Chinese, Japanese or Korean character."""
    return is_hangul(char) or _is_han(char)


def is_hangul(char: str) -> bool:
    return "\uac00" <= char <= "\ud7a3"


def _is_han(char: str) -> bool:
    return (
        "\u3041" <= char <= "\u30ff" or "\u3400" <= char <= "\u9fff" or "\uf900" <= char <= "\ufaff" or char in "々〇"
    )


@remembered(1 << 14)
def _plain_key(body: str) -> tuple[str, Kind] | None:
    """The key and kind of a self-contained word; None for a number, or a word of a script that is split by
    character.
    """
    if body[0].isdecimal() or is_cjk(body[0]) or is_spelled(body):
        return None
    return _latin_key(body)


def _latin_key(body: str) -> tuple[str, Kind]:
    if body in _AMERICA:
        return "usa", "name"
    folded = body.casefold().replace("’", "'").replace(".", "")
    if not folded.isascii():
        folded = "".join(char for char in unicodedata.normalize("NFKD", folded) if not "\u0300" <= char <= "\u036f")
    if folded.endswith("n't") or folded in ("nt", "not", "cannot"):
        return "not", "small"
    bare = folded.split("'")[0]
    quarter = _QUARTER.fullmatch(bare)
    if quarter:
        return f"{quarter[1] or quarter[2]}th", "number"
    if folded in ORDINALS:
        return ORDINALS[folded], "number"
    if bare in _WEEKDAYS or bare[:-1] in _WEEKDAYS:
        return _WEEKDAYS.get(bare) or _WEEKDAYS[bare[:-1]], "date"
    if bare in MONTHS and body[:1].isupper():
        return f"#m{MONTHS[bare]}", "date"
    if bare in _SMALL or not bare:
        return bare or folded, "small"
    if body[0].isupper():
        return stem(bare), "name"
    return stem(bare), "word"


def _han(run: str, start: int) -> Iterator[Word]:
    """Numbers with their counter words, and pairs of adjacent characters; a lone character is itself."""
    at = 0
    stops = stop_words("chinese")
    while at < len(run):
        number = chinese_number(run, at)
        if number is not None:
            yield Word(run[at : number.end], start + at, start + number.end, number.key, "number")
            at = number.end
            continue
        pair = run[at : at + (1 if chinese_number(run, at + 1) else 2)]
        small = pair in stops or any(sign in stops for sign in pair)
        yield Word(pair, start + at, start + at + len(pair), pair, "small" if small else "word")
        at += 1
        if at == len(run) - 1:
            break


def _hangul(run: str, start: int, after: str) -> Word:
    """A word without its particle, or a number with its counter."""
    root = run
    for particle in korean_particles():
        if run.endswith(particle) and len(run) - len(particle) > 1:
            root = run[: -len(particle)]
            break
    number = korean_number(root, after)
    if number is not None:
        return Word(run, start, start + len(run), number, "number")
    small = run in stop_words("korean") or negates(run, root)
    return Word(run, start, start + len(run), root, "small" if small else "word")


# -- numbers -------------------------------------------------------------------------------------------

_LARGE = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_MULTIPLIERS = _LARGE | {"k": 1e3, "m": 1e6, "mn": 1e6, "bn": 1e9, "b": 1e9, "tn": 1e12}
_CJK_MULTIPLIERS = dict(zip("百千万萬亿億백천만억", (1e2, 1e3, 1e4, 1e4, 1e8, 1e8, 1e2, 1e3, 1e4, 1e8), strict=True))
_ONES_TEXT = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS_TEXT = "twenty thirty forty fifty sixty seventy eighty ninety"
_ONES = {word: float(value) for value, word in enumerate(_ONES_TEXT.split())}
_TENS = {word: float(value * 10) for value, word in enumerate(_TENS_TEXT.split(), start=2)}
_SPELLED = _ONES | _TENS | {"dozen": 12.0, "half": 0.5}
_ORDINALS_TEXT = "first second third fourth fifth sixth seventh eighth ninth tenth"
ORDINALS = {word: f"{value}th" for value, word in enumerate(_ORDINALS_TEXT.split(), start=1)}
_KOREAN_TEXT = "하나 둘 셋 넷 다섯 여섯 일곱 여덟 아홉 열"
_KOREAN = {word: value for value, word in enumerate(_KOREAN_TEXT.split(), start=1)}
_KOREAN |= {"한": 1, "두": 2, "세": 3, "네": 4}
KOREAN_COUNTERS = frozenset("명개살번달시마권잔대")
_CHINESE = lazy_pattern(
    "[一二两三四五六七八九十百千万亿零〇]{1,12}(?=[个人名年月日号岁天次只家位元块米公里小时分钟周件本场届])"
)
_CHINESE_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_CHINESE_UNITS = {"十": 10, "百": 100, "千": 1000}
_DIGITS_MAX = 15
_MONTHS = range(1, 13)


class Number(NamedTuple):
    """A number's key, its end, and the number of tokens it takes."""

    key: str
    end: int
    tokens: int


def _digits(value: float) -> str:
    """A number in digits, without needless ones."""
    return f"{value:.10g}"


def read_number(text: str, found: Sequence[re.Match[str]], at: int) -> Number:
    """Read a number with its multiplier ("5 million", "2.5m", "3万") or ordinal ending ("7th")."""
    token = found[at]
    start, end = token.span()
    value = _value(token[0])
    if value is None:
        return Number(unicodedata.normalize("NFKC", token[0]), end, 1)
    before = found[at - 1] if at else None
    if before and len(token[0]) == 2 and len(before[0]) == 4 and text[before.end() : start] in ("-", "–", "/"):
        return Number(before[0][:2] + token[0], end, 1)  # 2018–19
    if text[end : end + 1] in ("月", "월") and value in _MONTHS:
        return Number(f"#m{int(value)}", end, 1)
    if at + 1 < len(found):
        after = found[at + 1]
        gap, tail = text[end : after.start()], after[0].casefold()
        if tail in _MULTIPLIERS and (gap == "" or (tail in _LARGE and gap in (" ", "-", "\u00a0"))):
            return Number(_digits(value * _MULTIPLIERS[tail]), after.end(), 2)
        if gap == "" and tail in ("st", "nd", "rd", "th"):
            return Number(f"{_digits(value)}th", after.end(), 2)
        if gap == "" and tail[0] in _CJK_MULTIPLIERS:
            return Number(_digits(value * _CJK_MULTIPLIERS[tail[0]]), end + 1, 1 + (len(tail) == 1))
    return Number(_digits(value), end, 1)


def _value(body: str) -> float | None:
    digits = body.replace(",", "")
    if digits.count(".") > 1 or ":" in digits or len(digits) > _DIGITS_MAX:
        return None
    return float(digits)


def is_spelled(word: str) -> bool:
    """True if a number in English words may begin with this word."""
    return word.casefold() in _SPELLED


def spelled_number(found: Sequence[re.Match[str]], at: int) -> Number | None:
    """A number in English words: "twenty-two", "five million"."""
    word = found[at][0].casefold()
    if word not in _SPELLED:
        return None
    value, used = _SPELLED[word], 1
    if word in _TENS and at + 1 < len(found):
        ones = _ONES.get(found[at + 1][0].casefold(), 0.0)
        if 0 < ones < 10:
            value, used = value + ones, 2
    if at + used < len(found) and found[at + used][0].casefold() in _LARGE:
        value, used = value * _LARGE[found[at + used][0].casefold()], used + 1
    return Number(_digits(value), found[at + used - 1].end(), used)


def chinese_number(run: str, at: int) -> Number | None:
    """A number in Chinese characters, with its counter word."""
    found = _CHINESE.match(run, at)
    if found is None:
        return None
    total = section = current = 0
    for sign in found[0]:
        if sign in _CHINESE_DIGITS:
            row = current * 10 if current and not section and not total else 0  # 二〇二三
            current = row + _CHINESE_DIGITS[sign]
        elif sign in _CHINESE_UNITS:
            section += (current or 1) * _CHINESE_UNITS[sign]
            current = 0
        else:
            total = (total + section + current or 1) * int(_CJK_MULTIPLIERS[sign])
            section = current = 0
    return Number(str(total + section + current), found.end(), 1)


def korean_number(root: str, after: str) -> str | None:
    """The value of a native Korean number joined to its counter, or before it."""
    word = root[:-1] if root[-1] in KOREAN_COUNTERS else root if after in KOREAN_COUNTERS else ""
    value = _KOREAN.get(word)
    return None if value is None else str(value)


# -- units ---------------------------------------------------------------------------------------------

_UNITS = {form: unit for unit, forms in WordList(__package__, "units.txt").pairs() for form in forms.split()}
_SIGNS_BEFORE = frozenset("$€£¥₩")
_CJK_UNITS = sorted((form for form in _UNITS if not form.isascii() and form[0].isalpha()), key=lambda form: -len(form))


def unit_of(text: str, words: Sequence[Word], at: int) -> str | None:
    """The unit of the number at a place: a sign before or after it, or the next word."""
    word = words[at]
    before, behind = text[word.start - 1 : word.start], text[word.end : word.end + 8].lstrip(" -")
    if before in _SIGNS_BEFORE:
        return _UNITS.get(before)
    if behind[:1] in ("%", "％", "°"):
        return _UNITS[behind[:1]]
    for form in _CJK_UNITS:
        if behind.startswith(form):
            return _UNITS[form]
    if at + 1 < len(words) and words[at + 1].start - word.end <= 1:
        return _UNITS.get(words[at + 1].text.casefold())
    return None
