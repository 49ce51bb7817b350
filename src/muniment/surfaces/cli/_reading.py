"""Readers of arguments and of the files they name: texts, pairs, JSON, documents, policies, functions.

A reader takes the text from the command line and returns a value, or raises an error that names the option. A file of
documents is read line by line if it is called `.jsonl` or `.ndjson`, or if it does not parse as one document and its
lines look like documents. A malformed document is reported as an error, never a crash.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from muniment.core.canonical import parse_json
from muniment.errors import InvalidInput, InvalidJson, MunimentError, TooLarge

if TYPE_CHECKING:
    from muniment.verify.constraint_files import ConstraintSet

__all__ = [
    "DOCUMENT_BYTES_MAX",
    "LINE_SUFFIXES",
    "Document",
    "constraints_given",
    "counts_given",
    "function_given",
    "is_file",
    "json_given",
    "model_address",
    "object_given",
    "policy_given",
    "read_all",
    "read_documents",
    "read_one",
    "read_text",
    "text_given",
    "write_bytes",
]

_PARTS: Mapping[str, Mapping[str, str]] = {
    "intent": {
        "domain": "domain_tag",
        "family": "task_family",
        "tools": "required_tools",
        "format": "output_format",
        "constraints": "constraint_profile",
    },
    "state": {
        "mode": "mode",
        "tier": "budget_tier",
        "policy": "policy_profile",
        "tools": "tool_availability",
        "verifier": "verifier_profile",
        "sandbox": "sandbox_flags",
    },
}
"""The parts of a key by their short names; the contract's own names are accepted as well."""
INTENT_PARTS, STATE_PARTS = (", ".join(_PARTS[key]) for key in ("intent", "state"))
_LISTS = ("required_tools", "tool_availability", "sandbox_flags")
_SWITCHES = {"true": True, "false": False}
_DIGITS_MAX = 18
_COUNT = re.compile(r"[0-9]{1,12}")
_POLICY_HINT = "write what differs from the default, as in the [policy] table of muniment.toml"
_KEY = "OPENAI_API_KEY"


# -- text and files -----------------------------------------------------------------------------------


def text_given(argument: str) -> str:
    """The argument, or standard input for `-`: for texts too long for a command line."""
    if argument != "-":
        return argument
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"standard input is not UTF-8: {error.reason} at byte {error.start}"
        raise InvalidInput(message, path="$.stdin", hint="convert it, for example with iconv -t UTF-8") from None


def is_file(given: str) -> bool:
    """True if the argument names a file rather than an id."""
    return given == "-" or given.endswith((".json", *LINE_SUFFIXES)) or "/" in given or Path(given).is_file()


def object_given(path: str, hint: str = "one JSON object") -> Callable[[str], Any]:
    """Make a reader of a file with one JSON document; its errors name `path`."""

    def read(name: str) -> Any:
        return read_one(name, path, hint)

    return read


def write_bytes(name: str, data: bytes, path: str) -> str:
    """Write a small file and return its name."""
    try:
        Path(name).write_bytes(data)
    except OSError as error:
        raise InvalidInput(
            f"cannot write {name}: {error.strerror or error}", path=path, hint="check the path"
        ) from None
    return name


def json_given(name: str, hint: str) -> Callable[[str], dict[str, Any]]:
    """Make a reader of a JSON object on the command line, for the argument of this name."""

    def read(text: str) -> dict[str, Any]:
        try:
            given = parse_json(text)
        except InvalidJson as error:
            raise InvalidInput(f"{name}: {error.message}", path=f"$.{name}", hint=hint) from None
        if not isinstance(given, dict):
            raise InvalidInput(f"{name} should be an object, not {type(given).__name__}", path=f"$.{name}")
        return given

    return read


