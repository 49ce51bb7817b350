"""What a run met on its way, read off what its tools answered: short values, and errors with their class and file.

`get_order.state=shipped`      a field of the answer, and its value
`search=nothing`               the answer as a whole
`get_order.order=shipped`      of a sentence, what something is said to be ("order 7 is shipped", "state: open")
`run_tests!KeyError 'discount'@src/cart.py`     an error, what it names, and the file it was raised in
`get!HTTP 404`, `run!exit code 2`               an error that has a status and no class
`book!~3fa94c1e`                                any other, by a digest: runs that met it can be compared

It reads and words them; whether one matters is for those who compare runs. Whatever is read off an answer may be told
to a model, so it holds no sentence of a tool and no name that advises (`plain_names`).
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from muniment.core.text.analyzer import stop_words
from muniment.core.text.patterns import lazy_pattern
from muniment.learning.fold.plain_names import is_plain, is_plain_path
from muniment.learning.stored_memory import StepFacts

__all__ = ["condition_words", "error_shape", "error_words", "is_error_condition", "met"]

_FIELDS_MAX = 8
_SHAPE_WORDS_MAX = 12
_READ_CHARS_MAX = 400
_SUBJECT_MAX = 40
_FILE_MAX = 40
_FIELD = lazy_pattern(r'"([A-Za-z_]\w{0,30})":\s*(?:"([^"\\]{1,40})"|(true|false)|(\d{1,2})(?![\d.]))(?=\s*[,}\]])')
_VALUE = lazy_pattern(r"[^\W\d_]+(?:[_ -][^\W\d_]+){0,3}|\d{1,2}|true|false")
"""Values that are likely to come again: words, small numbers. Ids, dates and prices are not."""
_AS_USUAL = frozenset(("done", "ok", "okay", "success", "successful", "succeeded", "true", "yes", "fine"))
"""Answers that say no more than that the call was made: no condition is read off them."""
_WHOLE = lazy_pattern(r"[^\W\d_]+(?:[_ -][^\W\d_]+){0,2}")
_SAYS = lazy_pattern(
    r"(?:^|(?<=[\s(,;]))([A-Za-z][A-Za-z_]{1,29})(?: #?[\w-]{0,20}\d[\w-]{0,20})?(?:( is | are )| ?[:=] ?)"
    r"\"?([A-Za-z]{2,18}(?:[_-][A-Za-z]{2,18}){0,2})\"?(?=[,;.)\n]|$)"
)
"""What a line says of a thing in one word: `ledger 4711 is sealed`, `Status: open`. More than that is a sentence."""
_DENIED = frozenset(("no", "not", "nor", "neither", "never", "without", "or", "either"))
_SUPPOSED = frozenset(("if", "whether", "unless", "until", "when", "whenever", "once", "while", "should"))
"""Words before a thing, in its clause or in its sentence, with which nothing is said of it: `no order is open`."""
_CLAUSE_END, _SENTENCE_END = lazy_pattern(r"[,;.:()\n]"), lazy_pattern(r"[;.\n]")
_CLASS = lazy_pattern(r"(?<![\w/])(?:[a-z_]\w*\.)*([A-Z]\w{0,50}(?:Error|Exception|Warning))\b(?!\()")
_NAMED = lazy_pattern(r"\s*:\s*(?:No module named |name |cannot import name )?(['\"][\w.:/-]{1,30}['\"])")
_UNKNOWN = "~"
"""Begins the name of an error that has neither a class nor a status."""
_ERROR_CHARS_MAX = 1_200
_HTTP = lazy_pattern(
    r"(?i)\b(?:https?(?:/\d(?:\.\d)?)?|status(?:[ _-]?code)?|response)\W{0,4}(?:code\W{0,3})?([45]\d\d)\b"
    r"|^\W{0,3}(?:error\W{0,3})?([45]\d\d)\b|\b([45]\d\d) (?:client|server) error\b"
)
_EXIT = lazy_pattern(r"(?i)\bexit(?:ed)?(?: with)?(?: non-?zero)?[ _]?(?:code|status)?\W{0,3}([1-9]\d{0,2})\b")
_STATUS = lazy_pattern(r"HTTP [45]\d\d|exit code [1-9]\d{0,2}")
_CLASS_WORDS, _TEST_WORDS, _VALUE_WORDS = 6, 6, 3
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
    found = next((each for each in _CLASS.finditer(text) if is_plain(each[1], _CLASS_WORDS)), None)
    subject = step.action[:_SUBJECT_MAX]
    if found is None and (step.ok is False or text.startswith(("Error", "error"))):
        known = _status(text) or _digest(error_shape(text))
        yield from (f"{subject}!{name}" for name in (known,) if name)
    if found is None or (step.ok is not False and _FAILED.search(text) is None):
        return
    files = [path for frame in _FRAME.finditer(text) if (path := frame[1] or frame[2]) and not _FOREIGN.search(path)]
    files = [short for path in files if is_plain_path(short := _short(path))]
    own = [path for path in files if _TEST_FILE.search(path) is None] or files
    tests = set(_TEST.findall(text)) - {path.rpartition("/")[2].partition(".")[0] for path in files}
    tests = {test for test in tests if is_plain(test, _TEST_WORDS)}
    subject = next(iter(tests))[:_SUBJECT_MAX] if len(tests) == 1 else subject
    named = _NAMED.match(text, found.end())
    where = f"@{own[-1]}" if own else ""
    yield f"{subject}!{found[1]}{where}"
    if named is not None and is_plain(named[1]):
        yield f"{subject}!{found[1]} {named[1]}{where}"


def _status(text: str) -> str:
    """`HTTP 404`, `exit code 2`; empty where no status is named."""
    head = text[:_ERROR_CHARS_MAX]
    if (http := _HTTP.search(head)) is not None:
        return f"HTTP {http[1] or http[2] or http[3]}"
    return f"exit code {code[1]}" if (code := _EXIT.search(head)) is not None else ""


def _digest(shape: str) -> str:
    """The same for errors of one shape, without a word of them."""
    return f"{_UNKNOWN}{sha256(shape.encode()).hexdigest()[:8]}" if shape else ""


def _short(path: str) -> str:
    """The end of a path: as much of it as has room."""
    parts = path.replace("\\", "/").split("/")
    while len(parts) > 1 and (len("/".join(parts)) > _FILE_MAX or parts[0] in ("", ".")):
        parts.pop(0)
    return "/".join(parts)[-_FILE_MAX:]


def _values(tool: str, text: str) -> Iterator[str]:
    if text[:1] not in "{[":
        whole = text.rstrip(".!").casefold()
        is_telling = whole not in _AS_USUAL and len(whole) <= _SUBJECT_MAX and _WHOLE.fullmatch(whole) is not None
        if is_telling:
            if is_plain(whole):
                yield f"{tool}={whole}"
            return
        pairs = list(_said(text))
    else:
        pairs = [(name, said or truth or number) for name, said, truth, number in _FIELD.findall(text)]
    seen: dict[str, set[str]] = {}
    for name, value in pairs:
        seen.setdefault(name, set()).add(value)
    alone = ((name, *values) for name, values in sorted(seen.items()) if len(values) == 1 and is_plain(name))
    plain = [
        f"{tool}.{name}={value}"
        for name, value in alone
        if _VALUE.fullmatch(value) is not None and is_plain(value, _VALUE_WORDS)
    ]
    yield from plain[:_FIELDS_MAX]


def _said(text: str) -> Iterator[tuple[str, str]]:
    """What a text that is no data says of things, in a word each."""
    small, head = stop_words("english"), text[:_READ_CHARS_MAX]
    for found in _SAYS.finditer(head):
        name, verb, value = found[1], found[2], found[3].casefold()
        if name.casefold() in small or value in _AS_USUAL or (verb and _is_unsaid(head[: found.start()])):
            continue
        yield name.casefold(), value


def _is_unsaid(before: str) -> bool:
    """Is what follows denied, or only supposed?"""
    clause, sentence = (end.split(before)[-1].casefold().split() for end in (_CLAUSE_END, _SENTENCE_END))
    return not (_DENIED.isdisjoint(clause) and _SUPPOSED.isdisjoint(sentence))


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
        said = error_words(condition)
        return f"{subject} fails with {said}" if said else f"{subject} fails"
    place, _, value = condition.partition("=")
    tool, has_field, field = place.rpartition(".")
    if not is_plain(value, _VALUE_WORDS) or (has_field and not is_plain(field)):
        return f"{tool or place} has answered"
    return f"{tool} says {field} is {value}" if has_field else f"{place} answers {value}"


def error_words(condition: str) -> str:
    """`KeyError 'discount' in src/cart.py`, `HTTP 404`; empty for an error that is known by a digest alone.

    It trusts no condition: one that an earlier version kept may hold words of a tool.
    """
    said, _, path = condition.partition("!")[2].partition("@")
    if not said or said.startswith(_UNKNOWN):
        return ""
    if _STATUS.fullmatch(said) is not None:
        return said
    name, _, named = said.partition(" ")
    if _CLASS.fullmatch(name) is None or not is_plain(name, _CLASS_WORDS):
        return ""
    shown = f"{name} {named}" if named and is_plain(named) else name
    return f"{shown} in {path}" if path and is_plain_path(path) else shown
