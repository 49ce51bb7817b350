"""Search, compose and ingest against a bare full-text table, in one run.

    python -m benchmarks.compose                  everything (makes a store of a million events; some minutes)
    python -m benchmarks.compose --quick          small sizes, for a look
    python -m benchmarks.compose --scratch DIR    keep the stores there, and take up those that are there already

The reference of a search is an FTS5 table (porter) that holds the texts of that one scope and nothing else, asked for
the ten best by bm25 with the words of the question joined by OR; `of_content` is the same with the stop words left out
of the question, which spares it most of its work. The reference of an ingest writes rows that are made already and the
full-text index of them, and does nothing else. Both sides answer the same questions about the same text, by turns, and
no question is asked twice of either.

Of search, compose and starting, a `ratio` is ours ÷ the reference's (lower is better); of ingest, our items per second
÷ its (higher is better). `holds` says whether the target is met.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import muniment
from benchmarks.harness import report, timed, versus
from muniment.core.text.analyzer import stop_words
from muniment.testing.hash_embedder import HashEmbedder

STOP_WORDS = stop_words("english")
BATCH = 1000
SESSION = 20
ASKED = 160
WARM = 10
"""Questions about each scope, and how many of them come before the clock is started."""
NOW = "2026-06-01T12:00:00Z"
_BEGIN = datetime(2024, 1, 3, 9, tzinfo=UTC)
_NAMES = ("Ana", "Ben", "Cleo", "Dana", "Eli", "Fay", "Gus", "Hana", "Ivo", "Jun", "Kim", "Lea", "Max", "Nia", "Omar")
_PLACES = ("Berlin", "Lisbon", "Osaka", "Leeds", "Austin", "Turin", "Ghent", "Porto", "Bergen", "Lyon")
_MONTHS = ("January", "February", "March", "April", "June", "July", "August", "September", "October", "November")
_WHEN = ("yesterday", "last week", "two months ago", "this morning", "next Friday", "last summer", "on 7 May 2025")


# -- talk ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Turn:
    role: str
    speaker: str
    ts: str
    text: str


def _made_words(rng: random.Random, count: int) -> list[str]:
    """Words that no dictionary has, with the endings of English ones, so that stemming has work."""
    onsets = (
        "b",
        "br",
        "c",
        "ch",
        "d",
        "dr",
        "f",
        "fl",
        "g",
        "h",
        "j",
        "l",
        "m",
        "n",
        "p",
        "pl",
        "r",
        "s",
        "sh",
        "st",
        "tr",
    )
    vowels, codas = (
        ("a", "e", "i", "o", "u", "ea", "oo"),
        ("ck", "d", "g", "ll", "m", "n", "nd", "p", "r", "st", "t", "x"),
    )
    endings = ("", "", "", "", "s", "ing", "ed", "er", "ly", "ness", "ation", "y")
    words: dict[str, None] = {}
    while len(words) < count:
        stem = "".join(rng.choice(onsets) + rng.choice(vowels) for _ in range(rng.choice((0, 1, 1, 2))))
        word = stem + rng.choice(onsets) + rng.choice(vowels) + rng.choice(codas) + rng.choice(endings)
        if word not in STOP_WORDS:
            words.setdefault(word)
    return list(words)


class Talk:
    """Conversations of two speakers, seeded: half the words small change, half of a Zipf vocabulary with topics."""

    def __init__(self, seed: int, vocabulary: int = 30_000) -> None:
        self._rng = random.Random(seed)
        self._words = _made_words(self._rng, vocabulary)
        self._weights = list(accumulate(1 / (rank + 3) for rank in range(vocabulary)))
        self._small = sorted(STOP_WORDS, key=lambda word: (len(word), word))[:220]
        self._small_weights = list(accumulate(1 / (rank + 2) for rank in range(len(self._small))))

    def sessions(self, turns: int, length: int = SESSION) -> Iterator[list[Turn]]:
        """Sessions of about `length` turns, four hours apart, `turns` of them in all."""
        rng = self._rng
        pair = rng.sample(_NAMES, 2)
        left, day = turns, 0
        while left:
            size = left if left < 1.5 * length else rng.randint(length * 3 // 4, length * 5 // 4)
            moment = _BEGIN + timedelta(hours=4 * day)
            topic = self._draw(12)
            yield [
                Turn(
                    role="user" if number % 2 == 0 else "assistant",
                    speaker=pair[number % 2],
                    ts=(moment + timedelta(seconds=40 * number)).isoformat(),
                    text=self._text(topic),
                )
                for number in range(size)
            ]
            left, day = left - size, day + 1

    def question(self, about: Turn) -> str:
        """A question about something that a turn says."""
        rng = self._rng
        words = [word for word in re.findall(r"[a-z]+", about.text.lower()) if word not in STOP_WORDS] or ["trip"]
        a, b, c = (rng.choice(words) for _ in range(3))
        form = rng.choice(
            (
                "What did {who} say about the {a} and the {b}?",
                "When did I {a} the {b} with {who}?",
                "How many {a} have I had since {month}?",
                "Where is the {a} {b} that {who} told me about?",
                "Which {a} did we choose for the {b} {c} last week?",
                "Do you remember who wanted the {a} instead of the {b}?",
                "What is the current {a} of {who}'s {b}?",
            )
        )
        return form.format(a=a, b=b, c=c, who=about.speaker, month=rng.choice(_MONTHS))

    def _draw(self, count: int) -> list[str]:
        return self._rng.choices(self._words, cum_weights=self._weights, k=count)

    def _text(self, topic: Sequence[str]) -> str:
        rng, said = self._rng, []
        for _ in range(rng.choice((1, 1, 2, 2, 3))):
            size = rng.randint(5, 14)
            content, small = self._draw(size), rng.choices(self._small, cum_weights=self._small_weights, k=size)
            words = [
                rng.choice(topic) if kind < 0.1 else content[at] if kind < 0.55 else small[at]
                for at, kind in enumerate(rng.random() for _ in range(size))
            ]
            if rng.random() < 0.08:
                words.append(rng.choice(_WHEN))
            if rng.random() < 0.06:
                words += ["in", rng.choice(_PLACES)]
            line = " ".join(words)
            said.append(line[0].upper() + line[1:] + ("?" if rng.random() < 0.12 else "."))
        return " ".join(said)


def events_of(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    return [{"role": turn.role, "speaker": turn.speaker, "ts": turn.ts, "content": turn.text} for turn in turns]


# -- stores -------------------------------------------------------------------------------------------


class Bare:
    """One scope's texts in one FTS5 table, and nothing else in the file."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=NORMAL")
        self.db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS fts USING fts5(text, tokenize='porter unicode61')")

    def fill(self, texts: Sequence[str]) -> None:
        self.db.execute("BEGIN")
        self.db.executemany("INSERT INTO fts(text) VALUES (?)", [(text,) for text in texts])
        self.db.execute("COMMIT")

    def search(self, question: str, *, of_content: bool = False) -> int:
        words = dict.fromkeys(re.findall(r"\w+", question.lower()))
        kept = [word for word in words if not (of_content and word in STOP_WORDS)]
        match = " OR ".join(f'"{word}"' for word in kept)
        sql = "SELECT rowid, text, bm25(fts) FROM fts WHERE fts MATCH ? ORDER BY bm25(fts) LIMIT 10"
        return len(self.db.execute(sql, (match,)).fetchall())


