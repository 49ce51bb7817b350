"""The arguments of each tool and prompt. None names a tenant, user, agent, session or run: the server sets those.

The schemas that clients see are generated from these records, including descriptions.
"""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field, StringConstraints, ValidatorFunctionWrapHandler, WrapValidator

from muniment.contracts.packet import Cues, Purpose
from muniment.core.record import Absent, Confidence, Items, JsonObject, JsonValue, Numeric, Record, ValidationError
from muniment.core.scope import IdText
from muniment.errors import InvalidInput
from muniment.learning.records import IntentParts, StateParts

__all__ = [
    "ARGUMENTS_BYTES_MAX",
    "CHARS_MAX",
    "HINTS_MAX",
    "K_MAX",
    "READ_CHARS_MAX",
    "TOKENS_MAX",
    "TOKENS_MIN",
    "CatchUpArguments",
    "ClaimArguments",
    "ContextArguments",
    "ForgetArguments",
    "KeepArguments",
    "LessonsArguments",
    "ProfileArguments",
    "QuestionArguments",
    "ReadArguments",
    "RecordArguments",
    "RememberArguments",
    "SearchArguments",
    "WhyArguments",
    "check_count",
]

ARGUMENTS_BYTES_MAX = 4 << 20
"""The most bytes of one call, as JSON."""

T = TypeVar("T")
K_MAX, TOKENS_MIN, TOKENS_MAX, HINTS_MAX = 50, 256, 32_000, 20
READ_CHARS_MAX = 20_000
CHARS_MAX = 1 << 31
"""A position limit far beyond the length of any content."""


def _passed_on(value: Any, fits: ValidatorFunctionWrapHandler) -> Any:
    try:
        return fits(value)
    except ValidationError:
        return value


Judged = Annotated[T, WrapValidator(_passed_on)]
"""An argument validated by the library: the schema describes it, and the library refuses invalid values as on every
surface.
"""


def _text_held(value: Any, fits: ValidatorFunctionWrapHandler) -> Any:
    """Pass on values that are no text, for the library to check; these tools only limit the length of texts."""
    return fits(value) if isinstance(value, str) else value


def check_count(value: Any, least: int, most: int, name: str) -> Any:
    """Check a number against these tools' bounds, which are narrower than the library's."""
    if type(value) is not int or not least <= value <= most:
        raise InvalidInput(f"{name} should be a whole number from {least} to {most}", path=f"$.{name}")
    return value


Line = Annotated[str, StringConstraints(min_length=1, max_length=8_000)]
Query = Annotated[Line, WrapValidator(_text_held)]
Note = Annotated[str, StringConstraints(min_length=1, max_length=2_000)]
Moment = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Names = Annotated[Items[IdText], Field(max_length=32)]
Ids = Annotated[Items[IdText], Field(max_length=64)]


class _Arguments(Record):
    model_config = ConfigDict(use_attribute_docstrings=True)


class RecordArguments(_Arguments):
    role: Literal["user", "assistant", "tool"]
    """The speaker."""
    content: str
    """The exact words, unchanged."""
    tool: Absent[IdText] = None
    """The tool that answered, with the role `tool`."""
    args: Absent[JsonObject] = None
    """The tool's arguments; it is found by them."""
    ok: Absent[bool] = None
    """Whether the tool succeeded; default true."""
    call_id: Absent[IdText] = None
    """The id under which the call was made."""
    speaker: Absent[Note] = None
    """The speaker's name, where several share a role."""
    ts: Absent[Moment] = None
    """When it happened, ISO 8601; default now."""
    tags: Names = ()
    """Short labels."""
    entities: Names = ()
    """People, places and things it is about."""
    trust: Absent[Literal["assistant", "tool", "external"]] = None
    """`external` for web pages, files and other people's mail."""
    idempotency_key: Absent[IdText] = None
    """The same key writes once."""
    build: Absent[IdText] = None
    """For your answer: the build_id of the context it was given, so that its marks are kept."""


class ReadArguments(_Arguments):
    event_id: IdText
    """The event, by the id that `search_memory` and `get_context` give."""
    start: Judged[Annotated[int, Numeric(integral=True, minimum=0)]] = 0
    """The first character to read; a context says where it cut a result."""
    length: Judged[Annotated[int, Numeric(integral=True, minimum=1, maximum=READ_CHARS_MAX)]] = 4_000
    """The most characters; default 4,000."""


