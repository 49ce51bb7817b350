"""The main job as a user meets it: are the turns an answer needs in the prompt, word for word, within the budget?

    python -m benchmarks.prompts [--data DIR] [--embedder e5-small] [--max-tokens 1024]
                                 [--questions 100] [--sets locomo,realtalk,…] [--file NAME]

Rows `words alone` and `with …`: all of LoCoMo through the public face, every question composed for a responder.
`in_text` is the share of gold turns that the packet quotes whole, `search_R@10` that of `run.search`.
Rows `set …`: a sample of every development set, explained in `benchmarks.prompt_sets`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import muniment
from benchmarks.data import POOL, Scope, default_data, locomo
from benchmarks.harness import report
from benchmarks.prompt_sets import measure_set, quotes_of


def tell(mem: muniment.Memory, scope: Scope) -> dict[str, str]:
    """Observe a conversation, session by session; turn id → event id."""
    ids: dict[str, str] = {}
    sessions: dict[str, list[Any]] = {}
    for turn in scope.turns:
        sessions.setdefault(turn.session, []).append(turn)
    for name, turns in sessions.items():
        run = mem.run(user_id="user", session_id=f"session-{name}")
        events = [
            {"role": turn.role, "speaker": turn.speaker, "content": turn.text, "ts": turn.said_at} for turn in turns
        ]
        for turn, entry in zip(turns, run.observe_many(events), strict=True):
            ids[turn.id] = entry.id
    return ids


def measure(scopes: list[Scope], embedder: str | None, max_tokens: int) -> dict[str, Any]:
    rows: list[tuple[str, str, float, float]] = []
    tokens_max, times = 0, []
    for scope in scopes:
        with muniment.open(":memory:", embedder=embedder) as mem:
            ids = tell(mem, scope)
            texts = {turn.id: turn.text for turn in scope.turns}
            run = mem.run(user_id="user", session_id="asking")
            for question in scope.questions:
                if question.kind == "5":
                    continue
                start = perf_counter()
                build = run.compose("responder", query=question.text, max_tokens=max_tokens, now=question.now)
                times.append(perf_counter() - start)
                tokens_max = max(tokens_max, build.tokens)
                hits = {hit.id for hit in run.search(question.text, k=10, now=question.now)}
                quotes = quotes_of(build)
                told = sum(texts[gold].strip() in quotes.get(ids[gold], "") for gold in question.gold)
                found = sum(ids[gold] in hits for gold in question.gold) / len(question.gold)
                rows.append((scope.name, question.kind, told / len(question.gold), found))
    by_scope = [statistics.fmean(row[2] for row in rows if row[0] == scope.name) for scope in scopes]
    several = [row for row in rows if row[1] == "1"]
    return {
        "questions": len(rows),
        "in_text": round(statistics.fmean(row[2] for row in rows), 4),
        "cat1_in_text": round(statistics.fmean(row[2] for row in several), 4),
        "search_R@10": round(statistics.fmean(row[3] for row in rows), 4),
        "cat1_search_R@10": round(statistics.fmean(row[3] for row in several), 4),
        "spread": [round(min(by_scope), 4), round(max(by_scope), 4)],
        "tokens_max": tokens_max,
        "compose_p50_ms": round(statistics.median(times) * 1e3, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--embedder", action="append", default=[])
    parser.add_argument("--max-tokens", type=int, default=1024)
    parser.add_argument("--questions", type=int, default=100, help="questions of each set; 0: LoCoMo alone")
    parser.add_argument("--sets", default=",".join(POOL), help="which of the sets, comma-separated")
    parser.add_argument("--file", default="", help="the name of the result file, where it is not this benchmark's own")
    arguments = parser.parse_args()
    if not (arguments.data / "locomo_dev3.json").exists():
        sys.exit(f"no data at {arguments.data}: nothing was measured")
    scopes = locomo(arguments.data)
    rows = {"words alone": measure(scopes, None, arguments.max_tokens)}
    for name in arguments.embedder:
        rows[f"with {name}"] = measure(scopes, name, arguments.max_tokens)
    for name in filter(None, arguments.sets.split(",")) if arguments.questions else ():
        rows[f"set {name}"] = measure_set(arguments.data, name, arguments.questions)
    told = {"max_tokens": arguments.max_tokens, "embedders": arguments.embedder, "questions": arguments.questions}
    report("prompts", rows, told, arguments.file)


if __name__ == "__main__":
    main()
