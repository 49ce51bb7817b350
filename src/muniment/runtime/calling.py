"""Functions of the caller's, called so that what they raise is an outcome."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

__all__ = ["outcome_of"]


def outcome_of(call: Callable[[], Any]) -> Future[Any]:
    """What a call answers or raises, as a value; what is meant to stop the program goes on its way."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as worker:
        answer = worker.submit(call)
    error = answer.exception()
    if error is not None and not isinstance(error, Exception):
        raise error
    return answer