class RememberArguments(_Arguments):
    text: Absent[Line] = None
    """The words to remember, verbatim. They are recorded and cited."""
    key: Absent[IdText] = None
    """For a fact: its subject, such as `user.city`. A new value supersedes the old one."""
    value: JsonValue = None
    """The fact's value."""
    sources: Ids = ()
    """Ids of supporting entries, from `record` or `search_memory`. Without, text or key and value are recorded."""
    quote: Absent[Line] = None
    """The decisive words; they must occur in a source, verbatim."""
    confidence: Absent[Confidence] = None
    """The certainty, from 0 to 1."""
    valid_from: Absent[Moment] = None
    """The start of its validity, ISO 8601."""
    valid_to: Absent[Moment] = None
    """The end of its validity, ISO 8601."""
    notes: Absent[Note] = None
    """Anything a reader of the fact should know."""


class SearchArguments(_Arguments):
    query: Absent[Query] = None
    """A question or words, in any language."""
    k: Judged[Annotated[int, Numeric(integral=True, minimum=1, maximum=K_MAX)]] = 10
    """The most hits; default 10."""
    event_id: Absent[IdText] = None
    """Instead of a query: read this entry, if a hit or a context was cut."""
    start: Judged[Annotated[int, Numeric(integral=True, minimum=0)]] = 0
    """The character to read it from."""
    now: Absent[Judged[Moment]] = None
    """The time of the question, from which "yesterday" is resolved, ISO 8601; later turns are not hidden."""
    min_score: Absent[Judged[Annotated[float, Numeric(minimum=0, maximum=1)]]] = None
    """Leave out hits less likely to be evidence than this, 0 to 1."""


class ContextArguments(_Arguments):
    query: Annotated[str, StringConstraints(max_length=8_000), WrapValidator(_text_held)] = ""
    """The question or task at hand."""
    max_tokens: Absent[Judged[Annotated[int, Numeric(integral=True, minimum=TOKENS_MIN, maximum=TOKENS_MAX)]]] = None
    """The budget of the text in tokens."""
    purpose: Judged[Purpose] = "responder"
    """`responder` (default): only known facts. `planner`, `tool`: also hypotheses."""
    cues: Absent[Judged[Cues]] = None
    """Tags, entities, keywords or a time range to prefer."""
    now: Absent[Judged[Moment]] = None
    """The time of the question, from which "last week", validity and recency are resolved, ISO 8601; later turns are
    not hidden.
    """
    idempotency_key: Absent[IdText] = None
    """The same request under the same key returns the same context."""


class ProfileArguments(_Arguments):
    max_tokens: Judged[Annotated[int, Numeric(integral=True, minimum=TOKENS_MIN, maximum=TOKENS_MAX)]] = TOKENS_MIN
    """The budget of the text in tokens; default 256."""


class LessonsArguments(_Arguments):
    query: Query
    """The task at hand."""
    intent: Absent[Judged[IntentParts]] = None
    """The kind of work; lessons of other kinds are then left out."""
    state: Absent[Judged[StateParts]] = None
    """The conditions of the work."""
    top_k: Absent[Judged[Annotated[int, Numeric(integral=True, minimum=1, maximum=HINTS_MAX)]]] = None
    """The most hints."""


class Evidence(_Arguments):
    """A place in the ledger, as precisely as known."""

    event_id: IdText
    """The event."""
    quote: Absent[Line] = None
    """Its decisive words, verbatim; without them, the whole event."""


class ClaimArguments(_Arguments):
    statement: Absent[Line] = None
    """A new claim, in one sentence. The same words again are the same claim."""
    claim_id: Absent[IdText] = None
    """An earlier claim of this run, to verify or to retract."""
    status: Literal["candidate", "verified", "retracted"] = "candidate"
    """`verified` needs evidence; `retracted` needs `claim_id` and `reason`; default candidate."""
    evidence: Annotated[Items[Evidence], Field(max_length=32)] = ()
    """The supporting evidence."""
    reason: Absent[Line] = None
    """The reason for retracting it."""


class ForgetArguments(_Arguments):
    event_id: Absent[IdText] = None
    """A message or tool result, with everything derived from it."""
    fact_id: Absent[IdText] = None
    """A fact of this user."""


class WhyArguments(_Arguments):
    text: Absent[Line] = None
    """Words that you were given or that you said: the context and the entry they come from."""
    build_id: Absent[IdText] = None
    """A context: its candidates, taken and left out, and why."""


class QuestionArguments(_Arguments):
    query: Line
    """The question or task."""


class KeepArguments(_Arguments):
    text: Line
    """The words to keep."""


class CatchUpArguments(_Arguments):
    session_id: Absent[IdText] = None
    """The session to continue; default the latest one of another run."""
