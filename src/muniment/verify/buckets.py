"""The bucket of a run (RC-03): impact × domain × clarity as one string, such as `I3|coding|clarity_low`."""

from __future__ import annotations

import re
from typing import NamedTuple, get_args

from muniment.core.scope import Level
from muniment.errors import InvalidInput

__all__ = ["DEFAULT_DOMAIN", "Bucket", "bucket_key", "parse_bucket_key"]

DEFAULT_DOMAIN = "general"

_LEVELS: tuple[Level, ...] = get_args(Level)
_KEY = re.compile(r"I([123])\|([^|]+)\|clarity_(low|med|high)")
_RESERVED = re.compile(r"[%|\x00-\x20\x7f]")
_ESCAPED = re.compile(r"%([0-9A-F]{2})")


class Bucket(NamedTuple):
    """The three axes of a bucket."""

    impact: Level
    domain: str
    clarity: Level


def bucket_key(impact: Level, domain: str, clarity: Level) -> str:
    """The one way to write a bucket. A domain may be any text: what would break the key is percent-escaped."""
    if impact not in _LEVELS or clarity not in _LEVELS:
        wrong = impact if impact not in _LEVELS else clarity
        raise InvalidInput(f"{wrong!r} is not a level", hint=f"one of {', '.join(_LEVELS)}")
    name = domain.strip() or DEFAULT_DOMAIN
    return f"I{_LEVELS.index(impact) + 1}|{_RESERVED.sub(_escape, name)}|clarity_{clarity}"


def parse_bucket_key(key: str) -> Bucket:
    """`bucket_key` backwards; raises `InvalidInput` for anything it would not have written."""
    found = _KEY.fullmatch(key)
    if found is not None:
        level, name, clarity = found.groups()
        domain = _ESCAPED.sub(lambda code: chr(int(code[1], 16)), name)
        bucket = Bucket(_LEVELS[int(level) - 1], domain, _LEVELS[_LEVELS.index(clarity)])
        if bucket_key(*bucket) == key:
            return bucket
    raise InvalidInput(f"{key!r} is not a bucket key", hint="I1|general|clarity_high, as bucket_key() writes it")


def _escape(found: re.Match[str]) -> str:
    return f"%{ord(found[0]):02X}"
