"""Tool calls in text: name and arguments in one line, search words, and a one-line result.

    read_file(path=config/settings.py) → DEBUG=True
    deploy(target=prod) failed → permission denied

The part before the arrow is the *call*, in the place of a speaker's name. The part after it is the tool's output,
verbatim: quotes and citations are from that part alone, and never include the call. The input was redacted on
admission; nothing derived from it is stored outside the entry.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeVar

from muniment.core.canonical import canonical_text
from muniment.core.limits import remembered
from muniment.core.requests import furthest
from muniment.core.text.analyzer import analyze, ascii_words, stem, term_hash
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import WordList
from muniment.memory.turns import Excerpt, Stretch
from muniment.store.injection import reads_like_instructions
from muniment.store.ledger import ToolCall

__all__ = [
    "CALL",
    "FAILED",
    "NOISE",
    "READ",
    "WRITE",
    "AskedOrder",
    "Gap",
    "RecordedCall",
    "asked_marks",
    "asked_order",
    "asks_how_often",
    "call_marks",
    "call_of_line",
    "call_without_failure",
    "call_words",
    "calls_in",
    "changed",
    "cut_excerpt",
    "did",
    "effect_of_name",
    "effects_asked",
    "excerpt_of",
    "further_words",
    "gaps_of",
    "identified",
    "identifiers_in",
    "is_chunk",
    "is_failed",
    "named",
    "reads_as_failed",
    "result_line",
    "speaker_told",
    "tell_call",
    "words_of_name",
]


# -- effects -------------------------------------------------------------------------------------------
#
# The effect of a call: it changes, creates, ends or reads something. Inferred from the verbs of names and questions.


READ = "read"
WRITE = "write"
"""Any effect that changes, creates or ends something."""
_NOUN_TOO = "*"
_VERBS = WordList(__package__, "effects.txt")


@cache
def _by_stem() -> tuple[dict[str, str], frozenset[str]]:
    """The effect of each verb, and the verbs that are nouns as often, by stem."""
    found: dict[str, str] = {}
    nouns: set[str] = set()
    for effect in ("change", "create", "end", READ):
        for verb in _VERBS.words(effect):
            stemmed = stem(verb.rstrip(_NOUN_TOO).replace("-", ""))
            found[stemmed] = effect
            if verb.endswith(_NOUN_TOO):
                nouns.add(stemmed)
    return found, frozenset(nouns)


@cache
def _shown() -> frozenset[str]:
    return frozenset(map(stem, _VERBS.words("shown")))


def effect_of_name(words: list[str]) -> str | None:
    """The effect of a tool from the lower-case words of its name; None if unclear."""
    effects, nouns = _by_stem()
    is_shown = len(words) > 1 and (stem(words[-1]) in _shown() or effects.get(stem(words[-1])) == READ)
    for place, word in enumerate(words):
        stemmed = stem(word)
        is_noun = stemmed in nouns or word.endswith("ings")  # settings, bookings
        if stemmed in effects and not (is_noun and (place or is_shown)):
            return effects[stemmed]
    return READ if is_shown else None


def effects_asked(words: list[str]) -> list[str]:
    """The effects that a question asks about: for a change, any writing call may answer, creating or ending included.

    Reading is matched by words alone: "find", "show" and "get" occur in questions about anything.
    """
    effects, _ = _by_stem()
    told = dict.fromkeys(effects.get(stem(word)) for word in words)
    return [WRITE if effect == "change" else effect for effect in told if effect not in (None, READ)]


VALUE_CHARS_MAX = 120
"""Per argument; a longer one is shown by its beginning and end, with the omitted length."""
CALL_CHARS_MAX = 400
"""For all arguments together; further ones are only counted."""
_CALL_CHARS_MAX = 200
"""For the line that represents a result."""
WORDS_CHARS_MAX = 16 * 1024
"""For the searchable words of a call's name and arguments."""
REST_CHARS_MAX, REST_WORDS_MAX = 4_000_000, 10_000
"""For the rest of a long result: characters scanned, and distinct words kept."""
NESTED_MAX = 12
"""Maximum nesting depth at which words of arguments are collected."""
_CORPUS = "corpus"
_FAILED = " failed"

