"""Regular expressions that are compiled when they are first used: most processes meet only some of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

__all__ = ["lazy_pattern"]


class _Lazy:
    def __init__(self, source: str | Callable[[], str]) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        source = self._source
        found = getattr(re.compile(source if isinstance(source, str) else source()), name)
        setattr(self, name, found)  # from now on as quick as that of the pattern itself
        return found


def lazy_pattern(source: str | Callable[[], str]) -> re.Pattern[str]:
    """What `re.compile` gives, for use by its methods. What tells the pattern, as where it is made of a word list, is
    called when it is first used."""
    return cast("re.Pattern[str]", _Lazy(source))
