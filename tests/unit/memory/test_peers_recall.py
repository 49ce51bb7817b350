"""The benchmark of other memories: what was ranked is kept, read again and measured. No other system is needed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from benchmarks.data import Question, Scope, Turn
from benchmarks.peers_recall import Ranking, measured, ranked_before, read_ranked, session_recall, write_ranked
from benchmarks.recall_pool import answered

NOW = datetime(2026, 1, 5, tzinfo=UTC)


def scope() -> Scope:
    turns = [Turn(f"t{place}", f"s{place // 2}", "", "user", NOW, f"turn {place}") for place in range(14)]
    questions = [
        Question("one", frozenset({"t0"}), "", NOW),
        Question("two", frozenset({"t2", "t13"}), "", NOW),
        Question("nothing answers", frozenset(), "", NOW, answerable=False),
    ]
    return Scope("scope", turns, questions)


def test_what_was_ranked_is_kept_beside_what_others_ranked(tmp_path: Path) -> None:
    path, held = tmp_path / "ranked" / "set.jsonl.gz", [scope()]
    one = Ranking("one 1.0", [[["t0"], ["t2"], []]])
    other = Ranking("other 2.0", [[["t5"], ["t6"], []]])
    write_ranked(path, "set", held, {"one": one})
    write_ranked(path, "set", held, {"other": other})
    write_ranked(path, "set", held, {"one": Ranking("one 1.1", [[["t1"], ["t2"], []]])})
    rows = read_ranked(path)
    assert [(row["peer"], row["version"], row["ranked"]) for row in rows if row["question"] == "one"] == [
        ("other", "other 2.0", ["t5"]),
        ("one", "one 1.1", ["t1"]),
    ]
    assert {row["set"] for row in rows} == {"set"}
    assert len(rows) == 6


def test_what_was_ranked_before_is_taken_where_it_is_whole_and_of_the_same_version(tmp_path: Path) -> None:
    path, held = tmp_path / "set.jsonl.gz", [scope(), scope()]
    made = Ranking("one 1.0", [[["t0"], ["t2"], []], [["t1"], [], ["t3"]]], 1.5, 2.5)
    assert ranked_before(path, "one", "one 1.0", held) is None
    write_ranked(path, "set", held, {"one": made})
    assert ranked_before(path, "one", "one 1.0", held) == made
    assert ranked_before(path, "one", "one 1.1", held) is None
    assert ranked_before(path, "other", "one 1.0", held) is None
    assert ranked_before(path, "one", "one 1.0", held[:1]) is None


def test_sessions_stand_in_the_place_of_their_best_turn() -> None:
    held = [scope()]
    # of the second question one session is sixth, behind five others
    found = [[[0], [12, 10, 8, 6, 4, 2], []]]
    asked = [each for group in answered(held, found) for each in group]
    assert session_recall(asked) == {"sessions_any@5": 1.0, "sessions_all@5": 0.5}


def test_a_ranking_is_measured_by_turns_and_sessions() -> None:
    ids = [[["t1", "t0"], ["t3", "t13"], ["t4"]]]
    row = measured("locomo", [scope()], Ranking("x 1", ids, 2.0, 3.0))
    assert (row["questions"], row["R@5"], row["sessions_all@5"]) == (2, 0.75, 1.0)
    assert (row["version"], row["add_s"], row["search_ms"]) == ("x 1", 2.0, 3.0)


def test_a_turn_that_nobody_said_is_no_ranking() -> None:
    with pytest.raises(KeyError):
        measured("locomo", [scope()], Ranking("x 1", [[["t99"], [], []]]))