_PLAIN = lazy_pattern(r"[^\s\"'`(),=\[\]{}<>\\#→…\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]+")
"""A text that needs no quotation marks."""
_UNSEEN = lazy_pattern(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Line breaks, and invisible or direction-changing characters; shown by number."""
_CAMEL = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"\w")
_LETTERS = lazy_pattern(r"[^\W\d_]\w{1,63}")
"""A word that begins with a letter; the thousands of numbers in a log are not indexed."""
_TEXT_FAULT = lazy_pattern(r"(?i)error|exception|fail|fatal|denied|not found|no such|invalid|timed? ?out|refused|panic")


# -- the call -----------------------------------------------------------------------------------------


def tell_call(tool: ToolCall | Mapping[str, Any]) -> str:
    """`name(key=value, …)`, with `failed` appended if the call failed; always one line.

    Arguments are in canonical order, so that a call looks the same before and after storage. Arguments that read like
    prompt injections are only counted (LG-08).
    """
    name, args, ok = _parts(tool)
    told = _tell_args(args) if args else ""
    if told and reads_like_instructions(" ".join(_texts(args, NESTED_MAX))[:WORDS_CHARS_MAX]):
        told = f"… {_counted(len(args or ()), 'argument')} left out: they read like instructions"
    return f"{_clean(name)}({told})" + ("" if ok else _FAILED)


def _parts(tool: ToolCall | Mapping[str, Any]) -> tuple[str, Mapping[str, Any] | None, bool]:
    if isinstance(tool, ToolCall):
        return tool.name, tool.args, tool.ok
    return tool["name"], tool.get("args"), tool["ok"]


def _tell_args(args: Mapping[str, Any]) -> str:
    told: list[str] = []
    left = CALL_CHARS_MAX
    for key in _ordered(args):
        word = f"{_bounded(_bare(key))}={_bounded(_value(args[key]))}"
        if len(word) > left and told:
            told.append(f"… {_counted(len(args) - len(told), 'more argument')}")
            break
        told.append(word)
        left -= len(word) + 2
    return ", ".join(told)


def _ordered(args: Mapping[str, Any]) -> list[str]:
    """Keys as canonical JSON orders them."""
    return sorted(args, key=lambda key: key.encode("utf-16-be", "surrogatepass"))


def _value(value: Any) -> str:
    """A value as JSON, except that a text without spaces or brackets needs no quotation marks."""
    if isinstance(value, str):
        return _bare(value)
    return _clean(canonical_text(value))


def _bare(text: str) -> str:
    if _PLAIN.fullmatch(text) and text not in ("true", "false", "null") and not _reads_as_number(text):
        return _clean(text)
    return _clean(canonical_text(text))


def _reads_as_number(text: str) -> bool:
    """True if the unquoted text would read as a number."""
    return text[0] in "-0123456789" and re.fullmatch(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", text, re.ASCII) is not None


def _bounded(text: str) -> str:
    if len(text) <= VALUE_CHARS_MAX:
        return text
    tail = VALUE_CHARS_MAX // 3
    head = VALUE_CHARS_MAX - tail
    return f"{text[:head]}… {_counted(len(text) - head - tail, 'character')} left out …{text[-tail:]}"


def _clean(text: str) -> str:
    return text if text.isprintable() else _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


# -- search words ------------------------------------------------------------------------------------


def call_words(tool: ToolCall | Mapping[str, Any]) -> str:
    """The search words of a call: its name, and the keys, texts and numbers of its arguments.

    A compound name (`readFile`) also gives its parts. Paths are split by the analyzer.
    """
    name, args, _ = _parts(tool)
    found: list[str] = []
    left = WORDS_CHARS_MAX
    for text in (name, *_texts(args or {}, NESTED_MAX)):
        found.append(text[:left])
        if (apart := _CAMEL.sub(" ", found[-1])) != found[-1]:
            found.append(apart)
        left -= len(text)
        if left <= 0:
            break
    return "\n".join(found)


def _texts(value: Any, depth: int) -> Iterator[str]:
    """Keys and values in canonical order; true, false and null give no words."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key in _ordered(value) if depth else ():
            yield key
            yield from _texts(value[key], depth - 1)
    elif isinstance(value, list | tuple):
        for each in value if depth else ():
            yield from _texts(each, depth - 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield canonical_text(value)


def further_words(rest: str) -> str:
    """The words of a long result after its beginning, each once, so that they are searchable without outweighing it."""
    words = dict.fromkeys(_LETTERS.findall(rest[:REST_CHARS_MAX].casefold()))
    return " ".join(islice(words, REST_WORDS_MAX))


def is_chunk(tool: ToolCall | Mapping[str, Any], metadata: Mapping[str, Any] | None) -> bool:
    """True for a piece of a document, which was stored and not called for."""
    name, args, _ = _parts(tool)
    return name == _CORPUS and args is None and "document_id" in (metadata or {})


def speaker_told(body: Mapping[str, Any], role: str) -> str:
    """The speaker label of an entry: a name, the call, or the role."""
    tool = body.get("tool")
    if tool is not None and not is_chunk(tool, body.get("metadata")):
        return tell_call(tool)
    return body.get("speaker") or role


# -- its result ---------------------------------------------------------------------------------------


def result_line(call: str, text: str, ok: bool = True) -> str:
    """The line that represents a result: the call, and the first informative line.

    For a failed call, the first line that names an error. The rest is read by the result's id.
    """
    lines = [line.strip() for line in text.splitlines() if _WORD.search(line)] or [text.strip()]
    said = lines[0] if ok else next((line for line in lines if _TEXT_FAULT.search(line)), lines[0])
    if len(said) > _CALL_CHARS_MAX:
        said = f"{said[:_CALL_CHARS_MAX].rstrip()} …"
    more = text.strip().count("\n")
    rest = f" … {_counted(more, 'more line')}" if more else ""
    return f"{call} → {_clean(said) or '(nothing)'}{rest}"


def call_without_failure(call: str) -> str | None:
    """The call as shown without its failure; None if it did not fail or is shown in part, as two such calls cannot be
    compared.
    """
    told = call.removesuffix(_FAILED)
    return None if told == call or "…" in told else told


def is_failed(call: str) -> bool:
    """True if the shown call is marked as failed."""
    return call.endswith(f"){_FAILED}")


def call_of_line(line: str) -> str:
    """The call in the line that represents a result."""
    return line.partition(" → ")[0]


# -- calls recorded separately from their results ------------------------------------------------------


class RecordedCall(NamedTuple):
    """A call in the message of the assistant that made it."""

    call_id: str
    name: str
    args: dict[str, Any] | None


def calls_in(metadata: Mapping[str, Any] | None) -> Iterator[RecordedCall]:
    """The calls under `tool_calls` in a message's metadata; other shapes are skipped.

    Accepts `{id, name, args}`, and the shapes of Chat Completions (`{id, function: {name, arguments}}`) and Anthropic
    (`{id, name, input}`).
    """
    given = (metadata or {}).get("tool_calls")
    for each in given if isinstance(given, Sequence) and not isinstance(given, str) else ():
        if isinstance(each, Mapping) and (call := _recorded(each)) is not None:
            yield call


def _recorded(given: Mapping[str, Any]) -> RecordedCall | None:
    inner = given.get("function")
    told = inner if isinstance(inner, Mapping) else given
    call_id = _first(given, ("call_id", "id"))
    name = told.get("name")
    if not isinstance(call_id, str) or not isinstance(name, str):
        return None
    args = _first(told, ("args", "arguments", "input"))
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except (ValueError, RecursionError):
            args = None
    return RecordedCall(call_id, name, dict(args) if isinstance(args, Mapping) else None)


def _first(given: Mapping[str, Any], keys: Iterable[str]) -> Any:
    return next((given[key] for key in keys if given.get(key) is not None), None)


# -- call marks ----------------------------------------------------------------------------------------
#
# Index marks of a tool call besides its words: that it is a call, its tool, its effect, its failure, and the
# identifiers in it as whole terms. A mark is a term that no text has (it begins with `#call`), so a question that asks
# for one only matches calls, and search in a scope without calls is unaffected.


CALL = "#call"
"""The mark of every call."""
FAILED = "#call:failed"

_ARGUMENT_IDS_MAX, _RESULT_IDS_MAX = 256, 64
"""Maximum identifiers kept from a call's arguments, and from its result."""
_RESULT_CHARS_MAX = 16 * 1024
_ID_CHARS_MAX = 96
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{0,95}(?:(?:::|[./-])\w{1,95}){0,16}")
_KEY_END = re.compile(r'"\s{0,4}:')
"""The end of a JSON object's key; keys occur in every result of a tool."""
_JOINED = re.compile(r"[_/]|::|\.\w{1,5}$|[a-z][A-Z]")
_PARTS = re.compile(r"/|::")
_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_FAULT = re.compile(
    r"\W{0,4}(?:error|exception|traceback|fatal|failed|failure|exit(?: ?code)?:? ?-?[1-9]\d{0,9}|command not found)\b"
    r"(?!\W{0,4}(?:0|none|null|nil|false)\b|\": ?(?:\"\"|\[\]|\{\}))",
    re.IGNORECASE,
)
"""The beginning of a result that reports a failure, if the status is unknown. `Failed: 0` and `{"error": null}` do not
match.
"""


def named(words: Iterable[str]) -> str:
    """The mark of a tool's calls, from the words of its name."""
    return "#call:of:" + "_".join(map(stem, words))


def did(effect: str) -> str:
    """The mark of calls with this effect."""
    return f"#call:did:{effect}"


def identified(identifier: str) -> str:
    """The mark of calls containing this identifier."""
    return f"#call:on:{identifier.casefold()}"


def words_of_name(name: str) -> list[str]:
    """The words of a tool's name: `getUserDetails`, `get_user_details` → get, user, details.

    A name in another script is one word.
    """
    return [word.lower() for word in _NAME_WORD.findall(name)] or [name.casefold()]


def identifiers_in(text: str) -> Iterator[str]:
    """Compound identifiers, paths and the like: `retry_count`, `src/app.py`, `ValueError`.

    A path is one, and so is each of its parts that would be one alone: `tests/test_app.py::test_retry_count`.
    """
    for found in _IDENTIFIER.finditer(text):
        whole = found[0]
        if len(whole) > _ID_CHARS_MAX or not _JOINED.search(whole) or _KEY_END.match(text, found.end()):
            continue
        yield whole
        if "/" in whole or "::" in whole:
            yield from (part for part in _PARTS.split(whole) if part != whole and _JOINED.search(part))


def reads_as_failed(text: str) -> bool:
    """True if a result of unknown status begins like an error."""
    return _FAULT.match(text) is not None


def changed(line: str, text: str) -> bool:
    """True if the call of this line and result changed, created or ended something. Judged by its name, as in
    `call_marks`.
    """
    call = call_of_line(line)
    if is_failed(call) or _FAULT.match(text):
        return False
    return effect_of_name(words_of_name(call.partition("(")[0])) not in (None, READ)


def call_marks(tool: ToolCall | Mapping[str, Any], text: str) -> list[str]:
    """The marks of a call with this result, deduplicated."""
    name, ok = (tool.name, tool.ok) if isinstance(tool, ToolCall) else (tool["name"], tool["ok"])
    words = words_of_name(name)
    found = [CALL, named(words)]
    effect = effect_of_name(words)
    if not ok or _FAULT.match(text):
        found.append(FAILED)  # a failed call had no effect
    elif effect is not None:
        found += [did(effect)] if effect == READ else [did(effect), did(WRITE)]
    found += map(identified, islice(identifiers_in(call_words(tool)), _ARGUMENT_IDS_MAX))
    found += map(identified, islice(identifiers_in(text[:_RESULT_CHARS_MAX]), _RESULT_IDS_MAX))
    return list(dict.fromkeys(found))


# -- asked calls ---------------------------------------------------------------------------------------
#
# Calls that a question asks for: the tool, the effect, the arguments; the first or last, before or after something.
# English only. In a scope without calls, no question asks for any.


Holding = Callable[[int], int]
"""Maps a term's hash to the number of turns of a scope with it."""

NOISE = frozenset(("call", "tool"))
"""Terms of questions about calls that calls themselves lack."""
_TOOL_REPEATS = 2
"""A named tool counts like a repeated word, since other tools cannot answer."""
_CHARS_MAX = 2_000
"""A longer text is not a question about calls."""
_OF_CALLS = re.compile(
    r"\b(?:calls?|called|tools?|commands?|runs?|ran|outputs?|results?|returned|returns?|prints?|printed|say|said|says"
    r"|tests?|edits?|trials?|code|terminal|errors?|failed)\b"
)
_CODE = re.compile(r"\b(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{4,}\b")
"""Letters and digits in one word: an order, flight or ticket number."""
_FAILURE = re.compile(
    r"\b(?:fail(?:s|ed|ure|ures|ing)?|errors?|exceptions?|crash(?:ed|es)?|refused|rejected|went wrong|broke|denied)\b"
)
_TOOL_SPOKEN = re.compile(
    r"\b((?:\w++ ){1,6})(?:tool|command|call)\b|\bdid (?:the )?((?:\w++ ){1,6})(?:say|return|print)"
)
"""A tool named in words is called a tool, or has output."""

_CALLED_TOOL = re.compile(r"\bthe (?:\w+ ){1,6}(?:tool|command)\b")

_WHO = r"(?:we|you|the agent|the assistant|been)"
_SO_FAR = r"(?: already| so far| (?:till|until|up to|by) now| yet| today| (?:in|during) this (?:run|session)| here)"
_DONE = re.compile(
    rf"\bwhat(?: all| else)?(?:(?:'ve| have| has| had| did| was| were) {_WHO}(?: already| actually| just| now){{0,2}}"
    r" (?:done|do|changed?|accomplish(?:ed)?|completed?|finish(?:ed)?)"
    r"| (?:was|were|is|has been) (?:done|changed|accomplished|completed|finished)"
    rf"| changes (?:have|has|did|were) (?:{_WHO} )?(?:already )?(?:made|make|done))"
    rf"{_SO_FAR}{{0,3}}(?: ?[?.!]|,? and (?:what|which)\b|$)"
)
"""Asks for everything done by the agent, without naming it."""

# -- marks --------------------------------------------------------------------------------------------


def asked_marks(text: str, holding: Holding) -> dict[str, int]:
    """The marks of the calls that a question asks for, if some call of the scope has them, with their weights; empty
    for a question that is not about calls.
    """
    if len(text) > _CHARS_MAX or not holding(term_hash(CALL)):
        return {}
    return {mark: count for mark, count in _marks_named(text).items() if holding(term_hash(mark))}


@remembered(256)
def _marks_named(text: str) -> dict[str, int]:
    folded = text.casefold()
    words = _verbs(folded)
    names = dict.fromkeys(map(identified, identifiers_in(text)), 1)
    found = dict.fromkeys(_tools_named(folded, text), _TOOL_REPEATS)
    if _DONE.search(" ".join(folded.replace("’", "'").split())):
        found[did(WRITE)] = 1
    if names or _OF_CALLS.search(folded) or _CODE.search(folded):  # "when did I change jobs?" is not about a call
        found |= names | dict.fromkeys([FAILED] if _FAILURE.search(folded) else map(did, effects_asked(words)), 1)
    return found


def _verbs(folded: str) -> list[str]:
    """The words of a question that may name an action, without those of a tool's name."""
    for identifier in identifiers_in(folded):
        folded = folded.replace(identifier, " ")
    folded = _CALLED_TOOL.sub(" ", folded)
    return ascii_words(folded) if folded.isascii() else folded.split()


def _tools_named(folded: str, text: str) -> Iterator[str]:
    """The marks of tools that may be named, literally or by their words."""
    for identifier in identifiers_in(text):
        yield named(words_of_name(identifier))
    for found in _TOOL_SPOKEN.finditer(folded):
        words = (found[1] or found[2]).split()
        for count in range(1, len(words) + 1):
            yield named(words[-count:])


_HOW_OFTEN = re.compile(r"\bhow (?:often|frequently|many (?:times|calls|runs|tries|attempts))\b")


def asks_how_often(folded: str) -> bool:
    """True if a question asks how often something happened: every occurrence counts, and none replaces another."""
    return _HOW_OFTEN.search(folded) is not None


# -- order --------------------------------------------------------------------------------------------

Side = Literal["before", "after"]
Speaks = Literal["user", "assistant"]
End = Literal["first", "last"]


class AskedOrder(NamedTuple):
    """The order in which an event is asked for."""

    wanted: str
    """The part of the question that describes the wanted event."""
    side: Side | None = None
    event: str = ""
    """The part that describes a reference event, before or after which the wanted one happened."""
    speaks: Speaks | None = None
    """The speaker of the wanted event, if it is not a tool's."""
    end: End | None = None
    """First or last of the matching events; None if unspecified."""
    event_end: End | None = None
    """The same for the reference event."""
    is_state: bool = False
    """True if it asks for a state, which a reading call reports."""


_SIDES: dict[str, Side] = {
    "before": "before",
    "prior to": "before",
    "until": "before",
    "after": "after",
    "following": "after",
    "since": "after",
    "once": "after",
}
_BESIDE = re.compile(
    r"(?P<wanted>.+?)\b(?:right |just |immediately |directly |shortly |the moment )?"
    r"(?P<side>before|prior to|until|after|following|since|once) (?P<event>.+)",
    re.DOTALL | re.IGNORECASE,
)
_BESIDE_FIRST = re.compile(
    r"(?:right |just |immediately |directly |shortly )?(?P<side>before|prior to|until|after|following|since|once) "
    r"(?P<event>[^,]+), (?P<wanted>.+)",
    re.DOTALL | re.IGNORECASE,
)
_PRONOUN = re.compile(r"\b(?:it|they|them|this|that|its)\b", re.IGNORECASE)
_NAMING = re.compile(r"\S*(?:\d|[A-Z_/.]\w)\S*")
_USER = re.compile(r"\b(?:did|does|was|had) (?:the )?(?:user|customer|human|client)\b", re.IGNORECASE)
_AGENT = re.compile(r"\b(?:did|does|was|had) (?:the )?(?:agent|assistant|model|bot)\b", re.IGNORECASE)
_STATE = re.compile(r"\b(?:stand|stood|state|status|details?|look(?:ed)? like|value|setting)\b", re.IGNORECASE)
_FIRST = re.compile(r"\b(?:first|earliest|initial|initially|originally|at first|at the start)\b", re.IGNORECASE)
_LAST = re.compile(r"\b(?:last|latest|finally|final|in the end|at last|most recent(?:ly)?|newest)\b", re.IGNORECASE)


@remembered(256)
def asked_order(text: str) -> AskedOrder | None:
    """The order that a question asks for; None if it asks for none or is not about calls."""
    if len(text) > _CHARS_MAX:
        return None
    found = _BESIDE_FIRST.match(text) or _BESIDE.match(text)
    if found is not None:
        wanted, event = found["wanted"].strip(), found["event"].strip()
        event_end = _end(event)
        if _PRONOUN.search(event):
            event = f"{' '.join(_NAMING.findall(wanted)[1:]) or wanted} {event}"
        return AskedOrder(
            wanted,
            side=_SIDES[found["side"].lower()],
            event=event,
            speaks=_speaks(wanted),
            end=_end(wanted),
            event_end=event_end,
            is_state=_STATE.search(wanted) is not None,
        )
    end = _end(text)
    return None if end is None else AskedOrder(text, speaks=_speaks(text), end=end)


def _speaks(wanted: str) -> Speaks | None:
    return "user" if _USER.search(wanted) else "assistant" if _AGENT.search(wanted) else None


def _end(wanted: str) -> End | None:
    return "first" if _FIRST.search(wanted) else "last" if _LAST.search(wanted) else None


# -- excerpts ------------------------------------------------------------------------------------------
#
# Excerpts of a long text: its beginning, its end and the matching lines, verbatim and in order. Only text from the
# source is shown; omissions are given as numbers (`Gap`).


LINE_CHARS_MAX = 240
"""Longer lines are split into pieces."""
PIECE_CHARS_MIN = 60
"""Minimum size of the pieces tried if there is no room for a whole line."""
HEAD_CHARS, TAIL_CHARS = 2_000, 1_000
"""Characters of the beginning and the end kept in a pool's excerpt; the rest of it goes to matching lines."""
SCAN_CHARS_MAX = 8_000_000
"""Characters of one text searched for matches."""
FOUND_MAX = 1_000
"""Maximum number of lines examined because they contain a query word."""
MATCHES_MAX = 12
"""Maximum number of matching lines shown,"""
AROUND_MAX = 3
"""and how many of them with their neighbouring lines."""
HEAD_LINES, TAIL_LINES = 8, 4
"""Lines of the beginning and the end of a partly shown text."""
_EXCERPT_WORD = re.compile(r"\w+")
_SPACE = re.compile(r"\s")

Span = tuple[int, int]
K = TypeVar("K", int, Span)
Fits = Callable[[Excerpt], bool]


class Gap(NamedTuple):
    """An omission before, between or after the stretches of an excerpt."""

    start: int
    """Characters before it."""
    chars: int
    lines: int
    """Whole lines; 0 if it lies within one."""


def gaps_of(excerpt: Excerpt) -> list[Gap]:
    """The gaps before the first stretch, between stretches and after the last; 0 characters if there is none."""
    gaps: list[Gap] = []
    end = end_line = 0
    for at, stretch in enumerate(excerpt.stretches):
        breaks = stretch.line - end_line
        gaps.append(Gap(end, stretch.start - end, breaks if at == 0 else max(0, breaks - 1)))
        end = stretch.start + len(stretch.text)
        end_line = stretch.line + stretch.text.count("\n")
    gaps.append(Gap(end, excerpt.chars - end, excerpt.breaks - end_line))
    return gaps


# -- for a pool: candidates from a very long text -------------------------------------------------------


def excerpt_of(text: str, query: str, chars_max: int) -> Excerpt:
    """The beginning, the end and the lines that best match a query, in about this many characters at most."""
    text = text.rstrip()
    head, tail = (0, _end_of_head(text)), (_start_of_tail(text), len(text))
    left = chars_max - (head[1] - head[0]) - (tail[1] - tail[0])
    spans = [head, tail]
    for span in _matching(text[:SCAN_CHARS_MAX], query):
        wide = _with_neighbours(text, span)
        if wide[1] - wide[0] > left:
            wide = span
        if wide[1] - wide[0] > left:
            break
        spans.append(wide)
        left -= wide[1] - wide[0]
    return _excerpt(text, _merged(text, spans))


def _end_of_head(text: str) -> int:
    at = text.rfind("\n", 0, HEAD_CHARS)
    return at if at > 0 and not text[:at].isspace() else HEAD_CHARS


def _start_of_tail(text: str) -> int:
    at = text.find("\n", len(text) - TAIL_CHARS)
    return len(text) - TAIL_CHARS if at < 0 else at + 1


def _matching(text: str, query: str) -> list[Span]:
    """Lines, or pieces of long ones, that share words with the query, rarest words first."""
    terms = frozenset(analyze(query))
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter that is two in lower case: keep offsets valid
        lowered = text
    found: dict[Span, None] = {}
    for needle in _needles(query, lowered):
        at = lowered.find(needle)
        while at >= 0 and len(found) < FOUND_MAX:
            span = _line_at(text, at, at + len(needle))
            found[span] = None
            at = lowered.find(needle, max(span[1], at + 1))
    return _ranked([(span, text[slice(*span)]) for span in found], terms)


def _needles(query: str, lowered: str) -> list[str]:
    """The search strings: query words that occur literally, or else their stems; rarest first."""
    wanted: set[str] = set()
    for word in dict.fromkeys(_EXCERPT_WORD.findall(query.lower())):
        terms = analyze(word)
        if not word.isascii():
            wanted.update(term for term in terms if len(term) > 1 and term in lowered)
        elif terms:
            wanted.update(each for each in (word, terms[0].rstrip("i"))[: 1 if word in lowered else 2] if each)
    return sorted(wanted, key=lambda needle: (lowered.count(needle), needle))


def _line_at(text: str, start: int, end: int) -> Span:
    """The line around an offset, or a piece of a long one."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    last = len(text) if last < 0 else last
    if last - first <= LINE_CHARS_MAX:
        return first, last
    near = LINE_CHARS_MAX // 2
    return max(first, start - near), min(last, end + near)


def _with_neighbours(text: str, span: Span) -> Span:
    """A line with its neighbours, unless they are long."""
    start, end = span
    before = text.rfind("\n", 0, max(0, start - 1)) + 1
    behind = text.find("\n", end + 1)
    behind = len(text) if behind < 0 else behind
    whole_line = (start == 0 or text[start - 1] == "\n") and (end == len(text) or text[end] == "\n")
    if not whole_line:
        return span
    return (
        before if start - before <= LINE_CHARS_MAX else start,
        behind if behind - end <= LINE_CHARS_MAX else end,
    )


def _merged(text: str, spans: Iterable[Span]) -> list[Span]:
    """Sort spans and merge those that touch or are separated by white space only."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and (start <= merged[-1][1] or not text[merged[-1][1] : start].strip()):
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _excerpt(text: str, spans: Iterable[Span]) -> Excerpt:
    stretches: list[Stretch] = []
    line = counted = 0
    for start, end in spans:
        line += text.count("\n", counted, start)
        counted = start
        stretches.append(Stretch(start=start, line=line, text=text[start:end]))
    return Excerpt(chars=len(text), breaks=text.count("\n"), stretches=tuple(stretches))


# -- for a page: the part that fits ------------------------------------------------------------------------


class _Piece(NamedTuple):
    """A line, or a part of a long one."""

    source: int
    """The number of its stretch."""
    start: int
    """Offset within that stretch."""
    end: int


def cut_excerpt(text: str, excerpt: Excerpt | None, fits: Fits, terms: Collection[str] = ()) -> Excerpt | None:
    """Fit an excerpt, in order of preference: the best matching line, the first and the last, further matches, their
    neighbours, the rest of the beginning and the end.

    `excerpt` is the known part of the text, if not all of it. None if nothing fits.
    """
    whole = excerpt or _excerpt(body := text.rstrip(), [(0, len(body))])
    for size in (LINE_CHARS_MAX, PIECE_CHARS_MIN):
        pieces = list(_pieces(whole.stretches, size))
        order = _order(whole.stretches, pieces, frozenset(terms))
        kept = furthest(len(order), partial(_fitting, fits, whole, pieces, order))
        if kept:
            return _taken(whole, pieces, order[:kept])
    return None


def _fitting(fits: Fits, whole: Excerpt, pieces: Sequence[_Piece], order: Sequence[int], count: int) -> bool:
    return fits(_taken(whole, pieces, order[:count]))


def _pieces(stretches: Sequence[Stretch], size: int) -> Iterator[_Piece]:
    """Non-blank lines; longer ones are split at white space if possible."""
    for source, stretch in enumerate(stretches):
        at = 0
        skipped: int | None = 0  # leading blank lines belong to the first piece, so they are no omission
        for line in stretch.text.split("\n"):
            start, end = at, at + len(line)
            at = end + 1
            if skipped is not None and line.strip():
                start, skipped = skipped, None
            while end - start > size:
                spaces = [found.end() for found in _SPACE.finditer(stretch.text, start + size // 2, start + size)]
                split = spaces[-1] if spaces else start + size
                yield _Piece(source, start, split)
                start = split
            if stretch.text[start:end].strip():
                yield _Piece(source, start, end)


def _order(stretches: Sequence[Stretch], pieces: Sequence[_Piece], terms: frozenset[str]) -> list[int]:
    """The numbers of the pieces in order of preference."""
    texts = [(number, stretches[piece.source].text[piece.start : piece.end]) for number, piece in enumerate(pieces)]
    matches = _ranked(texts, terms)[:MATCHES_MAX]
    count = len(pieces)
    around = [
        number + step
        for number in matches[:AROUND_MAX]
        for step in (-1, 1, -2, 2)
        if 0 <= number + step < count and pieces[number + step].source == pieces[number].source
    ]
    head, tail = list(range(min(HEAD_LINES, count))), list(range(count - 1, max(count - 1 - TAIL_LINES, -1), -1))
    return list(dict.fromkeys([*matches[:1], *head[:1], *tail[:1], *matches, *around, *head, *tail]))


def _taken(whole: Excerpt, pieces: Sequence[_Piece], numbers: Iterable[int]) -> Excerpt:
    """Select pieces in text order; neighbours form one stretch."""
    stretches: list[Stretch] = []
    before: int | None = None
    first: _Piece | None = None
    counted = (-1, 0, 0)
    for number in [*sorted(numbers), None]:
        if first is not None and before is not None:
            if number is not None and number == before + 1 and pieces[number].source == first.source:
                before = number
                continue
            source = whole.stretches[first.source]
            text = source.text[first.start : pieces[before].end]
            at, breaks = counted[1:] if counted[0] == first.source else (0, 0)
            counted = first.source, first.start, breaks + source.text.count("\n", at, first.start)
            line = source.line + counted[2]
            stretches.append(Stretch(start=source.start + first.start, line=line, text=text))
        if number is not None:
            first, before = pieces[number], number
    return Excerpt(chars=whole.chars, breaks=whole.breaks, stretches=tuple(stretches))


def _ranked(texts: Sequence[tuple[K, str]], terms: frozenset[str]) -> list[K]:
    """The keys of the texts that share terms with the query, best first; rare terms count more."""
    if not terms:
        return []
    shared = {key: terms.intersection(analyze(text)) for key, text in texts}
    holding = Counter(term for held in shared.values() for term in held)
    worth = {term: math.log1p(len(texts) / count) for term, count in holding.items()}
    weight = {key: math.fsum(worth[term] for term in held) for key, held in shared.items() if held}
    return sorted(weight, key=lambda key: (-round(weight[key], 6), key))
