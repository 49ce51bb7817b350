"""Constraints on the shape of a text: how long it is, what it is divided into, how it begins and ends."""

from __future__ import annotations

import re
from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from muniment.core.record import Absent, Count, Items, NonEmpty
from muniment.core.text.tokens import estimate_tokens
from muniment.verify.static.base import Bounds, Constraint, View, Violation
from muniment.verify.static.counting import (
    bullet_count,
    capital_word_count,
    headings,
    highlight_count,
    paragraphs,
    placeholder_count,
    titles,
    word_count,
)

__all__ = [
    "Alternatives",
    "Bullets",
    "CapitalWords",
    "Case",
    "EndsWith",
    "ExactMatch",
    "Headings",
    "Highlights",
    "Length",
    "Lines",
    "NoPunctuation",
    "NotEmpty",
    "OneOf",
    "ParagraphStart",
    "Paragraphs",
    "Placeholders",
    "Postscript",
    "Quoted",
    "Sections",
    "Sentences",
    "StartsWith",
    "Title",
    "Words",
]

_QUOTES = {"double": ('"', '"'), "single": ("'", "'"), "curly": ("“", "”"), "guillemets": ("«", "»")}
_WORD_ENDS = frozenset(".,?!'\"")


class NotEmpty(Constraint):
    """There is an answer at all."""

    NAME: ClassVar[str] = "not_empty"
    KEY: ClassVar[str] = "FORMAT:NOT_EMPTY"
    REASON: ClassVar[str] = "truncation_or_cutoff"

    def check(self, view: View) -> Violation | None:
        return None if view.stripped else Violation("the output is blank")


# -- how much -----------------------------------------------------------------------------------------


class Length(Bounds):
    """Characters, UTF-8 bytes, or tokens by estimate."""

    NAME: ClassVar[str] = "length"
    KEY: ClassVar[str] = "FORMAT:LENGTH"

    unit: Literal["characters", "bytes", "tokens"] = "characters"

    def check(self, view: View) -> Violation | None:
        if self.unit == "characters":
            return self.outside(len(view.text), self.unit)
        if self.unit == "bytes":
            return self.outside(len(view.text.encode()), self.unit)
        return self.outside(estimate_tokens(view.text), self.unit)


class Lines(Bounds):
    """Lines that are not blank."""

    NAME: ClassVar[str] = "lines"
    KEY: ClassVar[str] = "FORMAT:LINES"

    def check(self, view: View) -> Violation | None:
        return self.outside(sum(1 for line in view.text.splitlines() if line.strip()), "lines")


class Words(Bounds):
    """Words; a Chinese or Japanese sign counts by itself."""

    NAME: ClassVar[str] = "words"
    KEY: ClassVar[str] = "FORMAT:WORDS"

    def check(self, view: View) -> Violation | None:
        return self.outside(view.words, "words")


class Sentences(Bounds):
    """Sentences; an abbreviation ends none."""

    NAME: ClassVar[str] = "sentences"
    KEY: ClassVar[str] = "FORMAT:SENTENCES"

    def check(self, view: View) -> Violation | None:
        return self.outside(view.sentences, "sentences")


class Paragraphs(Bounds):
    """Paragraphs between blank lines, or between `separator`; `words_max` bounds each of them."""

    NAME: ClassVar[str] = "paragraphs"
    KEY: ClassVar[str] = "FORMAT:PARAGRAPHS"
    NEEDS_BOUND: ClassVar[bool] = False

    separator: Absent[NonEmpty] = None
    words_max: Absent[Count] = None

    def check(self, view: View) -> Violation | None:
        found = paragraphs(view.text, self.separator)
        if self.separator is not None and any(not part.strip() for part in found):
            return Violation("an empty paragraph between two separators")
        if self.words_max is not None:
            for number, part in enumerate(found, 1):
                if (words := word_count(part)) > self.words_max:
                    return Violation(f"paragraph {number} has {words} words, at most {self.words_max} allowed")
        return self.outside(len(found), "paragraphs")


class ParagraphStart(Constraint):
    """Paragraph `paragraph` of `of`, separated by blank lines, starts with `word`, in any case."""

    NAME: ClassVar[str] = "paragraph_start"
    KEY: ClassVar[str] = "FORMAT:PARAGRAPH_START"

    paragraph: Count
    word: NonEmpty
    of: Absent[Count] = None

    def check(self, view: View) -> Violation | None:
        parts = view.text.split("\n\n")
        count = sum(1 for part in parts if part.strip())
        if self.of is not None and count != self.of:
            return Violation(f"{count} paragraphs, exactly {self.of} wanted")
        if not 1 <= self.paragraph <= count or not parts[self.paragraph - 1].strip():
            return Violation(f"there is no paragraph {self.paragraph}")
        first = parts[self.paragraph - 1].split()[0].lstrip("'").lstrip('"')
        end = next((at for at, char in enumerate(first) if char in _WORD_ENDS), len(first))
        if first[:end].lower() == self.word.lower():
            return None
        return Violation(f"paragraph {self.paragraph} starts with {first[:end]!r}, not {self.word!r}")


