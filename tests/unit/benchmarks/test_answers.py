"""The bench of answers: which questions it asks, what its prompts hold, what is asked again and what is not."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from benchmarks.answers_prompts import Prompt, prompts_of, read_prompts, write_prompts
from benchmarks.answers_sets import asked_of
from benchmarks.answers_table import Answer, answered, interval, kept_of, read_answers, rows_of
from benchmarks.answers_torch import answered_keys, batches, joined_model

START = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
SAID = (
    ("D1:1", "Ana", "I painted the lake sunrise last year, it hangs in the hall."),
    ("D1:2", "Ben", "How lovely. My boat is called Marlin."),
    ("D2:1", "Ana", "I work at the bakery on Hill Street."),
    ("D3:1", "Ana", "I changed jobs: I work at the library since yesterday."),
)


def question(id_: str, text: str, gold: list[str], answers: list[str], *, answerable: bool = True) -> dict[str, Any]:
    return {
        "id": id_, "text": text, "asked_at": None, "kind": "single-hop", "gold": gold, "stale": [],
        "answers": answers, "answerable": answerable,
    }  # fmt: skip


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A pool of one history, with an audit of its keys."""
    sessions: dict[str, list[dict[str, Any]]] = {}
    for place, (id_, speaker, text) in enumerate(SAID):
        said_at = START + timedelta(days=30 * int(id_[1]), minutes=place)
        turn = {"id": id_, "role": "user", "speaker": speaker, "text": text, "ts": said_at.isoformat()}
        sessions.setdefault(id_.split(":")[0], []).append(turn)
    row = {
        "set": "locomo",
        "scope": "conv-26",
        "sessions": [{"id": name, "date": None, "turns": turns} for name, turns in sessions.items()],
        "questions": [
            question("q0", "When did Ana paint the sunrise?", ["D1:2"], ["2021"]),
            question("q1", "What is Ben's boat called?", ["D1:2"], ["Marlin"]),
            question("q2", "Who baked the cake?", ["D2:1"], ["Ana"]),
            question("q3", "What is Ana's boat called?", [], [], answerable=False),
            question("q4", "What happened?", ["D1:1"], ["word " * 40]),
        ],
    }
    (tmp_path / "retrieval").mkdir()
    with gzip.open(tmp_path / "retrieval" / "locomo.jsonl.gz", "wt") as out:
        out.write(json.dumps(row) + "\n")
    audit = [
        {
            "scope": "conv-26",
            "qa": 0,
            "error": "temporal_error",
            "evidence": ["D1:1"],
            "answer": "2022 (a year before)",
        },
        {"scope": "conv-26", "qa": 2, "error": "ambiguous", "evidence": ["D2:1"], "answer": "Nobody says"},
    ]
    (tmp_path / "locomo_dev3_corrections.json").write_text(json.dumps(audit))
    qa = [{"question": "?"}] * 3 + [{"question": "?", "adversarial_answer": "Marlin"}]
    (tmp_path / "locomo_dev3.json").write_text(json.dumps([{"sample_id": "conv-26", "qa": qa}]))
    return tmp_path


def test_wrong_keys_are_put_right_or_left_out(data: Path) -> None:
    asked = asked_of(data, "locomo")
    held = {each.id: each for each in asked.scopes[0].questions}
    assert sorted(held) == ["q0", "q1", "q3"]
    assert held["q0"].answers == ("2022",)
    assert held["q0"].gold == {"D1:1"}
    assert held["q1"].answers == ("Marlin",)
    assert {(each.id, each.is_left_out) for each in asked.corrected} == {("q0", False), ("q2", True)}
    assert asked.too_long == 1


@pytest.fixture
def prompts(data: Path) -> list[Prompt]:
    return list(prompts_of(data, "locomo", near=None, has_whole=True))


def test_every_arm_asks_every_question_and_gold_only_where_there_is_some(prompts: list[Prompt]) -> None:
    by_arm: dict[str, set[str]] = {}
    for prompt in prompts:
        by_arm.setdefault(prompt.arm, set()).add(prompt.question)
    assert by_arm.pop("gold") == {"q0", "q1"}
    assert by_arm.pop("whole") == {"q0"}
    assert set(map(frozenset, by_arm.values())) == {frozenset({"q0", "q1", "q3"})}
    assert {"nothing", "bm25 512", "bm25 1024", "ours 256", "ours 512", "ours 1024", "ours 512 citing"} <= set(by_arm)


def test_a_prompt_tells_what_stands_in_it(prompts: list[Prompt]) -> None:
    held = {(prompt.arm, prompt.question): prompt for prompt in prompts}
    gold = held["gold", "q1"]
    assert gold.told == ["D1:2"]
    assert "Marlin" in gold.system
    assert "sunrise" not in gold.system
    assert held["nothing", "q1"].told == []
    ours = held["ours 512 citing", "q1"]
    assert "D1:2" in ours.told
    assert set(ours.marks.values()) == set(ours.told)
    assert ours.user.startswith("What is Ben's boat called?\n\n")
    assert held["ours 512", "q1"].user == "What is Ben's boat called?"