@dataclass(frozen=True, slots=True)
class Scope:
    """A user of the big store, the bare table of the same texts, and questions about them."""

    user: str
    size: int
    bare: Path
    questions: tuple[str, ...]
    session: str


def fill_scope(mem: muniment.Memory, talk: Talk, user: str, size: int, folder: Path, asked: int) -> Scope:
    """Write a scope session by session, as it would have grown, and its texts into a bare table."""
    bare = folder / f"{user}-bare.db"
    texts: list[str] = []
    sample: list[Turn] = []
    session = ""
    for number, turns in enumerate(talk.sessions(size)):
        session = f"{user}-s{number}"
        mem.run(user_id=user, session_id=session).observe_many(events_of(turns))
        texts += [turn.text for turn in turns]
        sample.append(turns[number % len(turns)])
    reference = Bare(bare)
    reference.fill(texts)
    reference.db.close()
    step = max(1, len(sample) // asked)
    questions = tuple(talk.question(turn) for turn in (sample * asked)[: asked * step : step])
    return Scope(user, size, bare, questions, session)


def build_store(path: Path, sizes: Sequence[int], total: int, asked: int) -> dict[int, Scope]:
    """A store of `total` events: scopes of the sizes asked for, and many users of a thousand events beside them."""
    notes = path.with_suffix(".json")
    if notes.exists():
        held = [Scope(**each | {"bare": Path(each["bare"])}) for each in json.loads(notes.read_text())]
        return {scope.size: scope for scope in held}
    scopes: dict[int, Scope] = {}
    with muniment.open(path) as mem:
        talk, filler = Talk(seed=7), Talk(seed=11)
        for size in sizes:
            scopes[size] = fill_scope(mem, talk, f"{path.stem}-{size}", size, path.parent, asked)
        for number in range((total - sum(sizes)) // BATCH):
            tenant = "default" if number % 2 else f"tenant-{number % 7}"
            run = mem.run(user_id=f"other-{number}", session_id=f"o{number}", tenant_id=tenant)
            for turns in filler.sessions(BATCH, length=BATCH):
                run.observe_many(events_of(turns))
    notes.write_text(json.dumps([asdict(scope) | {"bare": str(scope.bare)} for scope in scopes.values()]))
    return scopes


# -- measuring ----------------------------------------------------------------------------------------


def spread_of(times: Sequence[float]) -> tuple[float, float]:
    """Median and 95th percentile, in milliseconds."""
    ordered = sorted(times)
    return statistics.median(ordered) * 1e3, ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))] * 1e3