# -- what it is divided into --------------------------------------------------------------------------


class Sections(Bounds):
    """Sections that begin with a marker and a number: `Section 1`, `SECTION 2`."""

    NAME: ClassVar[str] = "sections"
    KEY: ClassVar[str] = "FORMAT:SECTIONS"

    marker: NonEmpty = "Section"

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(re.escape(self.marker.strip()) + r"\s?\d")

    def check(self, view: View) -> Violation | None:
        return self.outside(len(self._pattern.findall(view.text)), f"sections marked {self.marker!r}")


class Headings(Bounds):
    """Markdown headings: how many, of which level, and in order those that must be there."""

    NAME: ClassVar[str] = "headings"
    KEY: ClassVar[str] = "FORMAT:HEADINGS"
    SHORT: ClassVar[str | None] = "names"
    NEEDS_BOUND: ClassVar[bool] = False

    names: Items[NonEmpty] = ()
    level: Absent[Count] = None
    only: bool = False

    @model_validator(mode="after")
    def _check_asked(self) -> Self:
        if self.limits == (0, None) and not self.names:
            raise ValueError("say how many headings, or their names")
        return self

    def check(self, view: View) -> Violation | None:
        found = [name for level, name in headings(view.text) if self.level in (None, level)]
        rest = iter(name.casefold() for name in found)
        for name in self.names:
            if name.casefold() not in rest:
                return Violation(f"the heading {name!r} is missing, or stands too early")
        if self.only and len(found) != len(self.names):
            return Violation(f"{len(found)} headings, only the {len(self.names)} named ones are allowed")
        return self.outside(len(found), "headings")


class Bullets(Bounds):
    """Lines that begin with `*` or `-`."""

    NAME: ClassVar[str] = "bullets"
    KEY: ClassVar[str] = "FORMAT:BULLETS"

    def check(self, view: View) -> Violation | None:
        return self.outside(bullet_count(view.text), "bullet points")


class Highlights(Bounds):
    """Parts between asterisks."""

    NAME: ClassVar[str] = "highlights"
    KEY: ClassVar[str] = "FORMAT:HIGHLIGHTS"

    def check(self, view: View) -> Violation | None:
        return self.outside(highlight_count(view.text), "highlighted parts")


class Placeholders(Bounds):
    """Placeholders in square brackets, such as [address]."""

    NAME: ClassVar[str] = "placeholders"
    KEY: ClassVar[str] = "FORMAT:PLACEHOLDERS"

    def check(self, view: View) -> Violation | None:
        return self.outside(placeholder_count(view.text), "placeholders")


class Title(Constraint):
    """A title in double angle brackets, such as <<poem of joy>>."""

    NAME: ClassVar[str] = "title"
    KEY: ClassVar[str] = "FORMAT:TITLE"

    def check(self, view: View) -> Violation | None:
        return None if titles(view.text) else Violation("there is no <<title>>")


class Postscript(Constraint):
    """A postscript that begins with its marker, in any case, with or without blanks between the letters."""

    NAME: ClassVar[str] = "postscript"
    KEY: ClassVar[str] = "FORMAT:POSTSCRIPT"
    SHORT: ClassVar[str | None] = "marker"

    marker: NonEmpty = "P.S."

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        letters = re.fullmatch(r"((?:p\.)+)s(\.?)", self.marker.strip().lower())
        if letters is None:
            return re.compile(re.escape(self.marker.strip().lower()))
        return re.compile(r"p\.\s?" * letters[1].count("p") + ("s" + re.escape(letters[2])))

    def check(self, view: View) -> Violation | None:
        found = self._pattern.search(view.lowered) is not None
        return None if found else Violation(f"there is no postscript {self.marker!r}")


class Alternatives(Constraint):
    """Several different answers, separated by a line of signs."""

    NAME: ClassVar[str] = "alternatives"
    KEY: ClassVar[str] = "FORMAT:ALTERNATIVES"

    count: Count = 2
    separator: NonEmpty = "******"

    def check(self, view: View) -> Violation | None:
        parts = [part.strip() for part in paragraphs(view.text, self.separator)]
        if len(parts) != self.count:
            return Violation(f"{len(parts)} alternatives, exactly {self.count} wanted")
        if not all(parts):
            return Violation("an empty alternative")
        return None if len(set(parts)) == self.count else Violation("alternatives that are the same")


# -- how it looks -------------------------------------------------------------------------------------


