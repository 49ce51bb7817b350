"""Do other memories that need no hosted model find the evidence? Each in an environment of its own, on the same turns.

    python -m benchmarks.peers_recall                        every system on longmemeval, locomo and beam_100k
    python -m benchmarks.peers_recall --peers mem0 chroma    some of them
    python -m benchmarks.peers_recall --sets realtalk        on other sets of the pool
    python -m benchmarks.peers_recall --ranked FOLDER        where what each system ranked is written, a file a set

A system is installed with pinned versions (`benchmarks.peer_environments`) and driven by `benchmarks.peers_runner`; one
that cannot be had or fails is skipped, saying so. A turn is one memory, with its speaker's name where it has one.
Vectors are MiniLM's, made once for all in an environment of its own. `bm25_named` and `ours` are those of
`benchmarks.recall_pool`: ours by words alone, ranked by what was learnt on the other sets. `muniment` is the package as
it is shipped, driven like the others: its times may be compared, its ranking was learnt on these sets too.

Measured is what `benchmarks.recall_pool` measures: the share of gold turns among the first k and within a budget of
tokens; the sessions of the first turns, each in the place of its best turn: `any@5`, one that answers is among the
first five, which is what others publish on LongMemEval-S, and `all@5`, all are. `add_s` and `search_ms` are wall-clock
times without that of making vectors.

FOLDER/SET.jsonl.gz has a line a question and system: {set, scope, question, peer, version, ranked: [turn ids]}. What a
system of the same version ranked in an earlier run is taken from there, unless `--again` is said.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.data import POOL, Scope, Turn, default_data, pooled
from benchmarks.harness import report
from benchmarks.peer_environments import MINILM, PACKAGES, cache_directory, python_of, versions_of
from benchmarks.recall import index_of, mean, ours, plain
from benchmarks.recall_pool import Asked, Learnt, answered, changed, measure, shipped_digest
from muniment import __version__
from muniment.core.policy import RecallPolicy
from muniment.memory import ranking as recall_rank

HERE = Path(__file__).resolve().parent
SETS = ("longmemeval", "locomo", "beam_100k")
DEPTH = 60
"""How many turns a system is asked for."""
TEXTS_AT_ONCE = 256
SHIPPED = "muniment"
ENVIRONMENTS = {
    "mem0": "mem0",
    "mem0, its BM25": "mem0",
    "langgraph": "langgraph",
    "chroma": "chroma",
    "llamaindex": "llamaindex",
    "txtai": "txtai",
    "mempalace": "mempalace",
    "hindsight": "hindsight",
    SHIPPED: "",
}
"""Whose environment each system runs in; ours in this one."""
OURS = ("bm25_named", "ours")


class PeerFailedError(Exception):
    """A system cannot be had, or failed."""


class Ranking(NamedTuple):
    """What a system ranked on a set."""

    version: str
    ids: list[list[list[str]]]
    """Turn ids, best first, by scope and question."""
    add_s: float = 0.0
    search_ms: float = 0.0


# -- vectors ------------------------------------------------------------------------------------------


class MiniLm:
    """Vectors of texts, each made once and kept in the cache directory."""

    def __init__(self, cache: Path) -> None:
        python = python_of(MINILM, cache)
        if python is None:
            raise PeerFailedError("MiniLM cannot be had")
        self._python = python
        self._path = cache / "vectors.npz"
        self._process: subprocess.Popen[str] | None = None
        self._known: dict[str, Any] = {}
        if self._path.exists():
            with np.load(self._path) as held:
                self._known = dict(zip(held["names"].tolist(), held["rows"], strict=True))
        self._kept = len(self._known)

    def of(self, texts: Sequence[str]) -> bytes:
        names = [hashlib.sha256(text.encode()).hexdigest()[:32] for text in texts]
        new = sorted(
            {name: text for name, text in zip(names, texts, strict=True) if name not in self._known}.items(),
            key=lambda each: len(each[1]),
        )
        for start in range(0, len(new), TEXTS_AT_ONCE):
            batch = new[start : start + TEXTS_AT_ONCE]
            rows = self._make([text for _, text in batch])
            self._known.update(zip([name for name, _ in batch], rows, strict=True))
            self._keep()
        return np.array([self._known[name] for name in names], np.float32).tobytes()

    def _make(self, texts: Sequence[str]) -> Any:
        if self._process is None:
            command = [self._python, str(HERE / "peers_vectors.py")]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(texts) + "\n")
        self._process.stdin.flush()
        told = self._process.stdout.readline()
        if not told:
            raise PeerFailedError("MiniLM failed")
        return np.frombuffer(base64.b64decode(told), np.float32).reshape(len(texts), -1)

    def _keep(self, least: int = 1_000) -> None:
        if len(self._known) - self._kept < least:
            return
        beside = self._path.with_name("vectors.new.npz")
        np.savez(beside, names=np.array(list(self._known)), rows=np.array(list(self._known.values())))
        beside.replace(self._path)
        self._kept = len(self._known)

    def close(self) -> None:
        self._keep(1)
        if self._process is not None:
            self._process.communicate()


# -- a system in its environment ----------------------------------------------------------------------


class Peer:
    """A system that runs in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], vectors: MiniLm) -> None:
        self._process, self._vectors = process, vectors

    def ask(self, asked: Mapping[str, Any]) -> tuple[list[str], float]:
        """What it answers, and the seconds it took."""
        self._write(asked)
        while True:
            told = self._read()
            if "embed" not in told:
                break
            self._write({"vectors": base64.b64encode(self._vectors.of(told["embed"])).decode()})
        if "failed" in told:
            raise PeerFailedError(told["failed"])
        return told["ids"], told["seconds"]

    def _write(self, told: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise PeerFailedError("it ended without an answer")
        told: dict[str, Any] = json.loads(line)
        return told


@contextmanager
def running(name: str, python: str, vectors: MiniLm) -> Iterator[Peer]:
    with tempfile.TemporaryDirectory(prefix="muniment-peer-") as folder:
        command = [python, str(HERE / "peers_runner.py"), name, folder]
        pipe = subprocess.PIPE
        paths = {"PYTHONPATH": str(HERE.parent / "src")} if name == SHIPPED else {}
        settings = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | paths
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=folder, env=settings) as process:
            try:
                yield Peer(process, vectors)
            finally:
                process.kill()


