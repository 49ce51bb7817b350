"""Loaders of the shared data sets: each gives scopes of turns, and questions with the turns that answer them.

The files lie outside the project (`../shared/data` beside the root, or `--data DIR`); nothing of them is kept here.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

__all__ = [
    "PERMITTED",
    "POOL",
    "Question",
    "Scope",
    "Turn",
    "bfcl",
    "default_data",
    "facts",
    "klue_pairs",
    "locomo",
    "longmemeval",
    "pooled",
    "realmem",
    "sessions_of",
    "xquad",
]

POOL = (
    "locomo",
    "realtalk",
    "longmemeval",
    "beam_100k",
    "beam_500k",
    "qmsum",
    "madial",
    "realmem",
    "factconsolidation",
    "bfcl_memory",
    "friendsqa",
    "prefeval",
    "memdaily",
)
"""The development sets that stand in one format, with gold turns (`realmem`: gold sessions)."""

PERMITTED = ("longmemeval", "qmsum", "madial", "friendsqa", "bfcl_memory")
"""Those whose licence permits to ship what is fitted on them. All others are for measuring only."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One memory: who said what, when, in which session."""

    id: str
    session: str
    speaker: str
    role: str
    said_at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    gold: frozenset[str]
    """Ids of turns, or of sessions where the set marks sessions."""
    kind: str
    now: datetime
    gold_sessions: frozenset[str] = frozenset()
    newest: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    """For what changed: the newest evidence, and the stale."""
    answers: tuple[str, ...] = ()
    answerable: bool = True
    """False where nothing in the scope answers it."""
    asked_in: str = ""
    """The session that it is asked in, where only what was said before that one may be searched."""
    id: str = ""
    """Its name within its scope, where the set gives it one."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What is searched together: a conversation, a person's history, a list of facts."""

    name: str
    turns: list[Turn]
    questions: list[Question] = field(default_factory=list)


def default_data() -> Path:
    return Path(__file__).resolve().parent.parent.parent / "shared" / "data"


def _rows(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def locomo(data: Path) -> list[Scope]:
    """Three conversations; a turn's text is what was said, and what a shared picture shows."""
    scopes = []
    for sample in json.loads((data / "locomo_dev3.json").read_text("utf-8")):
        talk = sample["conversation"]
        numbers = sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key))
        turns: list[Turn] = []
        for number in numbers:
            start = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            for place, row in enumerate(talk[f"session_{number}"]):
                caption = f" [{row['blip_caption']}]" if row.get("blip_caption") else ""
                said_at = start + timedelta(seconds=30 * place)
                turns.append(Turn(row["dia_id"], str(number), row["speaker"], "user", said_at, row["text"] + caption))
        known = {turn.id for turn in turns}
        now = max(turn.said_at for turn in turns) + timedelta(days=1)
        questions = []
        for row in sample["qa"]:
            gold = frozenset(re.findall(r"D\d+:\d+", " ".join(row["evidence"]))) & known
            if gold:
                questions.append(Question(row["question"], gold, str(row["category"]), now))
        scopes.append(Scope(sample["sample_id"], turns, questions))
    return scopes


