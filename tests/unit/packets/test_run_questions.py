"""Which questions ask of the work at hand or the talk itself, and which name what memory may hold (TM-07)."""

from __future__ import annotations

import pytest

from muniment.packets.compose.run_questions import read_question
from products import for_each


@pytest.mark.req("TM-07")
@for_each(
    ("kind", "queries"),
    [
        ("plan", ["What should we do next?", "what still needs to be done?", "What's missing?", "How do I proceed?"]),
        (
            "next_actions",
            ["Which tool should I call next?", "What are the todos left?", "下一步该怎么做？", "남은 일이 뭐야?"],
        ),
        ("decisions", ["What have we decided so far?", "What was agreed?", "What decisions have been made?"]),
        ("constraints", ["Which constraints apply?", "What must I not do?"]),
        ("failures", ["Why did it fail?", "what is blocking us?", "Any risks?", "무엇이 실패했나요?"]),
        ("goal", ["What's the objective?", "what are you supposed to achieve?", "Continue the task."]),
        ("loops", ["What are the open questions?", "有哪些未解决的问题？"]),
        (
            "window",
            ["What did the user ask for?", "repeat what I said", "what was my previous question?", "我们谈了什么？"],
        ),
        ("tools", ["What did the last tool call return?", "What is the current state?", "当前状态如何？"]),
        ("summary", ["Can you recap?", "How is it going?", "Where do we stand?", "지금 상태가 어때?"]),
    ],
)
def test_these_ask_of_the_work_or_the_talk(kind: str, queries: list[str]) -> None:
    for query in queries:
        asked = read_question(query)
        assert not asked.has_subject, query
        assert kind in asked.answered_by, query


@pytest.mark.req("TM-07")
@for_each(
    "query",
    [
        "Who left the company?",
        "Where do I work?",
        "What state does Ana live in?",
        "Which user owns the account?",
        "When is the next concert in Porto?",
        "What did Caroline decide about the adoption agency?",
        "How many steps has the tower?",
        "Which error does gunicorn log?",
        "What is the plan for the harbour?",
        "谁赢了比赛？",
        "우주선은 무슨 색이야?",
        "plan " * 500,
    ],
)
def test_these_name_something(query: str) -> None:
    assert read_question(query).has_subject
