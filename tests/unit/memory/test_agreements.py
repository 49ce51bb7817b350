"""Which sentences settle something: what the agent must or must not do, what somebody will do, what was decided."""

from __future__ import annotations

import pytest

from muniment.memory.episodes.agreements import agreements_in, ends_agreement
from products import for_each

pytestmark = pytest.mark.req("TM-06")

CONSTRAINTS = [
    "Never book a hotel without asking me.",
    "Don't call me before 9.",
    "Please don't share my address with anyone.",
    "Do not deploy on Fridays, ever.",
    "Under no circumstances should you email my boss.",
    "Always cc Kim when you write to a client.",
    "You must not touch the production database.",
    "You should never reply to recruiters on my behalf.",
    "From now on, answer in German.",
    "Ask me first before you spend any money.",
    "Check with me before sending anything to the press.",
    "I don't want you to use my personal card.",
    "No meetings on Wednesdays, please.",
    "Keep every answer under 100 words.",
    "Only use the staging server for tests.",
    "For this trip, never pick a flight with more than one stop.",
    "If you write to Tom, do not mention the offer.",
    "Make sure you never store the raw card number.",
    "Please avoid calling during school hours.",
    "Stop adding emojis to my drafts.",
    "You are not allowed to change the schema.",
    "Nothing goes out without my approval.",
    "Spend no more than 300 euros on this.",
    "The total must stay below 2,000 dollars.",
    "I'd rather you didn't contact the landlord directly.",
    "Remember: no nuts in anything you order for Mia.",
    "never delete files outside the build folder",
    "You can only send invoices after I have signed them.",
    "I need you to never mention the divorce to Sam.",
    "Whatever you do, don't tell Lisa about the party.",
    "Please use metric units from now on.",
    "Use British spelling in everything you write.",
    "Never, ever share my location.",
    "It is important that you do not delete anything.",
    "All code must be reviewed before merging.",
    "You can't use my name in public posts.",
    "I only want vegetarian restaurants.",
    "Be sure to ask me before buying tickets.",
    "I want to approve every email before it is sent.",
    "We can't spend more than 1,000 dollars.",
    "Two rules: don't call after 8pm, and never text my mother.",
    "Thanks for the list, but don't pay for anything yet unless I say so.",
    "I like the second hotel, so please don't cancel it.",
    "Just don't send anything to my work address until I say so.",
    "When you draft a letter, always sign it with my full name.",
    "Always give prices in euros when I ask about trips.",
    "Okay, one more thing: never give my number to agencies.",
    "Do not reply to the press unless I am copied.",
    "You can't book anything without my okay.",
    "Customer data must not be stored outside the EU.",
    "Our total budget is 4,000 euros.",
    "No calls after 8pm, please.",
    "I love the plan, but never book it without asking me.",
    "没有我的同意，不要预订酒店。",
    "千万别在九点之前给我打电话。",
    "以后请一律用中文回复。",
    "必须先问我再付款。",
    "제 허락 없이 호텔을 예약하지 마세요.",
    "절대로 9시 전에 전화하지 마.",
    "결제하기 전에 반드시 저에게 먼저 물어보세요.",
]
COMMITMENTS = [
    ("user", "I'll send the draft on Friday."),
    ("assistant", "I will get back to you with three options tomorrow."),
    ("assistant", "Okay, I'll remind you an hour before the call."),
    ("user", "I promise to pay the deposit this week."),
    ("assistant", "I won't book anything without your approval."),
    ("user", "We'll deliver the slides by the end of the month."),
    ("assistant", "I'm going to email you the summary once the tests pass."),
    ("user", "I'll pick up the keys from Dana at 5 pm."),
    ("assistant", "I will never contact your manager directly."),
    ("user", "You have my word that the money arrives on Monday."),
    ("assistant", "I'll let you know as soon as the refund is confirmed."),
    ("user", "我明天会把报告发给你。"),
    ("assistant", "我保证不会再打扰您。"),
    ("assistant", "내일까지 초안을 보내 드리겠습니다."),
    ("user", "금요일에 계약서를 보낼게요."),
]
DECISIONS = [
    "Let's go with option B.",
    "We decided to move the launch to May.",
    "I've decided against the second supplier.",
    "OK, we'll go with the blue one.",
    "We agreed on 40 euros an hour.",
    "Decision: ship without the export feature.",
    "Let's stick with PostgreSQL.",
    "We're going with the Lisbon office.",
    "It's settled, the party is on the 14th.",
    "I'll take the second apartment.",
    "Yes, let's use the travel voucher for the payment.",
    "Book the 9am one.",
    "We agreed on Lisbon for the meeting.",
    "I decided against the loft.",
    "Let's keep the volume at 12.",
    "I'm going with the oak table.",
    "那就用方案B吧。",
    "我们决定五月发布。",
    "B안으로 하기로 했어요.",
]
NOTHING = [
    ("user", "I never liked it."),
    ("user", "Don't worry about it!"),
    ("user", "Never mind."),
    ("user", "I don't know what to say."),
    ("user", "You never know."),
    ("user", "Do not you think so?"),
    ("user", "Don't you have a map?"),
    ("user", "He told me never to give up."),
    ("user", "They don't serve breakfast before 9."),
    ("user", "She always calls on Sundays."),
    ("user", "I was never asked."),
    ("user", "We went there and never looked back."),
    ("user", "Don't get me wrong, I love the place."),
    ("user", "Always good to hear from you!"),
    ("user", "I tried the soup and don't like it."),
    ("user", "Should I book it?"),
    ("user", "Can you call me before 9?"),
    ("user", "No problem."),
    ("user", "No idea, sorry."),
    ("user", "Only two people came."),
    ("user", "I must have lost it."),
    ("user", "It must be nice there."),
    ("user", "Don't be so hard on yourself."),
    ("user", "Keep up the good work!"),
    ("user", "Keep me posted."),
    ("user", "My sister never books hotels without reading reviews."),
    ("user", "Don't give up, you are nearly there."),
    ("user", "Make sure to have fun!"),
    ("assistant", "You should never share your password with anyone."),
    ("assistant", "Never mix bleach with ammonia."),
    ("assistant", "Don't call them before 9, they are closed."),
    ("user", "I'll never forget that day."),
    ("user", "I'll be honest, it was bad."),
    ("user", "I'll have the soup."),
    ("user", "I will always love that song."),
    ("assistant", "I'll look at the tests first."),
    ("assistant", "Let me check."),
    ("user", "I'll probably think about it tomorrow."),
    ("user", "I won't be able to come on Friday."),
    ("user", "I won't lie, it hurt."),
    ("user", "She'll send the draft on Friday."),
    ("user", "Will you send the draft on Friday?"),
    ("user", "If I win, I'll buy a boat."),
    ("user", "Let's see."),
    ("user", "Let's go!"),
    ("user", "Let's talk about it tomorrow."),
    ("user", "Let's hope it works."),
    ("user", "Which one should we go with?"),
    ("user", "I can't decide between the two."),
    ("user", "We haven't decided yet."),
    ("user", "They decided to leave early."),
    ("user", "Don't tell me you forgot!"),
    ("user", "Don't mention it."),
    ("user", "It must not be easy."),
    ("user", "You should not have!"),
    ("user", "Don't look now, but he is here."),
    ("user", "Let's pick this up later."),
    ("user", "We decided to get a dog last year."),
    ("user", "You will not believe this."),
    ("user", "You can't be serious."),
    ("user", "I should never have gone."),
    ("user", "They brighten up our day and always make us smile."),
    ("user", "You can't deny that view!"),
    ("user", "Keep going for your dreams and don't quit!"),
    ("user", "Let's keep working together to make a difference."),
    ("user", "I won't let you down!"),
    ("user", "He is cheerful at home, always singing songs from films."),
    ("user", "Always another surprise."),
    ("user", "It never gets old."),
    ("user", "There is a calm there that you can't find elsewhere."),
    ("user", "My shelves are tidy, no more lost lids in the back."),
    ("user", "I'll keep my notes short and make sure to speak to everyone."),
    ("user", "It would help me plan and avoid rushed choices."),
    ("user", "No more sugar for me after lunch."),
    ("user", "Don't tempt me!"),
    ("user", "Just don't blink or you will miss it."),
    ("user", "Don't ask, just show me the list now."),
    ("user", "Stop talking and give me the result."),
    ("user", "We have to stay alert."),
    ("user", "How can I allocate the increased budget of $6,200 for licences"),
    ("user", "Let's keep each other posted."),
    ("user", "Yes, let's go with that."),
    ("user", "It's settled then."),
    ("user", "Last week I decided to run again."),
    ("user", "If it looks odd, I'll stick with the old one."),
    ("user", "I'll keep you posted."),
    ("user", "I'll let you know if I need anything else."),
    ("user", "I'll get back to you later."),
    ("user", "And if you are bored, I'll send you a photo."),
    ("user", "I promise I'm not nosy."),
    ("user", "I have questions before I commit to a machine."),
    ("assistant", "Let's use a coin toss as our example."),
    ("assistant", "Let's proceed with your request."),
    ("assistant", "- We agreed on the following cues."),
    ("assistant", "**Review**: I will review the videos on April 6."),
    ("assistant", "I promise to answer by [date]."),
    ("assistant", "We'll add a check within the function."),
    ("user", "如果你有机会，一定要来公园走一走。"),
    ("user", "别担心。"),
    ("user", "特别好吃。"),
    ("user", "我不要咖啡。"),
    ("user", "不要紧。"),
    ("user", "걱정하지 마세요."),
    ("user", "포기하지 마!"),
    ("user", "저는 커피를 좋아하지 않아요."),
    ("tool", "Never book a hotel without asking me."),
    ("user", ""),
]


