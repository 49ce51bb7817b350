"""Tests over many cases that share everything but their arguments: one test tries them all and reports each failure.

`pytest.mark.parametrize` makes every case a test of its own, which pays where cases need fresh fixtures, and costs
collection, set-up and a report each where they do not.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

__all__ = ["for_each"]


def for_each(
    names: str | Sequence[str], cases: Iterable[Any], ids: Callable[[Any], object] | Sequence[str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run the test once per case, with the arguments of `pytest.mark.parametrize`; all cases that fail are reported.

    Fixtures are shared by the cases, so they must not be changed by the test.
    """
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = [_arguments(case, len(wanted)) for case in cases]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def loop(**fixtures: Any) -> None:
            failures: list[Exception] = []
            for number, (label, row) in enumerate(rows):
                try:
                    test(**fixtures, **dict(zip(wanted, row, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    if str(error).startswith("Timeout"):  # pytest-timeout measures once per test
                        raise
                    failures.append(_labelled(error, label or _label(row, ids, number)))
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(rows)} cases failed", failures)

        signature = inspect.signature(test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in wanted]
        loop.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        assert rows, f"{test.__name__} has no case to try"
        return loop

    return decorate


def _arguments(case: Any, count: int) -> tuple[str | None, tuple[Any, ...]]:
    """The label of a case, if it names one, and its arguments."""
    if hasattr(case, "values") and hasattr(case, "marks"):  # pytest.param(…, id=…)
        return case.id, tuple(case.values)
    return None, (case,) if count == 1 else tuple(case)


def _label(row: tuple[Any, ...], ids: Callable[[Any], object] | Sequence[str] | None, number: int) -> str:
    if callable(ids):
        return "-".join(str(ids(value)) for value in row)
    return ids[number] if ids is not None else ", ".join(repr(value)[:200] for value in row)


def _labelled(error: BaseException, label: str) -> Exception:
    if not isinstance(error, Exception):  # pytest.fail raises what is no Exception, and no group can hold that
        error = AssertionError(str(error)).with_traceback(error.__traceback__)
    error.add_note(f"case: {label}")
    return error
