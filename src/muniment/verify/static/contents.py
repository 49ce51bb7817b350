"""Constraints on what a text says: words, letters, patterns, language, JSON, citations."""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field, model_validator

from muniment.contracts.kinds import check_kind
from muniment.contracts.schemas import validate
from muniment.core.record import Absent, Count, Items, JsonObject, NonEmpty
from muniment.core.regex import Pattern, compile_pattern
from muniment.errors import InvalidInput, InvalidJson, Issue
from muniment.verify.static.base import Bounds, Constraint, View, Violation, error_line
from muniment.verify.static.json_schema import Schema, read_schema
from muniment.verify.static.languages import ALIASES, detect_language, known_languages
from muniment.verify.taxonomy import detail_of

__all__ = [
    "Citations",
    "ClaimsCited",
    "Contains",
    "Contract",
    "ForbiddenWords",
    "JsonOnly",
    "JsonSchema",
    "KeywordCount",
    "Keywords",
    "Language",
    "LetterCount",
    "MarksResolve",
    "NotContains",
    "RegexAbsent",
    "RegexPresent",
    "RepeatsPrompt",
]

Phrase = Annotated[str, Field(min_length=1, max_length=1000)]
LETTERS_SURE = 24
MARGIN_SURE = 6.0


# -- words and letters --------------------------------------------------------------------------------

_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Scripts without blanks between words: there a word stands by itself wherever it stands."""
_HANGUL = r"\uac00-\ud7a3"
"""Korean words begin behind a blank, and particles are attached to their end."""


def _by_itself(word: str) -> str:
    """A pattern that finds a word that is no part of another one, whatever signs it begins and ends with."""
    before = after = rf"[^\W{_UNSPACED}{_HANGUL}]"
    if re.match(f"[{_HANGUL}]", word[0]):
        before = f"[{_HANGUL}]"
    left = "" if re.match(f"[{_UNSPACED}]", word[0]) else f"(?<!{before})"
    right = "" if re.match(f"[{_UNSPACED}{_HANGUL}]", word[-1]) else f"(?!{after})"
    return f"{left}{re.escape(word)}{right}"


class Contains(Constraint):
    """All of these texts stand in it."""

    NAME: ClassVar[str] = "contains"
    KEY: ClassVar[str] = "CONTENT:CONTAINS"
    SHORT: ClassVar[str | None] = "texts"

    texts: Items[Phrase] = Field(min_length=1)
    ignore_case: bool = False

    def check(self, view: View) -> Violation | None:
        where = view.lowered if self.ignore_case else view.text
        missing = [text for text in self.texts if (text.lower() if self.ignore_case else text) not in where]
        return Violation(f"{missing[0]!r} is missing") if missing else None


class NotContains(Constraint):
    """None of these texts stands in it."""

    NAME: ClassVar[str] = "not_contains"
    KEY: ClassVar[str] = "CONTENT:NOT_CONTAINS"
    REASON: ClassVar[str] = "format_leak"
    SHORT: ClassVar[str | None] = "texts"

    texts: Items[Phrase] = Field(min_length=1)
    ignore_case: bool = False

    def check(self, view: View) -> Violation | None:
        where = view.lowered if self.ignore_case else view.text
        for text in self.texts:
            at = where.find(text.lower() if self.ignore_case else text)
            if at >= 0:
                return Violation(f"{text!r} is not allowed", (at, at + len(text)))
        return None


class Keywords(Constraint):
    """All of these words stand in it, in any case, also as part of other words."""

    NAME: ClassVar[str] = "keywords"
    KEY: ClassVar[str] = "CONTENT:KEYWORDS"
    SHORT: ClassVar[str | None] = "words"

    words: Items[Phrase] = Field(min_length=1)

    @cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        return [re.compile(re.escape(word), re.IGNORECASE) for word in self.words]

    def check(self, view: View) -> Violation | None:
        for word, pattern in zip(self.words, self._patterns, strict=True):
            if pattern.search(view.text) is None:
                return Violation(f"the keyword {word!r} is missing")
        return None


class ForbiddenWords(Constraint):
    """None of these words stands in it by itself, in any case."""

    NAME: ClassVar[str] = "forbidden_words"
    KEY: ClassVar[str] = "CONTENT:FORBIDDEN_WORDS"
    SHORT: ClassVar[str | None] = "words"

    words: Items[Phrase] = Field(min_length=1)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(_by_itself, self.words)), re.IGNORECASE)

    def check(self, view: View) -> Violation | None:
        found = self._pattern.search(view.text)
        return None if found is None else Violation(f"{found[0]!r} is not allowed", found.span())


class KeywordCount(Bounds):
    """How often a word stands in it, in any case, also as part of other words unless `whole` is said."""

    NAME: ClassVar[str] = "keyword_count"
    KEY: ClassVar[str] = "CONTENT:KEYWORD_COUNT"

    word: Phrase
    whole: bool = False

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(_by_itself(self.word) if self.whole else re.escape(self.word), re.IGNORECASE)

    def check(self, view: View) -> Violation | None:
        return self.outside(len(self._pattern.findall(view.text)), f"times {self.word!r}")


class LetterCount(Bounds):
    """How often a character stands in it, in any case."""

    NAME: ClassVar[str] = "letter_count"
    KEY: ClassVar[str] = "CONTENT:LETTER_COUNT"

    letter: str = Field(min_length=1, max_length=1)

    def check(self, view: View) -> Violation | None:
        return self.outside(view.lowered.count(self.letter.lower()), f"times the letter {self.letter!r}")


class RepeatsPrompt(Constraint):
    """The request stands first, word for word: `text`, or the output's own prompt."""

    NAME: ClassVar[str] = "repeats_prompt"
    KEY: ClassVar[str] = "CONTENT:REPEAT_PROMPT"
    SHORT: ClassVar[str | None] = "text"

    text: Absent[NonEmpty] = None

    def check(self, view: View) -> Violation | None:
        wanted = self.text if self.text is not None else view.output.prompt
        if wanted is None:
            return Violation("the prompt is not known, so nobody can say whether it is repeated", is_decided=False)
        if view.lowered.strip().startswith(wanted.strip().lower()):
            return None
        return Violation("does not begin with the request", (0, 0))