def by_turns(works: Sequence[Callable[[str], object]], questions: Sequence[str]) -> list[list[float]]:
    """Seconds of each work for each question, the works taking turns and the order turning with them."""
    times: list[list[float]] = [[] for _ in works]
    for place, question in enumerate(questions):
        for step in range(len(works)):
            which = (step + place) % len(works)
            times[which].append(timed(partial(works[which], question)))
    return times


def measure_search(path: Path, scope: Scope, target: float) -> dict[str, Any]:
    bare = Bare(scope.bare)
    with muniment.open(path) as mem:
        run = mem.run(user_id=scope.user)
        works = (
            lambda question: run.search(question, now=NOW),
            bare.search,
            lambda question: bare.search(question, of_content=True),
        )
        by_turns(works, scope.questions[:WARM])
        ours, theirs, content = (spread_of(times) for times in by_turns(works, scope.questions[WARM:]))
    bare.db.close()
    return {
        "p50_ms": ours[0],
        "p95_ms": ours[1],
        "fts5_p50_ms": theirs[0],
        "fts5_p95_ms": theirs[1],
        "fts5_of_content_p50_ms": content[0],
        "ratio": ours[0] / theirs[0],
        "ratio_of_content": ours[0] / content[0],
        "tail": ours[1] / ours[0],
        "holds": ours[0] <= target * theirs[0] and ours[1] <= 3 * ours[0],
    }


def measure_after_write(path: Path, scope: Scope, talk: Talk, rounds: int) -> dict[str, Any]:
    """A search that finds the index changed by one turn since the last one."""
    bare = Bare(scope.bare)
    turns = [turn for session in talk.sessions(rounds, length=rounds) for turn in session]
    ours, theirs = [], []
    with muniment.open(path) as mem:
        run = mem.run(user_id=scope.user, session_id=scope.session)
        run.search(scope.questions[0], now=NOW)
        for turn, question in zip(turns, scope.questions * rounds, strict=False):
            run.observe(turn.role, turn.text, speaker=turn.speaker)
            bare.fill([turn.text])
            ours.append(timed(partial(run.search, question, now=NOW)))
            theirs.append(timed(partial(bare.search, question)))
    bare.db.close()
    (p50, p95), (bare_p50, bare_p95) = spread_of(ours), spread_of(theirs)
    return {"p50_ms": p50, "p95_ms": p95, "fts5_p50_ms": bare_p50, "fts5_p95_ms": bare_p95, "ratio": p50 / bare_p50}


def measure_compose(path: Path, scope: Scope) -> dict[str, Any]:
    """Half the questions are composed for, the other half searched for: neither finds what the other looked up."""
    half = len(scope.questions) // 2
    other = dict(zip(scope.questions[:half], scope.questions[half:], strict=False))
    with muniment.open(path) as mem:
        run = mem.run(user_id=scope.user, session_id=scope.session)
        works = (
            lambda question: run.compose("responder", query=question, now=NOW),
            lambda question: run.search(other[question], now=NOW),
        )
        by_turns(works, list(other)[:WARM])
        ours, search = (spread_of(times) for times in by_turns(works, list(other)[WARM:]))
    return {
        "p50_ms": ours[0],
        "p95_ms": ours[1],
        "search_p50_ms": search[0],
        "ratio": ours[0] / search[0],
        "tail": ours[1] / ours[0],
        "holds": ours[0] <= 4 * search[0] and ours[1] <= 3 * ours[0],
    }


