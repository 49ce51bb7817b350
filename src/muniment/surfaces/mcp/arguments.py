"""What each tool and prompt takes. None of it names a tenant, user, agent, session or run: those are the server's.

The schemas that clients see are generated from these records, descriptions included.
"""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field, StringConstraints, ValidatorFunctionWrapHandler, WrapValidator

from muniment.contracts.memory_packet import Cues, Purpose
from muniment.core.record import Absent, Confidence, Items, JsonObject, JsonValue, Numeric, Record, ValidationError
from muniment.core.scope import IdText
from muniment.errors import InvalidInput
from muniment.learning.stored_memory import IntentParts, StateParts

__all__ = [
    "ARGUMENTS_BYTES_MAX",
    "HINTS_MAX",
    "K_MAX",
    "READ_CHARS_MAX",
    "TOKENS_MAX",
    "TOKENS_MIN",
    "ClaimArguments",
    "ComposeArguments",
    "ExplainArguments",
    "ForgetArguments",
    "KeepArguments",
    "ObserveArguments",
    "QuestionArguments",
    "ReadArguments",
    "RecallArguments",
    "RememberArguments",
    "SearchArguments",
    "check_count",
]

ARGUMENTS_BYTES_MAX = 4 << 20
"""Of one call, as JSON."""

T = TypeVar("T")
K_MAX, TOKENS_MIN, TOKENS_MAX, HINTS_MAX = 50, 256, 32_000, 20
READ_CHARS_MAX = 20_000


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


class ObserveArguments(_Arguments):
    role: Literal["user", "assistant", "tool"]
    """Whose words these are."""
    content: str
    """The words themselves, unchanged: they are what facts, claims and answers will cite."""
    tool: Absent[IdText] = None
    """The name of the tool that answered; goes with the role `tool`, and only with it."""
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
    """Lowers what the words count for: `external` for pages, files and mail of others."""
    idempotency_key: Absent[IdText] = None
    """The same key writes once."""
    build: Absent[IdText] = None
    """Of an answer: the id of the packet it was given. Its marks are resolved and kept with it."""


class ReadArguments(_Arguments):
    event_id: IdText
    """The event, by the id that `search` and `compose` give."""
    start: Judged[Annotated[int, Numeric(integral=True, minimum=0)]] = 0
    """From which character on; a context says where it left a result."""
    length: Judged[Annotated[int, Numeric(integral=True, minimum=1, maximum=READ_CHARS_MAX)]] = 4_000
    """How many characters at most; 4,000 unless said."""


class RememberArguments(_Arguments):
    key: IdText
    """What the fact is about, such as `user.city`. A new value for a key supersedes the old one or disputes it."""
    value: JsonValue
    """The value: text, a number, or any JSON."""
    sources: Ids = ()
    """Ids of the events that say so (from `observe` or `search`)."""
    said: Absent[Line] = None
    """The words that say so, where they are not an event yet: they are recorded first, as the user's, and cited."""
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
    query: Query
    """What to look for: a question or words, in any language."""
    k: Judged[Annotated[int, Numeric(integral=True, minimum=1, maximum=K_MAX)]] = 10
    """How many at most; 10 unless said."""
    now: Absent[Judged[Moment]] = None
    """The moment it is asked at, against which "yesterday" is read, ISO 8601; later turns are not hidden."""
    min_score: Absent[Judged[Annotated[float, Numeric(minimum=0, maximum=1)]]] = None
    """Leave out what is less likely evidence than this, 0 to 1."""


class ComposeArguments(_Arguments):
    purpose: Judged[Purpose] = "responder"
    """Who reads it: a `responder` gets only what is known, a `planner` and a `tool` more; responder unless said."""
    query: Annotated[str, StringConstraints(max_length=8_000), WrapValidator(_text_held)] = ""
    """The question or task at hand."""
    max_tokens: Absent[Judged[Annotated[int, Numeric(integral=True, minimum=TOKENS_MIN, maximum=TOKENS_MAX)]]] = None
    """The budget of the text in tokens; the policy's unless said."""
    cues: Absent[Judged[Cues]] = None
    """Tags, entities, keywords or a time range to prefer."""
    now: Absent[Judged[Moment]] = None
    """The moment it is asked at, against which "last week", validity and recency are read, ISO 8601; later turns are
    not hidden."""
    idempotency_key: Absent[IdText] = None
    """The same request under the same key is answered with the same context."""


class RecallArguments(_Arguments):
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
    """A message or tool result to erase, with all that was derived from it."""
    fact_id: Absent[IdText] = None
    """A fact of this user to erase."""


class ExplainArguments(_Arguments):
    build_id: Absent[IdText] = None
    """A build from `compose`: what it took, what it left out, and why."""
    text: Absent[Line] = None
    """Some words that were told: which builds told them, and from which event."""


class QuestionArguments(_Arguments):
    query: Line
    """The question or task."""


class KeepArguments(_Arguments):
    text: Line
    """What to keep."""
