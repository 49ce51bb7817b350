"""A policy in a file, as a command takes it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from muniment.errors import InvalidInput, InvalidJson

__all__ = ["read_policy"]

_HINT = "write what differs from the default, as in the [policy] table of muniment.toml"


def read_policy(name: str) -> dict[str, Any]:
    """What a file says of a policy: JSON where it is named so, else TOML, whose [policy] table it is if it has one."""
    from muniment.core.canonical import parse_json

    try:
        data = Path(name).read_bytes()
        found = parse_json(data) if name.endswith(".json") else tomllib.loads(data.decode())
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror}", path="$.policy") from None
    except (InvalidJson, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{name} is no policy: {error}", path="$.policy", hint=_HINT) from None
    if not isinstance(found, dict):
        raise InvalidInput(f"{name} should hold an object", path="$.policy", hint=_HINT)
    table = found.get("policy", found)
    if not isinstance(table, dict):
        raise InvalidInput("[policy] should be a table", path="$.policy", hint=_HINT)
    return table
