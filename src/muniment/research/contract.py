"""An output against its prompt contract (RP-02): what is broken, by name, and what to tell the agent then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from muniment.contracts.research import Perspective, PromptContract
from muniment.core.text.patterns import lazy_pattern
from muniment.research.reading.outputs import (
    Reading,
    Section,
    count_words,
    find_section,
    sections_of,
    sentences_between,
)
from muniment.research.reading.sections import section_kind
from muniment.research.run_records import Breach, BreachKind, RetryDirective, ToolUse
from muniment.research.urls import try_normalize_url

__all__ = ["Language", "dangling_keys", "directive", "judge", "language_of", "output_sources", "output_words"]

Language = Literal["en", "zh"]

_HAN = lazy_pattern(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_LATIN = lazy_pattern(r"[A-Za-z]+")
_KEYS_SHOWN = 10
_MESSAGES: dict[BreachKind, dict[Language, str]] = {
    "empty_output": {
        "en": "The output says nothing. Hand in the findings as Markdown.",
        "zh": "输出没有内容。请以 Markdown 提交研究发现。",
    },
    "missing_section": {
        "en": "The section “{where}” is missing. Add it under a heading of its own.",
        "zh": "缺少“{where}”一节。请用单独的标题补上。",
    },
    "empty_section": {
        "en": "The section “{where}” is empty. Fill it; where there is nothing to report, say so.",
        "zh": "“{where}”一节是空的。请补充内容；如确无可写，请明确说明。",
    },
    "too_many_words": {
        "en": "The output has {found} words, the list of sources not counted; at most {limit} are allowed. Shorten it.",
        "zh": "输出有 {found} 字（不计来源列表），上限为 {limit}。请精简。",
    },
    "too_many_sources": {
        "en": "The output names {found} different sources; at most {limit} are allowed. Keep those that bear the "
        "findings.",
        "zh": "输出引用了 {found} 个不同来源，上限为 {limit}。请只保留支撑研究发现的来源。",
    },
    "no_sources": {
        "en": "The output names no source by its address. Put the address of each source into the list of sources, "
        "and mark the sentences it bears.",
        "zh": "输出没有给出任何来源的网址。请在来源列表中写明每个来源的网址，并在相应句子后标注。",
    },
    "tool_budget_exceeded": {
        "en": "{found} calls of “{where}” were made; {limit} are allowed. Stay within the budget.",
        "zh": "“{where}”调用了 {found} 次，上限为 {limit} 次。请控制在预算之内。",
    },
    "tool_use_unknown": {
        "en": "Nobody counted the calls of {where}, so their budget cannot be said to hold. Hand in `tool_use` with "
        "the output.",
        "zh": "{where} 的调用次数无人统计，无法确认是否符合预算。请随输出提交 `tool_use`。",
    },
    "dangling_mark": {
        "en": "{found} citation marks have no entry with an address in the list of sources: {where}. Add the "
        "entries, or take the marks out.",
        "zh": "有 {found} 个引用标记在来源列表中没有带网址的条目：{where}。请补上条目，或删去这些标记。",
    },
    "missing_change_note": {
        "en": "This is attempt {found}, and nothing says what was changed. Add a change note.",
        "zh": "这是第 {found} 次尝试，但没有说明作了哪些修改。请附上修改说明。",
    },
    "unchanged_output": {
        "en": "The output is the same as the last one, word for word. Correct what was named.",
        "zh": "输出与上一次完全相同。请按指出的问题修改。",
    },
}
_DIRECTIVE: dict[Language, str] = {
    "en": (
        "Attempt {attempt} at “{title}” ({id}). The output was not accepted:\n\n{breaches}\n\n"
        "Hand in the whole output again, corrected, in Markdown. Leave what is right as it is, and add nothing that "
        "no source says. "
        "Add a change note: say in one or two sentences what you changed, apart from the output or as its last "
        "section, “Change note”."
    ),
    "zh": (
        "“{title}”（{id}）第 {attempt} 次尝试。上一次输出未被接受：\n\n{breaches}\n\n"
        "请以 Markdown 重新提交修改后的完整输出。正确的内容保持不变，不要添加没有来源支持的内容。"
        "请附上修改说明（change note）：用一两句话说明修改了什么，可单独提交，或写在最后一节“修改说明”中。"
    ),
}


def judge(
    reading: Reading,
    contract: PromptContract,
    *,
    tool_use: ToolUse | None,
    attempt: int,
    change_note: str | None,
    previous_digest: str | None,
    digest: str,
) -> list[Breach]:
    """Every way in which the output breaks its contract, in a fixed order; told in the language of the output."""
    say = _Speaker(language_of(reading))
    words = output_words(reading)
    breaches: list[Breach] = []
    if words == 0:
        breaches.append(say("empty_output"))
    else:
        breaches += _section_breaches(reading, contract.must_include_sections, say)
        if words > contract.max_words:
            breaches.append(say("too_many_words", limit=contract.max_words, found=words))
        breaches += _source_breaches(reading, contract, say)
    breaches += _tool_breaches(contract.tool_budget, tool_use, say)
    if attempt > 1:
        if not (change_note or "").strip() and not any(
            _says_something(reading, each) for each in sections_of(reading, "change note")
        ):
            breaches.append(say("missing_change_note", found=attempt))
        if previous_digest is not None and digest == previous_digest:
            breaches.append(say("unchanged_output"))
    return breaches


def directive(
    perspective: Perspective, attempt: int, breaches: Sequence[Breach], *, language: Language | None = None
) -> RetryDirective:
    """What to tell the agent. `attempt` is the one asked for; the language is by default that of the title."""
    spoken = language or _language(perspective.title)
    listed = "\n".join(f"{number}. {breach.message}" for number, breach in enumerate(breaches, start=1))
    text = _DIRECTIVE[spoken].format(attempt=attempt, title=perspective.title, id=perspective.id, breaches=listed)
    return RetryDirective(perspective_id=perspective.id, attempt=attempt, breaches=tuple(breaches), text=text)


def language_of(reading: Reading) -> Language:
    """Chinese where more Han characters than Latin words stand in it, sources left out; else English."""
    return _language(" ".join(sentence.text for sentence in reading.sentences if sentence.kind != "reference"))


def _language(text: str) -> Language:
    return "zh" if len(_HAN.findall(text)) > len(_LATIN.findall(text)) else "en"


def output_words(reading: Reading) -> int:
    """Words of an output: headings and tables too, but not its list of sources, its code and its change note."""
    return sum(
        count_words(sentence.text)
        for sentence in reading.sentences
        if sentence.kind != "reference" and section_kind(sentence.section) != "change note"
    )


def output_sources(reading: Reading) -> int:
    """Different addresses in an output, however they are spelled."""
    return len({try_normalize_url(url) or url for url in {found.url for found in reading.urls}})


def dangling_keys(reading: Reading) -> tuple[str, ...]:
    """Marks without an address, each once, in order. A cid needs none."""
    marks = (mark for sentence in reading.sentences for mark in sentence.marks)
    return tuple(dict.fromkeys(mark.key for mark in marks if mark.url is None and not mark.key.startswith("cid_")))


class _Speaker:
    """Makes breaches, told in one language."""

    def __init__(self, language: Language) -> None:
        self._messages = {kind: messages[language] for kind, messages in _MESSAGES.items()}

    def __call__(self, kind: BreachKind, **facts: Any) -> Breach:
        return Breach(kind=kind, message=self._messages[kind].format(**facts), **facts)


def _section_breaches(reading: Reading, names: Iterable[str], say: _Speaker) -> Iterator[Breach]:
    for name in names:
        section = find_section(reading, name)
        if section is None:
            yield say("missing_section", where=name)
        elif not _says_something(reading, section):
            yield say("empty_section", where=name)


def _says_something(reading: Reading, section: Section) -> bool:
    inside = sentences_between(reading, section.start, section.end)
    return (
        any(sentence.kind != "heading" for sentence in inside) or "```" in reading.markdown[section.start : section.end]
    )


def _source_breaches(reading: Reading, contract: PromptContract, say: _Speaker) -> Iterator[Breach]:
    sources = output_sources(reading)
    if sources > contract.max_sources:
        yield say("too_many_sources", limit=contract.max_sources, found=sources)
    if sources == 0 and contract.max_sources > 0:
        yield say("no_sources")
    dangling = dangling_keys(reading)
    if dangling:
        shown = ", ".join(f"[{key}]" for key in dangling[:_KEYS_SHOWN])
        yield say("dangling_mark", found=len(dangling), where=shown + (", …" if len(dangling) > _KEYS_SHOWN else ""))


def _tool_breaches(budget: dict[str, Any], tool_use: ToolUse | None, say: _Speaker) -> Iterator[Breach]:
    """A tool that was counted and not named was not called; one without a budget is not bounded."""
    limits = {
        tool: limit for tool, limit in budget.items() if isinstance(limit, int | float) and not isinstance(limit, bool)
    }
    if tool_use is None:
        if limits:
            yield say("tool_use_unknown", where=", ".join(limits))
        return
    for tool, limit in limits.items():
        if tool_use.get(tool, 0) > limit:
            yield say("tool_budget_exceeded", limit=limit, found=tool_use[tool], where=tool)
