"""IFEval's instructions in the constraint language: all twenty-five kinds, from `instruction_id_list` and `kwargs`.

Kinds that only IFEval asks for are declared here, as a third party would declare its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from pydantic import Field

from muniment.core.record import Absent, Count, NonEmpty
from muniment.core.text.patterns import lazy_pattern
from muniment.errors import InvalidInput
from muniment.verify import constraints
from muniment.verify._constraint import Bounds, Constraint, View, Violation
from muniment.verify._text_measures import split_paragraphs

_Kwargs = Mapping[str, Any]
_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


def _bounds(relation: Any, count: int) -> dict[str, Any]:
    if relation == "at least":
        return {"min": count}
    if relation == "less than":
        return {"less_than": count} if count else {"max": 0}
    raise InvalidInput(f"the relation {relation!r} is unknown", hint="at least, or less than")


def _english(case: Literal["upper", "lower"]) -> list[Constraint]:
    return [constraints.case(case=case), constraints.language(code="en", guess=True)]


def _paragraph_start(given: _Kwargs) -> list[Constraint]:
    return [
        constraints.paragraph_start(
            paragraph=given["nth_paragraph"], of=given["num_paragraphs"], word=given["first_word"]
        )
    ]


IFEVAL_KINDS: Mapping[str, Callable[[_Kwargs], list[Constraint]]] = {
    "keywords:existence": lambda given: [constraints.contains(texts=tuple(given["keywords"]), ignore_case=True)],
    "keywords:frequency": lambda given: [
        constraints.keyword_count(word=given["keyword"].strip(), **_bounds(given["relation"], given["frequency"]))
    ],
    "keywords:forbidden_words": lambda given: [constraints.forbidden_words(words=tuple(given["forbidden_words"]))],
    "keywords:letter_frequency": lambda given: [
        constraints.letter_count(letter=given["letter"], **_bounds(given["let_relation"], given["let_frequency"]))
    ],
    "language:response_language": lambda given: [constraints.language(code=given["language"], guess=True)],
    "length_constraints:number_sentences": lambda given: [
        constraints.sentences(**_bounds(given["relation"], given["num_sentences"]))
    ],
    "length_constraints:number_paragraphs": lambda given: [
        constraints.paragraphs(exactly=given["num_paragraphs"], separator="***")
    ],
    "length_constraints:number_words": lambda given: [
        constraints.words(**_bounds(given["relation"], given["num_words"]))
    ],
    "length_constraints:nth_paragraph_first_word": _paragraph_start,
    "detectable_content:number_placeholders": lambda given: [constraints.placeholders(min=given["num_placeholders"])],
    "detectable_content:postscript": lambda given: [constraints.postscript(marker=given["postscript_marker"])],
    "detectable_format:number_bullet_lists": lambda given: [constraints.bullets(exactly=given["num_bullets"])],
    "detectable_format:constrained_response": lambda _: [constraints.one_of(options=_ANSWERS, whole=False)],
    "detectable_format:number_highlighted_sections": lambda given: [
        constraints.highlights(min=given["num_highlights"])
    ],
    "detectable_format:multiple_sections": lambda given: [
        constraints.sections(marker=given["section_spliter"].strip(), min=given["num_sections"])
    ],
    "detectable_format:json_format": lambda _: [constraints.json_only(fence=True, lenient=True)],
    "detectable_format:title": lambda _: [constraints.title()],
    "combination:two_responses": lambda _: [constraints.alternatives(count=2, separator="******")],
    "combination:repeat_prompt": lambda given: [constraints.repeats_prompt(text=given["prompt_to_repeat"])],
    "startend:end_checker": lambda given: [constraints.ends_with(phrase=given["end_phrase"])],
    "startend:quotation": lambda _: [constraints.quoted()],
    "change_case:capital_word_frequency": lambda given: [
        constraints.capital_words(**_bounds(given["capital_relation"], given["capital_frequency"]))
    ],
    "change_case:english_capital": lambda _: _english("upper"),
    "change_case:english_lowercase": lambda _: _english("lower"),
    "punctuation:no_comma": lambda _: [constraints.no_punctuation(signs=",")],
}


def from_instruction(instruction_id: str, kwargs: _Kwargs) -> tuple[Constraint, ...]:
    """The constraints of one instruction, which holds if all of them do. A blank answer holds to none."""
    make = IFEVAL_KINDS.get(instruction_id)
    if make is None:
        raise InvalidInput(f"no IFEval instruction is called {instruction_id!r}", hint=", ".join(IFEVAL_KINDS))
    given = {name: value for name, value in kwargs.items() if value is not None}
    try:
        return (constraints.not_empty(), *make(given))
    except KeyError as error:
        raise InvalidInput(f"{instruction_id} wants {error.args[0]!r} among its kwargs") from None


def from_ifeval(instruction_id_list: Sequence[str], kwargs: Sequence[_Kwargs]) -> tuple[tuple[Constraint, ...], ...]:
    """One group of constraints for each instruction, in their order."""
    if len(instruction_id_list) != len(kwargs):
        raise InvalidInput(f"{len(instruction_id_list)} instructions and {len(kwargs)} kwargs")
    return tuple(from_instruction(*each) for each in zip(instruction_id_list, kwargs, strict=True))


# -- kinds of its own ---------------------------------------------------------------------------------

_QUOTES = {"double": ('"', '"'), "single": ("'", "'"), "curly": ("“", "”"), "guillemets": ("«", "»")}
_WORD_ENDS = frozenset(".,?!'\"")
_HIGHLIGHT = lazy_pattern(r"\*([^\n*]*)\*")
_STRONG = lazy_pattern(r"\*\*([^\n*]*)\*\*")
_CONTRACTION = lazy_pattern(r"(?i)(?<=\w)(?=n't\b)|(?<=[^'\s])(?='(?:s|m|d|ll|re|ve)\b)")
_APART = lazy_pattern(r"[\s,;:@#$%&?!()\[\]{}<>\"`“”«»…]+|\.\.\.|--")


class ParagraphStart(
    Constraint, name="paragraph_start", key="FORMAT:PARAGRAPH_START", says="the word that a paragraph starts with"
):
    """Paragraph `paragraph` of `of`, separated by blank lines, starts with `word`, in any case."""

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


class Sections(Bounds, name="sections", key="FORMAT:SECTIONS", says="number of marked sections"):
    """Sections that begin with a marker and a number: `Section 1`, `SECTION 2`."""

    marker: NonEmpty = "Section"

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(re.escape(self.marker.strip()) + r"\s?\d")

    def check(self, view: View) -> Violation | None:
        return self.outside(len(self._pattern.findall(view.text)), f"sections marked {self.marker!r}")


class Highlights(Bounds, name="highlights", key="FORMAT:HIGHLIGHTS", says="number of highlighted parts"):
    """Parts between asterisks."""

    def check(self, view: View) -> Violation | None:
        return self.outside(highlight_count(view.text), "highlighted parts")


class Placeholders(Bounds, name="placeholders", key="FORMAT:PLACEHOLDERS", says="number of placeholders in brackets"):
    """Placeholders in square brackets, such as [address]."""

    def check(self, view: View) -> Violation | None:
        return self.outside(placeholder_count(view.text), "placeholders")


class Title(Constraint, name="title", key="FORMAT:TITLE", says="a title in double angle brackets"):
    """A title in double angle brackets, such as <<poem of joy>>."""

    def check(self, view: View) -> Violation | None:
        return None if titles(view.text) else Violation("there is no <<title>>")


class Postscript(Constraint, name="postscript", key="FORMAT:POSTSCRIPT", says="a postscript", short="marker"):
    """A postscript that begins with its marker, in any case, with or without blanks between the letters."""

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


class Alternatives(
    Constraint, name="alternatives", key="FORMAT:ALTERNATIVES", says="several different answers, separated"
):
    """Several different answers, separated by a line of signs."""

    count: Count = 2
    separator: NonEmpty = "******"

    def check(self, view: View) -> Violation | None:
        parts = [part.strip() for part in split_paragraphs(view.text, self.separator)]
        if len(parts) != self.count:
            return Violation(f"{len(parts)} alternatives, exactly {self.count} wanted")
        if not all(parts):
            return Violation("an empty alternative")
        return None if len(set(parts)) == self.count else Violation("alternatives that are the same")


class Case(Constraint, name="case", key="FORMAT:CASE", says="upper or lower case throughout", short="case"):
    """All in capitals, or in none."""

    case: Literal["upper", "lower"]

    def check(self, view: View) -> Violation | None:
        if view.text.isupper() if self.case == "upper" else view.text.islower():
            return None
        wrong = str.islower if self.case == "upper" else str.isupper
        at = next((place for place, char in enumerate(view.text) if wrong(char)), None)
        if at is None:
            return Violation(f"there is no letter in {self.case} case")
        return Violation(f"not in {self.case} case", (at, at + 1))


class CapitalWords(Bounds, name="capital_words", key="FORMAT:CAPITAL_WORDS", says="number of words in capitals"):
    """Words all in capitals."""

    def check(self, view: View) -> Violation | None:
        return self.outside(capital_word_count(view.text), "words in capitals")


class NoPunctuation(
    Constraint,
    name="no_punctuation",
    key="FORMAT:PUNCTUATION",
    says="punctuation that must not or must stand",
    short="signs",
):
    """Signs that must not stand anywhere; commas, unless others are named."""

    signs: NonEmpty = ","

    def check(self, view: View) -> Violation | None:
        places = [place for sign in self.signs if (place := view.text.find(sign)) >= 0]
        if not places:
            return None
        at = min(places)
        return Violation(f"{view.text[at]!r} is not allowed", (at, at + 1))


class Quoted(Constraint, name="quoted", key="FORMAT:QUOTED", says="wrapped in quotation marks", short="marks"):
    """The whole output stands in quotation marks."""

    marks: Literal["double", "single", "curly", "guillemets"] = "double"

    def check(self, view: View) -> Violation | None:
        opening, closing = _QUOTES[self.marks]
        text = view.stripped
        if len(text) > 1 and text.startswith(opening) and text.endswith(closing):
            return None
        return Violation(f"not wrapped in {opening}…{closing}")


class LetterCount(Bounds, name="letter_count", key="CONTENT:LETTER_COUNT", says="how often a letter stands in it"):
    """How often a character stands in it, in any case."""

    letter: str = Field(min_length=1, max_length=1)

    def check(self, view: View) -> Violation | None:
        return self.outside(view.lowered.count(self.letter.lower()), f"times the letter {self.letter!r}")


class RepeatsPrompt(
    Constraint, name="repeats_prompt", key="CONTENT:REPEAT_PROMPT", says="the request is repeated first", short="text"
):
    """The request stands first, word for word: `text`, or the output's own prompt."""

    text: Absent[NonEmpty] = None

    def check(self, view: View) -> Violation | None:
        wanted = self.text if self.text is not None else view.output.prompt
        if wanted is None:
            return Violation("the prompt is not known, so nobody can say whether it is repeated", is_decided=False)
        if view.lowered.strip().startswith(wanted.strip().lower()):
            return None
        return Violation("does not begin with the request", (0, 0))


def placeholder_count(text: str) -> int:
    """Parts in square brackets, each on one line."""
    count = 0
    for line in text.split("\n"):
        at = line.find("[")
        while at >= 0 and (end := line.find("]", at)) >= 0:
            count += 1
            at = line.find("[", end)
    return count


def titles(text: str) -> list[str]:
    """What stands in double angle brackets, each on one line."""
    found = []
    for line in text.split("\n"):
        start, end = line.find("<<"), line.rfind(">>")
        if 0 <= start < end - 2 and (name := line[start:end].strip("<>").strip()):
            found.append(name)
    return found


def highlight_count(text: str) -> int:
    """Parts in single asterisks, and parts in double ones."""
    parts = _HIGHLIGHT.findall(text) + _STRONG.findall(text)
    return sum(1 for part in parts if part.strip())


def capital_word_count(text: str) -> int:
    """Words all in capitals; of a contraction, each part."""
    return sum(1 for part in _APART.split(_CONTRACTION.sub(" ", text)) if part.isupper())
