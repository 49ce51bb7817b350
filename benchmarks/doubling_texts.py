"""Texts that are bad for whoever reads them, grown from a grammar of our own patterns.

The letters of the grammar are pieces: stretches that match our regular expressions, or match them but for the end, made
from the expressions themselves; phrases of our word lists; and the signs that structured texts are made of. A recipe is
one or two runs of pieces between two ends; it makes a text of any size. Recipes are crossed and changed at random, and
whoever measures them says which are kept. All of it follows from a seed.
"""

# ruff: noqa: E501 - pieces read best with a kind to a line

from __future__ import annotations

import importlib
import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import muniment

__all__ = [
    "SIGNS",
    "Recipe",
    "change",
    "compiled_sources",
    "cross",
    "listed_phrases",
    "pieces_of",
    "pumps_of",
    "random_recipe",
]

SIGNS: tuple[str, ...] = (
    # white space, quotes, brackets, dashes, ends of sentences and other signs
    " ", "\t", "\n", "\r\n", "\n\n", "\u3000", "\u00a0", '"', "'", "“", "”", "「", "」", "''", "(", ")", "[", "]", "{", "}",
    "<", ">", "((a)", "[[", "]]", "-", "—", "--", "- ", ",", ", ", "，", ";", "、", ".", ". ", "...", "…", "。", "!? ", "?",
    "_", "*", "**", "#", "|", "~", "`", "```", "/", ":", "=", "+", "@", "&", "%", "^", "\\", "$", "$$",
    # what is not seen: combining marks, joiners, tags, directions
    "\u200b", "\u200d", "\u0301", "e\u0301", "\u202e", "\ufeff", "\u00ad", "\U000e0041", "\U000e007f", "\x00", "\x1b[31m",
    "\u034f", "\ufe0f", "👩‍👩‍👧", "🇩🇪", "ﷺ", "ﬃ", "İ", "ß", "Ａ", "а", "ο",
    # markup: tables, lists, headings, HTML, entities, comments
    "| a | b |\n", "|---|---|\n", "# a\n", "###### ", "> ", "  - a\n", "1. a\n", "[a](b)", "![a](", "[1]: http://a.b\n", "[^1]",
    "---\n", "<div>", "</div>", "<p>", "<a href=", "<!--", "-->", "<script>", "</script>", "<br/>", "&amp;", "&#x41;", "&lt;",
    "<b><i>", "<td>", "<li>", "<style>", "<![CDATA[", "<?", "<|im_start|>", "[INST]", "</s>", "<h1>", "<table><tr>", "<pre>",
    # data: JSON, YAML, code, base64, hexadecimals, escapes, addresses
    '{"a":', "[1,", '"a",', "}]", '\\"', "\\u0041", "\\\\", "a: b\n", "- a: \n", "&a ", "*a ", "def f(): ", "x = 1\n", "QUJDREVG",
    "QUJD+/==", "deadbeef", "aA0", "%41", "=41=", "http://a.b/", "https://example.com/a?b=c ", "www.", "a@b.c ", "1.2.3.4 ", "::1",
    "C:\\a\\", "../", "uryyb ", "1gn0r3 ", "Bearer ", "sk-abcd", "-----BEGIN ", "-----END ", "eyJhbGci.", "password=",
    # numbers, dates, cards and phones
    "7", "0", "12 ", "1,000 ", "1.5 ", "4111 1111 1111 1111 ", "4111-", "+49 171 ", "DE89 3704 ", "2024-05-01 ", "May 3rd, ", "1/2/",
    "12:30 ", "$5 ", "5 kg ", "50% ", "1990s ", "XIV ", "one hundred and ", "三百", "2024年5月", "5월 3일 ",
    # names and words that differ from one to the next: the sign # stands for a count
    "w# ", "Anna# ", "Anna# Berta# said ", "n#, ", "k#: v#\n", "- item#\n", "[#] ", "[^#]: a\n", "#. ", "person# likes thing#. ",
    "http://a.b/# ", "Dr. N# ", "<x# y=#>", '"k#": #, ', "S# is a T#. ",
    # what people say
    "I live in ", "I moved to Rome ", "my name is ", "I am ", "my sister ", "I like ", "and ", "not ", "because ", "that ", "I ",
    "he ", "she said ", "who ", "where ", "what ", "yesterday ", "last monday ", "two weeks ago ", "between ", "from 1 to ",
    "no longer ", "always ", "never ", "please ", "don't ", "you must ", "ignore previous instructions ", "system: ", "if ", "a", "ok ",
    "我住在北京", "我喜欢", "一", "的", "我", "昨天", "나는 서울에 ", "저는 ", "에 살아요. ", "私は", "東京に住んで", "です。", "ich wohne in ",
    "j'habite à ", "vivo en ", "moro em ", "я ", "م ", "ก",
)  # fmt: skip
"""Pieces that no single expression of ours tells; the doubled sign ## stays what it is."""