def version_of(name: str, cache: Path) -> str:
    """The version of a system, once its environment is there."""
    home = ENVIRONMENTS[name]
    if not home:
        return f"muniment {__version__}"
    python = python_of(home, cache)
    if python is None:
        raise PeerFailedError("it cannot be installed")
    main = PACKAGES[home][0].partition("==")[0]
    return f"{main} {versions_of(python)[main]}"


def ranked_by(name: str, scopes: Sequence[Scope], cache: Path, vectors: MiniLm) -> Ranking:
    """What a system ranks for every question of a set."""
    version = version_of(name, cache)
    home = ENVIRONMENTS[name]
    python = (python_of(home, cache) if home else None) or sys.executable
    vectors.of([question.text for scope in scopes for question in scope.questions])  # all at once
    added, times, ids = 0.0, [], []
    with running(name, python, vectors) as peer:
        for scope in scopes:
            added += peer.ask({"add": [_told(turn) for turn in scope.turns], "scope": scope.name})[1]
            each = []
            for question in scope.questions:
                found, spent = peer.ask({"search": question.text, "scope": scope.name, "k": DEPTH})
                each.append(found)
                times.append(spent * 1e3)
            ids.append(each)
    return Ranking(version, ids, round(added, 2), round(statistics.median(times), 2))


def _told(turn: Turn) -> dict[str, str]:
    return {
        "id": turn.id,
        "session": turn.session,
        "speaker": turn.speaker,
        "role": turn.role,
        "ts": turn.said_at.isoformat(),
        "text": turn.text,
    }


# -- what was ranked ----------------------------------------------------------------------------------


