"""Tokens of ten turns through each integration: in all, and those that a provider's cache cannot have.

    python -m benchmarks.integration_tokens

`before` is what was sent until the packets left out what the framework sends itself: composed without leaving anything
out, in front of the conversation. `now` is what is sent. A token is `anew` where it stands behind the longest prefix
that a request shares with the one before it; `twice` are the tokens of turns that stand in the history and in the
packet. Once with three notes of another session, which every packet tells, and once with thirty, which fill its budget
of 512 tokens whatever is left out. The wrapper left the live list out already; its packet stands behind the system
prompt in both columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import ExitStack
from unittest import mock

import muniment
from benchmarks.harness import report
from benchmarks.integration_talks import BIRDS, PLACES, TALKS, Sent, answer_of, question_of
from muniment.core.outside.token_counters import load_token_counter
from muniment.handles.run import Run
from muniment.packets.render import DIVIDER

TURNS = 10
OLD = tuple(
    f"In note {number} the ranger wrote: the heron {bird} was seen near the {place}, {what}."
    for number, (bird, place, what) in enumerate(
        (bird, place, what)
        for what in ("fishing at dawn", "asleep at noon", "with two young")
        for bird, place in zip(BIRDS, reversed(PLACES), strict=True)
    )
)
"""Thirty notes of another session on the same birds: what is told of them differs from question to question."""
_PLACES = ("pydantic_ai", "llama_index", "openai_agents")


def _all_of_it(run: Run, _texts: Iterable[str], *, query: str, max_tokens: int) -> str:
    return run.compose("responder", query=query, max_tokens=max_tokens).text


def _in_front(request: Sent) -> Sent:
    """The request with the packet behind the system prompt, where it stood before."""
    moved: Sent = []
    packet = ""
    for who, text in request:
        head, gap, rest = text.partition(DIVIDER)
        if gap and not packet:
            packet, text = head, rest.strip()
        moved.append((who, text))
    return [moved[0], ("system", packet), *moved[1:]] if packet else request


def talk(name: str, notes: int, *, is_before: bool) -> list[Sent]:
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        memory = stack.enter_context(muniment.open(":memory:"))
        told = [{"role": "user", "content": text} for text in OLD[:notes]]
        memory.run(user_id="ana", session_id="old").observe_many(told)
        if is_before:
            for place in _PLACES:
                stack.enter_context(mock.patch(f"muniment.integrations.{place}.compose_beside", _all_of_it))
        sent = TALKS[name](memory, TURNS)
    return [_in_front(request) for request in sent] if is_before else sent


def counted(sent: list[Sent]) -> dict[str, int]:
    counter = load_token_counter()
    texts = ["\n".join(f"{who}: {text}" for who, text in request) for request in sent]
    anew = twice = 0
    before = ""
    for turn, text in enumerate(texts):
        shared = next((at for at, pair in enumerate(zip(before, text, strict=False)) if pair[0] != pair[1]), None)
        anew += counter.count(text[min(len(before), len(text)) if shared is None else shared :])
        before = text
        said = [question_of(each).split(". ")[0] for each in range(turn)] + [answer_of(each) for each in range(turn)]
        live = {each for _, each in sent[turn]}
        is_sent = [each for each in said if any(other.startswith(each) for other in live)]
        twice += sum(counter.count(each) * (text.count(each) - 1) for each in is_sent)
    return {"tokens": sum(map(counter.count, texts)), "twice": twice, "anew": anew}


def main() -> None:
    rows = {}
    for notes in (3, len(OLD)):
        for name in TALKS:
            was = counted(talk(name, notes, is_before=True))
            now = counted(talk(name, notes, is_before=False))
            rows[f"{name} ({notes} notes)"] = {
                f"{what}_{when}": row[what] for what in was for when, row in (("before", was), ("now", now))
            }
    report("integration_tokens", rows, {"turns": TURNS, "counter": load_token_counter().name})


if __name__ == "__main__":
    main()
