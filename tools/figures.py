"""Fill the figures of README.md and the guides from committed benchmark results: no figure stands there unmeasured.

python tools/figures.py            rewrite the blocks between <!-- figures:NAME --> marks
python tools/figures.py --check    fail where a block differs from its result file
"""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from figures_learning import learning_fresh, learning_model, rules_advance
from figures_scale import scale, scale_drawing, scale_far, scale_model, scale_sqlite

ROOT = Path(__file__).parent.parent
PAGES = (
    "README.md",
    "docs/figures.md",
    "docs/recall.md",
    "docs/guides/library.md",
    "docs/peers.md",
    "docs/guides/research.md",
    "docs/guides/multi-tenant-server.md",
    "docs/guides/proxy.md",
    "docs/guides/coding-agents.md",
    "docs/guides/learning.md",
    "docs/guides/bulk.md",
    "docs/guides/rules.md",
)
BLOCK = re.compile(r"(<!-- figures:(\w+) -->\n)(.*?)(<!-- /figures:\2 -->)", re.DOTALL)


def ledger(results: dict[str, dict[str, Any]]) -> list[str]:
    lines = ["| | muniment | bare | ratio |", "|---|---|---|---|"]
    for name in ("sqlite, 1,000 a commit", "sqlite, one commit each", "postgresql, 1,000 a commit"):
        row = results[name]
        lines.append(
            f"| {name} | {row['events_per_s']:,.0f} events/s | {row['reference_per_s']:,.0f} | {row['ratio']:.2f} |"
        )
    shared, points, export = results["sqlite, four processes"], results["point reads"], results["export"]
    lines += [
        "",
        f"Four processes on one SQLite file reach {shared['ratio']:.2f} × one process ({shared['lost']} events lost,"
        f" {shared['errors']} errors). A point read among {points['large']:,} events takes {points['slower_by']:.2f} ×"
        f" one among {points['small']:,}. Exporting {export['whole_lines']:,} lines grows the process by"
        f" {export['whole_grown_mb']:.0f} MB (a tenth of them: {export['tenth_grown_mb']:.0f} MB).",
    ]
    return lines


def compaction(results: dict[str, dict[str, Any]]) -> list[str]:
    resumed = next(row for name, row in results.items() if name.startswith("resume at 100,000 events"))
    longer = next(row for name, row in results.items() if " against " in name)
    further = next(row for name, row in results.items() if name.startswith("a further snapshot at 1,000 claims"))
    added, whole = further["added_bytes"] / 1024, further["document_bytes"] / 1024
    return [
        "Taking up a run of 100,000 events with 1,000 claims from its snapshot is"
        f" {resumed['times_faster']:.0f} × as fast as replaying its ledger; at 1,000,000 events it takes"
        f" {longer['ratio']:.2f} × as long as at 10,000. A further snapshot adds {added:.0f} KB to a document of"
        f" {whole:.0f} KB (`python -m benchmarks.compaction`).",
    ]


def compose(results: dict[str, dict[str, Any]]) -> list[str]:
    """Speed by the size of the scope, each against what the same run measured beside it."""
    lines = [
        "| turns of one user | search | ÷ FTS5 over the same text and filters | packet | ÷ search"
        " | first search of a process ÷ its imports |",
        "|---|---|---|---|---|---|",
    ]
    for size in ("1,000", "10,000", "100,000"):
        found, made, cold = (results[f"{kind}, {size} in scope"] for kind in ("search", "compose", "cold process"))
        lines.append(
            f"| {size} | {found['p50_ms']:.1f} ms | {found['ratio']:.2f} | {made['p50_ms']:.1f} ms"
            f" | {made['ratio']:.1f} | {cold['ratio']:.2f} |"
        )
    many, one = results["ingest, 1,000 a commit"], results["ingest, one commit each"]
    crowded = results["search, 1,000,000 against 20,000 in the file"]
    lines += [
        "",
        f"A search takes {crowded['ratio']:.2f} × as long where the file holds 1,000,000 turns of many users instead of"
        f" 20,000. Taken in and indexed: {many['items_per_s']:,.0f} turns a second 1,000 a commit ({many['ratio']:.3f}"
        f" of FTS5's), {one['items_per_s']:,.0f} one by one ({one['ratio']:.3f}).",
    ]
    return lines


