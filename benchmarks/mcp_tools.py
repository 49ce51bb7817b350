"""MCP's tools: is the right one chosen by its description, what do definitions cost, how long are answers?

    python -m benchmarks.mcp_tools                                  rules, sizes
    python -m benchmarks.mcp_tools prompts P.json                   what a model is asked (`benchmarks.mcp_choice`)
    python -m benchmarks.mcp_tools score P.json ANSWERS.json [--model NAME]

Sixty short tasks (data/mcp_tasks.json) were written before the descriptions of the lean profile; half of them (`open`)
could be looked at while those were written, the other half (`held`) is judged here and nowhere else. A rule chooses:
BM25 over name, title, description and arguments; the share of a task's words that stand there; the cosine of a small
embedder (wordllama); with the nine tools of before (data/mcp_before.json), with those of today's lean profile, and with
all of today's. A rule has no sense: what counts is the difference between the sets of tools, not the share alone.
Tokens are counted with the product's own counter (o200k_base where its vocabulary is there, else the estimate).
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.embedders import load
from benchmarks.harness import report
from benchmarks.mcp_choice import choice_prompts, read_choice_prompts, score, write_choice_prompts
from benchmarks.mcp_sets import Task, Tools, ToolSet, read_before, read_tasks, tool_sets
from muniment.core.outside.token_counters import load_token_counter

_WORD = re.compile(r"[a-z]+")
Rule = Callable[[Sequence[str], str], int]
"""Descriptions and a task → which of them."""


# -- choosing -----------------------------------------------------------------------------------------


def words(text: str) -> list[str]:
    """Words with the commonest endings off, so that "stored" meets "store"."""
    return [re.sub(r"(?:ing|ed|es|s|e)$", "", word) if len(word) > 4 else word for word in _WORD.findall(text.lower())]


def told(tool: Mapping[str, Any]) -> str:
    """What a model is told of a tool, in words."""
    arguments = tool["inputSchema"]["properties"]
    said = (f"{name} {part.get('description', '')}" for name, part in arguments.items())
    return " ".join([tool["name"].replace("_", " "), tool["title"], tool["description"], *said])


def short(tool: Mapping[str, Any]) -> str:
    return " ".join([tool["name"].replace("_", " "), tool["title"], tool["description"]])


def bm25(texts: Sequence[str], task: str) -> int:
    counted = [Counter(words(text)) for text in texts]
    mean = sum(count.total() for count in counted) / len(counted)
    scores = []
    for count in counted:
        score = 0.0
        for word in set(words(task)):
            holding = sum(word in each for each in counted)
            rarity = math.log(1 + (len(counted) - holding + 0.5) / (holding + 0.5))
            score += rarity * count[word] * 2.2 / (count[word] + 1.2 * (0.25 + 0.75 * count.total() / mean))
        scores.append(score)
    return scores.index(max(scores))


def overlap(texts: Sequence[str], task: str) -> int:
    asked = set(words(task))
    scores = [len(asked & set(words(text))) / math.sqrt(len(set(words(text)))) for text in texts]
    return scores.index(max(scores))


def embedding() -> Rule:
    embedder = load("wordllama")

    def rule(texts: Sequence[str], task: str) -> int:
        return int((embedder.embed_passages(texts) @ embedder.embed_queries([task])[0]).argmax())

    return rule


def choose(held: ToolSet, tasks: Sequence[Task], rule: Rule, form: Any) -> float:
    """The share of tasks for which the rule chooses the right tool."""
    names, texts = [str(tool["name"]) for tool in held.tools], [form(tool) for tool in held.tools]
    hits = [names[rule(texts, task.text)] == held.names[task.wants] for task in tasks]
    return sum(hits) / len(hits)


# -- sizes --------------------------------------------------------------------------------------------


def tokens_of(tools: Tools, *, with_output: bool) -> int:
    counter = load_token_counter()
    kept = [{key: value for key, value in tool.items() if with_output or key != "outputSchema"} for tool in tools]
    return sum(counter.count(json.dumps(tool, separators=(",", ":"), ensure_ascii=False)) for tool in kept)


def by_rules() -> None:
    tasks, before = read_tasks(), read_before()
    sets, answers = tool_sets()
    rows: dict[str, dict[str, Any]] = {}
    for rule_name, rule in (("bm25", bm25), ("overlap", overlap), ("wordllama", embedding())):
        for form_name, form in (("described", short), ("with arguments", told)):
            for part in ("open", "held"):
                chosen = [task for task in tasks if task.part == part]
                rows[f"choice {rule_name} {form_name} {part}"] = {
                    name: choose(held, chosen, rule, form) for name, held in sets.items()
                }
    for name, held in sets.items():
        rows[f"definitions {name}"] = {
            "tools": len(held.tools),
            "tokens": tokens_of(held.tools, with_output=False),
            "tokens_with_output_schemas": tokens_of(held.tools, with_output=True),
        }
    for label, now in answers.items():
        was = before["answers"][label]
        rows[f"answer {label}"] = {
            f"{size}_{when}": row[size] for size in now for when, row in (("was", was), ("is", now))
        }
    report("mcp_tools", rows, {"tasks": len(tasks), "counter": load_token_counter().name})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    stages = parser.add_subparsers(dest="stage")
    stages.add_parser("prompts", help="write what a model is asked").add_argument("file", type=Path)
    scoring = stages.add_parser("score", help="the figures of a model's answers")
    scoring.add_argument("file", type=Path, help="as `prompts` wrote it")
    scoring.add_argument("answers", type=Path, help="JSON: the key of each prompt, and what was answered")
    scoring.add_argument("--model", default="", help="who answered")
    given = parser.parse_args()
    if given.stage == "prompts":
        prompts = choice_prompts(tool_sets()[0], read_tasks())
        write_choice_prompts(given.file, prompts)
        print(len(prompts), "prompts")
    elif given.stage == "score":
        prompts = read_choice_prompts(given.file)
        rows = score(prompts, json.loads(given.answers.read_text("utf-8")))
        report("mcp_choice", rows, {"model": given.model, "prompts": len(prompts)})
    else:
        by_rules()


if __name__ == "__main__":
    main()
