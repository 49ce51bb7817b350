"""What memory costs in a conversation, and whether what is needed is there. See README.md.

python -m benchmarks.cost                    all conversations, into results/cost.json
python -m benchmarks.cost --sets truth --turns 40
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import muniment
from benchmarks.cost._talks import SETS, Ask, Talk, talks
from benchmarks.data import default_data
from muniment.core.outside.token_counters import load_token_counter
from muniment.integrations.wrapping.conversation import Conversation, SentPackets, Telling, Whose
from muniment.integrations.wrapping.dialects import CHAT
from muniment.packets.billing import Prompt, bill, prompts_of, rules
from muniment.packets.in_view import shown_marks
from muniment.packets.layout import lay_out, sheet_of
from muniment.packets.render import DIVIDER, set_apart

RESULT = Path(__file__).parent / "results" / "cost.json"
LENGTHS = (20, 40, 100)
SYSTEM = "You are a helpful assistant. Answer briefly and say when you do not know."
HEAD_TOKENS, SMALL_TOKENS = 512, 256
"""Arm c: a head of profile, instructions and facts, and a small packet before each question."""
RESAMPLES = 2_000


class Turned(NamedTuple):
    """One request of an arm: the texts before the model, and the ids of the memories among them."""

    texts: tuple[str, ...]
    shown: frozenset[str]
    context: str
    """The packets in it, as one text."""


Arm = Callable[[Any, Talk], Iterator[Turned]]


def none(_mem: Any, talk: Talk) -> Iterator[Turned]:
    """The conversation without memory."""
    for ask in talk.asks:
        yield Turned((SYSTEM, *talk.before(ask)), frozenset(), "")


def behind_prompt(mem: Any, talk: Talk) -> Iterator[Turned]:
    """a: a fresh packet behind the system prompt."""
    for ask, build in _fresh(mem, talk, None):
        texts = (SYSTEM, *([build.text] if build.text else ()), *talk.before(ask))
        yield Turned(texts, _shown(build.text, build.marks), build.text)


def before_question(mem: Any, talk: Talk) -> Iterator[Turned]:
    """b: a fresh packet before the question, gone from the next request."""
    for ask, build in _fresh(mem, talk, None):
        yield Turned(_put(talk, ask, build.text), _shown(build.text, build.marks), build.text)


def stable_head(mem: Any, talk: Talk) -> Iterator[Turned]:
    """c: what seldom changes behind the system prompt, and a small packet before the question."""
    for (ask, whole), (_, small) in zip(_fresh(mem, talk, HEAD_TOKENS), _fresh(mem, talk, SMALL_TOKENS), strict=True):
        head = whole.text[: whole.stable_chars]
        page = lay_out(sheet_of(small.packet))
        rest = small.text[page.stable_chars :]
        system, *others = _put(talk, ask, rest)
        context = f"{head}{rest}"
        shown = _shown(head, whole.marks) | _shown(rest, small.marks)
        yield Turned((system, *([head] if head else ()), *others), shown, context)


def append_only(mem: Any, talk: Talk) -> Iterator[Turned]:
    """d: `muniment.wrap` and the proxy as they are."""
    conversation = Conversation(
        mem, Whose("user", "live", "agent", "default"), Telling(fails_open=False), SentPackets()
    )
    for ask in talk.asks:
        given = {"messages": [{"role": "system", "content": SYSTEM}, *talk.messages[: ask.upto]]}
        call = conversation.begin(CHAT, given)
        texts = tuple(each["content"] for each in call.sent["messages"])
        assert call.build is not None
        told = "\n".join(text.partition(DIVIDER)[0] for text in texts if DIVIDER in text)
        yield Turned(_split(texts), _shown(told, call.build.marks), told)
        following = talk.messages[ask.upto : ask.upto + 1]
        if following and following[0]["role"] == "assistant":
            conversation.keep(call, following)


ARMS: dict[str, Arm] = {
    "none": none,
    "a, behind the prompt": behind_prompt,
    "b, before the question": before_question,
    "c, stable head": stable_head,
    "d, append-only": append_only,
}


def _fresh(mem: Any, talk: Talk, max_tokens: int | None) -> Iterator[tuple[Ask, Any]]:
    """A packet for each question; it is kept while tools are asked."""
    run = mem.run(user_id="user", session_id=f"fresh {max_tokens}")
    asked, build = None, None
    for ask in talk.asks:
        if ask.question != asked or build is None:
            asked = ask.question
            build = run.compose(
                "responder", query=ask.text, exclude_session=True, **({"max_tokens": max_tokens} if max_tokens else {})
            )
        yield ask, build


def _put(talk: Talk, ask: Ask, packet: str) -> tuple[str, ...]:
    texts = list(talk.before(ask))
    if packet:
        texts[ask.question : ask.question] = [set_apart(packet)]
    return (SYSTEM, *texts)


def _split(texts: Sequence[str]) -> tuple[str, ...]:
    """Packets apart from the words behind them, as in the other arms."""
    found: list[str] = []
    for text in texts:
        packet, divider, words = text.partition(DIVIDER)
        found += [f"{packet}{divider}", words] if divider else [text]
    return tuple(found)


def _shown(text: str, marks: Any) -> frozenset[str]:
    return frozenset(shown_marks(text, marks).values())


# -- figures -----------------------------------------------------------------------------------------------


def measure(talk: Talk) -> dict[str, Any]:
    """The requests of every arm, and which of the needed statements each held."""
    count = load_token_counter().count
    row: dict[str, Any] = {"set": talk.set, "name": talk.name, "requests": len(talk.asks), "arms": {}}
    for name, arm in ARMS.items():
        with muniment.open(":memory:", clock=lambda: talk.now) as mem:
            turn_of = talk.load(mem)
            turned = list(arm(mem, talk))
        prompts = prompts_of([each.texts for each in turned], count)
        present = [
            None if not ask.needs else ask.is_met({turn_of.get(id_, "") for id_ in each.shown}, each.context)
            for ask, each in zip(talk.asks, turned, strict=True)
        ]
        row["arms"][name] = {"prompts": [list(each) for each in prompts], "present": present}
    row["turn_of"] = [ask.turn for ask in talk.asks]
    return row


def summarize(rows: Sequence[dict[str, Any]], length: int) -> dict[str, Any]:
    """The figures of conversations cut to a length, with 95 % intervals over conversations."""
    found: dict[str, Any] = {"conversations": len(rows), "arms": {}}
    for name in ARMS:
        arm: dict[str, Any] = {}
        for rule in rules():
            pairs = [(_price(row, name, rule, length), _price(row, "none", rule, length)) for row in rows]
            arm[rule.name] = _with_interval(pairs, lambda some: sum(a for a, _ in some) / sum(b for _, b in some))
        shares = [_median_repeated(row, name, length) for row in rows]
        known = [each for each in shares if each is not None]
        arm["repeated"] = _with_interval(known, statistics.fmean) if known else None
        kept = [_present(row, name, length) for row in rows]
        needed = [each for each in kept if each[1]]
        if needed:
            arm["present"] = _with_interval(needed, lambda some: sum(a for a, _ in some) / sum(b for _, b in some))
            arm["needed"] = sum(n for _, n in needed)
        arm["conversations"] = len(rows)
        found["arms"][name] = arm
    return found


def _cut(row: dict[str, Any], name: str, length: int) -> list[Prompt]:
    prompts = row["arms"][name]["prompts"]
    return [Prompt(*each) for each, turn in zip(prompts, row["turn_of"], strict=True) if turn < length]


def _price(row: dict[str, Any], name: str, rule: Any, length: int) -> float:
    return bill(rule, _cut(row, name, length)).price


def _median_repeated(row: dict[str, Any], name: str, length: int) -> float | None:
    """The median share of a prompt that the one before began with, from the tenth turn on."""
    later = [
        prompt.repeated / prompt.tokens
        for prompt, turn in zip(_cut(row, name, length), row["turn_of"], strict=False)
        if turn >= 9
    ]
    return statistics.median(later) if later else None


def _present(row: dict[str, Any], name: str, length: int) -> tuple[int, int]:
    held = [
        each
        for each, turn in zip(row["arms"][name]["present"], row["turn_of"], strict=True)
        if each is not None and turn < length
    ]
    return sum(held), len(held)


def _with_interval(some: Sequence[Any], figure: Callable[[Sequence[Any]], float]) -> list[float]:
    draw = random.Random(7)
    made = sorted(figure(draw.choices(some, k=len(some))) for _ in range(RESAMPLES))
    low, high = made[int(0.025 * RESAMPLES)], made[int(0.975 * RESAMPLES)]
    return [round(figure(some), 3), round(low, 3), round(high, 3)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--turns", type=int, default=max(LENGTHS))
    parser.add_argument("--limit", type=int, default=4, help="conversations of each set")
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    options = parser.parse_args()
    rows: dict[str, list[dict[str, Any]]] = {}
    for name in options.sets.split(","):
        for talk in talks(name, default_data(), options.turns, options.limit):
            rows.setdefault(name, []).append(measure(talk))
            print(name, talk.name, len(talk.asks), "requests", flush=True)
    results: dict[str, Any] = {}
    for name, held in rows.items():
        for length in LENGTHS:
            if length <= options.turns:
                summary = summarize(held, length)
                _print(name, length, summary)
                results |= {f"{name}, {length}, {arm}": figures for arm, figures in summary["arms"].items()}
    if options.write:
        _write(results, options)


def _write(results: dict[str, Any], options: argparse.Namespace) -> None:
    """Replace the rows of the sets that were measured, and keep those of the others."""
    kept = json.loads(RESULT.read_text()) if RESULT.exists() else {"commands": {}, "results": {}}
    sets = options.sets.split(",")
    command = f"python -m benchmarks.cost --sets {{}} --turns {options.turns} --limit {options.limit} --write"
    commands = kept["commands"] | {name: command.format(name) for name in sets}
    others = {name: row for name, row in kept["results"].items() if name.partition(",")[0] not in sets}
    made = {
        "day": f"{datetime.now():%Y-%m-%d}",
        "commands": commands,
        "rules": [rule._asdict() for rule in rules()],
        "results": others | results,
    }
    RESULT.write_text(json.dumps(made, indent=1) + "\n")


def _print(name: str, length: int, summary: dict[str, Any]) -> None:
    print(f"\n{name}, {length} turns, {summary['conversations']} conversations")
    for arm, held in summary["arms"].items():
        prices = "  ".join(f"{rule.name} {held[rule.name][0]:.2f}" for rule in rules())
        repeated = "-" if held["repeated"] is None else f"{held['repeated'][0]:.2f}"
        present = f"  needed {held['present'][0]:.2f} of {held['needed']}" if "present" in held else ""
        print(f"  {arm:24} {prices}  repeated {repeated}{present}")


if __name__ == "__main__":
    main()
