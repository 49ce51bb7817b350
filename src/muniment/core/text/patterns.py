"""Regular expressions that are compiled when they are first used: most processes meet only some of them."""

from __future__ import annotations

import re
from typing import Any, cast

__all__ = ["lazy_pattern"]


class _Lazy:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self.pattern), name)
        setattr(self, name, found)  # from now on as quick as that of the pattern itself
        return found


def lazy_pattern(pattern: str) -> re.Pattern[str]:
    """What `re.compile` gives, for use by its methods."""
    return cast("re.Pattern[str]", _Lazy(pattern))