def measure_crowd(crowded: Path, alone: Path, here: Scope, there: Scope) -> dict[str, Any]:
    """The same scope in a big file and in a small one."""
    with muniment.open(crowded) as big, muniment.open(alone) as small:
        ours, theirs = big.run(user_id=here.user), small.run(user_id=there.user)
        works = (lambda question: ours.search(question, now=NOW), lambda question: theirs.search(question, now=NOW))
        by_turns(works, here.questions[:WARM])
        in_big, in_small = (spread_of(times) for times in by_turns(works, here.questions[WARM:]))
    return {
        "crowded_p50_ms": in_big[0],
        "alone_p50_ms": in_small[0],
        "ratio": in_big[0] / in_small[0],
        "holds": in_big[0] <= 1.15 * in_small[0],
    }


# -- ingest -------------------------------------------------------------------------------------------

_ROWS = "CREATE TABLE rows (id INTEGER PRIMARY KEY, user_id, session_id, role, speaker, ts, text)"
_FTS = "CREATE VIRTUAL TABLE fts USING fts5(text, content='rows', content_rowid='id', tokenize='porter unicode61')"


def _bare_ingest(path: Path, turns: Sequence[Turn], size: int) -> float:
    db = sqlite3.connect(path, isolation_level=None)
    for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", _ROWS, _FTS):
        db.execute(statement)
    rows = [
        (number, "ana", f"s{number // SESSION}", turn.role, turn.speaker, turn.ts, turn.text)
        for number, turn in enumerate(turns, 1)
    ]
    texts = [(row[0], row[6]) for row in rows]

    def work() -> None:
        for at in range(0, len(rows), size):
            db.execute("BEGIN IMMEDIATE")
            db.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?)", rows[at : at + size])
            db.executemany("INSERT INTO fts (rowid, text) VALUES (?, ?)", texts[at : at + size])
            db.execute("COMMIT")

    taken = timed(work)
    db.close()
    return taken


def _our_ingest(path: Path, turns: Sequence[Turn], size: int, options: dict[str, Any]) -> float:
    with muniment.open(path, **options) as mem:
        run = mem.run(user_id="ana", session_id="s")
        run.observe("user", "first")
        if size == 1:
            return timed(lambda: [run.observe(t.role, t.text, speaker=t.speaker, ts=t.ts) for t in turns])
        batches = [events_of(turns[at : at + size]) for at in range(0, len(turns), size)]
        return timed(lambda: [run.observe_many(batch) for batch in batches])


def measure_ingest(
    scratch: Path, count: int, size: int, rounds: int, options: dict[str, Any] | None = None
) -> dict[str, Any]:
    turns = [turn for session in Talk(seed=3).sessions(count) for turn in session]
    kept: list[Path] = []

    def ours(round_: int) -> float:
        kept.append(scratch / f"ingest-{size}-{round_}.db")
        return _our_ingest(kept[-1], turns, size, options or {})

    def bare(round_: int) -> float:
        kept.append(scratch / f"ingest-bare-{size}-{round_}.db")
        return _bare_ingest(kept[-1], turns, size)

    mine, theirs, ratio = versus(ours, bare, rounds)
    held = {path.name.startswith("ingest-bare"): path.stat().st_size for path in kept}
    for path in scratch.glob("ingest-*"):
        path.unlink()
    return {
        "items_per_s": count / mine,
        "fts5_per_s": count / theirs,
        "ratio": ratio,
        "bytes_per_item": held[False] / count,
        "fts5_bytes_per_item": held[True] / count,
        "holds": ratio >= 0.1,
    }


def measure_embedded(scratch: Path, count: int, rounds: int) -> dict[str, Any] | None:
    """What vectors add to an ingest, the time to make them aside: those of an embedder that hashes."""
    embedder = HashEmbedder()
    turns = [turn for session in Talk(seed=3).sessions(count) for turn in session]

    def one(name: str, options: dict[str, Any]) -> Callable[[int], float]:
        return lambda round_: _our_ingest(scratch / f"ingest-{name}-{round_}.db", turns, BATCH, options)

    mine, plain, ratio = versus(one("vec", {"embedder": embedder}), one("plain", {}), rounds)
    for path in scratch.glob("ingest-*"):
        path.unlink()
    added = 1 / ratio - 1
    return {"items_per_s": count / mine, "plain_per_s": count / plain, "added": added, "holds": added <= 1}


