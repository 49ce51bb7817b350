"""The prompt for one perspective of a research run: task, contract, how to cite, how to report gaps.

The output is checked against the contract alone (RP-02), so the prompt names everything that is checked. It is in
English; section names are those of the contract, and an output may be in any language.
"""

from __future__ import annotations

from collections.abc import Iterator

from muniment.contracts.research import Perspective
from muniment.packets.page import flat
from muniment.research.records import RetryDirective

_STANCES = {
    "standard": "Standard track: give the best-supported answer, from the sources that experts in the field rely on.",
    "independent": "Independent track: go to primary sources that you find yourself (data, documents, original "
    "studies). Do not start from summaries, rankings or reviews by others, and name where the primary record differs "
    "from them.",
    "contrarian": "Contrarian track: look for what speaks against the expected answer (failures, critics, data that "
    "disagree). Report what you find as it is; if nothing serious speaks against it, write so.",
}
_CITING = """\
- Put the mark of its source, such as [1], directly behind every sentence that states a fact or a figure.
- List each source once in the sources section, one a line: `[1] https://… - title`. Every mark needs its line there.
- Cite only pages you opened, and keep to them: names, figures, dates and units as they are written there.
- Hand over the text of the pages you read, or the passages you used: sentences are checked against them.
- Make each sentence understandable by itself: name its subject, not “it” or “this”.
- Write in the language of the question."""
_GAPS = """\
- List what you could not find out, one a line, each with its priority: `- [P1] what is missing, and what was tried`.
- P0: without it the question cannot be answered. P1: it would change the answer. P2: it would make it better. P3: of
  interest only.
- If nothing is missing, write `- None`."""
_TOOLS = {"search_calls": "searches", "fetch_calls": "pages fetched"}


def research_prompt(question: str, perspective: Perspective, directive: RetryDirective | None = None) -> str:
    """Render the task of one perspective as Markdown, with the changes required of a retry."""
    focus = (perspective.model_extra or {}).get("focus")
    parts = [
        f"# Research task {flat(perspective.id)}",
        "## Question",
        "\n".join(
            f"> {flat(line.strip())}".rstrip() for line in question.strip().splitlines()
        ),  # quoted, so not a heading
        "## Your perspective",
        f"**{flat(perspective.title)}**",
        *([flat(focus)] if isinstance(focus, str) and focus.strip() else []),
        _STANCES[perspective.track],
        "## Contract",
        "\n".join(f"- {line}" for line in _contract(perspective)),
        "## How to cite",
        _CITING,
        "## Gaps",
        _GAPS,
    ]
    if directive is not None:
        parts += [f"## Attempt {directive.attempt}: what has to change", directive.text.strip()]
    return "\n\n".join(parts) + "\n"


def _contract(perspective: Perspective) -> Iterator[str]:
    contract = perspective.prompt_contract
    sections = ", ".join(f"`## {flat(section)}`" for section in contract.must_include_sections)
    if sections:
        yield f"Markdown with these sections, named exactly so, none of them empty: {sections}."
    yield f"At most {_number(contract.max_words)} words, not counting the list of sources."
    yield f"At most {_number(contract.max_sources)} different sources."
    budget = [f"{_tool(name)} ≤ {_number(calls)}" for name, calls in contract.tool_budget.items()]
    if budget:
        yield f"Tool calls: {', '.join(budget)}. Report how many you made (`tool_use`)."
    if perspective.expected_platforms:
        yield f"Look here first: {', '.join(map(flat, perspective.expected_platforms))}."


def _tool(name: str) -> str:
    return f"{_TOOLS[name]} (`{name}`)" if name in _TOOLS else f"`{flat(name)}`"


def _number(value: object) -> str:
    """A number without a needless decimal part: 900, not 900.0."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
