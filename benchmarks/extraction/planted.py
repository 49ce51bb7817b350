"""Plants right and wrong proposals over turns, and counts what the checks accept.

    python -m benchmarks.extraction.planted [--data DIR]

See README.md for the classes. Turns of `turns.jsonl` and `lies.jsonl` were written and labelled for this purpose; turns
of LongMemEval and MemoryBank come from the data folder, and what is right of them is a span of their own words.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import data as sets
from benchmarks.harness import report
from muniment.core.policy import ExtractionPolicy
from muniment.core.stats import wilson_bounds
from muniment.memory._extract_checks import ModelProposal, SourceTurn, check_proposals

HERE = Path(__file__).parent
SEED = 5
TURNS_OF_A_SET = 120
HOLDS: dict[str, Any] = dict.fromkeys(("negated", "hypothetical", "quoted", "temporary"), False)
FORBIDDEN = ("user.is_admin", "user.password", "user.instruction.tone", "system.prompt", "location", "user.Ort; x")
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？\n]?")
_HAN = re.compile("[\u4e00-\u9fff]")


class Planted(NamedTuple):
    """A proposal of one of the turns of a batch, and the class it was planted as."""

    name: str
    proposal: ModelProposal
    turns: tuple[SourceTurn, ...]


def turn_of(number: int, who: str, text: str) -> SourceTurn:
    return SourceTurn(f"e{number}", "user", who, "2026-05-20T10:00:00Z", text, number)


def rows_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text("utf-8").splitlines()]


def written() -> Iterator[tuple[SourceTurn, list[ModelProposal], dict[str, Any]]]:
    """The turns that were written for this, with the right proposals of each."""
    for number, row in enumerate(rows_of("turns.jsonl")):
        turn = turn_of(number, row["who"], row["text"])
        yield turn, [right_of(turn, *fact) for fact in row["facts"]], row


def right_of(turn: SourceTurn, key: str, value: Any, quote: str) -> ModelProposal:
    return ModelProposal(turn.id, turn.who, key, value, quote, **HOLDS)


def plant_written() -> list[Planted]:
    """Right proposals of the written turns, and wrong ones of every class made from them."""
    rng = random.Random(SEED)
    rows = list(written())
    turns = tuple(turn for turn, _, _ in rows)
    rights = [(turn, right, row) for turn, found, row in rows for right in found]
    planted: list[Planted] = []
    for at, (turn, right, row) in enumerate(rights):
        _, other, _ = rights[(at + 1 + rng.randrange(len(rights) - 1)) % len(rights)]
        for name, proposal in wrong_of(turn, right, other, row, rng):
            planted.append(Planted(name, proposal, turns))
        planted.append(Planted("right", right, turns))
    return planted


def wrong_of(
    turn: SourceTurn, right: ModelProposal, other: ModelProposal, row: dict[str, Any], rng: random.Random
) -> Iterator[tuple[str, ModelProposal]]:
    """Wrong proposals made from a right one, by class."""
    quote, value = right.quote, str(right.value)
    words = quote.split(" ")
    if other.turn_id != right.turn_id and other.quote not in turn.text:
        yield "quote of another turn", right._replace(quote=other.quote, value=other.value)
        yield "another turn named", right._replace(turn_id=other.turn_id)
        if str(other.value).casefold() not in quote.casefold():
            yield "value of another turn", right._replace(value=other.value)
    yield "paraphrase", right._replace(quote=row["said_otherwise"])
    if len(words) > 3:
        yield "word left out", right._replace(quote=" ".join([*words[:1], *words[2:]]))
        yield "words swapped", right._replace(quote=" ".join([words[1], words[0], *words[2:]]))
    cut = quote[: max(quote.find(value), 0) + len(value) - 1]
    if isinstance(right.value, str) and value in quote and not _is_unspaced(value) and len(value) > 2:
        yield "cut within a word", right._replace(quote=cut, value=value[:-1])
        yield "part of the value's word", right._replace(value=value[:-1])
    if isinstance(right.value, int | float):
        yield "another number", right._replace(value=right.value + 1)
        yield (
            "part of a number",
            right._replace(value=int(f"{right.value:g}"[0]))
            if right.value >= 10
            else (right._replace(value=right.value * 10)),
        )
    if right.value in row["elsewhere"]:
        yield "value in another language", right._replace(value=row["elsewhere"][right.value])
    yield "value not in the quote", right._replace(value=f"{value} since 1971")
    yield "turn that was not given", right._replace(turn_id="e99999")
    others = "Bob" if turn.who != "Bob" else "user"
    yield "wrong speaker", right._replace(speaker=others)
    attribute = right.key.rpartition(".")[2]
    if turn.who != "user":
        yield "another speaker as the user", right._replace(key=f"user.{attribute}")
    yield "person who is not named", right._replace(key=f"person.zoltan.{attribute}")
    for name in HOLDS:
        yield f"declared {name}", ModelProposal(**{**right._asdict(), name: True})
        yield "not declared", ModelProposal(**{**right._asdict(), name: None})
    yield "key that is not allowed", right._replace(key=rng.choice(FORBIDDEN))


def _is_unspaced(text: str) -> bool:
    return re.search("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]", text) is not None


# -- turns of the data folder ---------------------------------------------------------------------------------------


def longmemeval_turns(data: Path) -> Iterator[str]:
    for question in json.loads((data / "longmemeval_oracle_dev50.json").read_text("utf-8")):
        for session in question["haystack_sessions"]:
            yield from (turn["content"] for turn in session if turn["role"] == "user")


def memorybank_turns(data: Path, language: str) -> Iterator[str]:
    people = json.loads((data / "memorybank" / f"memory_bank_{language}.json").read_text("utf-8"))
    for person in people.values():
        for day in person["history"].values():
            yield from (turn["query"] for turn in day if isinstance(turn.get("query"), str))


def plant_real(texts: Sequence[str], rng: random.Random) -> Iterator[Planted]:
    """Of each text a clause and a word of it as the right proposal; wrong ones by another text's words."""
    turns = tuple(turn_of(number, "user", text) for number, text in enumerate(texts))
    rights = [each for turn in turns if (each := _span_of(turn, rng)) is not None]
    for right, other in zip(rights, rights[1:] + rights[:1], strict=True):
        yield Planted("right", right, turns)
        text = turns[int(right.turn_id[1:])].text
        if other.quote not in " ".join(text.split()):
            yield Planted("quote of another turn", right._replace(quote=other.quote, value=other.value), turns)
        if str(other.value).casefold() not in right.quote.casefold():
            yield Planted("value of another turn", right._replace(value=other.value), turns)
        yield Planted("wrong speaker", right._replace(speaker="Bob"), turns)
        yield Planted("declared negated", right._replace(negated=True), turns)
        yield Planted("not declared", right._replace(temporary=None), turns)


