"""Chapter 6: a second tenant, vectors of an embedder, and what was forgotten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from golden_store.store import GoldenStore, open_repeatable
from muniment.core.outside.system import TickingClock

__all__ = ["WeatherEmbedder", "write_endings", "write_vectors"]


class WeatherEmbedder:
    """Knows three kinds of weather by their words: a text lies on the axis of the first that it names."""

    identity = "golden-weather-3"
    dim = 3
    axes: Mapping[str, int] = {"rain": 0, "drizzle": 0, "snow": 1, "flurries": 1, "sun": 2}

    def embed(self, texts: Sequence[str]) -> Any:
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            named = [axis for word, axis in self.axes.items() if word in text]
            row[named[:1]] = 1
        return rows


def write_endings(store: GoldenStore) -> None:
    store.go_to("2026-04-01T08:00:00+00:00")
    _second_tenant(store)
    _forgotten(store)


def _second_tenant(store: GoldenStore) -> None:
    """The same names in another tenant are other people."""
    run = store.mem.run(
        tenant_id="acme", user_id="ana", agent_id="support", session_id="winter", run_id="run-acme", objective="Help"
    )
    said = run.observe("user", "I live in Oslo and I ski.", speaker="Ana", idempotency_key="asked-once")
    run.remember("user.city", "Oslo", sources=[said.id])
    run.log.step("PLAN_DONE", "look for snow")
    run.log.claim("Ana skis.", evidence=[{"event_id": said.id, "quote": "I ski"}], status="verified")
    run.log.compact()
    store.mem.corpus("slopes", tenant_id="acme").add("The slope of Tryvann opens in December.", document_id="tryvann")
    store.compose(run, "responder", query="Where does Ana live?")
    store.compose(run, "planner", query="snow", max_tokens=300)
    gone = store.mem.run(tenant_id="acme", user_id="otto", session_id="otto-1", run_id="run-otto")
    gone.observe("user", "Forget that I was here.")
    store.mem.forget(user_id="otto", tenant_id="acme")


def _forgotten(store: GoldenStore) -> None:
    """An event, a fact, a session and a user are forgotten, with all that was made of them."""
    run = store.mem.run(user_id="ana", agent_id="support", session_id="secret", run_id="run-secret")
    said = run.observe("user", "I am planning a surprise for Clara.", idempotency_key="surprise")
    run.remember("user.plan", "a surprise", sources=[said.id])
    fact = run.remember("user.gift", "a bicycle bell", sources=[run.observe("user", "The gift is a bicycle bell.").id])
    run.patch(goal="plan the surprise", slots={"gift": "bell"})
    big = run.observe_tool("shop", content="bicycle bell " * 6_000)
    run.log.claim("A bell was found.", evidence=[big.id], status="verified")
    run.log.compact()
    store.compose(run, "planner", query="What is the surprise for Clara?")
    store.compose(run, "responder", query="gift for Clara")
    store.mem.forget(event=said.id)
    store.mem.forget(fact=fact.fact_id)
    store.mem.forget(event=big.id, user_id="ana")
    brief = store.mem.run(user_id="ana", agent_id="support", session_id="brief", run_id="run-brief")
    brief.observe("user", "This session never was.")
    store.mem.forget(session="brief", user_id="ana")
    lena = store.mem.run(user_id="lena", agent_id="support", session_id="lena-1", run_id="run-lena")
    lena.remember("user.city", "Bern", sources=[lena.observe("user", "I live in Bern.").id])
    store.compose(lena, "responder", query="Where does Lena live?")
    store.mem.forget(user_id="lena")


def write_vectors(path: Path) -> None:
    """Turns that an embedder has seen, told to the same file by another opening of it."""
    clock = TickingClock(datetime(2026, 4, 10, tzinfo=UTC))
    with open_repeatable(path, clock=clock, ids="vector", embedder=WeatherEmbedder()) as mem:
        run = mem.run(tenant_id="acme", user_id="noor", agent_id="support", session_id="noor-1", run_id="run-noor")
        for word in ("rain", "snow", "sun", "rain"):
            run.observe("user", f"{word} was forecast for Oslo")