class Language(Constraint):
    """The language it is written in, by its ISO 639-1 code.

    What is too short or too mixed to tell is not held against it. With `guess` the likeliest language decides however
    thin the evidence, and capitals are not read as the words they spell: this is how IFEval's own checkers read.
    """

    NAME: ClassVar[str] = "language"
    KEY: ClassVar[str] = "CONTENT:LANGUAGE"
    SHORT: ClassVar[str | None] = "code"

    code: NonEmpty
    guess: bool = False

    @model_validator(mode="after")
    def _check_code(self) -> Self:
        if self._wanted not in known_languages():
            raise ValueError(f"a language we cannot tell; one of {' '.join(known_languages())}")
        return self

    @property
    def _wanted(self) -> str:
        code = self.code.lower().replace("_", "-")
        return ALIASES.get(code, code)

    def check(self, view: View) -> Violation | None:
        found = detect_language(view.text, literal=True) if self.guess else view.language
        if found is None or found.code == self._wanted:
            return None
        if not self.guess and (found.letters < LETTERS_SURE or found.margin < MARGIN_SURE):
            return None
        return Violation(f"looks like {found.code!r}, not {self.code!r}")


# -- patterns -----------------------------------------------------------------------------------------


def _sound_pattern(source: str) -> str:
    try:
        compile_pattern(source)
    except InvalidInput as error:
        raise ValueError(error_line(error)) from None
    return source


PatternText = Annotated[NonEmpty, AfterValidator(_sound_pattern)]


class RegexPresent(Constraint):
    """A pattern that is found somewhere. Look-around and back references are refused: no search of ours takes long."""

    NAME: ClassVar[str] = "regex_present"
    KEY: ClassVar[str] = "FORMAT:REGEX_PRESENT"
    SHORT: ClassVar[str | None] = "pattern"

    pattern: PatternText
    ignore_case: bool = False

    @cached_property
    def _compiled(self) -> Pattern:
        return compile_pattern(self.pattern, self.ignore_case)

    def check(self, view: View) -> Violation | None:
        if self._compiled.search(view.text) is None:
            return Violation(f"nothing matches {self.pattern!r}")
        return None


class RegexAbsent(Constraint):
    """A pattern that is found nowhere."""

    NAME: ClassVar[str] = "regex_absent"
    KEY: ClassVar[str] = "FORMAT:REGEX_ABSENT"
    REASON: ClassVar[str] = "format_leak"
    SHORT: ClassVar[str | None] = "pattern"

    pattern: PatternText
    ignore_case: bool = False

    @cached_property
    def _compiled(self) -> Pattern:
        return compile_pattern(self.pattern, self.ignore_case)

    def check(self, view: View) -> Violation | None:
        end = self._compiled.search(view.text)
        return None if end is None else Violation(f"{self.pattern!r} matches, up to character {end}", (end, end))


# -- JSON ---------------------------------------------------------------------------------------------