def verify_support(results: dict[str, dict[str, Any]]) -> list[str]:
    held = [row for row in results.values() if row.get("fitted") is False]
    mean = sum(row["balanced_accuracy"] for row in held) / len(held)
    least, most = (choose(row["balanced_accuracy"] for row in held) for choose in (min, max))
    passed = results["swaps, held out"]["false_supported"]
    return [
        f"The fact checker, with no model, decides {mean:.2f} of the outputs of {len(held)} held-out sets rightly"
        f" (balanced accuracy at one threshold, by set {least:.2f} to {most:.2f}); of true claims with one slot swapped"
        f" {passed:.2f} pass (`python -m benchmarks.verify_support`).",
    ]


def research(results: dict[str, dict[str, Any]]) -> list[str]:
    packs, laundered = results["a run for each report"], results["laundered citations"]
    judge, overlap = results["wice support, the judge"], results["wice support, unigram overlap"]
    whole = {name: row for name, row in results.items() if name.endswith("every claim checked")}
    big = max((row for row in whole.values() if "mb" in row), key=lambda row: row["mb"])
    growth = next(row for name, row in whole.items() if " against " in name)
    capped = next(row for name, row in results.items() if name == f"{big['mb']:.0f} MB, 400 claims an output")
    return [
        f"Of {packs['runs']} real reports ({packs['kb_in']:,.0f} KB) the summaries keep {packs['kb_out']:,.0f} KB;"
        f" {packs['over_a_limit']} are over a limit. With pages made up for their sources, {laundered['recall']:.2f} of"
        f" the citations that do not bear their sentence are flagged and {laundered['borne_kept']:.2f} of those that do"
        f" are kept (AUC {laundered['auc']:.2f}; overlap of words alone reaches {laundered['auc_unigrams']:.2f} on such"
        f" pages). On real pages (WiCE, development data) confidence ranks supported claims with an AUC of"
        f" {judge['auc']:.2f}, overlap of words with {overlap['auc']:.2f}; what is not supported at all, overlap tells"
        f" better ({overlap['auc_against_none']:.2f} against {judge['auc_against_none']:.2f}). {big['mb']:.0f} MB of"
        f" outputs with {big['sources']:,} sources take {big['total_s']:.0f} s of CPU up to the pack with all of"
        f" {big['claims_checked']:,} claims checked, {growth['s_a_mb_ratio']:.2f} × as much a megabyte as an eighth of"
        f" it, and {capped['total_s']:.0f} s with 400 an output, the default (`python -m benchmarks.research`)."
    ]


def recall(results: dict[str, dict[str, Any]]) -> list[str]:
    """Two more languages, ours beside plain BM25."""
    told = []
    for shown, name in (("XQuAD in Chinese", "xquad_zh"), ("KLUE in Korean", "klue_ko")):
        ours, plain = (results[f"{name} {system}"]["R@1"] for system in ("ours", "bm25"))
        told.append(f"{ours:.3f} of {shown} (BM25 {plain:.3f})")
    return [
        f"The right text is first for {' and '.join(told)} (`python -m benchmarks.recall`). Both sets were used while"
        " developing the tokenizer."
    ]


POOL = (
    ("LoCoMo", "locomo"),
    ("REALTALK", "realtalk"),
    ("LongMemEval, full text", "longmemeval"),
    ("BEAM 100K", "beam_100k"),
    ("BEAM 500K", "beam_500k"),
    ("QMSum", "qmsum"),
    ("MADial", "madial"),
    ("FriendsQA", "friendsqa"),
    ("PrefEval", "prefeval"),
    ("MemDaily", "memdaily"),
    ("RealMem, sessions", "realmem"),
    ("FactConsolidation", "factconsolidation"),
    ("BFCL", "bfcl_memory"),
)
"""The sets of `benchmarks.recall_pool`, as they are shown."""
POOL_SIDES = ("bm25_named", "recipe", "ours")
POOL_SYSTEMS = (
    ("BM25", "bm25"),
    ("BM25, named", "bm25_named"),
    ("recipe", "recipe"),
    ("before", "before"),
    ("muniment", "ours"),
    ("shipped", "shipped"),
)


