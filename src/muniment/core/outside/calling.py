"""Functions of the caller's, called so that what they raise is an outcome, and what hangs is left behind."""

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
    """What a call answers or raises, as a value; what is meant to stop the program goes on its way.

    What can be awaited is awaited, in a loop of the call's own thread. A call that takes longer than it may is left
    behind, and its answer is not done.
    """
    answer = ThreadEach().submit(settled, call)
    wait([answer], timeout_s)
    if answer.done():
        stop_if_told(answer)
    return answer


def stop_if_told(answer: Future[Any]) -> None:
    """Raise what is meant to stop the program: it is nobody's outcome."""
    error = None if answer.cancelled() else answer.exception()
    if error is not None and not isinstance(error, Exception):
        raise error


def caught(call: Callable[[], Any]) -> Future[Any]:
    """`outcome_of` in the caller's own thread, without end if the call is."""
    answer: Future[Any] = Future()
    with _Caught(answer):
        answer.set_result(settled(call))
    stop_if_told(answer)
    return answer


def settled(call: Callable[[], Any]) -> Any:
    """What a call answers, awaited where it can be."""
    answer = call()
    if not isawaitable(answer):
        return answer
    import asyncio

    async def finish() -> Any:
        return await answer

    return asyncio.run(finish())


class ThreadEach(Executor):
    """Each call in a thread of its own that does not keep the program from ending: one that hangs holds up nothing."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        answer.set_running_or_notify_cancel()
        Thread(target=_fill, args=(answer, fn, args, kwargs), name="muniment-call", daemon=True).start()
        return answer


def _fill(answer: Future[Any], fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    with _Caught(answer):
        answer.set_result(fn(*args, **kwargs))


class _Caught:
    """Whatever is raised within becomes what the answer raises."""

    def __init__(self, answer: Future[Any]) -> None:
        self._answer = answer

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is not None:
            self._answer.set_exception(error)
        return True


def submitted(executor: Executor, fn: Callable[..., Any], *args: Any) -> Future[Any]:
    """A call on its way; where the executor takes no more (a worker died), that is what came of the call."""
    try:
        return executor.submit(fn, *args)
    except RuntimeError as error:
        refused: Future[Any] = Future()
        refused.set_exception(error)
        return refused


class Late(NamedTuple):
    """A call that was given up."""

    words: str
    ran: bool
    """It is at fault itself; else it never had its turn."""


def wait_for(futures: Sequence[Future[Any]], timeout_s: float | None) -> dict[int, Late]:
    """Wait for all; the numbers of those that took too long, with what to say of them.

    A call's time begins when it is seen to run. Where none is seen to run and nothing ends for as long again, the rest
    are given up: the late ones hold every worker, or the executor does not tell what runs.
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