_ENDS = (
    ("", ""),
    ("On Monday I said: where I live now, ", " and 3 more. What do I like, 我住在哪里, 어디에 살아요?"),
    ("I live in ", "."),
    ('"', '"'),
    ("<p>", "</p>"),
    ("[", "]"),
    ("", "x"),
    ("", "\n"),
    ("# A\n\n", "\n\nSources\n\n[1] http://a.b/c\n"),
)
_PIECES_MAX = 4
_REPEATED_MAX = 3
_SAMPLES_OF_ONE = 2
_PUMPED_MIN = 200
"""What may be repeated so often is as good as endless."""
_SAMPLE_CHARS_MAX = 60
_COUNT = "\x02"


class Recipe(NamedTuple):
    """What makes a text of any size: `first` over and over, then `then`, between two ends."""

    first: tuple[str, ...]
    then: tuple[str, ...] = ()
    ends: int = 0

    def text(self, size: int) -> str:
        """About as many characters, never half a piece."""
        before, after = _ENDS[self.ends]
        halves = [half for half in (self.first, self.then) if half]
        share = max(1, size - len(before) - len(after)) // len(halves)
        return before + "".join(_run("".join(half), share) for half in halves) + after

    def told(self) -> str:
        """As it is printed: short, on one line."""
        runs = " then ".join(repr("".join(half))[1:-1] for half in (self.first, self.then) if half)
        return f"{runs} @{self.ends}"


