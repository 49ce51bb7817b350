"""The constraint language: every kind of constraint, its findings in an output, and the verdict they give.

In a file a kind is written `- words: {max: 300}`, in Python `constraints.words(max=300)`: every kind is a name of this
module. Kinds on the text come first, then kinds on how it was made, then groups. Pure: no model is used unless a grader
is given, and the same inputs give the same findings.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from posixpath import normpath
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from muniment.contracts.kinds import KINDS as CONTRACTS
from muniment.contracts.kinds import check_kind
from muniment.contracts.schemas import validate
from muniment.core.canonical import canonical_text
from muniment.core.limits import checkpoint
from muniment.core.ports.models import RubricJudge
from muniment.core.record import Absent, Count, Items, JsonObject, NonEmpty, Number
from muniment.core.regex import Pattern, compile_pattern
from muniment.core.scope import Verdict
from muniment.core.text.tokens import estimate_tokens
from muniment.errors import InvalidInput, InvalidJson, InvalidRecord, Issue, TooLarge
from muniment.verify._constraint import KINDS, Bounds, Constraint, View, Violation, error_line
from muniment.verify._json_schema import Schema, read_schema
from muniment.verify._text_measures import (
    ALIASES,
    PERSONAL_KINDS,
    PersonalKind,
    bullet_count,
    detect_language,
    find_headings,
    find_personal_data,
    known_languages,
    split_paragraphs,
    word_count,
)
from muniment.verify.answers import best_f1
from muniment.verify.outputs import Finding, Output, PolicyEvent, ToolCall
from muniment.verify.taxonomy import REASONS, KeyEntry, Registry, detail_of

# -- evaluation ---------------------------------------------------------------------------------------

REASONS_MAX = 3
_GRADER_HINT = "give a grader: grader=… in Python, --grader URL#NAME on the command line; or leave these out"


def evaluate(
    output: Output, constraints: Iterable[Constraint], grader: RubricJudge | None = None, path: str = "$.constraints"
) -> list[Finding]:
    """Evaluate constraints in order, one finding each. One that needs a grader raises if there is none."""
    asked = tuple(constraints)
    if grader is None:
        check_answerable(asked, path)
    view = View(output, grader)
    return [_finding(view, constraint) for constraint in asked]


def check_answerable(constraints: Iterable[Constraint], path: str = "$.constraints") -> None:
    """Raise for every constraint that only a grader can decide: if skipped, it would appear to hold."""
    issues = [
        Issue(place, f"{name} needs a grader, and none is given", "unsupported_constraint")
        for index, each in enumerate(constraints)
        for place, name in _asking(each, f"{path}[{index}]")
    ]
    if issues:
        raise InvalidRecord("these constraints cannot be checked", issues, hint=_GRADER_HINT)


def _asking(constraint: Constraint, path: str) -> Iterator[tuple[str, str]]:
    here = f"{path}.{constraint.NAME}"
    if constraint.NEEDS_GRADER:
        yield here, constraint.NAME
    for index, each in enumerate(getattr(constraint, "constraints", ())):
        yield from _asking(each, f"{here}[{index}]")


def _finding(view: View, constraint: Constraint) -> Finding:
    checkpoint()
    key, reason = constraint.violated_key, constraint.violated_reason
    try:
        problem = constraint.check(view)
    except TooLarge as error:  # undecided does not mean it holds
        message = f"could not be decided: {error.message}"
        return Finding(key, False, message, None, constraint.severity, reason, constraint.NAME)
    if problem is None:
        return Finding(key, True, "", None, constraint.severity, reason, constraint.NAME)
    return Finding(key, False, problem.message, problem.where, constraint.severity, reason, constraint.NAME)


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """Return FAIL for a fatal violation and PARTIAL for a minor one."""
    violated = {finding.severity for finding in findings if not finding.ok}
    return "FAIL" if "fatal" in violated else "PARTIAL" if violated else "PASS"


def reasons_of(findings: Iterable[Finding]) -> tuple[str, ...]:
    """One to three reason codes of violations: fatal before minor, frequent before rare, then by name."""
    violated = [finding for finding in findings if not finding.ok]
    counts = Counter(finding.reason for finding in violated)
    fatal = {finding.reason for finding in violated if finding.severity == "fatal"}
    return tuple(sorted(counts, key=lambda code: (code not in fatal, -counts[code], code))[:REASONS_MAX])


# -- shape ---------------------------------------------------------------------------------------------


class NotEmpty(
    Constraint, name="not_empty", key="FORMAT:NOT_EMPTY", says="there is an answer", reason="truncation_or_cutoff"
):
    """The answer is not empty."""

    def check(self, view: View) -> Violation | None:
        return None if view.stripped else Violation("the output is blank")


class Length(Bounds, name="length", key="FORMAT:LENGTH", says="characters, bytes or tokens"):
    """Number of characters, UTF-8 bytes or estimated tokens."""

    unit: Literal["characters", "bytes", "tokens"] = "characters"

    def check(self, view: View) -> Violation | None:
        if self.unit == "characters":
            return self.outside(len(view.text), self.unit)
        if self.unit == "bytes":
            return self.outside(len(view.text.encode()), self.unit)
        return self.outside(estimate_tokens(view.text), self.unit)


class Lines(Bounds, name="lines", key="FORMAT:LINES", says="number of lines"):
    """Number of lines that are not blank."""

    def check(self, view: View) -> Violation | None:
        return self.outside(sum(1 for line in view.text.splitlines() if line.strip()), "lines")


class Words(Bounds, name="words", key="FORMAT:WORDS", says="number of words"):
    """Number of words; a Chinese or Japanese character counts as one."""

    def check(self, view: View) -> Violation | None:
        return self.outside(view.words, "words")


class Sentences(Bounds, name="sentences", key="FORMAT:SENTENCES", says="number of sentences"):
    """Number of sentences; an abbreviation does not end one."""

    def check(self, view: View) -> Violation | None:
        return self.outside(view.sentences, "sentences")


class Paragraphs(Bounds, name="paragraphs", key="FORMAT:PARAGRAPHS", says="number of paragraphs", needs_bound=False):
    """Number of paragraphs, separated by blank lines or `separator`; `words_max` bounds each of them."""

    separator: Absent[NonEmpty] = None
    words_max: Absent[Count] = None

    def check(self, view: View) -> Violation | None:
        found = split_paragraphs(view.text, self.separator)
        if self.separator is not None and any(not part.strip() for part in found):
            return Violation("an empty paragraph between two separators")
        if self.words_max is not None:
            for number, part in enumerate(found, 1):
                if (words := word_count(part)) > self.words_max:
                    return Violation(f"paragraph {number} has {words} words, at most {self.words_max} allowed")
        return self.outside(len(found), "paragraphs")


class Headings(
    Bounds,
    name="headings",
    key="FORMAT:HEADINGS",
    says="number, level or names of headings",
    short="names",
    needs_bound=False,
):
    """Markdown headings: their number and level, and required ones in order."""

    names: Items[NonEmpty] = ()
    level: Absent[Count] = None
    only: bool = False

    @model_validator(mode="after")
    def _check_asked(self) -> Self:
        if self.limits == (0, None) and not self.names:
            raise ValueError("say how many headings, or their names")
        return self

    def check(self, view: View) -> Violation | None:
        found = [name for level, name in find_headings(view.text) if self.level in (None, level)]
        rest = iter(name.casefold() for name in found)
        for name in self.names:
            if name.casefold() not in rest:
                return Violation(f"the heading {name!r} is missing, or stands too early")
        if self.only and len(found) != len(self.names):
            return Violation(f"{len(found)} headings, only the {len(self.names)} named ones are allowed")
        return self.outside(len(found), "headings")


class Bullets(Bounds, name="bullets", key="FORMAT:BULLETS", says="number of bullet points"):
    """Number of lines that begin with `*` or `-`."""

    def check(self, view: View) -> Violation | None:
        return self.outside(bullet_count(view.text), "bullet points")


class StartsWith(Constraint, name="starts_with", key="FORMAT:STARTS_WITH", says="the first words", short="phrase"):
    """The text begins with these words, ignoring white space."""

    phrase: NonEmpty
    ignore_case: bool = False

    def check(self, view: View) -> Violation | None:
        text, phrase = view.stripped, self.phrase.strip()
        if self.ignore_case:
            text, phrase = text.lower(), phrase.lower()
        return None if text.startswith(phrase) else Violation(f"does not start with {self.phrase!r}", (0, 0))


class EndsWith(Constraint, name="ends_with", key="FORMAT:ENDS_WITH", says="the last words", short="phrase"):
    """The text ends with these words, ignoring white space and quotation marks."""

    phrase: NonEmpty
    ignore_case: bool = True

    def check(self, view: View) -> Violation | None:
        text, phrase = view.stripped.strip('"'), self.phrase.strip()
        if self.ignore_case:
            text, phrase = text.lower(), phrase.lower()
        end = len(view.text)
        return None if text.endswith(phrase) else Violation(f"does not end with {self.phrase!r}", (end, end))


class OneOf(Constraint, name="one_of", key="FORMAT:ONE_OF", says="one of the given answers", short="options"):
    """The output is one of the options or, with `whole: false`, contains one of them."""

    options: Items[NonEmpty] = Field(min_length=1)
    whole: bool = True
    ignore_case: bool = False

    def check(self, view: View) -> Violation | None:
        text = view.lowered.strip() if self.ignore_case else view.stripped
        options = [option.lower() if self.ignore_case else option for option in self.options]
        if text in options if self.whole else any(option in text for option in options):
            return None
        return Violation("none of the allowed answers")


class ExactMatch(
    Constraint, name="exact_match", key="FORMAT:EXACT_MATCH", says="exactly the given answer", short="text"
):
    """The output is exactly this text; surrounding white space is ignored unless `strip` is false."""

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


# -- contents ------------------------------------------------------------------------------------------


Phrase = Annotated[str, Field(min_length=1, max_length=1000)]


LETTERS_SURE = 24


MARGIN_SURE = 6.0


_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"


"""Scripts without spaces: any occurrence of a word counts as a whole word."""


_HANGUL = r"\uac00-\ud7a3"


"""Korean words begin after a space and take particles at the end."""


def _by_itself(word: str) -> str:
    """A pattern that matches a word only as a whole, whatever characters it begins and ends with."""
    before = after = rf"[^\W{_UNSPACED}{_HANGUL}]"
    if re.match(f"[{_HANGUL}]", word[0]):
        before = f"[{_HANGUL}]"
    left = "" if re.match(f"[{_UNSPACED}]", word[0]) else f"(?<!{before})"
    right = "" if re.match(f"[{_UNSPACED}{_HANGUL}]", word[-1]) else f"(?!{after})"
    return f"{left}{re.escape(word)}{right}"


class Contains(Constraint, name="contains", key="CONTENT:CONTAINS", says="text that must stand in it", short="texts"):
    """The text contains all of these texts."""

    texts: Items[Phrase] = Field(min_length=1)
    ignore_case: bool = False

    def check(self, view: View) -> Violation | None:
        where = view.lowered if self.ignore_case else view.text
        missing = [text for text in self.texts if (text.lower() if self.ignore_case else text) not in where]
        return Violation(f"{missing[0]!r} is missing") if missing else None


class NotContains(
    Constraint,
    name="not_contains",
    key="CONTENT:NOT_CONTAINS",
    says="text that must not stand in it",
    reason="format_leak",
    short="texts",
):
    """The text contains none of these texts."""

    texts: Items[Phrase] = Field(min_length=1)
    ignore_case: bool = False

    def check(self, view: View) -> Violation | None:
        where = view.lowered if self.ignore_case else view.text
        for text in self.texts:
            at = where.find(text.lower() if self.ignore_case else text)
            if at >= 0:
                return Violation(f"{text!r} is not allowed", (at, at + len(text)))
        return None


class ForbiddenWords(
    Constraint,
    name="forbidden_words",
    key="CONTENT:FORBIDDEN_WORDS",
    says="words that must not stand in it",
    short="words",
):
    """The text contains none of these whole words, in any case."""

    words: Items[Phrase] = Field(min_length=1)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(_by_itself, self.words)), re.IGNORECASE)

    def check(self, view: View) -> Violation | None:
        found = self._pattern.search(view.text)
        return None if found is None else Violation(f"{found[0]!r} is not allowed", found.span())


class KeywordCount(Bounds, name="keyword_count", key="CONTENT:KEYWORD_COUNT", says="how often a keyword stands in it"):
    """Number of occurrences of a word, in any case, also within other words unless `whole` is set."""

    word: Phrase
    whole: bool = False

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(_by_itself(self.word) if self.whole else re.escape(self.word), re.IGNORECASE)

    def check(self, view: View) -> Violation | None:
        return self.outside(len(self._pattern.findall(view.text)), f"times {self.word!r}")


class Language(Constraint, name="language", key="CONTENT:LANGUAGE", says="the language it is written in", short="code"):
    """The language of the text, by its ISO 639-1 code.

    A text too short or too mixed to classify passes. With `guess` the likeliest language decides however thin the
    evidence, and capitals are not lowercased, as in IFEval's own checkers.
    """

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


def _sound_pattern(source: str) -> str:
    try:
        compile_pattern(source)
    except InvalidInput as error:
        raise ValueError(error_line(error)) from None
    return source


PatternText = Annotated[NonEmpty, AfterValidator(_sound_pattern)]


class RegexPresent(
    Constraint, name="regex_present", key="FORMAT:REGEX_PRESENT", says="a pattern that must be found", short="pattern"
):
    """The pattern matches somewhere. Look-around and back references are refused, so that no search takes long."""

    pattern: PatternText
    ignore_case: bool = False

    @cached_property
    def _compiled(self) -> Pattern:
        return compile_pattern(self.pattern, self.ignore_case)

    def check(self, view: View) -> Violation | None:
        if self._compiled.search(view.text) is None:
            return Violation(f"nothing matches {self.pattern!r}")
        return None


class RegexAbsent(
    Constraint,
    name="regex_absent",
    key="FORMAT:REGEX_ABSENT",
    says="a pattern that must not be found",
    reason="format_leak",
    short="pattern",
):
    """The pattern matches nowhere."""

    pattern: PatternText
    ignore_case: bool = False

    @cached_property
    def _compiled(self) -> Pattern:
        return compile_pattern(self.pattern, self.ignore_case)

    def check(self, view: View) -> Violation | None:
        end = self._compiled.search(view.text)
        return None if end is None else Violation(f"{self.pattern!r} matches, up to character {end}", (end, end))


class JsonOnly(
    Constraint,
    name="json_only",
    key="FORMAT:JSON_ONLY",
    says="one JSON document and nothing else",
    reason="format_leak",
):
    """The output is one JSON document and nothing else.

    With `fence` it may be in a code fence; `lenient` accepts duplicate keys and the like, as many parsers do.
    """

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


class JsonSchema(
    Constraint,
    name="json_schema",
    key="SCHEMA:JSON",
    says="the JSON fits the given JSON Schema",
    detail="optional",
    reason="format_leak",
    short="schema",
):
    """One JSON document that fits a JSON Schema; `name` becomes the detail of the key."""

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


class Contract(
    Constraint, name="contract", key="SCHEMA", says="fits one of the contracts", reason="format_leak", short="kind"
):
    """One JSON document that fits one of the contracts, such as VerifierResult."""

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


class ClaimsCited(
    Constraint,
    name="claims_cited",
    key="CONTENT:CLAIMS_CITED",
    says="every claim names its evidence",
    reason="insufficient_evidence",
):
    """Every sentence cites existing evidence; a sentence of fewer than `words_min` words claims nothing."""

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


class MarksResolve(
    Constraint,
    name="marks_resolve",
    key="CONTENT:MARKS_RESOLVE",
    says="every citation mark names evidence that exists",
    reason="insufficient_evidence",
):
    """Every citation mark refers to existing evidence."""

    def check(self, view: View) -> Violation | None:
        unknown = view.cited.unknown_marks
        return Violation(f"{', '.join(unknown[:5])} names no evidence") if unknown else None


class Citations(
    Bounds,
    name="citations",
    key="CONTENT:CITATIONS",
    says="number of distinct sources cited",
    reason="insufficient_evidence",
):
    """Number of different pieces of evidence cited."""

    def check(self, view: View) -> Violation | None:
        return self.outside(len(view.cited.evidence_ids), "pieces of evidence cited")


# -- how it was made -----------------------------------------------------------------------------------


_NOT_WATCHED = Violation("tool calls were not recorded", is_decided=False)


_NO_EVENTS = Violation("what the run did outside was not recorded", is_decided=False)


_NO_HINTS = Violation("recalled hints were not recorded", is_decided=False)


class _OfCalls(Constraint):
    """A constraint on recorded tool calls."""

    def default_key(self) -> str:
        tool: str | None = getattr(self, "tool", None)
        return self.KEY if tool is None else f"{self.KEY}:{detail_of(tool)}"

    def check(self, view: View) -> Violation | None:
        calls = view.output.tool_calls
        return _NOT_WATCHED if calls is None else self.check_calls(calls)

    @abstractmethod
    def check_calls(self, calls: Sequence[ToolCall]) -> Violation | None: ...


class ToolCalled(
    _OfCalls,
    Bounds,
    name="tool_called",
    key="TOOL:CALL_REQUIRED",
    says="a tool that must be called",
    detail="required",
    reason="tool_misroute",
    short="tool",
    needs_bound=False,
):
    """A tool is called: at least once, unless bounds say otherwise."""

    tool: NonEmpty
    ok: Absent[bool] = None

    def check_calls(self, calls: Sequence[ToolCall]) -> Violation | None:
        count = sum(1 for call in calls if call.name == self.tool and self.ok in (None, call.ok))
        if self.limits == (0, None):
            return None if count else Violation(f"{self.tool!r} was not called")
        return self.outside(count, f"calls of {self.tool!r}")


class ToolNotCalled(
    _OfCalls,
    name="tool_not_called",
    key="TOOL:CALL_FORBIDDEN",
    says="a tool that must not be called",
    detail="required",
    reason="tool_misroute",
    short="tool",
):
    """A tool is not called."""

    tool: NonEmpty

    def check_calls(self, calls: Sequence[ToolCall]) -> Violation | None:
        count = sum(1 for call in calls if call.name == self.tool)
        return Violation(f"{self.tool!r} was called {count} times") if count else None


class ToolsAllowed(
    _OfCalls,
    name="tools_allowed",
    key="TOOL:ALLOWED",
    says="only the listed tools are called",
    reason="tool_misroute",
    short="tools",
):
    """Only these tools are called."""

    tools: Items[NonEmpty]

    def check_calls(self, calls: Sequence[ToolCall]) -> Violation | None:
        others = [call.name for call in calls if call.name not in self.tools]
        return Violation(f"{others[0]!r} is not among the allowed tools") if others else None


class ToolOrder(
    _OfCalls, name="tool_order", key="TOOL:ORDER", says="the order of tool calls", reason="tool_misroute", short="tools"
):
    """These tools are called in this order; others may come between them unless `strict`."""

    tools: Items[NonEmpty] = Field(min_length=1)
    strict: bool = False

    def check_calls(self, calls: Sequence[ToolCall]) -> Violation | None:
        names = [call.name for call in calls]
        if self.strict:
            return None if names == list(self.tools) else Violation(f"the calls were {', '.join(names) or 'none'}")
        rest = iter(names)
        missing = [tool for tool in self.tools if tool not in rest]
        return Violation(f"{missing[0]!r} was not called in its turn") if missing else None


class ToolArguments(
    _OfCalls,
    name="tool_arguments",
    key="TOOL:ARGUMENTS",
    says="the arguments of a tool call",
    detail="required",
    reason="tool_output_invalid",
):
    """Every call of a tool has these arguments (`equals`) and fits a JSON Schema; with `any`, at least one
    call does.
    """

    tool: NonEmpty
    equals: Absent[JsonObject] = None
    schema_: Absent[JsonObject] = Field(default=None, alias="schema")
    any: bool = False

    @model_validator(mode="after")
    def _check_asked(self) -> Self:
        if self.equals is None and self.schema_ is None:
            raise ValueError("say what the arguments equal, or their schema")
        try:
            read_schema(self.schema_ or {})
        except InvalidInput as error:
            raise ValueError(error_line(error)) from None
        return self

    @cached_property
    def _schema(self) -> Schema:
        return read_schema(self.schema_ or {})

    def check_calls(self, calls: Sequence[ToolCall]) -> Violation | None:
        problems = [self._problem(call) for call in calls if call.name == self.tool]
        if self.any:
            return None if None in problems else Violation(f"no call of {self.tool!r} has the wanted arguments")
        wrong = next((problem for problem in problems if problem is not None), None)
        return None if wrong is None else Violation(f"{self.tool!r}: {wrong}")

    def _problem(self, call: ToolCall) -> str | None:
        for name, value in (self.equals or {}).items():
            if name not in call.args or canonical_text(call.args[name]) != canonical_text(value):
                return f"the argument {name!r} is not {canonical_text(value)[:60]}"
        issues = self._schema.issues(call.args)
        return f"{issues[0].path}: {issues[0].message}" if issues else None


class ToolsOk(
    _OfCalls,
    name="tools_ok",
    key="TOOL:RESULT_OK",
    says="tool calls that must not fail",
    detail="optional",
    reason="tool_failure",
    short="tool",
):
    """No tool call failed; `tool` limits it to one tool."""

    tool: Absent[NonEmpty] = None

    def check_calls(self, calls: Sequence[ToolCall]) -> Violation | None:
        asked = [call for call in calls if self.tool in (None, call.name)]
        failed = [call.name for call in asked if call.ok is False]
        if failed:
            return Violation(f"{failed[0]!r} failed")
        untold = [call.name for call in asked if call.ok is None]
        return Violation(f"nobody said whether {untold[0]!r} worked", is_decided=False) if untold else None


class ToolBudget(
    Bounds,
    name="tool_calls",
    key="TOOL:BUDGET",
    says="number of tool calls",
    detail="optional",
    reason="search_budget_exhausted",
):
    """Total number of tool calls."""

    def check(self, view: View) -> Violation | None:
        calls, usage = view.output.tool_calls, view.output.usage
        counted = None if usage is None else usage.tool_calls
        if calls is None and counted is None:
            return _NOT_WATCHED
        return self.outside(max(len(calls or ()), counted or 0), "tool calls")


class Budget(
    Constraint,
    name="budget",
    key="POLICY:BUDGET",
    says="tokens, time, turns, attempts or cost",
    detail="required",
    reason="search_budget_exhausted",
):
    """Maximum amount of one resource that the run used."""

    of: Literal["tokens_in", "tokens_out", "tokens", "latency_ms", "turns", "attempts", "cost_usd"]
    max: Number

    def default_key(self) -> str:
        return f"{self.KEY}:{self.of}"

    def check(self, view: View) -> Violation | None:
        usage = view.output.usage
        names = ("tokens_in", "tokens_out") if self.of == "tokens" else (self.of,)
        figures: list[Any] = [getattr(usage, name, None) for name in names]
        if None in figures:
            return Violation(f"{self.of} was not measured", is_decided=False)
        used = sum(figures)
        return Violation(f"{used} {self.of}, at most {self.max} allowed") if used > self.max else None


class Network(
    Constraint,
    name="network",
    key="POLICY:NO_NETWORK",
    says="no network",
    more_keys={"POLICY:NETWORK_ALLOWLIST": "only the listed hosts"},
    short="allow",
):
    """No network access, or only to the listed hosts and their subdomains."""

    allow: Items[NonEmpty] = ()

    def default_key(self) -> str:
        return "POLICY:NETWORK_ALLOWLIST" if self.allow else self.KEY

    def check(self, view: View) -> Violation | None:
        events = view.output.policy_events
        if events is None:
            return _NO_EVENTS
        for event in events:
            if event.kind == "network" and not self._allows(event):
                return Violation(f"reached out to {event.target[:80]!r}")
        return None

    def _allows(self, event: PolicyEvent) -> bool:
        target = event.target if "//" in event.target else f"//{event.target}"
        try:
            host = (urlsplit(target).hostname or "").rstrip(".")
        except ValueError:
            return False
        return any(host == name or host.endswith(f".{name}") for name in map(str.lower, self.allow))


class Files(
    Constraint,
    name="files",
    key="POLICY:FILES_WRITTEN",
    says="only files under the listed paths are written",
    more_keys={"POLICY:FILES_READ": "only files under the listed paths are read"},
):
    """Files are read, or written, only under these paths; with no path, none are."""

    access: Literal["read", "write"]
    under: Items[NonEmpty] = ()

    def default_key(self) -> str:
        return "POLICY:FILES_READ" if self.access == "read" else self.KEY

    def check(self, view: View) -> Violation | None:
        events = view.output.policy_events
        if events is None:
            return _NO_EVENTS
        for event in events:
            if event.kind == f"file_{self.access}" and not any(_is_under(event.target, root) for root in self.under):
                return Violation(f"{self.access} of {event.target[:80]!r}")
        return None


def _is_under(path: str, root: str) -> bool:
    """True if a path, with `..` resolved textually, is a folder or lies in it."""
    here, above = PurePosixPath(normpath(path)), PurePosixPath(normpath(root))
    if here.is_absolute() or above.is_absolute():
        return PurePosixPath("/", *here.parts[1:]).is_relative_to(PurePosixPath("/", *above.parts[1:])) and (
            here.is_absolute() == above.is_absolute()
        )
    ups, root_ups = here.parts.count(".."), above.parts.count("..")
    return ups <= root_ups if root_ups == len(above.parts) else here.is_relative_to(above)


class HintLength(
    Constraint,
    name="hint_length",
    key="MEMORY:HINT_LENGTH",
    says="tokens of one hint",
    reason="memory_overinject",
    short="max",
):  # RC-09
    """No recalled hint exceeds this many estimated tokens."""

    max: Count = 120

    def check(self, view: View) -> Violation | None:
        hints = view.output.memory_hints
        if hints is None:
            return _NO_HINTS
        for hint in hints:
            if (tokens := estimate_tokens(hint.summary or "")) > self.max:
                return Violation(f"the hint {hint.memory_id!r} has {tokens} tokens, at most {self.max} allowed")
        return None


class Hints(
    Constraint, name="hints", key="MEMORY:HINT_TOTAL", says="tokens of all hints together", reason="memory_overinject"
):
    """All recalled hints together stay within this many estimated tokens, and number at most `count_max`."""

    tokens_max: Count = 256
    count_max: Absent[Count] = None

    def check(self, view: View) -> Violation | None:
        hints = view.output.memory_hints
        if hints is None:
            return _NO_HINTS
        if self.count_max is not None and len(hints) > self.count_max:
            return Violation(f"{len(hints)} hints, at most {self.count_max} allowed")
        tokens = sum(estimate_tokens(hint.summary or "") for hint in hints)
        if tokens <= self.tokens_max:
            return None
        return Violation(f"{tokens} tokens of hints, at most {self.tokens_max} allowed")


# -- what it gives away or comes to --------------------------------------------------------------------


Share = Annotated[float, Field(ge=0, le=1)]


class PersonalDataAbsent(
    Constraint, name="personal_data", key="POLICY:PERSONAL_DATA", says="no personal data", short="kinds"
):
    """No personal data in a recognisable format: e-mail, phone, card, IBAN, SSN, IP; `allow` lists exceptions."""

    kinds: Items[PersonalKind] = Field(default=PERSONAL_KINDS, min_length=1)
    allow: Items[NonEmpty] = ()

    def check(self, view: View) -> Violation | None:
        for found in find_personal_data(view.text, self.kinds, self.allow):
            return Violation(f"personal data: {found.kind}", (found.start, found.end))
        return None


class Similar(
    Constraint, name="similar", key="CONTENT:SIMILAR", says="near to the given text, word by word", short="to"
):
    """The text is similar to one of these: the F1 over stems, numbers and dates is at least `least`."""

    to: Items[NonEmpty] = Field(min_length=1)
    least: Share = 0.7

    def check(self, view: View) -> Violation | None:
        near = best_f1(view.text, self.to)
        return None if near >= self.least else Violation(f"similarity {near:.2f}, at least {self.least:g} wanted")


class Rubric(
    Constraint,
    name="rubric",
    key="CONTENT:RUBRIC",
    says="what a grader was asked to look for",
    short="ask",
    needs_grader=True,
):
    """A grader scores the answer against this rubric with at least `least`."""

    ask: Annotated[str, Field(min_length=1, max_length=4000)]
    least: Share = 0.5

    def check(self, view: View) -> Violation | None:
        if view.grader is None:
            return Violation("no grader was given", is_decided=False)
        judged = view.grader.judge_rubric(self.ask, view.text, view.output.prompt)
        if judged.score is None:
            return Violation(f"the grader did not decide: {judged.why}", is_decided=False)
        if judged.score >= self.least:
            return None
        return Violation(f"the grader gave {judged.score:.2f}, at least {self.least:g} wanted: {self.ask[:80]}")


# -- groups --------------------------------------------------------------------------------------------


class AnyOf(
    Constraint, name="any_of", key="FORMAT:ANY_OF", says="at least one of several constraints", short="constraints"
):
    """At least one of these holds."""

    constraints: Items[Any] = Field(min_length=1)

    def check(self, view: View) -> Violation | None:
        found = [_checked(each, view) for each in self.constraints]
        if None in found:
            return None
        problems = [problem for problem in found if problem is not None]
        message = "; ".join(problem.message for problem in problems)
        return Violation(message, is_decided=all(problem.is_decided for problem in problems))


class NoneOf(Constraint, name="none_of", key="FORMAT:NONE_OF", says="none of several constraints", short="constraints"):
    """None of these holds. An unrecorded or undecided one is no proof that it does not hold."""

    constraints: Items[Any] = Field(min_length=1)

    def check(self, view: View) -> Violation | None:
        open_: Violation | None = None
        for each in self.constraints:
            problem = _checked(each, view)
            if problem is None:
                return Violation(f"{each.NAME} holds, and must not")
            if not problem.is_decided and open_ is None:
                open_ = Violation(f"{each.NAME}: {problem.message}", is_decided=False)
        return open_


def _checked(constraint: Constraint, view: View) -> Violation | None:
    try:
        return constraint.check(view)
    except TooLarge as error:
        return Violation(f"could not be decided: {error.message}", is_decided=False)


# -- the registry -------------------------------------------------------------------------------------

DEFAULT_REGISTRY = Registry(
    keys=MappingProxyType(
        {key: entry for kind in KINDS.values() for key, entry in kind.KEYS.items()}
        | {f"SCHEMA:{name}": KeyEntry(f"fits the contract {name}") for name in CONTRACTS}
    ),
    reasons=REASONS,
)
"""The keys and reason codes of every kind, and those of the contracts."""


def __getattr__(name: str) -> type[Constraint]:
    kind = KINDS.get(name)
    if kind is None:
        raise AttributeError(f"no constraint is called {name!r}")
    return kind
