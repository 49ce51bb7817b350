"""Which questions of a conversation are open: asked in earnest, by one side to the other, and not yet answered."""

from __future__ import annotations

import pytest

from muniment.memory.sessions import open_loops
from muniment.memory.turns import ReadTurn, Turn
from products import for_each

_ROLES = {"u": "user", "a": "assistant", "t": "tool"}

OPEN: list[tuple[list[str], list[str]]] = [
    # asked, and nobody has spoken since
    (["u: When does the night bus leave?"], ["When does the night bus leave?"]),
    (["a: Which of the two flats do you prefer?"], ["Which of the two flats do you prefer?"]),
    (["u: The import is slow. Is it the index?"], ["Is it the index?"]),
    (["u: Could you reserve a table for six"], ["Could you reserve a table for six"]),
    (["u: please can you send me the invoice of May"], ["please can you send me the invoice of May"]),
    (["u: Who owns the repo, and who can merge?"], ["Who owns the repo, and who can merge?"]),
    (
        ["u: Is it at https://example.org/a?b=1 or on the intranet?"],
        ["Is it at https://example.org/a?b=1 or on the intranet?"],
    ),
    (["u: You did tell Mara, didn't you?"], ["You did tell Mara, didn't you?"]),
    (
        ["u: How long is the warranty? And who pays the postage?"],
        ["How long is the warranty?", "And who pays the postage?"],
    ),
    (["a: I can do that.\nShould the report be in English?"], ["Should the report be in English?"]),
    (["u: What does `retry?` mean in this file?"], ["What does `retry?` mean in this file?"]),
    (['u: "Blue hour" - is that the name of the bar?'], ['"Blue hour" - is that the name of the bar?']),
    # the other side has spoken, and has not answered
    (["u: Why do the builds fail?", "a: I'll look at the logs first."], ["Why do the builds fail?"]),
    (["u: Can we ship on Friday?", "a: Good question. Let me check with the team."], ["Can we ship on Friday?"]),
    (["u: What is the limit?", "a: I don't know yet."], ["What is the limit?"]),
    (["u: What is the limit?", "a: Not sure, I will find out.", "t: 200 lines of settings"], ["What is the limit?"]),
    (["u: How many seats are left?", "t: 3 rows found"], ["How many seats are left?"]),
    (
        ["u: Book me a room in Porto.", "a: For how many nights?", "u: What do they cost?"],
        ["For how many nights?", "What do they cost?"],
    ),
    (
        ["u: Can you move the meeting?", "a: To which day?"],
        ["Can you move the meeting?", "To which day?"],
    ),
    (["u: Is Lena coming?", "a: One moment please."], ["Is Lena coming?"]),
    # other languages
    (["u: 会议几点开始？"], ["会议几点开始？"]),
    (["u: 这个改动很小，对吧？"], ["这个改动很小，对吧？"]),
    (["u: 你能帮我订票吗"], ["你能帮我订票吗"]),
    (["a: 您想要哪个颜色？"], ["您想要哪个颜色？"]),
    (["u: 为什么失败了？", "a: 我去查一下。"], ["为什么失败了？"]),
    (["u: 회의는 몇 시에 시작해요?"], ["회의는 몇 시에 시작해요?"]),
    (["u: 배송은 언제 되나요"], ["배송은 언제 되나요"]),
    (["u: 왜 실패했나요?", "a: 확인해 보겠습니다."], ["왜 실패했나요?"]),
]

