"""The bench of MCP's tools: what a model is asked, which tool an answer names, and what is not scored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.mcp_choice import choice_prompts, read_choice_prompts, score, tool_named, write_choice_prompts
from benchmarks.mcp_sets import NOW, Task, ToolSet, read_tasks, tool_sets

from products import for_each

TASKS = [
    Task("open", "search", "What did she say about the boat?"),
    Task("open", "forget", "Take the boat out of memory."),
    Task("held", "search", "Was there ever talk of a boat?"),
    Task("held", "why", "Who told you of a boat?"),
]


def tool(name: str) -> dict[str, object]:
    return {"name": name, "title": name, "description": f"It does {name}.", "inputSchema": {"type": "object"}}


SETS = {
    "before": ToolSet([tool("find"), tool("drop"), tool("tell")], {"search": "find", "forget": "drop", "why": "tell"}),
    "lean": ToolSet([tool("look"), tool("drop"), tool("tell")], {"search": "look", "forget": "drop", "why": "tell"}),
}


def test_a_prompt_tells_every_tool_and_asks_for_one_as_json() -> None:
    prompts = choice_prompts(SETS, TASKS)
    assert [(each.arm, each.right) for each in prompts if each.part == "held"] == [
        ("before", "find"), ("before", "tell"), ("lean", "look"), ("lean", "tell"),
    ]  # fmt: skip
    assert len({each.key for each in prompts}) == len(prompts) == 8
    assert all(f'"name":"{name}"' in each.system for each in prompts for name in each.names)
    assert all('{"tool": "<name>"}' in each.system for each in prompts)
    assert prompts[0].user == "Task: What did she say about the boat?"


def test_prompts_are_read_as_they_were_written(tmp_path: Path) -> None:
    prompts = choice_prompts(SETS, TASKS)
    write_choice_prompts(tmp_path / "p.json", prompts)
    assert read_choice_prompts(tmp_path / "p.json") == prompts
    kept = json.loads((tmp_path / "p.json").read_text("utf-8"))["prompts"]
    assert [row["key"] for row in kept] == [each.key for each in prompts]


@for_each(
    ("said", "named"),
    [
        ('{"tool": "look"}', "look"),
        ('```json\n{\n  "tool" : "look"\n}\n```', "look"),
        ('{"tool": "look", "arguments": {"tool": "drop"}}', "look"),
        ('{"tool": "lookup"}', ""),
        ('{"name": "look"}', ""),
        ("look", ""),
        ("", ""),
    ],
)
def test_an_answer_names_one_tool_of_the_set_or_none(said: str, named: str) -> None:
    assert tool_named(said, ["look", "drop"]) == named


def test_shares_and_what_was_won_and_lost_by_task() -> None:
    prompts = choice_prompts(SETS, TASKS)
    answers = {each.key: json.dumps({"tool": each.right}) for each in prompts}
    wrong = [each for each in prompts if (each.arm, each.right) in {("before", "find"), ("lean", "drop")}]
    rows = score(prompts, answers | {each.key: "none" for each in wrong})
    assert rows["right, open"] == {"before": 0.5, "lean": 0.5}
    assert rows["right, held"] == {"before": 0.5, "lean": 1.0}
    assert rows["against before: lean, open"] == {"won": 1, "lost": 1}
    assert rows["against before: lean, held"] == {"won": 1, "lost": 0}
    assert rows["right, search (both halves)"] == {"before": 0.0, "lean": 1.0}
    assert rows["named no tool"] == {"before": 2, "lean": 1}


def test_what_is_not_answered_is_not_scored_as_wrong() -> None:
    prompts = choice_prompts(SETS, TASKS)
    with pytest.raises(SystemExit, match="1 of 8 prompts have no answer"):
        score(prompts, {each.key: "" for each in prompts[1:]})


def test_every_task_has_its_tool_in_every_set() -> None:
    sets, _ = tool_sets()
    assert {name: len(held.tools) for name, held in sets.items()} == {"before": 9, "lean": 6, "full": 10}
    for prompt in choice_prompts(sets, read_tasks()):
        assert prompt.right in prompt.names
    assert {task.wants for task in read_tasks()} == set(NOW)
