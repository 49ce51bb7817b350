"""What is handed to an agent for one perspective of a research run: task, contract, how to cite, what to hand back.

The contract is the whole of what the output is checked against (RP-02), so everything that the check looks at is said
here, in the language of the question. Section names stand as the contract has them, in whatever language.
"""

from __future__ import annotations

from collections.abc import Iterator

from muniment.contracts.research import Perspective
from muniment.core.text.script import Written, written_in
from muniment.packets.page.lines import flat
from muniment.research.run_records import RetryDirective

__all__ = ["research_prompt"]

_STANCES: dict[Written, dict[str, str]] = {
    "en": {
        "standard": "Standard track: give the best-supported answer, from the sources that experts in the field "
        "rely on.",
        "independent": "Independent track: go to primary sources that you find yourself (data, documents, original "
        "studies). "
        "Do not start from summaries, rankings or reviews by others, and say where the primary "
        "record differs from them.",
        "contrarian": "Contrarian track: look for what speaks against the expected answer (failures, critics, data "
        "that disagree). "
        "Report what you find as it is; where nothing serious speaks against it, say so.",
    },
    "zh": {
        "standard": "标准视角：依据本领域公认的来源，给出证据最充分的答案。",
        "independent": "独立视角：自行查找一手来源（数据、文件、原始研究），不以他人的综述、排名或评论为起点；"
        "一手记录与之不一致时请指出。",
        "contrarian": "反方视角：寻找与预期答案相反的材料（失败案例、批评意见、不一致的数据），如实报告；"
        "若没有有力的反面证据，也请说明。",
    },
}

_WORDS: dict[Written, dict[str, str]] = {
    "en": {
        "title": "Research task {id}",
        "question": "Question",
        "perspective": "Your perspective",
        "contract": "Contract",
        "words": "At most {} words, the list of sources not counted.",
        "sources": "At most {} different sources.",
        "tools": "Tool calls: {}. Say how many you made (`tool_use`).",
        "sections": "Markdown with these sections, named exactly so, none of them empty: {}.",
        "platforms": "Look here first: {}.",
        "cite": "How to cite",
        "gaps": "Gaps",
        "retry": "Attempt {}: what has to change",
    },
    "zh": {
        "title": "研究任务 {id}",
        "question": "问题",
        "perspective": "你的视角",
        "contract": "要求",
        "words": "正文不超过 {} 词（一个汉字算一个词，不计来源列表）。",
        "sources": "不同来源不超过 {} 个。",
        "tools": "工具调用次数：{}。请报告实际次数（`tool_use`）。",
        "sections": "使用 Markdown，须有以下各节，标题一字不差，且不得为空：{}。",
        "platforms": "优先查找：{}。",
        "cite": "引用方式",
        "gaps": "缺口",
        "retry": "第 {} 次提交：需要修改之处",
    },
}

_CITING: dict[Written, tuple[str, ...]] = {
    "en": (
        "Put the mark of its source, such as [1], directly behind every sentence that states a fact or a figure.",
        "List each source once in the sources section, one a line: `[1] https://… - title`. Every "
        "mark needs its line there.",
        "Cite only pages you opened, and write what they say: keep names, figures, dates and units "
        "as they are written there.",
        "Hand over the text of the pages you read, or the passages you used: sentences are checked against them.",
    ),
    "zh": (
        "凡陈述事实或数字的句子，句末须紧跟其来源标记，如 [1]。",
        "在来源一节逐行列出每个来源：`[1] https://… - 标题`。每个标记都要在其中有对应的一行。",
        "只引用实际打开过的网页，并忠实其内容：名称、数字、日期与单位照原文书写。",
        "请一并交回所读网页的正文或所用段落：每句话都会与之核对。",
    ),
}
_GAPS: dict[Written, tuple[str, ...]] = {
    "en": (
        "List what you could not find out, one a line, each with its priority: `- [P1] what is "
        "missing, and what was tried`.",
        "P0: without it the question cannot be answered. P1: it would change the answer. P2: it "
        "would make it better. P3: of interest only.",
        "If nothing is missing, write `- None`.",
    ),
    "zh": (
        "逐行列出未能查明之处，并注明优先级：`- [P1] 缺少什么，已尝试过什么`。",
        "P0：缺了它便无法回答问题；P1：会改变答案；P2：会使答案更完整；P3：仅供参考。",
        "若无缺口，写 `- 无`。",
    ),
}
_TOOLS: dict[Written, dict[str, str]] = {
    "en": {"search_calls": "searches", "fetch_calls": "pages fetched"},
    "zh": {"search_calls": "搜索", "fetch_calls": "打开网页"},
}


def research_prompt(question: str, perspective: Perspective, directive: RetryDirective | None = None) -> str:
    """The task of one perspective as Markdown, in the language of the question; with what a retry has to change."""
    language = written_in(question)
    words = _WORDS[language]
    lines = [f"# {words['title'].format(id=flat(perspective.id))}", ""]
    lines += [f"## {words['question']}", "", *_quoted(question), ""]
    lines += [f"## {words['perspective']}", "", f"**{flat(perspective.title)}**", ""]
    focus = (perspective.model_extra or {}).get("focus")
    if isinstance(focus, str) and focus.strip():
        lines += [flat(focus), ""]
    lines += [_STANCES[language][perspective.track], ""]
    lines += [f"## {words['contract']}", "", *(f"- {line}" for line in _contract(perspective, language)), ""]
    lines += [f"## {words['cite']}", "", *(f"- {line}" for line in _CITING[language]), ""]
    lines += [f"## {words['gaps']}", "", *(f"- {line}" for line in _GAPS[language]), ""]
    if directive is not None:
        lines += [f"## {words['retry'].format(directive.attempt)}", "", directive.text.strip(), ""]
    return "\n".join(lines)


def _quoted(question: str) -> Iterator[str]:
    """The question as it was asked, marked line by line so that no line of it passes for a part of the task."""
    for line in question.strip().splitlines():
        yield f"> {flat(line.strip())}".rstrip()


def _contract(perspective: Perspective, language: Written) -> Iterator[str]:
    words, contract = _WORDS[language], perspective.prompt_contract
    comma = "、" if language == "zh" else ", "
    sections = comma.join(f"`## {flat(section)}`" for section in contract.must_include_sections)
    if sections:
        yield words["sections"].format(sections)
    yield words["words"].format(_number(contract.max_words))
    yield words["sources"].format(_number(contract.max_sources))
    budget = [f"{_tool(name, language)} ≤ {_number(calls)}" for name, calls in contract.tool_budget.items()]
    if budget:
        yield words["tools"].format(comma.join(budget))
    if perspective.expected_platforms:
        yield words["platforms"].format(comma.join(map(flat, perspective.expected_platforms)))


def _tool(name: str, language: Written) -> str:
    told = _TOOLS[language].get(name)
    return f"{told} (`{name}`)" if told else f"`{flat(name)}`"


def _number(value: object) -> str:
    """A number as people write it: 900, not 900.0."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