def test_prompts_are_kept_as_they_are_and_byte_for_byte(prompts: list[Prompt], tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl.gz"
    assert write_prompts(first, iter(prompts)) == len(prompts)
    assert list(read_prompts(first)) == prompts
    write_prompts(second, read_prompts(first))
    assert first.read_bytes() == second.read_bytes()


# -- asking -------------------------------------------------------------------------------------------


def test_batches_hold_their_bound_and_lose_nothing() -> None:
    rows = [
        ({"key": str(n), "max_new_tokens": 48 + 48 * (n % 2), "stage": n % 3}, [0] * (n * 7 % 90)) for n in range(60)
    ]
    made = list(batches(rows, 1000))
    assert sorted(row["key"] for batch in made for row, _ in batch) == sorted(row["key"] for row, _ in rows)
    for batch in made:
        width = max(len(ids) for _, ids in batch)
        assert len(batch) == 1 or len(batch) * (width + batch[0][0]["max_new_tokens"]) <= 1000
        assert len({(row["stage"], row["max_new_tokens"]) for row, _ in batch}) == 1
    stages = [batch[0][0]["stage"] for batch in made]
    assert stages == sorted(stages)


def test_what_was_answered_is_known_again_and_a_line_cut_short_is_not(tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    assert answered_keys(out) == set()
    out.write_text('{"key": "a", "answer": "x"}\n{"key": "b", "ans')
    assert answered_keys(out) == {"a"}


def test_a_model_in_parts_is_joined(tmp_path: Path) -> None:
    for number, part in enumerate((b"GG", b"UF")):
        (tmp_path / f"toy.part0{number}").write_bytes(part)
    joined = joined_model(tmp_path / "toy.part")
    assert joined.read_bytes() == b"GGUF"
    joined.unlink()


# -- the table ----------------------------------------------------------------------------------------


def test_rows_count_answers_and_declines_apart(data: Path, prompts: list[Prompt], tmp_path: Path) -> None:
    answers: dict[str, Answer] = {}
    for prompt in prompts:
        right = {"q0": "2022", "q1": "Marlin", "q3": "not mentioned"}[prompt.question]
        answers[prompt.key] = Answer(right if prompt.arm.startswith("ours") else "Marlin", 10, 0.5)
    table = rows_of(answered(data, prompts, answers), "choosing")
    ours, nothing = table["locomo, ours 512"], table["locomo, nothing"]
    assert (ours["f1"], ours["unanswerable_declined"], ours["trapped"]) == (1.0, 1.0, 0.0)
    assert (nothing["f1"], nothing["unanswerable_declined"], nothing["trapped"]) == (0.5, 0.0, 1.0)
    assert nothing["ours_512_less_this"] == 0.5
    assert rows_of(answered(data, prompts, answers), "judging") == {}
    out = tmp_path / "answers.jsonl"
    key, answer = next(iter(answers.items()))
    line = {"key": key, "model": "m", "answer": answer.text, "prompt_tokens": 10, "seconds": 0.5}
    out.write_text(json.dumps(line) + "\n" + json.dumps(line)[:20])
    assert read_answers([out]) == {"m": {key: answer}}


def test_what_is_written_down_is_what_the_pages_tell() -> None:
    row = {"questions": 3, "f1": 0.5, "seconds": 1.0, "cites": 1.0, "interval": [0.1, 0.2]}
    mean = {"f1": 0.4, "f1_plain": 0.3, "gold_in": 1.0}
    table = {
        "locomo, gold": row, "beam_100k, gold": row, "mean of the sets, gold": mean,
        "locomo, wording a, b": row, "beam_100k, wording a, b": row, "mean of the sets, wording a, b": mean,
        "locomo, wording of one set": row,
    }  # fmt: skip
    short = {"questions": 6, "locomo": 0.5, "beam_100k": 0.5, "f1": 0.4, "f1_plain": 0.3}
    alone = {"questions": 3, "locomo": 0.5}
    assert kept_of(table, "choosing", is_main=True) == {
        "gold": short, "wording a, b": short, "wording of one set": alone,
    }  # fmt: skip
    held = {field: value for field, value in row.items() if field != "seconds"}
    assert kept_of(table, "judging", is_main=True) == {
        "locomo, gold": held, "beam_100k, gold": held, "mean of the sets, gold": mean,
        "wording a, b": short, "wording of one set": alone,
    }  # fmt: skip
    assert kept_of(table, "judging", is_main=False) == {"gold": {"f1": 0.4}, "wording a, b": {"f1": 0.4}}


def test_an_interval_holds_the_mean_and_is_the_same_again() -> None:
    values = [0.0, 0.2, 0.4, 0.1, 0.3] * 20
    low, high = interval(values)
    assert low < 0.2 < high
    assert interval(values) == (low, high)
    assert interval([0.25] * 9) == (0.25, 0.25)