def kinds(role: str, text: str) -> list[str]:
    return [each.kind for each in agreements_in(role, text)]


@for_each("text", CONSTRAINTS)
def test_what_the_agent_must_or_must_not_do(text: str) -> None:
    (found,) = agreements_in("user", text)
    assert found.kind == "constraint"
    assert text[found.start : found.end] == text


@for_each(("role", "text"), COMMITMENTS)
def test_what_somebody_said_they_would_do(role: str, text: str) -> None:
    assert kinds(role, text) == ["commitment"]


@for_each("text", DECISIONS)
def test_what_was_decided(text: str) -> None:
    assert kinds("user", text) == ["decision"]


@for_each(("role", "text"), NOTHING)
def test_what_settles_nothing(role: str, text: str) -> None:
    assert not {"constraint", "commitment", "decision"} & set(kinds(role, text))


def test_each_sentence_of_a_turn_is_its_own_with_its_place() -> None:
    text = "Thanks for the list.  Never use my work email! I like it. Let's go with it, and I'll pay on Monday."
    found = agreements_in("user", text)
    assert [(each.kind, text[each.start : each.end]) for each in found] == [
        ("constraint", "Never use my work email!"),
        ("decision", "Let's go with it, and I'll pay on Monday."),
    ]


def test_a_prohibition_weighs_more_than_a_wish() -> None:
    def strength(text: str) -> int:
        return agreements_in("user", text)[0].strength

    assert strength("Never book a hotel without asking me.") > strength("Don't use my card for this.")
    assert strength("Don't use my card for this.") > strength("Please avoid early flights.")


