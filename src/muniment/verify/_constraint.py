"""Base class of constraints: a frozen record with a registered key, checked against a view of one output.

Each kind is a subclass that names itself in its header. `KINDS` holds them by name, and the taxonomy takes their keys
and codes from there, so that a kind is defined in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

from pydantic import ConfigDict, ValidationError, model_validator

from muniment.core.canonical import parse_json
from muniment.core.ports.models import RubricJudge
from muniment.core.record import Absent, Count, Record, issues_of
from muniment.errors import InvalidInput, InvalidJson, InvalidRecord
from muniment.packets.answers import Resolution, resolve
from muniment.verify._text_measures import Detected, detect_language, sentence_count, word_count
from muniment.verify.outputs import Output, Severity
from muniment.verify.taxonomy import Detail, KeyEntry

KINDS: dict[str, type[Constraint]] = {}
"""Every kind, by its name in constraint files."""
_FENCES = ("```json", "```JSON", "```Json", "```")


class Violation(NamedTuple):
    """A failed constraint, and the half-open character span of the failure if it is in one place.

    `is_decided` is false if the constraint could not be decided, so that neither it nor its opposite holds.
    """

    message: str
    where: tuple[int, int] | None = None
    is_decided: bool = True


class View:
    """An output as constraints see it; values that several of them need are computed once."""

    def __init__(self, output: Output, grader: RubricJudge | None = None) -> None:
        self.output = output
        self.grader = grader
        self.text = output.text

    @cached_property
    def stripped(self) -> str:
        return self.text.strip()

    @cached_property
    def lowered(self) -> str:
        return self.text.lower()

    @cached_property
    def words(self) -> int:
        return word_count(self.text)

    @cached_property
    def sentences(self) -> int:
        return sentence_count(self.text)

    @cached_property
    def language(self) -> Detected | None:
        return detect_language(self.text)

    @cached_property
    def cited(self) -> Resolution:
        return resolve(self.text, self.output.marks or {})

    @cached_property
    def json(self) -> Any:
        """The text parsed as one JSON document; raises `InvalidJson` if it is not one."""
        return _parsed(self.stripped)

    @cached_property
    def unfenced(self) -> str:
        """The text without a code fence around it."""
        text = self.stripped
        for fence in _FENCES:
            text = text.removeprefix(fence)
        return text.removesuffix("```").strip()

    @cached_property
    def fenced_json(self) -> Any:
        """The text parsed as JSON, allowing a code fence around it."""
        return _parsed(self.unfenced)


def error_line(error: InvalidInput) -> str:
    """An error in one line, with its hint if it has its own."""
    said = error.message if error.path == "$" else str(error)
    return said if error.hint == error.usual_hint else f"{said} ({error.hint})"


def _parsed(text: str) -> Any:
    try:
        return parse_json(text)
    except InvalidJson as error:
        return error


class Constraint(Record):
    """A requirement on an output.

    A kind declares in its header its name in constraint files (`name`), its registered key with a description, its
    reason code, and the field set by a bare value (`short`: `- contains: thanks`). `more_keys` lists further keys it
    may report; `needs_grader` is true if it asks a model.
    """

    model_config = ConfigDict(defer_build=True)  # most processes use few kinds

    NAME: ClassVar[str] = ""
    KEY: ClassVar[str]
    KEYS: ClassVar[Mapping[str, KeyEntry]]
    REASON: ClassVar[str]
    SHORT: ClassVar[str | None]
    NEEDS_GRADER: ClassVar[bool]
    NEEDS_BOUND: ClassVar[bool]

    key: Absent[str] = None
    severity: Severity = "fatal"
    reason: Absent[str] = None

    def __init_subclass__(
        cls,
        *,
        name: str = "",
        key: str = "",
        says: str = "",
        detail: Detail = "none",
        more_keys: Mapping[str, str] | None = None,
        reason: str = "constraint_violation",
        short: str | None = None,
        needs_bound: bool = True,
        needs_grader: bool = False,
        **options: Any,
    ) -> None:
        super().__init_subclass__(**options)
        if not name:
            return
        cls.NAME, cls.KEY, cls.REASON, cls.SHORT = name, key, reason, short
        cls.NEEDS_BOUND, cls.NEEDS_GRADER = needs_bound, needs_grader
        more = {other: KeyEntry(text, detail) for other, text in (more_keys or {}).items()}
        cls.KEYS = ({key: KeyEntry(says, detail)} if says else {}) | more
        KINDS[name] = cls

    def __init__(self, /, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise InvalidRecord(f"not a valid {self.NAME}", issues_of(error, fields)) from None

    def default_key(self) -> str:
        return self.KEY

    def check(self, view: View) -> Violation | None:
        """Return None if the constraint holds."""
        raise AssertionError(f"{type(self).__name__} checks nothing, not even {view.output.id}")

    @property
    def violated_key(self) -> str:
        return self.key if self.key is not None else self.default_key()

    @property
    def violated_reason(self) -> str:
        return self.reason if self.reason is not None else self.REASON


class Bounds(Constraint):
    """A constraint on a number: any of `min`, `max`, `exactly`, `more_than`, `less_than`."""

    min: Absent[Count] = None
    max: Absent[Count] = None
    exactly: Absent[Count] = None
    more_than: Absent[Count] = None
    less_than: Absent[Count] = None

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        low, high = self.limits
        if self.NEEDS_BOUND and not {"min", "max", "exactly", "more_than", "less_than"} & self.model_fields_set:
            raise ValueError("say min, max, exactly, more_than or less_than")
        if high is not None and low > high:
            raise ValueError(f"nothing is at least {low} and at most {high}")
        return self

    @cached_property
    def limits(self) -> tuple[int, int | None]:
        lows = [self.min, self.exactly, None if self.more_than is None else self.more_than + 1]
        highs = [self.max, self.exactly, None if self.less_than is None else self.less_than - 1]
        kept = [high for high in highs if high is not None]
        return max((low for low in lows if low is not None), default=0), min(kept) if kept else None

    def outside(self, count: int, noun: str) -> Violation | None:
        low, high = self.limits
        if count < low:
            return Violation(f"{count} {noun}, at least {low} wanted")
        if high is not None and count > high:
            return Violation(f"{count} {noun}, at most {high} allowed")
        return None
