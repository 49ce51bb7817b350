"""What a tool's call is marked with in the index besides its words: that it is one, of which tool, what it did, that it
failed, and the identifiers that stand in it as wholes.

A mark is a term that no text has (it begins with `#call`), so a question that asks for one is asked of calls alone, and
a scope without calls is searched as if there were none of this.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from muniment.core.text.analyzer import stem
from muniment.memory.results.effects import READ, WRITE, effect_of_name
from muniment.memory.results.tool_text import call_of_line, call_words, is_failed
from muniment.store.ledger import ToolCall

__all__ = [
    "CALL", "FAILED", "call_marks", "changed", "did", "identified", "identifiers_in", "named",
    "reads_as_failed", "words_of_name",
]  # fmt: skip

CALL = "#call"
"""The mark of every call."""
FAILED = "#call:failed"

_ARGUMENT_IDS_MAX, _RESULT_IDS_MAX = 256, 64
"""Identifiers that are kept of a call's arguments, and of its result."""
_RESULT_CHARS_MAX = 16 * 1024
_ID_CHARS_MAX = 96
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{0,95}(?:(?:::|[./-])\w{1,95}){0,16}")
_KEY_END = re.compile(r'"\s{0,4}:')
"""Behind the key of a JSON object: those stand in every result of a tool."""
_JOINED = re.compile(r"[_/]|::|\.\w{1,5}$|[a-z][A-Z]")
_PARTS = re.compile(r"/|::")
_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_FAULT = re.compile(
    r"\W{0,4}(?:error|exception|traceback|fatal|failed|failure|exit(?: ?code)?:? ?-?[1-9]\d{0,9}|command not found)\b"
    r"(?!\W{0,4}(?:0|none|null|nil|false)\b|\": ?(?:\"\"|\[\]|\{\}))",
    re.IGNORECASE,
)
"""How a result begins that tells of a failure, where nobody said whether the call was a success: `Failed: 0` and
`{"error": null}` tell of none.
"""


def named(words: Iterable[str]) -> str:
    """The mark of the calls of a tool whose name is made of these words."""
    return "#call:of:" + "_".join(map(stem, words))


def did(effect: str) -> str:
    """The mark of calls with this effect."""
    return f"#call:did:{effect}"


def identified(identifier: str) -> str:
    """The mark of calls in which this identifier stands."""
    return f"#call:on:{identifier.casefold()}"


def words_of_name(name: str) -> list[str]:
    """The words that a tool's name is made of: `getUserDetails`, `get_user_details` → get, user, details.

    A name in other letters is one word.
    """
    return [word.lower() for word in _NAME_WORD.findall(name)] or [name.casefold()]


def identifiers_in(text: str) -> Iterator[str]:
    """Names of several words in one, paths and the like: `retry_count`, `src/app.py`, `ValueError`.

    A path is one, and so is each of its parts that would be one by itself: `tests/test_app.py::test_retry_count`.
    """
    for found in _IDENTIFIER.finditer(text):
        whole = found[0]
        if len(whole) > _ID_CHARS_MAX or not _JOINED.search(whole) or _KEY_END.match(text, found.end()):
            continue
        yield whole
        if "/" in whole or "::" in whole:
            yield from (part for part in _PARTS.split(whole) if part != whole and _JOINED.search(part))


def reads_as_failed(text: str) -> bool:
    """Whether a result begins like an error, where nobody said that the call failed."""
    return _FAULT.match(text) is not None


def changed(line: str, text: str) -> bool:
    """Did the call change, create or end something, of which this line tells and which had this result? By its name,
    as `call_marks` has it."""
    call = call_of_line(line)
    if is_failed(call) or _FAULT.match(text):
        return False
    return effect_of_name(words_of_name(call.partition("(")[0])) not in (None, READ)


def call_marks(tool: ToolCall | Mapping[str, Any], text: str) -> list[str]:
    """The marks of a call with this result, each once."""
    name, ok = (tool.name, tool.ok) if isinstance(tool, ToolCall) else (tool["name"], tool["ok"])
    words = words_of_name(name)
    found = [CALL, named(words)]
    effect = effect_of_name(words)
    if not ok or _FAULT.match(text):
        found.append(FAILED)  # what it was meant to do it has not done
    elif effect is not None:
        found += [did(effect)] if effect == READ else [did(effect), did(WRITE)]
    found += map(identified, islice(identifiers_in(call_words(tool)), _ARGUMENT_IDS_MAX))
    found += map(identified, islice(identifiers_in(text[:_RESULT_CHARS_MAX]), _RESULT_IDS_MAX))
    return list(dict.fromkeys(found))