def policy_given(name: str) -> dict[str, Any]:
    """Read the policy values of a file: JSON by its suffix, else TOML, using its [policy] table if it has one."""
    try:
        data = Path(name).read_bytes()
        found = parse_json(data) if name.endswith(".json") else tomllib.loads(data.decode())
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror}", path="$.policy") from None
    except (InvalidJson, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{name} is no policy: {error}", path="$.policy", hint=_POLICY_HINT) from None
    if not isinstance(found, dict):
        raise InvalidInput(f"{name} should hold an object", path="$.policy", hint=_POLICY_HINT)
    table = found.get("policy", found)
    if not isinstance(table, dict):
        raise InvalidInput("[policy] should be a table", path="$.policy", hint=_POLICY_HINT)
    return table


def constraints_given(name: str) -> ConstraintSet:
    """Read the constraints of a file. Any fault makes the request unreadable: missing constraints are not
    violations.
    """
    from muniment.surfaces.cli._command import UnreadableInput
    from muniment.verify.constraint_files import read_constraints

    try:
        return read_constraints(read_text(name))
    except MunimentError as error:
        raise UnreadableInput(error) from None


def model_address(given: str) -> tuple[str, str, str | None]:
    """Split `URL#NAME` into the server's address, the model's name, and the key from the environment, if any."""
    base_url, _, name = given.partition("#")
    return base_url, name or "default", os.environ.get(_KEY)


def function_given(option: str) -> Callable[[str], Callable[..., Any]]:
    """Make a reader of `module:function`; the current directory is searched first."""

    def load(given: str) -> Callable[..., Any]:
        from muniment.core.outside.calling import outcome_of

        module, _, name = given.partition(":")
        if not module or not name:
            raise InvalidInput(
                f"{given!r:.80} names no function", path=f"$.{option}", hint=f"write --{option} module:function"
            )
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.insert(0, here)
        imported = outcome_of(lambda: importlib.import_module(module))
        error = imported.exception()
        if error is not None:
            raise InvalidInput(
                f"cannot import {module}: {type(error).__name__}: {error!s:.200}",
                path=f"$.{option}",
                hint="it is looked for in this folder and among what is installed",
            ) from error
        found: Any = imported.result()
        for part in name.split("."):
            found = getattr(found, part, None)
        if not callable(found):
            raise InvalidInput(f"{module} has no function {name}", path=f"$.{option}")
        function: Callable[..., Any] = found
        return function

    return load


# -- names and values ---------------------------------------------------------------------------------


def bucket_given(key: str) -> str:
    """Return a valid bucket key unchanged."""
    from muniment.verify.results import parse_bucket_key

    parse_bucket_key(key)
    return key


def intent_given(given: Sequence[str]) -> dict[str, Any]:
    """Read `family=booking` and `tools=book,search` as the parts of an intent."""
    return _parts_given(given, "intent")


def state_given(given: Sequence[str]) -> dict[str, Any]:
    """Read `mode=main` and `tools=book,search` as the parts of a state."""
    return _parts_given(given, "state")


def _parts_given(given: Sequence[str], key: str) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    names = _PARTS[key]
    for each in given:
        name, value = _name_and_value(each, key)
        field = names.get(name, name)
        if field not in names.values():
            message = f"{key} has no part {name!r:.40}"
            raise InvalidInput(message, path=f"$.{key}", hint=f"--{key} NAME=VALUE, NAME one of {', '.join(names)}")
        if field in parts:
            raise InvalidInput(f"the {name} of {key} is given twice", path=f"$.{key}", hint="once, lists with commas")
        if field in _LISTS:
            parts[field] = [part.strip() for part in value.split(",") if part.strip()]
        else:
            parts[field] = _need_text(value, each, key)
    return parts


def features_given(given: Sequence[str]) -> dict[str, Any]:
    """Read `strategy=backward`, `steps=3`, `checked=true` as text, numbers and booleans by name."""
    features: dict[str, Any] = {}
    for each in given:
        name, value = _name_and_value(each, "feature")
        if name in features:
            raise InvalidInput(f"the feature {name!r:.40} is given twice", path="$.feature", hint="once is enough")
        features[name] = _value(_need_text(value, each, "feature"))
    return features


def counts_given(option: str, example: str, *, what: str = "a name and a count") -> Callable[[Sequence[str]], Any]:
    """Make a reader of `NAME=N` pairs. `example` is shown in the error's hint."""

    def read(given: Sequence[str]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for each in given:
            name, _, count = each.partition("=")
            if not name or not _COUNT.fullmatch(count):
                spelled = option.replace("_", "-")
                raise InvalidInput(
                    f"{each!r:.80} is not {what}", path=f"$.{option}", hint=f"write --{spelled} {example}"
                )
            counts[name] = int(count)
        return counts

    return read


def _name_and_value(given: str, option: str) -> tuple[str, str]:
    """Split `name=value`."""
    name, equals, value = given.partition("=")
    return _need_text(name.strip() if equals else "", given, option), value.strip()


def _need_text(text: str, given: str, option: str) -> str:
    """Return the text, or raise if it is empty."""
    if not text:
        raise InvalidInput(
            f"{given!r:.80} is not a name and a value", path=f"$.{option}", hint=f"write --{option} NAME=VALUE"
        )
    return text


def _value(text: str) -> str | int | float | bool:
    if text.lower() in _SWITCHES:
        return _SWITCHES[text.lower()]
    if text.isascii() and len(text) <= _DIGITS_MAX:
        for kind in (int, float):
            try:
                number = kind(text)
            except ValueError:
                continue
            return number if number - number == 0 else text  # neither infinite nor NaN
    return text


# -- documents ----------------------------------------------------------------------------------------

DOCUMENT_BYTES_MAX = 32 * 1024 * 1024
LINE_SUFFIXES = (".jsonl", ".ndjson")
_SKIP_BYTES = 1024 * 1024

_Line = tuple[int, bytes | None]  # number, content; None when over the limit


@dataclass(frozen=True, slots=True)
class Document:
    """One document and its position: its data, or why there is none."""

    file: str
    line: int
    data: Any = None
    error: MunimentError | None = None


def read_documents(name: str) -> Iterator[Document]:
    """Read the documents of a file, `-` for stdin; raises `InvalidInput` if it cannot be read."""
    with _opened(name) as stream:
        lines = _lines(stream)
        if not name.endswith(LINE_SUFFIXES):
            whole = _whole_document(name, lines)
            if isinstance(whole, Document):
                yield whole
                return
            lines = whole
        for number, content in lines:
            yield _document(name, number, content)


def read_all(name: str) -> list[Any]:
    """Read all documents of a file; the first unreadable one raises, with its line."""
    found = list(read_documents(name))
    for document in found:
        if document.error is not None:
            document.error.message = f"{name}, line {document.line}: {document.error.message}"
            raise document.error
    return [document.data for document in found]


def read_one(name: str, path: str, hint: str = "one JSON object") -> Any:
    """Read a file's one document."""
    documents = read_all(name)
    if len(documents) != 1:
        raise InvalidInput(f"{name} holds {len(documents)} documents", path=path, hint=hint)
    return documents[0]


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    try:
        if name == "-":
            yield sys.stdin.buffer
        else:
            with Path(name).open("rb") as stream:
                yield stream
    except OSError as error:
        raise InvalidInput(
            f"cannot read {name}: {error.strerror or error}", path="$.file", hint="check the path"
        ) from None


def _lines(stream: BinaryIO) -> Iterator[_Line]:
    """Yield non-blank lines with their numbers; a line over the limit is skipped without being held in memory."""
    number = 0
    while line := stream.readline(DOCUMENT_BYTES_MAX + 1):
        number += 1
        if len(line) > DOCUMENT_BYTES_MAX and not line.endswith(b"\n"):
            del line
            while (rest := stream.readline(_SKIP_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield number, None
        elif line.strip():
            yield number, line


def _document(name: str, number: int, content: bytes | None) -> Document:
    if content is None:
        limit = DOCUMENT_BYTES_MAX
        return Document(name, number, error=TooLarge(f"a document over the limit of {limit} bytes", path="$"))
    try:
        return Document(name, number, data=parse_json(content.strip(b" \t\r\n"), max_bytes=DOCUMENT_BYTES_MAX))
    except MunimentError as error:
        return Document(name, number, error=error)


def _whole_document(name: str, lines: Iterator[_Line]) -> Document | Iterator[_Line]:
    """Return the one document of a file, or its lines (including those already read) if it holds one a line."""
    first = next(lines, None)
    if first is None:
        return _document(name, 1, b"")
    if first[1] is None or _is_complete(first[1]):
        return _chain([first], lines)
    held, size = [first], len(first[1])
    for line in lines:
        held.append(line)
        size += len(line[1] or b"") or DOCUMENT_BYTES_MAX
        if size > DOCUMENT_BYTES_MAX:
            break
    second_is_document = len(held) > 1 and held[1][1] is not None and _is_complete(held[1][1], b"{")
    if size > DOCUMENT_BYTES_MAX:
        return _chain(held, lines) if second_is_document else _document(name, 1, None)
    whole = _document(name, first[0], _joined(held))
    if whole.error is None or len(held) == 1:
        return whole
    return _chain(held, lines) if second_is_document or not _is_opening(first[1]) else whole


def _joined(held: list[_Line]) -> bytes:
    """Join the lines; blank lines between them are restored, so that positions in messages are right."""
    parts, at = [], held[0][0]
    for number, content in held:
        parts.append(b"\n" * (number - at) + (content or b""))
        at = number + 1
    return b"".join(parts)


def _chain(held: list[_Line], rest: Iterator[_Line]) -> Iterator[_Line]:
    yield from held
    yield from rest


def _is_complete(line: bytes, opening: bytes = b"") -> bool:
    """True if this line is a JSON text by itself, valid or not."""
    return line.lstrip().startswith(opening) and _error_place(line) is None


def _is_opening(line: bytes) -> bool:
    """True if this line could start a longer document, so that its only fault is that it ends."""
    place = _error_place(line)
    return place is None or place >= len(line.decode("utf-8", "replace").rstrip())


def _error_place(line: bytes) -> int | None:
    text = line.decode("utf-8", "replace").rstrip()
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return len(text) if error.msg.startswith("Unterminated") else error.pos
    except (RecursionError, ValueError):
        return None
    return None


def read_text(name: str) -> str:
    """Read a text file, or stdin for `-`."""
    try:
        raw = sys.stdin.buffer.read(DOCUMENT_BYTES_MAX + 1) if name == "-" else _read(name)
    except OSError as error:
        raise InvalidInput(
            f"cannot read {name}: {error.strerror or error}", path="$.file", hint="check the path"
        ) from None
    if len(raw) > DOCUMENT_BYTES_MAX:
        raise InvalidInput(f"{name} is over the limit of {DOCUMENT_BYTES_MAX} bytes", path="$.file", hint="split it")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{name} is not UTF-8: byte {error.start}", path="$.file", hint="re-encode the file"
        ) from None


def _read(name: str) -> bytes:
    with Path(name).open("rb") as stream:
        return stream.read(DOCUMENT_BYTES_MAX + 1)
