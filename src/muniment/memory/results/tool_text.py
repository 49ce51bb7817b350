"""How a tool's call is told: its name and arguments in one line, the words it is found by, its result in a line.

    read_file(path=config/settings.py) → DEBUG=True
    deploy(target=prod) failed → permission denied

The part before the arrow is the *call*: it stands where a speaker's name would. The part behind it is what the tool
said, verbatim: quotes and citations are of that part alone, and the call is never among their words. What is told here
was redacted when it was admitted; nothing of it is stored beside the entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from muniment.core.canonical import canonical_text
from muniment.core.text.patterns import lazy_pattern
from muniment.store.injection import reads_like_instructions
from muniment.store.ledger import ToolCall

__all__ = [
    "RecordedCall",
    "call_of_line",
    "call_without_failure",
    "call_words",
    "calls_in",
    "further_words",
    "is_chunk",
    "is_failed",
    "result_line",
    "speaker_told",
    "tell_call",
]

VALUE_CHARS_MAX = 120
"""Of one argument; of a longer one its beginning and end are told, and how much is left out."""
CALL_CHARS_MAX = 400
"""Of all arguments together; those behind are counted."""
LINE_CHARS_MAX = 200
"""Of the line that stands for a result."""
WORDS_CHARS_MAX = 16 * 1024
"""Of a call's name and arguments, as far as it is found by them."""
REST_CHARS_MAX, REST_WORDS_MAX = 4_000_000, 10_000
"""Of a long result behind its beginning: what is looked at, and the different words that are kept of it."""
NESTED_MAX = 12
"""How deep the words of nested arguments are looked for."""
_CORPUS = "corpus"
_FAILED = " failed"

_PLAIN = lazy_pattern(r"[^\s\"'`(),=\[\]{}<>\\#→…\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]+")
"""A text that needs no quotation marks."""
_UNSEEN = lazy_pattern(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Signs that break a line, or that nobody sees and that turn the order of what is written: told by number."""
_CAMEL = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"\w")
_LETTERS = lazy_pattern(r"[^\W\d_]\w{1,63}")
"""A word that begins with a letter: of thousands of numbers in a log, none is looked for."""
_FAULT = lazy_pattern(r"(?i)error|exception|fail|fatal|denied|not found|no such|invalid|timed? ?out|refused|panic")


# -- the call -----------------------------------------------------------------------------------------


def tell_call(tool: ToolCall | Mapping[str, Any]) -> str:
    """`name(key=value, …)`, and `failed` behind it where the tool did not do what it was asked; always one line.

    Arguments stand in canonical order, so that a call is told the same before and after it was stored. Arguments that
    read like orders to the model are not told (LG-08): how many there are is.
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
    """Would a text without quotation marks be taken for a number?"""
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


# -- what it is found by ------------------------------------------------------------------------------


def call_words(tool: ToolCall | Mapping[str, Any]) -> str:
    """The words a call is found by: its name, and the keys, texts and numbers of its arguments.

    A name of several words in one (`readFile`) gives those too. Words of paths are told apart by the analyzer.
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
    """Keys and values in canonical order; what is true, false or null has no words."""
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
    """The words of a long result behind its beginning, each once: it is found by them, and they do not outweigh it."""
    words = dict.fromkeys(_LETTERS.findall(rest[:REST_CHARS_MAX].casefold()))
    return " ".join(islice(words, REST_WORDS_MAX))


def is_chunk(tool: ToolCall | Mapping[str, Any], metadata: Mapping[str, Any] | None) -> bool:
    """Is it a piece of a document, which was stored and not called for?"""
    name, args, _ = _parts(tool)
    return name == _CORPUS and args is None and "document_id" in (metadata or {})


def speaker_told(body: Mapping[str, Any], role: str) -> str:
    """Who speaks in an entry of this body, as it is told beside the text: by name, by the call, else by the role."""
    tool = body.get("tool")
    if tool is not None and not is_chunk(tool, body.get("metadata")):
        return tell_call(tool)
    return body.get("speaker") or role


# -- its result ---------------------------------------------------------------------------------------


def result_line(call: str, text: str, ok: bool = True) -> str:
    """The line that stands for a result: the call, and the first line that says something.

    Of a call that failed, the first that names a fault. Never more than that: the result itself is read by its id.
    """
    lines = [line.strip() for line in text.splitlines() if _WORD.search(line)] or [text.strip()]
    said = lines[0] if ok else next((line for line in lines if _FAULT.search(line)), lines[0])
    if len(said) > LINE_CHARS_MAX:
        said = f"{said[:LINE_CHARS_MAX].rstrip()} …"
    more = text.strip().count("\n")
    rest = f" … {_counted(more, 'more line')}" if more else ""
    return f"{call} → {_clean(said) or '(nothing)'}{rest}"


def call_without_failure(call: str) -> str | None:
    """How the same call is told where it did not fail; None of one that did not, or that is not told whole: of two such
    calls nobody could say whether they are the same.
    """
    told = call.removesuffix(_FAILED)
    return None if told == call or "…" in told else told


def is_failed(call: str) -> bool:
    """Is it told of the call that it failed?"""
    return call.endswith(f"){_FAILED}")


def call_of_line(line: str) -> str:
    """The call in the line that stands for a result."""
    return line.partition(" → ")[0]


# -- calls that were recorded apart from their results ------------------------------------------------


class RecordedCall(NamedTuple):
    """A call as the message of the assistant that made it tells it."""

    call_id: str
    name: str
    args: dict[str, Any] | None


def calls_in(metadata: Mapping[str, Any] | None) -> Iterator[RecordedCall]:
    """The calls that a message's metadata names under `tool_calls`; what has another shape is none.

    Told as `{id, name, args}`, as Chat Completions do (`{id, function: {name, arguments}}`) or as Anthropic does
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
