"""What is typed, read into what the library takes: texts, pairs, JSON, policies, constraints, functions.

A reader is handed what stood on the command line and answers a value, or raises an error that names the option.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muniment.errors import InvalidInput, InvalidJson, MunimentError

if TYPE_CHECKING:
    from muniment.verify.constraint_files import ConstraintSet

__all__ = [
    "bucket_given",
    "constraints_given",
    "counts_given",
    "features_given",
    "function_given",
    "intent_given",
    "is_file",
    "json_given",
    "model_address",
    "object_given",
    "policy_given",
    "state_given",
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
"""The parts of a key by the name they have in it; the contract's own names are read as well."""
INTENT_PARTS, STATE_PARTS = (", ".join(_PARTS[key]) for key in ("intent", "state"))
_LISTS = ("required_tools", "tool_availability", "sandbox_flags")
_SWITCHES = {"true": True, "false": False}
_DIGITS_MAX = 18
_COUNT = re.compile(r"[0-9]{1,12}")
_POLICY_HINT = "write what differs from the default, as in the [policy] table of muniment.toml"
_KEY = "OPENAI_API_KEY"


# -- text and files -----------------------------------------------------------------------------------


def text_given(argument: str) -> str:
    """The argument, or standard input where it is `-`: for texts that a command line cannot hold."""
    if argument != "-":
        return argument
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        said = f"standard input is not UTF-8: {error.reason} at byte {error.start}"
        raise InvalidInput(said, hint="convert it, for example with iconv -t UTF-8") from None


def is_file(given: str) -> bool:
    """Is a file meant, and not an id?"""
    from muniment.surfaces.cli.documents import LINE_SUFFIXES

    return given == "-" or given.endswith((".json", *LINE_SUFFIXES)) or "/" in given or Path(given).is_file()


def object_given(path: str, hint: str = "one JSON object") -> Callable[[str], Any]:
    """A reader of a file with one JSON document; `path` is what its errors name."""

    def read(name: str) -> Any:
        from muniment.surfaces.cli.documents import read_one

        return read_one(name, path, hint)

    return read


def write_bytes(name: str, data: bytes, path: str) -> str:
    """Write a small file; answers its name."""
    try:
        Path(name).write_bytes(data)
    except OSError as error:
        raise InvalidInput(
            f"cannot write {name}: {error.strerror or error}", path=path, hint="check the path"
        ) from None
    return name


def json_given(name: str, hint: str) -> Callable[[str], dict[str, Any]]:
    """A reader of a JSON object on the command line, for the argument of this name."""

    def read(text: str) -> dict[str, Any]:
        from muniment.core.canonical import parse_json

        try:
            given = parse_json(text)
        except InvalidJson as error:
            raise InvalidInput(f"{name}: {error.message}", path=f"$.{name}", hint=hint) from None
        if not isinstance(given, dict):
            raise InvalidInput(f"{name} should be an object, not {type(given).__name__}", path=f"$.{name}")
        return given

    return read


def policy_given(name: str) -> dict[str, Any]:
    """What a file says of a policy: JSON where it is named so, else TOML, whose [policy] table it is if it has one."""
    from muniment.core.canonical import parse_json

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
    """The constraints of a file. Whatever is wrong with it, the question cannot be read: no constraints are not
    violated ones.
    """
    from muniment.surfaces.cli.documents import read_text
    from muniment.surfaces.cli.output import Unreadable
    from muniment.verify.constraint_files import read_constraints

    try:
        return read_constraints(read_text(name))
    except MunimentError as error:
        raise Unreadable(error) from None


def model_address(given: str) -> tuple[str, str, str | None]:
    """`URL#NAME`: the server's address, the model's name, and the key, where the environment has one."""
    base_url, _, name = given.partition("#")
    return base_url, name or "default", os.environ.get(_KEY)


def function_given(option: str) -> Callable[[str], Callable[..., Any]]:
    """A reader of `module:function`; the present folder is looked in first."""

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
    """A bucket as it was given, if it is one."""
    from muniment.verify.results import parse_bucket_key

    parse_bucket_key(key)
    return key


def intent_given(given: Sequence[str]) -> dict[str, Any]:
    """`family=booking` and `tools=book,search` as the parts of an intent."""
    return _parts_given(given, "intent")


def state_given(given: Sequence[str]) -> dict[str, Any]:
    """`mode=main` and `tools=book,search` as the parts of a state."""
    return _parts_given(given, "state")


def _parts_given(given: Sequence[str], key: str) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    names = _PARTS[key]
    for each in given:
        name, value = _name_and_value(each, key)
        field = names.get(name, name)
        if field not in names.values():
            said = f"{key} has no part {name!r:.40}"
            raise InvalidInput(said, path=f"$.{key}", hint=f"--{key} NAME=VALUE, NAME one of {', '.join(names)}")
        if field in parts:
            raise InvalidInput(f"the {name} of {key} is said twice", path=f"$.{key}", hint="once, lists with commas")
        if field in _LISTS:
            parts[field] = [part.strip() for part in value.split(",") if part.strip()]
        else:
            parts[field] = _need_text(value, each, key)
    return parts


def features_given(given: Sequence[str]) -> dict[str, Any]:
    """`strategy=backward`, `steps=3`, `checked=true`: text, a number or a boolean by name."""
    features: dict[str, Any] = {}
    for each in given:
        name, value = _name_and_value(each, "feature")
        if name in features:
            raise InvalidInput(f"the feature {name!r:.40} is said twice", path="$.feature", hint="once is enough")
        features[name] = _value(_need_text(value, each, "feature"))
    return features


def counts_given(option: str, example: str, *, what: str = "a name and a count") -> Callable[[Sequence[str]], Any]:
    """A reader of `NAME=N` pairs: names and their counts. `example` is one, for whoever got it wrong."""

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
    """The two sides of `name=value`."""
    name, equals, value = given.partition("=")
    return _need_text(name.strip() if equals else "", given, option), value.strip()


def _need_text(text: str, given: str, option: str) -> str:
    """The text; an error where it is empty."""
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
