"""What each tool and prompt takes. None of it names a tenant, user, agent, session or run: those are the server's.

The schemas that clients see are generated from these records, descriptions included.
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
"""Of one call, as JSON."""

T = TypeVar("T")
K_MAX, TOKENS_MIN, TOKENS_MAX, HINTS_MAX = 50, 256, 32_000, 20
READ_CHARS_MAX = 20_000
CHARS_MAX = 1 << 31
"""Further into a text nobody reads: content ends long before."""


def _passed_on(value: Any, fits: ValidatorFunctionWrapHandler) -> Any:
    try:
        return fits(value)
    except ValidationError:
        return value


Judged = Annotated[T, WrapValidator(_passed_on)]
"""What the library judges itself: the schema says what it takes, and what does not fit is refused as at every door."""


def _text_held(value: Any, fits: ValidatorFunctionWrapHandler) -> Any:
    """Pass on what is no text, for the library to judge; how long a text may be, these tools say."""
    return fits(value) if isinstance(value, str) else value


def check_count(value: Any, least: int, most: int, name: str) -> Any:
    """A number within the bounds of these tools, which are narrower than the library's."""
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
    """Whose words."""
    content: str
    """The exact words, unchanged."""
    tool: Absent[IdText] = None
    """Which tool answered, with the role `tool`."""
    args: Absent[JsonObject] = None
    """What the tool was called with; it is found by it."""
    ok: Absent[bool] = None
    """Whether the tool did what it was asked; true unless said."""
    call_id: Absent[IdText] = None
    """The id under which the call was made."""
    speaker: Absent[Note] = None
    """The speaker's name, where several share a role."""
    ts: Absent[Moment] = None
    """When it happened, ISO 8601; now unless said."""
    tags: Names = ()
    """Short labels."""
    entities: Names = ()
    """People, places and things it is about."""
    trust: Absent[Literal["assistant", "tool", "external"]] = None
    """`external` for web pages, files and mail of others."""
    idempotency_key: Absent[IdText] = None
    """The same key writes once."""
    build: Absent[IdText] = None
    """Of your answer: the build_id of the context it was given, so that its marks are kept."""


class ReadArguments(_Arguments):
    event_id: IdText
    """The event, by the id that `search_memory` and `get_context` give."""
    start: Judged[Annotated[int, Numeric(integral=True, minimum=0)]] = 0
    """From which character on; a context says where it left a result."""
    length: Judged[Annotated[int, Numeric(integral=True, minimum=1, maximum=READ_CHARS_MAX)]] = 4_000
    """How many characters at most; 4,000 unless said."""


class RememberArguments(_Arguments):
    text: Absent[Line] = None
    """What to remember, as it was said. It is recorded and cited."""
    key: Absent[IdText] = None
    """Of a fact: what it is about, such as `user.city`. A new value supersedes the old one."""
    value: JsonValue = None
    """The fact's value."""
    sources: Ids = ()
    """Ids of entries that say so, from `record` or `search_memory`. Without, text or key and value are recorded."""
    quote: Absent[Line] = None
    """The decisive words; they must stand in a source, verbatim."""
    confidence: Absent[Confidence] = None
    """How sure, from 0 to 1."""
    valid_from: Absent[Moment] = None
    """Since when it holds, ISO 8601."""
    valid_to: Absent[Moment] = None
    """Until when it holds, ISO 8601."""
    notes: Absent[Note] = None
    """Anything a reader of the fact should know."""


class SearchArguments(_Arguments):
    query: Absent[Query] = None
    """A question or words, in any language."""
    k: Judged[Annotated[int, Numeric(integral=True, minimum=1, maximum=K_MAX)]] = 10
    """How many at most; 10 unless said."""
    event_id: Absent[IdText] = None
    """Instead of a query: read this entry, where a hit or a context was cut."""
    start: Judged[Annotated[int, Numeric(integral=True, minimum=0)]] = 0
    """The character to read it from."""
    now: Absent[Judged[Moment]] = None
    """The moment it is asked at, against which "yesterday" is read, ISO 8601; later turns are not hidden."""
    min_score: Absent[Judged[Annotated[float, Numeric(minimum=0, maximum=1)]]] = None
    """Leave out what is less likely evidence than this, 0 to 1."""


class ContextArguments(_Arguments):
    query: Annotated[str, StringConstraints(max_length=8_000), WrapValidator(_text_held)] = ""
    """The question or task at hand."""
    max_tokens: Absent[Judged[Annotated[int, Numeric(integral=True, minimum=TOKENS_MIN, maximum=TOKENS_MAX)]]] = None
    """The budget of the text in tokens."""
    purpose: Judged[Purpose] = "responder"
    """`responder` (default): only what is known. `planner`, `tool`: also what is supposed."""
    cues: Absent[Judged[Cues]] = None
    """Tags, entities, keywords or a time range to prefer."""
    now: Absent[Judged[Moment]] = None
    """The moment it is asked at, against which "last week", validity and recency are read, ISO 8601; later turns are
    not hidden."""
    idempotency_key: Absent[IdText] = None
    """The same request under the same key is answered with the same context."""


class ProfileArguments(_Arguments):
    max_tokens: Judged[Annotated[int, Numeric(integral=True, minimum=TOKENS_MIN, maximum=TOKENS_MAX)]] = TOKENS_MIN
    """The budget of the text in tokens; 256 unless said."""


class LessonsArguments(_Arguments):
    query: Query
    """The task at hand."""
    intent: Absent[Judged[IntentParts]] = None
    """What kind of work it is; with it, what was learnt of other work is left out."""
    state: Absent[Judged[StateParts]] = None
    """Under which conditions it is done."""
    top_k: Absent[Judged[Annotated[int, Numeric(integral=True, minimum=1, maximum=HINTS_MAX)]]] = None
    """How many hints at most."""


class Evidence(_Arguments):
    """A place in the ledger, as far as it is known."""

    event_id: IdText
    """The event."""
    quote: Absent[Line] = None
    """Its decisive words, verbatim; without them the whole event is meant."""


class ClaimArguments(_Arguments):
    statement: Absent[Line] = None
    """A new claim, in one sentence. The same words again are the same claim."""
    claim_id: Absent[IdText] = None
    """A claim of this run that was made before, to verify or to retract."""
    status: Literal["candidate", "verified", "retracted"] = "candidate"
    """`verified` needs evidence; `retracted` takes `claim_id` and `reason`; candidate unless said."""
    evidence: Annotated[Items[Evidence], Field(max_length=32)] = ()
    """What it rests on."""
    reason: Absent[Line] = None
    """Why it is taken back."""


class ForgetArguments(_Arguments):
    event_id: Absent[IdText] = None
    """A message or tool result, with all that was derived from it."""
    fact_id: Absent[IdText] = None
    """A fact of this user."""


class WhyArguments(_Arguments):
    text: Absent[Line] = None
    """Words that you were told or that you said: from which context and which entry they come."""
    build_id: Absent[IdText] = None
    """A context: what it took, what it left out, and why."""


class QuestionArguments(_Arguments):
    query: Line
    """The question or task."""


class KeepArguments(_Arguments):
    text: Line
    """What to keep."""


class CatchUpArguments(_Arguments):
    session_id: Absent[IdText] = None
    """The session to go on with; the latest one of another run unless said."""