def recall_pool(results: dict[str, dict[str, Any]]) -> list[str]:
    """Every set and system, then what changed, then what each part brings."""
    sets = [(shown, name) for shown, name in POOL if f"{name} ours" in results]
    systems = [(shown, name) for shown, name in POOL_SYSTEMS if f"{sets[0][1]} {name}" in results]
    head = " | ".join(shown for shown, _ in systems)
    lines: list[str] = []
    for title, key in (
        ("R@10", "R@10"),
        ("In 1,024 tokens", "in_1024"),
    ):
        lines += [f"**{title}**", "", f"| | questions | {head} |", "|---|---|" + "---|" * len(systems)]
        for shown, name in (*sets, ("mean of those with gold turns, the two easy ones aside", "mean")):
            row = results.get(f"{name} ours", {})
            if key in row:
                cells = " | ".join(_pool_cell(results, name, system, key) for _, system in systems)
                lines.append(f"| {shown} | {row.get('questions', '')} | {cells} |")
        lines.append("")
    lines += ["**What changed, and sessions**", "", f"| | questions | {head} |", "|---|---|" + "---|" * len(systems)]
    asked = (
        ("newest above stale", "newest_above_stale", "updated"),
        ("stale first", "stale_first", "updated"),
        ("sessions, any of them in 5", "sessions_any@5", "questions"),
        ("sessions, all of them in 5", "sessions_all@5", "questions"),
    )
    for shown, name in sets:
        for told, key, count in asked:
            if key in results[f"{name} ours"]:
                cells = " | ".join(f"{results[f'{name} {system}'][key]:.3f}" for _, system in systems)
                lines.append(f"| {shown}: {told} | {results[f'{name} ours'][count]} | {cells} |")
    return lines