# -- a cold process -----------------------------------------------------------------------------------

_SEARCH_ONCE = (
    "import sys, muniment\n"
    "with muniment.open(sys.argv[1]) as mem:\n"
    "    assert mem.run(user_id=sys.argv[2]).search(sys.argv[3])\n"
)


def _process(bytecode: Path, *arguments: str) -> float:
    """A process of its own. Bytecode lies ready in a folder, as installing a package leaves it, even in a checkout."""
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    settings["PYTHONPYCACHEPREFIX"] = str(bytecode)
    return timed(lambda: subprocess.run([sys.executable, "-c", *arguments], check=True, env=settings))


def measure_start(path: Path, user: str, question: str, rounds: int) -> dict[str, Any]:
    """A process that opens a file and searches once, against one that imports what it must."""
    bytecode = path.parent / "bytecode"

    def ours(_: int) -> float:
        return _process(bytecode, _SEARCH_ONCE, str(path), user, question)

    def imports(_: int) -> float:
        return _process(bytecode, "import pydantic, numpy")

    ours(0), imports(0)
    mine, theirs, ratio = versus(ours, imports, rounds)
    return {"ms": mine * 1e3, "imports_ms": theirs * 1e3, "ratio": 1 / ratio, "holds": 1 / ratio <= 2}


def small_store(path: Path) -> tuple[str, str]:
    """A store of a hundred events; its user and a question."""
    talk = Talk(seed=5, vocabulary=2000)
    with muniment.open(path) as mem:
        scope = fill_scope(mem, talk, "ana", 100, path.parent, 1)
    return scope.user, scope.questions[0]


# -- all of it ----------------------------------------------------------------------------------------


def recall_rows(scratch: Path, sizes: Sequence[int], total: int, rounds: int) -> dict[str, dict[str, Any]]:
    """Everything that is asked of the big store."""
    big, small, crowd, asked = scratch / "big.db", scratch / "small.db", sizes[1], ASKED
    start = time.perf_counter()
    scopes = build_store(big, sizes, total, asked)
    alone = build_store(small, [crowd], 2 * crowd, asked)[crowd]
    print(f"stores ready in {time.perf_counter() - start:,.0f} s", file=sys.stderr)
    rows: dict[str, dict[str, Any]] = {}
    for size, scope in scopes.items():
        rows[f"search, {size:,} in scope"] = measure_search(big, scope, 10 if size <= 1000 else 3)
    rows[f"search, {total:,} against {2 * crowd:,} in the file"] = measure_crowd(big, small, scopes[crowd], alone)
    for size, scope in scopes.items():
        rows[f"compose, {size:,} in scope"] = measure_compose(big, scope)
    talk = Talk(seed=13)
    for size, scope in scopes.items():
        rows[f"search after a write, {size:,} in scope"] = measure_after_write(big, scope, talk, 8 * rounds)
    for size, scope in scopes.items():
        cold = measure_start(big, scope.user, scope.questions[0], rounds + 2)
        rows[f"cold process, {size:,} in scope"] = {key: cold[key] for key in cold if key != "holds"}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--scratch", type=Path, help="a directory to keep the stores in")
    arguments = parser.parse_args()
    quick = arguments.quick
    sizes, total = ([1_000, 10_000], 50_000) if quick else ([1_000, 10_000, 100_000], 1_000_000)
    rounds = 3 if quick else 5
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="muniment-bench-") as folder:
        scratch = arguments.scratch or Path(folder)
        scratch.mkdir(parents=True, exist_ok=True)
        rows |= recall_rows(scratch, sizes, total, rounds)
        user, question = small_store(Path(folder) / "hundred.db")
        rows["cold process, small file"] = measure_start(Path(folder) / "hundred.db", user, question, 4 * rounds)
        rows["ingest, 1,000 a commit"] = measure_ingest(Path(folder), 5_000 if quick else 30_000, BATCH, rounds)
        rows["ingest, one commit each"] = measure_ingest(Path(folder), 500 if quick else 3_000, 1, rounds)
        embedded = measure_embedded(Path(folder), 5_000 if quick else 20_000, rounds)
        if embedded is not None:
            rows["ingest with vectors, 1,000 a commit"] = embedded
    report("compose", rows, {"quick": quick, "sizes": sizes, "total": total, "rounds": rounds})


if __name__ == "__main__":
    main()
