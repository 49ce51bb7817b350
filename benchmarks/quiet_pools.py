"""Texts that give no orders to a model: what is learned from on the one side, what is measured on on the other.

Chats, encyclopedia paragraphs, news, meeting notes, research reports, passages behind answers and tool results of the
shared data. Each text has the name of its set and of its part: a conversation, an article or a file. A part is for
one thing alone: to learn from, to set what is to be passed, or to measure on (`side_of`).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple
from zlib import crc32

__all__ = ["QuietText", "Side", "quiet_texts", "side_of"]

Side = Literal["learned", "set", "measured"]
_SIDES: tuple[Side, ...] = ("learned", "learned", "set", "measured")
_PARAGRAPH_CHARS_MIN = 40


class QuietText(NamedTuple):
    """A text without orders, its set, and the part of the set that it stands in."""

    of_set: str
    part: str
    text: str


def side_of(quiet: QuietText) -> Side:
    """What a part is for: to learn from, to set by it what is to be passed, or to measure on. By its name alone."""
    return _SIDES[crc32(f"{quiet.of_set}/{quiet.part}".encode()) % len(_SIDES)]


def quiet_texts(data: Path, more: Path | None = None) -> Iterator[QuietText]:
    """Everything, in a fixed order; `more`: a folder of further JSONL files with a `text` in each row."""
    yield from _chats(data / "retrieval")
    yield from _encyclopedia(data)
    yield from _news(data)
    yield from _reports(data)
    yield from _passages(data / "attribution")
    yield from _agents(data)
    yield from _further_chats(data)
    yield from _project_pages()
    for path in [] if more is None else sorted(more.glob("*.jsonl")):
        for number, row in enumerate(_rows(path)):
            yield QuietText(path.stem, str(number // 50), row["text"])


def _chats(folder: Path) -> Iterator[QuietText]:
    for path in sorted(folder.glob("*.jsonl.gz")):
        for scope in _rows(path):
            for session in scope["sessions"]:
                for turn in session["turns"]:
                    yield QuietText(scope["set"], f"{scope['scope']}/{session['id']}", turn["text"])


def _encyclopedia(data: Path) -> Iterator[QuietText]:
    for language in ("en", "zh"):
        for article in json.loads((data / f"xquad.{language}.json").read_text("utf-8"))["data"]:
            for paragraph in article["paragraphs"]:
                yield QuietText(f"xquad_{language}", article["title"], paragraph["context"])


def _news(data: Path) -> Iterator[QuietText]:
    articles = {
        row["article_id"]: row["article"] for row in json.loads((data / "bump_task1_dev.json").read_text("utf-8"))
    }
    for name, article in articles.items():
        yield QuietText("bump", str(name), article)


def _reports(data: Path) -> Iterator[QuietText]:
    for row in _rows(data / "deepresearch_bench_claude37_reports.jsonl"):
        for paragraph in _paragraphs(row["article"]):
            yield QuietText("research_reports", str(row["id"]), paragraph)


def _passages(folder: Path) -> Iterator[QuietText]:
    for path in sorted(folder.glob("*.jsonl.gz")):
        for row in _rows(path):
            for source in (row["claim"], *row["sources"]):
                for paragraph in _paragraphs(source):
                    yield QuietText(f"passages_{path.name.partition('.')[0]}", row["id"], paragraph)


def _agents(data: Path) -> Iterator[QuietText]:
    """What tools answered and agents said; the user's instructions and the system's are orders, and left out."""
    for task in json.loads((data / "taubench_gpt4o_airline_tasks0-24.json").read_text("utf-8")):
        for message in task["traj"]:
            if message["role"] in ("tool", "assistant") and message.get("content"):
                yield QuietText("taubench", str(task["task_id"]), message["content"])


def _further_chats(data: Path) -> Iterator[QuietText]:
    for language in ("cn", "en"):
        people = json.loads((data / "memorybank" / f"memory_bank_{language}.json").read_text("utf-8"))
        for name, person in people.items():
            for day, turns in person["history"].items():
                for turn in turns:
                    for said in (turn["query"], turn["response"]):
                        yield QuietText(f"memorybank_{language}", f"{name}/{day}", said)
    for path in sorted((data / "vehiclemembench").glob("history_*.txt")):
        for line in path.read_text("utf-8").splitlines():
            if line.strip():
                yield QuietText("vehiclemembench", path.stem, line)


def _project_pages() -> Iterator[QuietText]:
    """The decisions of this project, which speak of agents, tools and models and give no orders."""
    for page in sorted((Path(__file__).parent.parent / "docs" / "decisions").glob("*.md")):
        for paragraph in _paragraphs(page.read_text("utf-8")):
            yield QuietText("decisions", page.stem, paragraph)


def _paragraphs(text: str) -> Iterator[str]:
    yield from (part for part in text.split("\n\n") if len(part) >= _PARAGRAPH_CHARS_MIN)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    yield from (json.loads(line) for line in text.split("\n") if line)