def _lme_instant(text: str) -> datetime:
    return datetime.strptime(re.sub(r" \(\w+\)", "", text), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def longmemeval(data: Path, *, seed: int = 7, others: int = 47) -> list[Scope]:
    """Each question has a scope of its own: its sessions, and `others` sampled from the sessions of other questions."""
    rows = json.loads((data / "longmemeval_oracle_dev50.json").read_text("utf-8"))
    pool: dict[str, tuple[datetime, list[Any]]] = {}
    for row in rows:
        for name, when, session in zip(
            row["haystack_session_ids"], row["haystack_dates"], row["haystack_sessions"], strict=True
        ):
            pool.setdefault(name, (_lme_instant(when), session))
    random = Random(seed)
    scopes = []
    for row in rows:
        own = dict(zip(row["haystack_session_ids"], map(_lme_instant, row["haystack_dates"]), strict=True))
        foreign = random.sample(sorted(set(pool) - set(own)), min(others, len(pool) - len(own)))
        dates = own | {name: pool[name][0] for name in foreign}
        turns, answering = [], {}
        for name in sorted(dates, key=lambda name: (dates[name], name)):
            for place, turn in enumerate(pool[name][1]):
                id_ = f"{name}:{place}"
                said_at = dates[name] + timedelta(seconds=30 * place)
                turns.append(Turn(id_, name, turn["role"], turn["role"], said_at, turn["content"]))
                if turn.get("has_answer") and name in own:
                    answering[id_] = dates[name]
        last = max(answering.values(), default=None)
        newest = frozenset(id_ for id_, when in answering.items() if when == last)
        question = Question(
            row["question"],
            frozenset(answering),
            row["question_type"],
            _lme_instant(row["question_date"]),
            gold_sessions=frozenset(row["answer_session_ids"]),
            newest=(newest, frozenset(answering) - newest),
        )
        scopes.append(Scope(row["question_id"], turns, [question]))
    return scopes


def facts(data: Path) -> list[Scope]:
    """FactConsolidation: a list of statements, one event each, later ones win; gold holds the answer, latest first."""
    start = datetime(2025, 1, 1, tzinfo=UTC)
    scopes = []
    for row in _rows(data / "factconsolidation_6k_32k.jsonl"):
        turns = [
            Turn(str(place), "facts", "user", "user", start + timedelta(minutes=place), text)
            for place, text in enumerate(row["facts"])
        ]
        now = turns[-1].said_at + timedelta(days=1)
        questions = [
            Question(
                question,
                frozenset(turn.id for turn in turns if any(answer in turn.text for answer in answers)),
                "single" if "_sh_" in row["source"] else "multi",
                now,
                answers=tuple(answers),
            )
            for question, answers in zip(row["questions"], row["answers"], strict=True)
        ]
        scopes.append(Scope(row["source"], turns, questions))
    return scopes


def xquad(data: Path, language: str) -> Scope:
    """Paragraphs as sessions of one turn, since they do not talk to each other."""
    start = datetime(2025, 1, 1, tzinfo=UTC)
    turns: list[Turn] = []
    questions: list[Question] = []
    for article in json.loads((data / f"xquad.{language}.json").read_text("utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            id_ = str(len(turns))
            turns.append(Turn(id_, id_, "", "document", start, paragraph["context"]))
            questions += [Question(qa["question"], frozenset({id_}), language, start) for qa in paragraph["qas"]]
    return Scope(f"xquad.{language}", turns, questions)


def realmem(data: Path, *, every: int = 1) -> list[Scope]:
    """Each persona's sessions; a query's gold are the sessions whose memory the answer used."""
    scopes = []
    for path in sorted((data / "realmem").glob("*.json")):
        dialogues = json.loads(path.read_text("utf-8"))["dialogues"]
        turns: list[Turn] = []
        questions: list[Question] = []
        for order, session in enumerate(dialogues):
            day = datetime.strptime(session["current_time"][:10], "%Y-%m-%d").replace(tzinfo=UTC)
            name = session["session_uuid"]
            previous: dict[str, Any] | None = None
            for place, turn in enumerate(session["dialogue_turns"]):
                said_at = day + timedelta(seconds=order * 60 + place)
                role = turn["speaker"].lower()
                gold = frozenset(turn.get("memory_session_uuids") or ()) - {name}
                if gold and previous is not None and previous.get("is_query"):
                    questions.append(Question(previous["content"], frozenset(), name, said_at, gold_sessions=gold))
                turns.append(Turn(f"{name}:{place}", name, turn["speaker"], role, said_at, turn["content"]))
                previous = turn
        scopes.append(Scope(path.stem.split("_dialogues")[0], turns, questions[::every]))
    return scopes


_NO_DATE = datetime(2025, 1, 1, tzinfo=UTC)


def pooled(data: Path, name: str) -> list[Scope]:
    """One set of the pool. What has no time of its own is told a session a day, a turn a minute.

    Gold counts older values of what was asked for as well, which are evidence of how it was.
    """
    scopes = []
    with gzip.open(data / "retrieval" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            turns = [
                Turn(
                    turn["id"],
                    session["id"],
                    turn["speaker"] or "",
                    turn["role"],
                    _instant(turn["ts"]) or _NO_DATE + timedelta(days=day, minutes=place),
                    turn["text"],
                )
                for day, session in enumerate(row["sessions"])
                for place, turn in enumerate(session["turns"])
            ]
            now = max(turn.said_at for turn in turns) + timedelta(days=1)
            scopes.append(Scope(row["scope"], turns, [_asked(each, now) for each in row["questions"]]))
    return scopes


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _asked(row: dict[str, Any], now: datetime) -> Question:
    gold, stale = frozenset(row["gold"]), frozenset(row["stale"])
    return Question(
        row["text"],
        gold | stale,
        row["kind"],
        _instant(row["asked_at"]) or now,
        gold_sessions=frozenset(row.get("gold_sessions") or ()),
        newest=(gold, stale),
        answers=tuple(row["answers"] or ()),
        answerable=row["answerable"],
        asked_in=row.get("asked_in") or "",
        id=row["id"],
    )


_MARKS = re.compile(r"\W+")


def _plain(text: str) -> str:
    return _MARKS.sub(" ", text.casefold()).strip()


def bfcl(data: Path) -> list[Scope]:
    """What a user tells a shop, a clinic and a notebook, a session a day; gold holds words of the source it quotes.

    Nearly nothing changes in these: the newest that answers is not the answer.
    """
    start = datetime(2025, 1, 1, tzinfo=UTC)
    asked = list(_rows(data / "bfcl_memory_questions.jsonl"))
    scopes = []
    for path in sorted((data / "bfcl_memory_conversations").glob("memory_*.json")):
        name = path.stem.removeprefix("memory_")
        turns: list[Turn] = []
        for day, row in enumerate(_rows(path)):
            said = [message for group in row["question"] for message in group]
            for place, message in enumerate(said):
                said_at = start + timedelta(days=day, minutes=place)
                id_ = f"{row['id']}:{place}"
                turns.append(Turn(id_, row["id"], message["role"], message["role"], said_at, message["content"]))
        now = turns[-1].said_at + timedelta(days=1)
        questions = []
        for row in asked:
            quoted = [part for part in map(_plain, re.split(r"\.\.\.|…", row["source"])) if part]
            gold = frozenset(turn.id for turn in turns if any(part in _plain(turn.text) for part in quoted))
            if row["scenario"] == name and gold:
                questions.append(Question(row["question"][0][0]["content"], gold, name, now))
        scopes.append(Scope(name, turns, questions))
    return scopes


def klue_pairs(data: Path, *, least: float = 4.0) -> Scope:
    """Korean sentences; the question is the other sentence of a pair that people call alike."""
    start = datetime(2025, 1, 1, tzinfo=UTC)
    turns: list[Turn] = []
    questions: list[Question] = []
    for row in json.loads((data / "korean_nli" / "klue-sts-v1.1_dev.json").read_text("utf-8")):
        id_ = str(len(turns))
        turns.append(Turn(id_, id_, "", "document", start, row["sentence2"]))
        if row["labels"]["real-label"] >= least:
            questions.append(Question(row["sentence1"], frozenset({id_}), "ko", start))
    return Scope("klue", turns, questions)


def sessions_of(turns: Iterable[Turn]) -> list[str]:
    """The sessions in order of first appearance."""
    return list(dict.fromkeys(turn.session for turn in turns))