NOT_OPEN: list[list[str]] = [
    # a promise or a plan is no question
    ["a: I'll look at the tests first."],
    ["a: Let me check the calendar and get back to you."],
    ["u: Please fix the tests.", "a: I will send you the diff tonight."],
    ["a: I'm going to ask Ben which branch it was."],
    # answered
    ["u: Could you book it?", "a: Done, booked."],
    ["u: When does it close?", "a: At six."],
    ["u: Is it raining in Bergen?", "a: Yes."],
    ["a: Window or aisle?", "u: Aisle, please."],
    ["u: Why do the builds fail?", "a: I'll look at the logs.", "t: disk full", "a: The disk was full."],
    ["u: Can you move the meeting?", "a: To which day?", "u: Tuesday.", "a: Moved to Tuesday."],
    # taken back
    ["u: Which port was it?", "u: Never mind, found it."],
    ["u: Can you call them?", "a: I'll try.", "u: No longer needed, thanks."],
    # nobody expects an answer
    ["u: Who knows?"],
    ["u: It broke again. Why me?"],
    ["u: What could possibly go wrong?"],
    ["u: We rewrote it in a day, how cool is that?"],
    ["u: Guess what? We won the bid."],
    ["u: The culprit? A missing comma."],
    ["u: Why was it slow? Because nobody had set an index."],
    ["u: Really?!"],
    ["u: ???"],
    ["u: Thanks, ok?"],
    ["a: Here is the list. Does that help?"],
    ["a: Your table is booked. Is there anything else I can do for you?"],
    ["a: How can I help you today?"],
    # somebody else's question, told
    ['u: Then she asked me, "Are you the owner?"'],
    ["u: Mara wrote: “When is the release?”"],
    ["u: > Did you get my mail?\nThat is what he sent."],
    # code, addresses, patterns
    ["u: ```\nconst x = ready ? go : stop?\n```"],
    ["u: The pattern is `colou?r?`"],
    ["u: It hangs at https://example.org/search?"],
    ["u: The glob is logs/2026-0?.txt"],
    ["u:     if (a?.b ?? c?)"],
    # what only looks like one
    ["u: I wonder how they do it."],
    ["u: What I need is a second pair of eyes."],
    ["u: When I press save, nothing happens."],
    ["u: Can do."],
    # other languages
    ["u: 能订一下吗？", "a: 已经订好了。"],
    ["u: 谁知道呢？"],
    ["u: 算了，不用了。"],
    ["a: 我会查一下日历。"],
    ["u: 예약해 주실 수 있나요?", "a: 예약했습니다."],
    ["u: 누가 알겠어요?"],
    ["a: 확인 후 연락드리겠습니다."],
]


def _asked(said: list[str]) -> list[str]:
    turns = [
        ReadTurn(
            Turn(
                id=f"e{seq}",
                session_id="s",
                seq=seq,
                kind="tool_result" if line[0] == "t" else "message",
                role=_ROLES[line[0]],  # type: ignore[arg-type]
                speaker=None,
                ts="2026-05-01T12:00:00Z",
                text=line[3:],
                trust="user",
                flags=(),
            )
        )
        for seq, line in enumerate(said, 1)
    ]
    return [loop.question for loop in open_loops(turns)]


@pytest.mark.req("TM-02")
@for_each(("said", "asked"), OPEN, ids=lambda case: " / ".join(case)[:60])
def test_a_question_is_open_until_the_other_side_answers(said: list[str], asked: list[str]) -> None:
    assert _asked(said) == asked


@pytest.mark.req("TM-02")
@for_each("said", NOT_OPEN, ids=lambda case: " / ".join(case)[:60])
def test_what_is_answered_or_no_question_is_not_open(said: list[str]) -> None:
    assert _asked(said) == []


def test_who_has_to_answer_is_told_and_by_which_event() -> None:
    turns = ["u: Which one is it?", "a: Do you mean the red one?"]
    read = [
        ReadTurn(
            Turn(
                id=f"e{seq}",
                session_id="s",
                seq=seq,
                kind="message",
                role=_ROLES[line[0]],  # type: ignore[arg-type]
                speaker=None,
                ts="2026-05-01T12:00:00Z",
                text=line[3:],
                trust="user",
                flags=(),
            )
        )
        for seq, line in enumerate(turns, 1)
    ]
    assert [(loop.owner, loop.evidence_id) for loop in open_loops(read)] == [("agent", "e1"), ("user", "e2")]


def test_only_the_latest_are_kept_and_the_newest_stands_last() -> None:
    asked = [f"Where is part {number}?" for number in range(9)]
    assert _asked([f"u: {question}" for question in asked]) == asked[-5:]