ENDED = [
    ("constraint", "Don't call me before 9.", "You may call me before 9 now."),
    ("constraint", "Never book a hotel without asking me.", "You no longer have to ask me before you book a hotel."),
    ("constraint", "Don't use my work email.", "It's fine to use my work email again."),
    ("constraint", "No meetings on Wednesdays, please.", "Meetings on Wednesdays are fine again."),
    ("constraint", "千万别在九点之前给我打电话。", "现在可以在九点之前给我打电话了。"),
    ("commitment", "I'll send the draft on Friday.", "I sent the draft."),
    ("commitment", "I will book the table for you by noon.", "Done, the table is booked."),
]
STANDING = [
    ("constraint", "Don't call me before 9.", "user", "You may call Tom before 9."),
    ("constraint", "Don't call me before 9.", "user", "You may call me before 9 only on weekdays."),
    ("constraint", "Don't call me before 9.", "assistant", "I may now call you before 9."),
    ("constraint", "Don't call me before 9.", "user", "Can you call me before 9?"),
    ("constraint", "Never book a hotel without asking me.", "user", "I booked a hotel."),
    ("constraint", "Don't use my work email.", "user", "You can use my phone now."),
    ("commitment", "I'll send the draft on Friday.", "user", "Have you sent the draft?"),
    ("commitment", "I'll send the draft on Friday.", "assistant", "I sent the invoice."),
    ("commitment", "I'll send the draft on Friday.", "user", "I have not sent the draft yet."),
    ("decision", "Let's go with option B.", "user", "Option B is nice."),
]


@for_each(("kind", "said", "later"), ENDED)
def test_what_was_taken_back_or_done_ends(kind: str, said: str, later: str) -> None:
    role = "user"
    assert "end" in kinds(role, later)
    assert ends_agreement(kind, role, said, role, later)


@for_each(("kind", "said", "role", "later"), STANDING)
def test_in_doubt_it_stands(kind: str, said: str, role: str, later: str) -> None:
    told = "end" in kinds(role, later)
    assert not (told and ends_agreement(kind, "user", said, role, later))