def recall_drawing(results: dict[str, dict[str, Any]]) -> str:
    """R@10 of each dataset as three bars: keyword search, the baseline recipe, muniment."""
    sides = tuple(
        zip(POOL_SIDES, ("#b8c0c8", "#7d8a97", "#b3423a"), ("keyword search", "recipe", "muniment"), strict=True)
    )
    rows = [(shown, name) for shown, name in POOL if f"{name} ours" in results]
    left, top, row, width = 190, 64, 30, 760
    height, ink = top + row * len(rows) + 20, 'fill="#1f2933"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' role="img" aria-labelledby="title" font-family="system-ui, sans-serif" font-size="12">',
        '<title id="title">Recall at ten by dataset: keyword search, the baseline recipe, muniment</title>',
        f'<rect width="{width}" height="{height}" rx="10" fill="#fbfaf6"/>',
        f'<text x="{left}" y="26" font-size="14" font-weight="600" {ink}>Answering turns among the first ten</text>',
    ]
    for at, (_, colour, shown) in enumerate(sides):
        x = left + 140 * at
        parts += [
            f'<rect x="{x}" y="38" width="10" height="10" fill="{colour}"/>',
            f'<text x="{x + 16}" y="47" {ink}>{shown}</text>',
        ]
    for at, (shown, name) in enumerate(rows):
        y = top + row * at
        parts.append(f'<text x="{left - 10}" y="{y + 16}" text-anchor="end" {ink}>{shown}</text>')
        for bar, (side, colour, _) in enumerate(sides):
            value = results[f"{name} {side}"]["R@10"]
            length = value * (width - left - 60)
            parts.append(f'<rect x="{left}" y="{y + 8 * bar}" width="{length:.0f}" height="7" fill="{colour}"/>')
            if side == "ours":
                parts.append(f'<text x="{left + length + 6:.0f}" y="{y + 24}" fill="{colour}">{value:.2f}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _pool_cell(results: dict[str, dict[str, Any]], name: str, system: str, key: str) -> str:
    """A figure; R@10 before and after with the deviation over scopes and 95 % of a bootstrap over scopes."""
    row = results[f"{name} {system}"]
    if key != "R@10" or "interval" not in row or system not in ("before", "ours"):
        return f"{row[key]:.3f}"
    low, high = row["interval"]
    return f"{row[key]:.3f} (sd {row['sd']:.3f}; {low:.3f}–{high:.3f})"


def recall_pool_vectors(results: dict[str, dict[str, Any]]) -> list[str]:
    """What vectors bring on the same scopes: by words alone, and with them."""
    words = results_of("recall_pool_words")
    keys = ("R@5", "R@10", "in_256", "in_512", "in_1024", "newest_above_stale")
    lines = [
        "| words → with vectors | questions | R@5 | R@10 | in 256 | in 512 | in 1,024 | newest above stale |",
        "|---|---|" + "---|" * len(keys),
    ]
    for shown, name in (*POOL, ("mean", "mean")):
        mine = f"{name} ours"
        if mine in results:
            cells = [
                f"{words[mine][key]:.3f} → {results[mine][key]:.3f}" if key in results[mine] else "" for key in keys
            ]
            lines.append(f"| {shown} | {results[mine].get('questions', '')} | " + " | ".join(cells) + " |")
    return lines


def learn_evidence(results: dict[str, dict[str, Any]]) -> list[str]:
    """How well a hit's chance is said, by words alone, on each set when it was left out."""
    lines = [
        "| | hits that are evidence | AUC | error | first said | first is | of ten | kept | unanswerable, AUC |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for shown, name in POOL:
        row = results.get(f"words, {name} left out")
        if row is not None:
            keys = ("base_rate", "auc", "ece", "first_said", "first_is", "precision", "precision_kept")
            abstain = f"{row['abstain_auc']:.3f}" if "abstain_auc" in row else ""
            lines.append(f"| {shown} | " + " | ".join(f"{row[key]:.3f}" for key in keys) + f" | {abstain} |")
    return lines


def prompts(results: dict[str, dict[str, Any]]) -> list[str]:
    words, minilm = results["words alone"], results["with minilm"]
    return [
        f"In a prompt of 1,024 tokens for a responder, {words['in_text']:.3f} of the turns that LoCoMo's questions need"
        f" stand word for word, cited; with MiniLM vectors {minilm['in_text']:.3f}."
    ]


def serve(results: dict[str, dict[str, Any]]) -> list[str]:
    mixed = next(row for name, row in results.items() if name.startswith("mixed load"))
    every, soak = results["all calls over HTTP"], results["soak, resident memory last over first"]
    lines = [
        f"| mixed load | {mixed['per_s']:,.0f} calls a second, {mixed['ratio']:.2f} × the library in-process |",
        f"| the slow ones | p50 {every['p50_ms']:.0f} ms, p99 {every['p99_ms']:.0f} ms: {every['tail']:.1f} × |",
        f"| {soak['seconds']:,} s of soak, {soak['calls']:,} calls | {soak['first_mb']:.0f} MB at first, "
        f"{soak['last_mb']:.0f} MB at last: {soak['ratio']:.2f} × |",
    ]
    for kind in ("compose", "search", "observe"):
        row = results[f"{kind}, one caller"]
        lines.append(
            f"| {kind}, one caller | {row['p50_ms']:.1f} ms against {row['library_p50_ms']:.1f} ms in-process |"
        )
    return ["| | |", "|---|---|", *lines]


TRACKS = (("τ-bench, airline", "tau"), ("coding agent", "coding"), ("ALFWorld", "alfworld"), ("Who&When", "whowhen"))
"""The sources of `benchmarks.trajectories`."""
TRACK_SYSTEMS = (
    ("BM25", "bm25"),
    ("wordllama", "wordllama"),
    ("MiniLM", "minilm"),
    ("muniment before", "before"),
    ("muniment", "ours"),
)


def trajectories(results: dict[str, dict[str, Any]]) -> list[str]:
    """R@1 / R@5 of every source and system, then what a planner's packets hold."""
    systems = [(shown, name) for shown, name in TRACK_SYSTEMS if f"tau {name}" in results]
    head = " | ".join(shown for shown, _ in systems)
    lines = [f"| first, and first five | questions | {head} |", "|---|---|" + "---|" * len(systems)]
    for shown, source in TRACKS:
        rows = [results[f"{source} {name}"] for _, name in systems]
        cells = [f"{row['R@1']:.2f}, {row['R@5']:.2f}" for row in rows]
        low, high = rows[-1]["interval"]
        cells[-1] += f" ({low:.2f}–{high:.2f})"
        lines.append(f"| {shown} | {rows[-1]['questions']} | {' | '.join(cells)} |")
    lines += ["", f"| in 512 tokens, and in 1,024 | questions | {head} |", "|---|---|" + "---|" * len(systems)]
    for shown, source in TRACKS:
        rows = [results[f"{source} {name}"] for _, name in systems]
        cells = [f"{row['planner_512']:.2f}, {row['planner_1024']:.2f}" for row in rows]
        lines.append(f"| {shown} | {rows[-1]['questions']} | {' | '.join(cells)} |")
    return lines


PEERS = (
    ("BM25", "bm25_named"),
    ("mem0, infer off", "mem0"),
    ("mem0, its BM25", "mem0, its BM25"),
    ("LangGraph, LangMem", "langgraph"),
    ("chroma", "chroma"),
    ("LlamaIndex", "llamaindex"),
    ("txtai, hybrid", "txtai"),
    ("MemPalace", "mempalace"),
    ("Hindsight, no model", "hindsight"),
    ("muniment", "ours"),
    ("muniment, as shipped", "muniment"),
)
"""The systems of `benchmarks.peers_recall`, as they are shown."""


def peers_recall(results: dict[str, dict[str, Any]]) -> list[str]:
    """Every set and system: turns, sessions, and, where all were timed, the seconds that it took."""
    lines: list[str] = []
    for shown, name in POOL:
        rows = [(title, results[f"{name} {key}"]) for title, key in PEERS if f"{name} {key}" in results]
        if not rows:
            continue
        has_times = all("add_s" in row for _, row in rows if "version" in row)
        times = " add, s | search, ms |" if has_times else ""
        lines += [
            f"**{shown}**, {rows[0][1]['questions']} questions",
            "",
            f"| | version | R@5 | R@10 | in 512 | in 1,024 | sessions any@5 | all@5 |{times}",
            "|---|---|---|---|---|---|---|---|" + ("---|---|" if has_times else ""),
        ]
        for title, row in rows:
            keys = ("R@5", "R@10", "in_512", "in_1024", "sessions_any@5", "sessions_all@5")
            cells = [row.get("version", "").rpartition(" ")[2], *(f"{row[key]:.3f}" for key in keys)]
            if has_times:
                cells += [f"{row[key]:.1f}" if key in row else "" for key in ("add_s", "search_ms")]
            lines.append(f"| {title} | {' | '.join(cells)} |")
        lines.append("")
    return lines[:-1]


ANSWERS_MODEL = "qwen2.5-coder-1.5b"


def proxy(results: dict[str, dict[str, Any]]) -> list[str]:
    """What the proxy adds to a request, against the same request asked directly in the same run."""
    named = {
        "passed": "passes through (embeddings)",
        "first": "a question in a new session",
        "turns": "a turn of a chat",
        "stream": "a turn, streamed",
    }
    head = "| | direct, p50 / p99 ms | through the proxy | added | bytes unchanged: request, answer |"
    lines = [head, "|---|---|---|---|---|"]
    for name, words in named.items():
        row = results[name]
        shown = [
            f"{row[f'{side}_p50_ms']:,.1f} / {row[f'{side}_p99_ms']:,.1f}" for side in ("direct", "proxy", "added")
        ]
        kept = f"{row['request_bytes_unchanged']:.0%}, {row['answer_bytes_unchanged']:.0%}"
        lines.append(f"| {words} | {shown[0]} | {shown[1]} | {shown[2]} | {kept} |")
    return lines


def hooks(results: dict[str, dict[str, Any]]) -> list[str]:
    """What the hooks of a coding agent cost, against opening the store for a tool's result."""
    named = {
        "python": "the interpreter, doing nothing",
        "tool": "a tool's result",
        "answer": "the end of a turn (what writes it costs as much as the last line, apart)",
        "start": "the start of a session",
        "prompt": "a prompt",
        "at_once": "a tool's result, if the store were opened for it",
    }
    lines = ["| | processor, s |", "|---|---|"]
    return [*lines, *(f"| {words} | {results[name]['cpu_s']:.2f} |" for name, words in named.items())]


def readme(results: dict[str, dict[str, Any]]) -> list[str]:
    """Four figures of the first page, each with the simplest alternative and a place where it loses."""
    arms = ("ours 256", "ours 512", "bm25 1024", "gold")
    answers = {arm: results_of("answers")[f"{ANSWERS_MODEL}, judging: locomo, {arm}"] for arm in arms}
    ours_256, ours_512, bm25, gold = (f"{answers[arm]['f1']:.2f}" for arm in arms)
    puzzles = {arm: results_of("learning_model")[f"second half: {arm}"] for arm in ("lessons", "none", "last five")}
    lessons, none, last_five = (f"{row['pass_rate']:.2f}" for row in puzzles.values())
    speed = results_of("speed")
    one, packet = speed["observe one by one"], speed["compose after a write, 10,000 events"]
    bare, recipe, ours = (f"{results[f'mean {side}']['R@10']:.2f}" for side in POOL_SIDES)
    _, lost_to, lost = (f"{results[f'realmem {side}']['R@10']:.2f}" for side in POOL_SIDES)
    rows = (
        (
            "Turns that answer a question, found among the first ten; mean of ten datasets, no model",
            "recall_pool",
            f"**{ours}**",
            f"keyword search {bare}, with stems and neighbouring turns {recipe}. It loses on RealMem: {lost} against"
            f" {lost_to}",
        ),
        (
            f"Token F1 of a 1.5B model's answers to {answers['gold']['questions']} questions of LoCoMo, version 0.1",
            "answers",
            f"**{ours_256}** with 256 tokens, **{ours_512}** with 512",
            f"{bm25} with 1,024 tokens of keyword search, {gold} with only the right turns",
        ),
        (
            f"{puzzles['none']['runs']} tool puzzles with misleading documentation, passed by that model, version 0.1",
            "learning_model",
            f"**{lessons}**",
            f"{none} without memory; its last five passes in the prompt do as well: {last_five}",
        ),
        (
            "Writing one message, hashed and indexed",
            "speed",
            f"**{one['ms_per_event']:.2f} ms**, **{one['bytes_per_event']:.0f} bytes**",
            f"{one['of_bare']:.2f} × the rate of a bare full-text insert. A packet after a write takes"
            f" {packet['ms']:.0f} ms, {packet['ratio']:.1f} × as long as in version 0.1",
        ),
    )
    head = ["| measured | muniment | compared with |", "|---|---|---|"]
    return [*head, *(f"| {what} (`benchmarks.{name}`) | {got} | {other} |" for what, name, got, other in rows)]


COST_ARMS = (
    ("a, behind the prompt", "a: behind the system prompt", "#b8c0c8"),
    ("b, before the question", "b: before the question", "#7d8a97"),
    ("c, stable head", "c: stable head and a small packet", "#c9a24b"),
    ("d, append-only", "d: append-only (default)", "#b3423a"),
)
COST_SETS = (
    ("truth", "labelled stores"),
    ("longmemeval", "LongMemEval"),
    ("beam_100k", "BEAM 100K"),
    ("locomo", "LoCoMo"),
    ("realtalk", "REALTALK"),
    ("tools", "tool runs"),
)


def cost(results: dict[str, dict[str, Any]]) -> list[str]:
    """What memory costs by arm: billed input against no memory under each rule, and what was needed and there."""
    lines = [
        "| | turns | | OpenAI | Anthropic | Anthropic, 1,024 | Google | DeepSeek | repeated | needed there |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    names = ("openai", "anthropic", "anthropic-1024", "google", "deepseek")
    for name, shown in COST_SETS:
        for length in (20, 40, 100):
            for arm, words, _ in COST_ARMS:
                row = results.get(f"{name}, {length}, {arm}")
                if row is None:
                    continue
                prices = " | ".join(f"{row[rule][0]:.2f}" for rule in names)
                if arm.startswith("d"):
                    prices = " | ".join("{:.2f} ({:.2f}–{:.2f})".format(*row[rule]) for rule in names)
                needed = "{:.2f} ({:.2f}–{:.2f})".format(*row["present"]) if "present" in row else ""
                lines.append(f"| {shown} | {length} | {words} | {prices} | {row['repeated'][0]:.2f} | {needed} |")
    return lines


def cost_drawing(results: dict[str, dict[str, Any]]) -> str:
    """Billed input of forty turns against no memory, by set and arm, under OpenAI's rule."""
    left, top, row, width, most = 150, 84, 58, 760, 10.0
    height, ink = top + row * len(COST_SETS) + 16, 'fill="#1f2933"'
    title = "Billed input of 40 turns, as a multiple of the same chat without memory (rule of OpenAI)"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' role="img" aria-labelledby="title" font-family="system-ui, sans-serif" font-size="12">',
        f'<title id="title">{title}</title>',
        f'<rect width="{width}" height="{height}" rx="10" fill="#fbfaf6"/>',
        f'<text x="24" y="26" font-size="14" font-weight="600" {ink}>{title}</text>',
    ]
    for at, (_, shown, colour) in enumerate(COST_ARMS):
        x, y = 24 + 330 * (at % 2), 40 + 18 * (at // 2)
        parts += [
            f'<rect x="{x}" y="{y}" width="10" height="10" fill="{colour}"/>',
            f'<text x="{x + 16}" y="{y + 9}" {ink}>{shown}</text>',
        ]
    scale = (width - left - 70) / most
    for at, (name, shown) in enumerate(COST_SETS):
        y = top + row * at
        parts.append(f'<text x="{left - 10}" y="{y + 28}" text-anchor="end" {ink}>{shown}</text>')
        for bar, (arm, _, colour) in enumerate(COST_ARMS):
            value = results[f"{name}, 40, {arm}"]["openai"][0]
            length = min(value, most) * scale
            parts += [
                f'<rect x="{left}" y="{y + 12 * bar}" width="{length:.0f}" height="9" fill="{colour}"/>',
                f'<text x="{left + length + 6:.0f}" y="{y + 12 * bar + 9}" font-size="10" {ink}>{value:.2f}</text>',
            ]
    one = left + scale
    bottom = top + row * len(COST_SETS) - 8
    parts.append(f'<path d="M{one:.0f} {top - 6} L{one:.0f} {bottom}" stroke="#1f2933" stroke-dasharray="3 3"/>')
    return "\n".join([*parts, "</svg>", ""])


RENDERERS = {
    "cost": cost,
    "readme": readme,
    "hooks": hooks,
    "proxy": proxy,
    "trajectories": trajectories,
    "serve": serve,
    "ledger": ledger,
    "recall": recall,
    "recall_pool": recall_pool,
    "recall_pool_vectors": recall_pool_vectors,
    "learn_evidence": learn_evidence,
    "prompts": prompts,
    "compaction": compaction,
    "compose": compose,
    "verify_support": verify_support,
    "research": research,
    "peers_recall": peers_recall,
    "learning_model": learning_model,
    "learning_fresh": lambda results: learning_fresh(results, results_of("learning_fresh_after")),
    "scale": scale,
    "scale_sqlite": scale_sqlite,
    "scale_model": scale_model,
    "scale_far": scale_far,
    "rules_advance": rules_advance,
}
DRAWINGS = {
    "docs/drawings/recall.svg": ("recall_pool", recall_drawing),
    "docs/drawings/scale.svg": ("scale", scale_drawing),
}
"""Pictures that are drawn from a result file."""


SOURCES = {
    "readme": "recall_pool",
    "recall_pool_vectors": "recall_pool_e5-small",
    "scale_sqlite": "scale",
    "scale_model": "scale",
    "scale_far": "scale",
}
"""The result files of blocks that are not called like theirs."""


def filled(text: str) -> str:
    def fill(match: re.Match[str]) -> str:
        name = SOURCES.get(match[2], match[2])
        lines = RENDERERS[match[2]](results_of(name))
        if match[2] != "readme":  # its rows are of several files, and name the version
            lines = [*lines, "", f"Measured on {measured_on(name)}."]
        return match[1] + "\n".join(lines) + "\n" + match[4]

    return BLOCK.sub(fill, text)


def results_of(name: str) -> dict[str, dict[str, Any]]:
    own = ROOT / "benchmarks" / name / "results" / f"{name}.json"
    shared = ROOT / "benchmarks" / "results" / f"{name}.json"
    document = json.loads((own if own.exists() else shared).read_text("utf-8"))
    results: dict[str, dict[str, Any]] = document["results"]
    return results


def measured_on(name: str) -> str:
    document = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text("utf-8"))
    day = datetime.fromisoformat(document["measured_at"])
    return f"{day.day} {day:%B %Y}"


def main() -> int:
    stale = []
    wanted = {name: filled((ROOT / name).read_text("utf-8")) for name in PAGES}
    wanted |= {name: draw(results_of(source)) for name, (source, draw) in DRAWINGS.items()}
    for name, text in wanted.items():
        page = ROOT / name
        if not page.exists() or page.read_text("utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv:
                page.write_text(text, "utf-8")
    if stale and "--check" in sys.argv:
        print(f"figures are out of date in {', '.join(stale)}: run python tools/figures.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
