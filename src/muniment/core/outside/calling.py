"""Calls of caller-supplied functions: exceptions become outcomes, and calls that hang are abandoned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from inspect import isawaitable
from threading import Thread
from time import monotonic
from typing import Any, NamedTuple

__all__ = ["Late", "ThreadEach", "caught", "outcome_of", "settled", "stop_if_told", "submitted", "wait_for"]

_LOOK_SECONDS = 0.05


def outcome_of(call: Callable[[], Any], timeout_s: float | None = None) -> Future[Any]:
    """Return a call's result or exception as a value; exceptions meant to stop the program propagate.

    Awaitables are awaited, in a loop of the call's own thread. A call that exceeds its time is abandoned, and its
    outcome is that it did not finish.
    """
    answer = ThreadEach().submit(settled, call)
    wait([answer], timeout_s)
    if answer.done():
        stop_if_told(answer)
    return answer


def stop_if_told(answer: Future[Any]) -> None:
    """Raise an exception meant to stop the program, which is never an outcome."""
    error = None if answer.cancelled() else answer.exception()
    if error is not None and not isinstance(error, Exception):
        raise error


def caught(call: Callable[[], Any]) -> Future[Any]:
    """Run `outcome_of` in the caller's own thread, without a time limit."""
    answer: Future[Any] = Future()
    with _Caught(answer):
        answer.set_result(settled(call))
    stop_if_told(answer)
    return answer


def settled(call: Callable[[], Any]) -> Any:
    """Return a call's result, awaited where possible."""
    answer = call()
    if not isawaitable(answer):
        return answer
    import asyncio

    async def finish() -> Any:
        return await answer

    return asyncio.run(finish())


class ThreadEach(Executor):
    """Runs each call in its own daemon thread, so that one that hangs blocks neither other calls nor the program's
    exit.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        answer.set_running_or_notify_cancel()
        Thread(target=_fill, args=(answer, fn, args, kwargs), name="muniment-call", daemon=True).start()
        return answer


def _fill(answer: Future[Any], fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    with _Caught(answer):
        answer.set_result(fn(*args, **kwargs))


class _Caught:
    """Converts any exception raised within into an outcome."""

    def __init__(self, answer: Future[Any]) -> None:
        self._answer = answer

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is not None:
            self._answer.set_exception(error)
        return True


def submitted(executor: Executor, fn: Callable[..., Any], *args: Any) -> Future[Any]:
    """Submit a call; if the executor refuses it (a worker died), that is its outcome."""
    try:
        return executor.submit(fn, *args)
    except RuntimeError as error:
        refused: Future[Any] = Future()
        refused.set_exception(error)
        return refused


class Late(NamedTuple):
    """A call that was abandoned."""

    words: str
    ran: bool
    """True if the call itself is at fault; otherwise it never started."""


def wait_for(futures: Sequence[Future[Any]], timeout_s: float | None) -> dict[int, Late]:
    """Wait for all; returns the numbers of those that took too long, with a message for each.

    A call's time begins when it is seen to run. Where none is seen to run and nothing ends for the same time again, the
    rest are abandoned: the late ones hold every worker, or the executor does not report what runs.
    """
    if timeout_s is None:
        wait(futures)
        return {}
    late: dict[int, Late] = {}
    begun: dict[int, float] = {}
    moved = monotonic()
    pending = {number for number, future in enumerate(futures) if not future.done()}
    while pending:
        done, _ = wait([futures[number] for number in pending], min(_LOOK_SECONDS, timeout_s), FIRST_COMPLETED)
        now = monotonic()
        started = [number for number in pending if number not in begun and futures[number].running()]
        begun.update(dict.fromkeys(started, now))
        if done or started:
            moved = now
        over = {number for number in pending if number in begun and now - begun[number] > timeout_s}
        late.update(dict.fromkeys(over, Late(f"still running after {timeout_s:g} s", True)))
        pending = {number for number in pending - over if not futures[number].done()}
        if pending and not pending & begun.keys() and now - moved > timeout_s:
            held = Late("never started: every worker is held by a call that took too long", False)
            unheard = Late(f"nothing was heard of it for {timeout_s:g} s", True)
            late.update(dict.fromkeys(pending, held if late else unheard))
            break
    for number in late:
        futures[number].cancel()
    return late
