"""What a run met on its way, read off what its tools answered: short values, and errors with their class and file.

`get_order.state=shipped`      a field of the answer, and its value
`search=nothing`               the answer as a whole
`run_tests!KeyError 'discount'@src/cart.py`     an error, what it names, and the file it was raised in
`book!payment does not add up`                  an error that has no class, without what differs each time

It reads and words them; whether one matters is for those who compare runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from muniment.core.text.patterns import lazy_pattern
from muniment.learning.stored_memory import StepFacts

__all__ = ["condition_words", "error_shape", "error_words", "is_error_condition", "met"]

_FIELDS_MAX = 8
_SHAPE_WORDS = 7
_SHAPE_WORDS_MAX = 12
_READ_CHARS_MAX = 400
_SUBJECT_MAX = 40
_FILE_MAX = 40
_FIELD = lazy_pattern(r'"([A-Za-z_]\w{0,30})":\s*(?:"([^"\\]{1,40})"|(true|false)|(\d{1,2})(?![\d.]))(?=\s*[,}\]])')
_VALUE = lazy_pattern(r"[^\W\d_]+(?:[_ -][^\W\d_]+){0,3}|\d{1,2}|true|false")
"""Values that are likely to come again: words, small numbers. Ids, dates and prices are not."""
_WHOLE = lazy_pattern(r"[^\W\d_]+(?:[_ -][^\W\d_]+){0,2}")
_CLASS = lazy_pattern(r"(?<![\w/])(?:[a-z_]\w*\.)*([A-Z]\w{0,50}(?:Error|Exception|Warning))\b(?!\()")
_NAMED = lazy_pattern(r"\s*:\s*(?:No module named |name |cannot import name )?(['\"][\w .:/-]{1,30}['\"])")
_FRAME = lazy_pattern(r"File \"([^\"\n]{1,200})\", line \d+|(?<![\w/])((?:[\w.-]+/)*[\w-]+\.[a-z]{1,4}):\d+")
_FOREIGN = lazy_pattern(r"site-packages|dist-packages|/lib/python|^<|node_modules")
_TEST_FILE = lazy_pattern(r"(?:^|/)(?:tests?/|test_|conftest)|_test\.")
_TEST = lazy_pattern(r"\btest_\w{1,40}(?=\b(?!\.))")
_FAILED = lazy_pattern(r"Traceback \(most recent|\bFAILED\b|\bfailed\b|\bFAIL\b|\berror:|(?:Error|Exception)\b")

_QUOTED = lazy_pattern(r"""'[^'\n]{0,200}'|"[^"\n]{0,200}"|`[^`\n]{0,200}`""")
_NUMBERED = lazy_pattern(r"[\w.:/\\-]*\d[\w.:/\\-]*")
_WORD = lazy_pattern(r"[^\W_]+|[#…]")


def met(step: StepFacts) -> list[str]:
    """What the answer of a call shows, the errors first; nothing where it shows nothing that could come again."""
    text = step.text or ""
    if not text or step.kind != "call" or any(sign in step.action for sign in ">!="):
        return []
    errors = list(_errors(step, text))
    return errors or list(_values(step.action, text))


def _errors(step: StepFacts, text: str) -> Iterator[str]:
    found = _CLASS.search(text)
    if found is None and (step.ok is False or text.startswith(("Error", "error"))):
        shape = [word for word in error_shape(text).removeprefix("error ").split() if word not in "#…"]
        if shape:
            yield f"{step.action[:_SUBJECT_MAX]}!{' '.join(shape[:_SHAPE_WORDS])}"
    if found is None or (step.ok is not False and _FAILED.search(text) is None):
        return
    files = [path for frame in _FRAME.finditer(text) if (path := frame[1] or frame[2]) and not _FOREIGN.search(path)]
    own = [path for path in files if _TEST_FILE.search(path) is None] or files
    tests = set(_TEST.findall(text)) - {path.rpartition("/")[2].partition(".")[0] for path in files}
    subject = next(iter(tests)) if len(tests) == 1 else step.action
    named = _NAMED.match(text, found.end())
    where = f"@{_short(own[-1])}" if own else ""
    yield f"{subject[:_SUBJECT_MAX]}!{found[1]}{where}"
    if named is not None:
        yield f"{subject[:_SUBJECT_MAX]}!{found[1]} {named[1]}{where}"


def _short(path: str) -> str:
    """The end of a path: as much of it as has room."""
    parts = path.replace("\\", "/").split("/")
    while len(parts) > 1 and (len("/".join(parts)) > _FILE_MAX or parts[0] in ("", ".")):
        parts.pop(0)
    return "/".join(parts)[-_FILE_MAX:]


def _values(tool: str, text: str) -> Iterator[str]:
    if text[:1] not in "{[":
        whole = text.rstrip(".!").casefold()
        if len(whole) <= _SUBJECT_MAX and _WHOLE.fullmatch(whole) is not None:
            yield f"{tool}={whole}"
        return
    seen: dict[str, set[str]] = {}
    for name, said, truth, number in _FIELD.findall(text):
        seen.setdefault(name, set()).add(said or truth or number)
    alone = ((name, *values) for name, values in sorted(seen.items()) if len(values) == 1)
    plain = [f"{tool}.{name}={value}" for name, value in alone if _VALUE.fullmatch(value) is not None]
    yield from plain[:_FIELDS_MAX]


def error_shape(text: str) -> str:
    """An error without what differs from one time to the next: names in quotes, numbers, ids, times."""
    line = next((line for line in text[:_READ_CHARS_MAX].splitlines() if line.strip()), "")
    bare = _NUMBERED.sub("#", _QUOTED.sub("…", line.casefold()))
    return " ".join(_WORD.findall(bare)[:_SHAPE_WORDS_MAX])


# -- in words -----------------------------------------------------------------------------------------


def is_error_condition(condition: str) -> bool:
    return "!" in condition


def condition_words(condition: str) -> str:
    """`run_tests fails with KeyError 'discount' in src/cart.py`, `get_order says state is shipped`."""
    subject, is_error, _ = condition.partition("!")
    if is_error:
        return f"{subject} fails with {error_words(condition)}"
    place, _, value = condition.partition("=")
    tool, has_field, field = place.rpartition(".")
    return f"{tool} says {field} is {value}" if has_field else f"{place} answers {value}"


def error_words(condition: str) -> str:
    """`KeyError 'discount' in src/cart.py`, `"payment does not add up"`."""
    said, _, path = condition.partition("!")[2].partition("@")
    if not said:
        return "an error"
    shown = said if said[0].isupper() else f'"{said}"'
    return f"{shown} in {path}" if path else shown