def write_ranked(path: Path, name: str, scopes: Sequence[Scope], made: Mapping[str, Ranking]) -> None:
    """A line for every question of every system; what other runs wrote of other systems stays."""
    rows = [row for row in read_ranked(path) if row["peer"] not in made] if path.exists() else []
    for peer, ranking in made.items():
        for scope, each in zip(scopes, ranking.ids, strict=True):
            for question, ids in zip(scope.questions, each, strict=True):
                rows.append(
                    {
                        "set": name,
                        "scope": scope.name,
                        "question": question.text,
                        "peer": peer,
                        "version": ranking.version,
                        "ranked": ids,
                        "add_s": ranking.add_s,
                        "search_ms": ranking.search_ms,
                    }
                )
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        for row in rows:
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_ranked(path: Path) -> list[dict[str, Any]]:
    """What was ranked, as `write_ranked` wrote it."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def ranked_before(path: Path, peer: str, version: str, scopes: Sequence[Scope]) -> Ranking | None:
    """What a system of this version ranked in an earlier run, if it ranked for every question of the set."""
    rows = [row for row in read_ranked(path) if row["peer"] == peer] if path.exists() else []
    asked = [(scope.name, question.text) for scope in scopes for question in scope.questions]
    if [(row["scope"], row["question"]) for row in rows] != asked or {row["version"] for row in rows} != {version}:
        return None
    left = iter(row["ranked"] for row in rows)
    ids = [[next(left) for _ in scope.questions] for scope in scopes]
    return Ranking(version, ids, rows[0].get("add_s", 0.0), rows[0].get("search_ms", 0.0))


def ours_on(name: str, scopes: Sequence[Scope], learnt: Learnt) -> dict[str, Ranking]:
    """Plain BM25, and ours ranked by what was learnt on the other sets."""
    made = learnt.without(name)
    policy = RecallPolicy(ranking=shipped_digest())
    found: dict[str, list[list[list[str]]]] = {system: [] for system in OURS}
    for scope in scopes:
        with changed(((recall_rank, "ranking", lambda _name: made),)):
            searches = plain(scope.turns, named=True), ours(scope.turns, policy, index_of(scope.turns))
            for system, search in zip(OURS, searches, strict=True):
                found[system].append(
                    [[scope.turns[at].id for at in search(question)[:DEPTH]] for question in scope.questions]
                )
    return {system: Ranking("", ids) for system, ids in found.items()}


def measured(name: str, scopes: Sequence[Scope], ranking: Ranking) -> dict[str, Any]:
    """The figures of one system on one set."""
    places = [{turn.id: at for at, turn in enumerate(scope.turns)} for scope in scopes]
    found = [[[known[id_] for id_ in ids] for ids in each] for known, each in zip(places, ranking.ids, strict=True)]
    row = measure(name, scopes, found)
    row |= session_recall([each for group in answered(scopes, found) for each in group])
    row |= {key: getattr(ranking, key) for key in ("version", "add_s", "search_ms") if getattr(ranking, key)}
    return row


def session_recall(asked: Sequence[Asked]) -> dict[str, float]:
    """Is one of the sessions that answer among the first five, and are all?"""
    first = [(each.gold_sessions, set(each.sessions[:5])) for each in asked]
    return {
        "sessions_any@5": mean(float(bool(gold & got)) for gold, got in first),
        "sessions_all@5": mean(float(gold <= got) for gold, got in first),
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--sets", nargs="*", choices=POOL, default=SETS)
    parser.add_argument("--peers", nargs="*", choices=tuple(ENVIRONMENTS), default=tuple(ENVIRONMENTS))
    parser.add_argument("--cache", type=Path, default=cache_directory(), help="where environments and vectors are kept")
    parser.add_argument("--ranked", type=Path, help="a folder for what was ranked; in the cache unless told")
    parser.add_argument("--again", action="store_true", help="rank anew what was ranked before by the same version")
    parser.add_argument("--no-ours", action="store_true", help="rank only, and write no result")
    options = parser.parse_args(argv)
    if not (options.data / "retrieval").exists():
        sys.exit(f"no data at {options.data}: nothing was measured")
    cache = options.cache.resolve()
    cache.mkdir(parents=True, exist_ok=True)
    folder = options.ranked or cache / "ranked"
    made: dict[str, dict[str, Ranking]] = {name: {} for name in options.sets}
    held = {name: pooled(options.data, name) for name in options.sets}
    vectors = MiniLm(cache)
    for name, scopes in held.items():
        for peer in options.peers:
            path = folder / f"{name}.jsonl.gz"
            try:
                before = None if options.again else ranked_before(path, peer, version_of(peer, cache), scopes)
                made[name][peer] = before or ranked_by(peer, scopes, cache, vectors)
            except PeerFailedError as failure:
                print(f"SKIPPED: {peer} on {name}: {failure}", file=sys.stderr)
                continue
            if before is None:
                write_ranked(path, name, scopes, {peer: made[name][peer]})
            print(f"{peer} ranked {name}{' before' if before else ''}", file=sys.stderr)
    vectors.close()
    if options.no_ours:
        return
    learnt = Learnt(options.data, None, {})
    rows: dict[str, dict[str, Any]] = {}
    for name, scopes in held.items():
        for system, ranking in (ours_on(name, scopes, learnt) | made[name]).items():
            rows[f"{name} {system}"] = measured(name, scopes, ranking)
    told = {
        "sets": list(options.sets),
        "depth": DEPTH,
        "packages": {name: list(each) for name, each in PACKAGES.items()},
    }
    report("peers_recall", rows, told)


if __name__ == "__main__":
    main()
