"""MCP's tools: is the right one chosen by its description, what do definitions cost, how long are answers?

    python -m benchmarks.mcp_tools

Sixty short tasks (data/mcp_tasks.json) were written before the descriptions of the lean profile; half of them (`open`)
could be looked at while those were written, the other half (`held`) is judged here and nowhere else. A rule chooses:
BM25 over name, title, description and arguments; the share of a task's words that stand there; the cosine of a small
embedder (wordllama); with the nine tools of before (data/mcp_before.json), with those of today's lean profile, and with
all of today's. A rule has no sense: what counts is the difference between the sets of tools, not the share alone.
Tokens are counted with the product's own counter (o200k_base where its vocabulary is there, else the estimate).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
from mcp import Client

import muniment
from benchmarks.harness import report
from benchmarks.mcp_talk import ASKED, fill
from muniment.core.outside.token_counters import load_token_counter
from muniment.memory.outside.embedders import load_embedder
from muniment.surfaces.mcp.callers import CallerScope, ToolCallers
from muniment.surfaces.mcp.server import make_server
from muniment.surfaces.mcp.settings import McpSettings

DATA = Path(__file__).parent / "data"
BEFORE = {
    "search": "search",
    "remember": "remember",
    "context": "compose",
    "record": "observe",
    "forget": "forget",
    "why": "explain",
}
NOW = {
    "search": "search_memory",
    "remember": "remember",
    "context": "get_context",
    "record": "record",
    "forget": "forget",
    "why": "why",
}
_WORD = re.compile(r"[a-z]+")
Tools = Sequence[Mapping[str, Any]]
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
    embedder = load_embedder("wordllama")

    def rule(texts: Sequence[str], task: str) -> int:
        vectors = embedder.embed([task, *texts])
        return int((vectors[1:] @ vectors[0]).argmax())

    return rule


def choose(tools: Tools, right: Mapping[str, str], tasks: Sequence[Mapping[str, str]], rule: Rule, form: Any) -> float:
    """The share of tasks for which the rule chooses the right tool."""
    names, texts = [str(tool["name"]) for tool in tools], [form(tool) for tool in tools]
    hits = [names[rule(texts, task["task"])] == right[task["is"]] for task in tasks]
    return sum(hits) / len(hits)


# -- sizes --------------------------------------------------------------------------------------------


async def ask_now(profile: str) -> tuple[Tools, dict[str, dict[str, int]]]:
    """Today's definitions, and the sizes of answers to the talk."""
    counter = load_token_counter()
    rows: dict[str, dict[str, int]] = {}
    with muniment.open(":memory:") as memory:
        fill(memory.run(user_id="ana", agent_id="support", session_id="s0"))
        callers = ToolCallers(memory, McpSettings(profile=profile))
        server = make_server(callers, lambda _ctx: callers.take(CallerScope("default", "ana", "support")))
        async with Client(server) as client:
            listed = (await client.list_tools()).tools
            tools = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed]

            async def ask(label: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
                answer = await client.call_tool(name, arguments)
                assert not answer.is_error, answer.content
                text = "".join(getattr(block, "text", "") for block in answer.content)
                plain = json.dumps(answer.structured_content, separators=(",", ":"), ensure_ascii=False)
                rows[label] = {
                    "text_bytes": len(text.encode()),
                    "structured_bytes": len(plain.encode()),
                    "text_tokens": counter.count(text),
                    "structured_tokens": counter.count(plain),
                }
                return dict(answer.structured_content or {})

            for number, query in enumerate(ASKED):
                await ask(f"search {number}", "search_memory", {"query": query})
            await ask("search 50", "search_memory", {"query": ASKED[0], "k": 50})
            said = await ask("record", "record", {"role": "user", "content": "I moved to Berlin in May."})
            given = {"key": "user.city", "value": "Berlin", "sources": [said["event_id"]]}
            kept = await ask("remember", "remember", given)
            context = await ask("context", "get_context", {"query": ASKED[0]})
            await ask("why build", "why", {"build_id": context["build_id"]})
            await ask("why text", "why", {"text": "Lisbon"})
            await ask("forget", "forget", {"fact_id": kept["fact"]["fact_id"]})
    return tools, rows


def tokens_of(tools: Tools, *, with_output: bool) -> int:
    counter = load_token_counter()
    kept = [{key: value for key, value in tool.items() if with_output or key != "outputSchema"} for tool in tools]
    return sum(counter.count(json.dumps(tool, separators=(",", ":"), ensure_ascii=False)) for tool in kept)


def main() -> None:
    tasks = json.loads((DATA / "mcp_tasks.json").read_text("utf-8"))["tasks"]
    before = json.loads((DATA / "mcp_before.json").read_text("utf-8"))
    lean, answers = anyio.run(ask_now, "lean")
    full, _ = anyio.run(ask_now, "full")
    sets: dict[str, tuple[Tools, Mapping[str, str]]] = {
        "before": (before["tools"], BEFORE),
        "lean": (lean, NOW),
        "full": (full, NOW),
    }
    rows: dict[str, dict[str, Any]] = {}
    for rule_name, rule in (("bm25", bm25), ("overlap", overlap), ("wordllama", embedding())):
        for form_name, form in (("described", short), ("with arguments", told)):
            for part in ("open", "held"):
                chosen = [task for task in tasks if task["part"] == part]
                rows[f"choice {rule_name} {form_name} {part}"] = {
                    name: choose(tools, right, chosen, rule, form) for name, (tools, right) in sets.items()
                }
    for name, (tools, _) in sets.items():
        rows[f"definitions {name}"] = {
            "tools": len(tools),
            "tokens": tokens_of(tools, with_output=False),
            "tokens_with_output_schemas": tokens_of(tools, with_output=True),
        }
    for label, now in answers.items():
        was = before["answers"][label]
        rows[f"answer {label}"] = {
            f"{size}_{when}": row[size] for size in now for when, row in (("was", was), ("is", now))
        }
    report("mcp_tools", rows, {"tasks": len(tasks), "counter": load_token_counter().name})


if __name__ == "__main__":
    main()