class JsonOnly(Constraint):
    """One JSON document and nothing else.

    With `fence` it may stand in a code fence; with `lenient` duplicate keys and the like pass, as many readers have it.
    """

    NAME: ClassVar[str] = "json_only"
    KEY: ClassVar[str] = "FORMAT:JSON_ONLY"
    REASON: ClassVar[str] = "format_leak"

    fence: bool = False
    lenient: bool = False

    def check(self, view: View) -> Violation | None:
        found = view.fenced_json if self.fence else view.json
        if not isinstance(found, InvalidJson) or (
            self.lenient and _is_json(view.unfenced if self.fence else view.text)
        ):
            return None
        return Violation(found.message)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _described(issues: list[Issue]) -> Violation | None:
    if not issues:
        return None
    more = f" (and {len(issues) - 1} more)" if len(issues) > 1 else ""
    return Violation(f"{issues[0].path}: {issues[0].message}{more}")


class JsonSchema(Constraint):
    """One JSON document that fits a JSON Schema; `name` becomes the detail of the key."""

    NAME: ClassVar[str] = "json_schema"
    KEY: ClassVar[str] = "SCHEMA:JSON"
    REASON: ClassVar[str] = "format_leak"
    SHORT: ClassVar[str | None] = "schema"

    schema_: JsonObject = Field(alias="schema")
    name: Absent[NonEmpty] = None
    fence: bool = False

    @model_validator(mode="after")
    def _check_schema(self) -> Self:
        try:
            read_schema(self.schema_)
        except InvalidInput as error:
            raise ValueError(error_line(error)) from None
        return self

    @cached_property
    def _schema(self) -> Schema:
        return read_schema(self.schema_)

    def default_key(self) -> str:
        return self.KEY if self.name is None else f"{self.KEY}:{detail_of(self.name)}"

    def check(self, view: View) -> Violation | None:
        found = view.fenced_json if self.fence else view.json
        if isinstance(found, InvalidJson):
            return Violation(found.message)
        return _described(self._schema.issues(found))


class Contract(Constraint):
    """One JSON document that fits one of the contracts, such as VerifierResult."""

    NAME: ClassVar[str] = "contract"
    KEY: ClassVar[str] = "SCHEMA"
    REASON: ClassVar[str] = "format_leak"
    SHORT: ClassVar[str | None] = "kind"

    kind: NonEmpty
    fence: bool = False

    @model_validator(mode="after")
    def _check_contract(self) -> Self:
        try:
            check_kind(self.kind)
        except InvalidInput as error:
            raise ValueError(error_line(error)) from None
        return self

    def default_key(self) -> str:
        return f"SCHEMA:{self.kind}"

    def check(self, view: View) -> Violation | None:
        found: Any = view.fenced_json if self.fence else view.json
        if isinstance(found, InvalidJson):
            return Violation(found.message)
        return _described(validate(self.kind, found))


# -- citations ----------------------------------------------------------------------------------------


class ClaimsCited(Constraint):
    """Every sentence names evidence that exists; a sentence of fewer words than `words_min` claims nothing."""

    NAME: ClassVar[str] = "claims_cited"
    KEY: ClassVar[str] = "CONTENT:CLAIMS_CITED"
    REASON: ClassVar[str] = "insufficient_evidence"

    words_min: Count = 4
    questions: bool = False

    def check(self, view: View) -> Violation | None:
        for each in view.cited.sentences:
            if each.evidence_ids or len(each.text.split()) < self.words_min:
                continue
            if not self.questions and each.text.rstrip("\"'”’)").endswith(("?", "？")):
                continue
            at = view.text.find(each.text)
            return Violation(f"no evidence for {each.text[:80]!r}", (at, at + len(each.text)) if at >= 0 else None)
        return None


class MarksResolve(Constraint):
    """Every citation mark names evidence that exists."""

    NAME: ClassVar[str] = "marks_resolve"
    KEY: ClassVar[str] = "CONTENT:MARKS_RESOLVE"
    REASON: ClassVar[str] = "insufficient_evidence"

    def check(self, view: View) -> Violation | None:
        unknown = view.cited.unknown_marks
        return Violation(f"{', '.join(unknown[:5])} names no evidence") if unknown else None


class Citations(Bounds):
    """How many different pieces of evidence are cited."""

    NAME: ClassVar[str] = "citations"
    KEY: ClassVar[str] = "CONTENT:CITATIONS"
    REASON: ClassVar[str] = "insufficient_evidence"

    def check(self, view: View) -> Violation | None:
        return self.outside(len(view.cited.evidence_ids), "pieces of evidence cited")