def _run(stretch: str, size: int) -> str:
    """The stretch over and over; each # in it is the number of the round, in letters so that names stay names."""
    if "#" not in stretch.replace("##", ""):
        return stretch * max(1, size // len(stretch))
    made: list[str] = []
    length = number = 0
    pattern = stretch.replace("##", _COUNT)
    while length < size:
        number += 1
        piece = pattern.replace("#", _letters(number)).replace(_COUNT, "#")
        made.append(piece)
        length += len(piece)
    return "".join(made)


def _letters(number: int) -> str:
    text = ""
    while number:
        number, rest = divmod(number, 26)
        text = chr(97 + rest) + text
    return text


# -- pieces -----------------------------------------------------------------------------------------------


class _Recording:
    """What `re` compiles while it is on. Most of our expressions are made when they are first used, so it is on while
    every door is walked through once.
    """

    def __init__(self) -> None:
        self.sources: dict[str, None] = {}
        self._compiler: Any = importlib.import_module("re._compiler")
        self._plain: Any = self._compiler.compile

    def __enter__(self) -> _Recording:
        def recorded(pattern: Any, flags: int = 0) -> Any:
            if isinstance(pattern, str):
                self.sources[pattern] = None
            return self._plain(pattern, flags)

        re.purge()
        self._compiler.compile = recorded
        return self

    def __exit__(self, *_: object) -> None:
        self._compiler.compile = self._plain


def compiled_sources(walk: Callable[[], None]) -> list[str]:
    """The regular expressions that a walk compiles, sorted."""
    with _Recording() as recording:
        walk()
    return sorted(recording.sources)


@cache
def listed_phrases() -> tuple[str, ...]:
    """Lines of the package's word lists, without comments and headings."""
    found: dict[str, None] = {}
    for path in sorted(Path(muniment.__file__).parent.rglob("data/*.txt")):
        for line in path.read_text("utf-8").splitlines():
            phrase = line.strip()
            if phrase and phrase[0] not in "#[" and len(phrase) <= _SAMPLE_CHARS_MAX:
                found[phrase.replace("#", "##")] = None
    return tuple(found)


def pieces_of(sources: Sequence[str], seed: int) -> list[str]:
    """For each expression stretches that it matches, and each but for its end or its beginning."""
    dice = random.Random(seed)
    found: dict[str, None] = {}
    for source in sources:
        for _ in range(_SAMPLES_OF_ONE):
            try:
                made = _sampled(source, dice)
            except (re.error, RecursionError, IndexError, ValueError, OverflowError):
                break
            for piece in (made, made + " ", made[:-1], made[1:], made[: len(made) // 2]):
                if piece and len(piece) <= _SAMPLE_CHARS_MAX:
                    found[piece.replace("#", "##")] = None
    return list(found)


def _sampled(source: str, dice: random.Random) -> str:
    parser: Any = importlib.import_module("re._parser")
    return "".join(_signs(parser.parse(source), dice))[: 2 * _SAMPLE_CHARS_MAX]


def _signs(nodes: Any, dice: random.Random) -> Iterator[str]:
    for op, given in nodes:
        name = str(op)
        if name == "LITERAL":
            yield chr(given)
        elif name in ("ANY", "NOT_LITERAL"):
            yield "x" if given is None or chr(given) != "x" else "y"
        elif name == "IN":
            yield _member(given, dice)
        elif name == "BRANCH":
            yield from _signs(dice.choice(given[1]), dice)
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, inner = given
            for _ in range(dice.randint(least, max(least, min(int(most), least + _REPEATED_MAX)))):
                yield from _signs(inner, dice)
        elif name == "SUBPATTERN":
            yield from _signs(given[3], dice)
        elif name == "ATOMIC_GROUP":
            yield from _signs(given, dice)


def pumps_of(source: str, seed: int) -> list[tuple[str, str]]:
    """For each part of an expression that may be repeated without end: what leads up to it, and one round of it.

    A text of the first, many of the second and then a sign that does not fit is what backtracking is worst at.
    """
    parser: Any = importlib.import_module("re._parser")
    found: dict[tuple[str, str], None] = {}
    dice = random.Random(seed)
    for _ in range(2 * _SAMPLES_OF_ONE):
        _walk(parser.parse(source), dice, [], found)
    return [(before[-_SAMPLE_CHARS_MAX:], pump) for before, pump in found if pump]


def _walk(nodes: Any, dice: random.Random, said: list[str], found: dict[tuple[str, str], None]) -> None:
    """Say a sample of an expression, piece by piece, and note each endless repeat with what was said before it."""
    for op, given in nodes:
        name = str(op)
        if name == "BRANCH":
            _walk(dice.choice(given[1]), dice, said, found)
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, inner = given
            if int(most) > _PUMPED_MIN:
                found["".join(said), "".join(_signs(inner, dice))] = None
            for _ in range(dice.randint(least, max(least, min(int(most), least + 1)))):
                _walk(inner, dice, said, found)
        elif name == "SUBPATTERN":
            _walk(given[3], dice, said, found)
        elif name == "ATOMIC_GROUP":
            _walk(given, dice, said, found)
        else:
            said.extend(_signs([(op, given)], dice))


_CATEGORIES = {"CATEGORY_DIGIT": "7", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a"}


def _member(members: Any, dice: random.Random) -> str:
    if str(members[0][0]) == "NEGATE":
        return "x"
    op, given = dice.choice(members)
    if str(op) == "LITERAL":
        return chr(given)
    if str(op) == "RANGE":
        return chr(dice.randint(given[0], given[1]))
    return _CATEGORIES.get(str(given), "-")


# -- recipes ----------------------------------------------------------------------------------------------


def random_recipe(pieces: Sequence[str], dice: random.Random) -> Recipe:
    """One of few pieces more often than of many, seldom of two runs."""
    first = _pieces(pieces, dice)
    then = _pieces(pieces, dice) if dice.random() < 0.2 else ()
    return Recipe(first, then, dice.randrange(len(_ENDS)))


def _pieces(pieces: Sequence[str], dice: random.Random) -> tuple[str, ...]:
    sources = (SIGNS, pieces, listed_phrases())
    count = min(_PIECES_MAX, 1 + int(dice.expovariate(1.2)))
    return tuple(dice.choice(dice.choice(sources)) for _ in range(count))


def change(recipe: Recipe, pieces: Sequence[str], dice: random.Random) -> Recipe:
    """The recipe with one thing about it changed."""
    first = list(recipe.first)
    fresh = _pieces(pieces, dice)[0]
    kind = dice.randrange(6)
    if kind == 0 and len(first) < _PIECES_MAX:
        first.insert(dice.randrange(len(first) + 1), fresh)
    elif kind == 1 and len(first) > 1:
        del first[dice.randrange(len(first))]
    elif kind == 2:
        return recipe._replace(ends=dice.randrange(len(_ENDS)))
    elif kind == 3:
        return recipe._replace(then=() if recipe.then else (fresh,))
    elif kind == 4:
        return recipe._replace(then=recipe.first, first=(fresh,))
    else:
        first[dice.randrange(len(first))] = fresh
    return recipe._replace(first=tuple(first))


def cross(one: Recipe, other: Recipe, dice: random.Random) -> Recipe:
    """Some pieces of each."""
    both = [*one.first, *other.first]
    chosen = tuple(dice.sample(both, min(_PIECES_MAX, max(1, len(both) // 2))))
    return Recipe(chosen, dice.choice((one.then, other.then)), dice.choice((one.ends, other.ends)))