def _span_of(turn: SourceTurn, rng: random.Random) -> ModelProposal | None:
    sentences = [each.strip() for each in _SENTENCE.findall(turn.text)]
    sentences = [each for each in sentences if each and each[-1] not in "?？" and 12 <= len(each) <= 300]
    if not sentences:
        return None
    quote = rng.choice(sentences).rstrip(".!。！ ")
    if _HAN.search(quote):
        start = rng.randrange(max(1, len(quote) - 3))
        value = quote[start : start + 2].strip("，、：；“”《》 ")
    else:
        value = rng.choice(re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", quote) or [""])
    if not any(sign.isalnum() for sign in value):
        return None
    return right_of(turn, "user.note", value, quote)


# -- counting -------------------------------------------------------------------------------------------------------


def is_accepted(each: Planted) -> bool:
    (checked,) = check_proposals([each.proposal], each.turns, ExtractionPolicy())
    return checked.rejection is None


def counted(planted: Sequence[Planted]) -> dict[str, dict[str, Any]]:
    """By class: how many were planted, and how many of them were accepted."""
    totals, accepted = Counter[str](), Counter[str]()
    for each in planted:
        names = (each.name, *(("all wrong",) if each.name != "right" else ()))
        totals.update(names)
        accepted.update(names if is_accepted(each) else ())
    rows: dict[str, dict[str, Any]] = {}
    for name in sorted(totals):
        bounds = wilson_bounds(accepted[name], totals[name])
        share = {"low": round(bounds.lower, 4), "high": round(bounds.upper, 4)}
        rows[name] = {"n": totals[name], "accepted": accepted[name], **share}
    return rows


def lies() -> list[Planted]:
    """What a model gets wrong and declares to be right: the checks take its word for it."""
    planted = []
    for number, row in enumerate(rows_of("lies.jsonl")):
        turn = turn_of(number, row["who"], row["text"])
        planted.append(Planted(f"undetected: {row['is']}", right_of(turn, *row["fact"]), (turn,)))
    return planted


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    options = parser.parse_args(argv)
    rng = random.Random(SEED)
    rows = {f"written: {name}": row for name, row in counted(plant_written()).items()}
    for name, turns in (
        ("longmemeval", list(longmemeval_turns(options.data))),
        ("memorybank en", list(memorybank_turns(options.data, "en"))),
        ("memorybank cn", list(memorybank_turns(options.data, "cn"))),
    ):
        texts = rng.sample(turns, min(TURNS_OF_A_SET, len(turns)))
        rows |= {f"{name}: {each}": row for each, row in counted(list(plant_real(texts, rng))).items()}
    rows |= {each: row for each, row in counted(lies()).items() if each != "all wrong"}
    report("extraction_planted", rows, {"seed": SEED})


if __name__ == "__main__":
    main()