class Case(Constraint):
    """All in capitals, or in none."""

    NAME: ClassVar[str] = "case"
    KEY: ClassVar[str] = "FORMAT:CASE"
    SHORT: ClassVar[str | None] = "case"

    case: Literal["upper", "lower"]

    def check(self, view: View) -> Violation | None:
        if view.text.isupper() if self.case == "upper" else view.text.islower():
            return None
        wrong = str.islower if self.case == "upper" else str.isupper
        at = next((place for place, char in enumerate(view.text) if wrong(char)), None)
        if at is None:
            return Violation(f"there is no letter in {self.case} case")
        return Violation(f"not in {self.case} case", (at, at + 1))


class CapitalWords(Bounds):
    """Words all in capitals."""

    NAME: ClassVar[str] = "capital_words"
    KEY: ClassVar[str] = "FORMAT:CAPITAL_WORDS"

    def check(self, view: View) -> Violation | None:
        return self.outside(capital_word_count(view.text), "words in capitals")


class NoPunctuation(Constraint):
    """Signs that must not stand anywhere; commas, unless others are named."""

    NAME: ClassVar[str] = "no_punctuation"
    KEY: ClassVar[str] = "FORMAT:PUNCTUATION"
    SHORT: ClassVar[str | None] = "signs"

    signs: NonEmpty = ","

    def check(self, view: View) -> Violation | None:
        places = [place for sign in self.signs if (place := view.text.find(sign)) >= 0]
        if not places:
            return None
        at = min(places)
        return Violation(f"{view.text[at]!r} is not allowed", (at, at + 1))


class Quoted(Constraint):
    """The whole output stands in quotation marks."""

    NAME: ClassVar[str] = "quoted"
    KEY: ClassVar[str] = "FORMAT:QUOTED"
    SHORT: ClassVar[str | None] = "marks"

    marks: Literal["double", "single", "curly", "guillemets"] = "double"

    def check(self, view: View) -> Violation | None:
        opening, closing = _QUOTES[self.marks]
        text = view.stripped
        if len(text) > 1 and text.startswith(opening) and text.endswith(closing):
            return None
        return Violation(f"not wrapped in {opening}…{closing}")


# -- how it begins, ends, and which one it is ---------------------------------------------------------


class StartsWith(Constraint):
    """The first words, white space aside."""

    NAME: ClassVar[str] = "starts_with"
    KEY: ClassVar[str] = "FORMAT:STARTS_WITH"
    SHORT: ClassVar[str | None] = "phrase"

    phrase: NonEmpty
    ignore_case: bool = False

    def check(self, view: View) -> Violation | None:
        text, phrase = view.stripped, self.phrase.strip()
        if self.ignore_case:
            text, phrase = text.lower(), phrase.lower()
        return None if text.startswith(phrase) else Violation(f"does not start with {self.phrase!r}", (0, 0))


class EndsWith(Constraint):
    """The last words, white space and quotation marks aside."""

    NAME: ClassVar[str] = "ends_with"
    KEY: ClassVar[str] = "FORMAT:ENDS_WITH"
    SHORT: ClassVar[str | None] = "phrase"

    phrase: NonEmpty
    ignore_case: bool = True

    def check(self, view: View) -> Violation | None:
        text, phrase = view.stripped.strip('"'), self.phrase.strip()
        if self.ignore_case:
            text, phrase = text.lower(), phrase.lower()
        end = len(view.text)
        return None if text.endswith(phrase) else Violation(f"does not end with {self.phrase!r}", (end, end))


class OneOf(Constraint):
    """The output is one of the options or, with `whole: false`, holds one of them."""

    NAME: ClassVar[str] = "one_of"
    KEY: ClassVar[str] = "FORMAT:ONE_OF"
    SHORT: ClassVar[str | None] = "options"

    options: Items[NonEmpty] = Field(min_length=1)
    whole: bool = True
    ignore_case: bool = False

    def check(self, view: View) -> Violation | None:
        text = view.lowered.strip() if self.ignore_case else view.stripped
        options = [option.lower() if self.ignore_case else option for option in self.options]
        if text in options if self.whole else any(option in text for option in options):
            return None
        return Violation("none of the allowed answers")


class ExactMatch(Constraint):
    """The output is this text and nothing else; white space around it is forgiven unless `strip` is false."""

    NAME: ClassVar[str] = "exact_match"
    KEY: ClassVar[str] = "FORMAT:EXACT_MATCH"
    SHORT: ClassVar[str | None] = "text"

    text: str
    strip: bool = True
    ignore_case: bool = False

    def check(self, view: View) -> Violation | None:
        found, wanted = (view.stripped, self.text.strip()) if self.strip else (view.text, self.text)
        if self.ignore_case:
            found, wanted = found.lower(), wanted.lower()
        if found == wanted:
            return None
        pairs = enumerate(zip(found, wanted, strict=False))
        at = next((place for place, (one, other) in pairs if one != other), min(len(found), len(wanted)))
        return Violation(f"differs from the wanted text at character {at}")
