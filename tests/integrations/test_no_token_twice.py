"""Ten turns through every integration: nothing that the framework sends itself stands in the packet again, what it
dropped does, and what was sent before is sent alike the next time, so that a provider's cache holds it."""

from __future__ import annotations

import asyncio
import importlib.util
import warnings
from itertools import pairwise
from typing import Any

import pytest
from benchmarks.framework_talks import FRAMEWORK_TALKS
from benchmarks.integration_talks import SYSTEM, Sent, answer_of, question_of
from benchmarks.integration_talks import TALKS as TOKEN_TALKS

import muniment
from muniment.integrations.live_history import compose_beside, cut_in_steps
from muniment.packets.render import DIVIDER

pytestmark = pytest.mark.filterwarnings("ignore")

PACKAGES = {
    "pydantic-ai": "pydantic_ai", "llama-index": "llama_index", "openai-agents": "agents", "wrapped": "openai",
    "google-adk": "google.adk", "agent-framework": "agent_framework", "haystack": "haystack",
}  # fmt: skip
TALKS = {**TOKEN_TALKS, **FRAMEWORK_TALKS}
OLD = "Years ago my heron Bruno slept near the windmill."
TURNS = 10
IN_FRONT = ("pydantic-ai instructions",)
"""It puts the packet behind the system prompt: a cache holds that prompt, and not what comes after."""
MOVES_ALONG = (
    "openai-agents session, cut", "llama-index block, cut", "google-adk, cut", "haystack, cut", "wrapped OpenAI, cut",
)  # fmt: skip
"""The framework itself, or the caller, cuts in front with every turn."""


@pytest.fixture(scope="module", params=TALKS)
def talked(request: pytest.FixtureRequest) -> tuple[str, list[Sent]]:
    name = request.param
    package = next(found for prefix, found in PACKAGES.items() if name.startswith(prefix))
    wanted = "anthropic" if "Anthropic" in name else package
    if importlib.util.find_spec(wanted) is None:
        pytest.skip(f"{wanted} is not installed: pip install 'muniment[integrations]'")
    with warnings.catch_warnings(), muniment.open(":memory:") as memory:
        warnings.simplefilter("ignore")
        memory.run(user_id="ana", session_id="old").observe("user", OLD)
        return name, TALKS[name](memory, TURNS)


def live(request: Sent) -> list[str]:
    """The turns that are sent as messages of their own."""
    said = {text.rpartition(DIVIDER)[2] for _, text in request}
    turns = [text for turn in range(TURNS) for text in (question_of(turn), answer_of(turn))]
    return [text for text in turns if text in said]


@pytest.mark.soak
def test_nothing_that_is_sent_is_told_again_and_what_was_dropped_is(talked: tuple[str, list[Sent]]) -> None:
    name, sent = talked
    assert len(sent) == TURNS
    for turn, request in enumerate(sent):
        whole = "\n".join(text for _, text in request)
        assert whole.count(question_of(turn)) == 1, "the question itself"
        for text in live(request):
            sentences = [part for part in text.replace("? ", "?\n").replace(". ", ".\n").split("\n") if part]
            assert all(whole.count(sentence) == 1 for sentence in sentences), (name, turn, text)
        if turn:
            assert OLD in whole, "what another session knows"
    last = sent[-1]
    dropped = [turn for turn in range(TURNS - 1) if question_of(turn) not in live(last)]
    assert bool(dropped) == name.endswith("cut")
    told = "\n".join(text for _, text in last)
    assert all(question_of(turn).split(". ")[0] in told for turn in dropped[:2]), "what was said early, and dropped"


@pytest.mark.req("TM-20")
def test_what_was_sent_before_is_sent_alike_the_next_time(talked: tuple[str, list[Sent]]) -> None:
    name, sent = talked
    breaks = 0
    for before, after in pairwise(sent):
        assert after[0][1].startswith(SYSTEM)
        breaks += before[:-1] != after[: len(before) - 1]
    if name in IN_FRONT or name in MOVES_ALONG:
        return
    assert breaks == (0 if not name.endswith("cut") else breaks)
    assert breaks <= 6, "a cut in front is made in steps"
    if name.endswith("cut"):
        assert breaks >= 1


@pytest.mark.req("TM-20")
def test_a_question_keeps_its_packet_while_tools_are_asked() -> None:
    pytest.importorskip("pydantic_ai", reason="the pydantic-ai extra is not installed")
    from pydantic_ai import Agent
    from pydantic_ai.capabilities import ProcessHistory
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from muniment.integrations.pydantic_ai import MunimentHistory, recent_history

    sent: list[list[Any]] = []

    def model(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        sent.append([part for message in messages for part in message.parts])
        call = ToolCallPart("weather", {"city": "Berlin"}) if len(sent) < 4 else TextPart("12 °C.")
        return ModelResponse(parts=[call])

    def weather(city: str) -> str:
        return f"12 °C in {city}"

    with muniment.open(":memory:") as memory:
        memory.run(user_id="ana", session_id="old").observe("user", OLD)
        history = MunimentHistory(memory, user_id="ana", session_id="live")
        agent = Agent(FunctionModel(model), tools=[weather], capabilities=[ProcessHistory(recent_history(history.run))])
        result = asyncio.run(agent.run("Where did my heron Bruno sleep?"))
        history.append(result.new_messages())
        assert OLD not in str(history.load())
    for before, after in pairwise(sent):
        assert [part.content for part in before[:1]] == [part.content for part in after[:1]]
        assert len(after) > len(before)
    assert OLD in str(sent[-1][0].content)


def test_secrets_are_known_again_though_the_ledger_took_them_out() -> None:
    said = "My password=hunter2-zq is old. The heron sleeps near the mill."
    with muniment.open(":memory:") as memory:
        run = memory.run(user_id="ana", session_id="live")
        run.observe("user", said)
        assert "near the mill" not in compose_beside(run, [said], query="Where does the heron sleep?", max_tokens=512)
        told = compose_beside(run, ["other words"], query="Where does the heron sleep?", max_tokens=512)
        assert "near the mill" in told


def test_long_and_many_texts_are_known_again() -> None:
    long = "The heron sleeps near the mill. " + "word " * 20_000
    with muniment.open(":memory:") as memory:
        run = memory.run(user_id="ana", session_id="live")
        run.observe("user", long)  # lies out of line
        run.observe_many([{"role": "user", "content": f"heron {number} sleeps"} for number in range(500)])
        sent = [long, *(f"heron {number} sleeps" for number in range(500))]
        told = compose_beside(run, sent, query="Where do herons sleep?", max_tokens=1024)
        assert "sleeps" not in told
        kept = compose_beside(run, sent[2:], query="Where does heron 0 sleep?", max_tokens=1024)
        assert "heron 0 sleeps" in kept
        assert "heron 499 sleeps" not in kept


@pytest.mark.parametrize("count_max", [1, 2, 3, 6, 20, 41])
def test_a_cut_moves_in_steps_and_keeps_no_more_than_it_may(count_max: int) -> None:
    cuts = [cut_in_steps(count, count_max) for count in range(200)]
    assert all(count - cut <= count_max for count, cut in enumerate(cuts))
    assert all(cut <= count for count, cut in enumerate(cuts))
    assert cuts == sorted(cuts)
    assert cuts[: count_max + 1] == [0] * (count_max + 1)
    assert len(set(cuts)) <= 2 + (200 - count_max) // max(1, count_max // 2)
