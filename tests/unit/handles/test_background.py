"""Work behind the calls that wrote goes on for all users when one user's work fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest

import muniment
from muniment.errors import StorageFailure
from muniment.handles.upkeep import resting


class Choosy:
    """An embedder that fails on some texts, as a caller's own may."""

    identity, dim = "choosy@1", 2

    def __init__(self, failure: Exception) -> None:
        self._failure = failure
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.texts += texts
        if any("boom" in text for text in texts):
            raise self._failure
        return [[1.0, float(len(text))] for text in texts]


def wait_for(is_done: Callable[[], bool], seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not is_done() and time.monotonic() < until:
        time.sleep(0.02)
    assert is_done()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("failure", [RuntimeError("a defect"), StorageFailure("busy")], ids=["defect", "own error"])
def test_what_fails_for_one_user_is_done_for_the_others(failure: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resting, "FIRST_S", 0.1)
    embedder = Choosy(failure)
    with muniment.open(":memory:", embedder=embedder) as mem:
        mem.run(user_id="ana").observe("user", "boom goes the kettle")
        wait_for(lambda: any("boom" in text for text in embedder.texts))
        for user in ("ben", "cleo"):
            mem.run(user_id=user).observe("user", f"the garden of {user}")
        wait_for(lambda: all(any(user in text for text in embedder.texts) for user in ("ben", "cleo")))
