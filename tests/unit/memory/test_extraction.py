"""What patterns may and may not read out of a message (MP-17): precision over recall, in three languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.memory.extraction.patterns import PROPOSALS_MAX, propose
from products import for_each

TS = "2026-05-20T12:00:00.000000Z"

POSITIVE: list[tuple[str, str, object]] = [
    # English
    ("My name is Ana Lopez.", "user.name", "Ana Lopez"),
    ("Hi, my name's Tom!", "user.name", "Tom"),
    ("I am called Björn.", "user.name", "Björn"),
    ("I live in Berlin.", "user.location", "Berlin"),
    ("I live in New York City with my wife.", "user.location", "New York City"),
    ("I currently live in Portland, Oregon.", "user.location", "Portland, Oregon"),
    ("I live in St. Louis.", "user.location", "St. Louis"),
    ("I'm based in London now.", "user.location", "London"),
    ("I moved to Berlin in May.", "user.location", "Berlin"),
    ("I just moved to San Francisco last week!", "user.location", "San Francisco"),
    ("I've recently relocated to Tokyo.", "user.location", "Tokyo"),
    ("By the way, I moved back to Madrid this month.", "user.location", "Madrid"),
    ("I'm originally from Brazil.", "user.origin", "Brazil"),
    ("I grew up in Ohio.", "user.origin", "Ohio"),
    ("I was born in Lagos.", "user.birthplace", "Lagos"),
    ("My birthday is May 3rd.", "user.birthday", "05-03"),
    ("My birthday is on 14 July 1989.", "user.birthday", "1989-07-14"),
    ("I was born on March 2, 1990.", "user.birthday", "1990-03-02"),
    ("My birthday is February 29.", "user.birthday", "02-29"),
    ("I love hiking.", "user.likes", "hiking"),
    ("I really enjoy Thai food.", "user.likes", "Thai food"),
    ("I like jazz, and I hate mushrooms.", "user.dislikes", "mushrooms"),
    ("I like jazz, and I hate mushrooms.", "user.likes", "jazz"),
    ("I like jazz, rock, and pop.", "user.likes", "pop"),
    ("I don't like cilantro.", "user.dislikes", "cilantro"),
    ("I can't stand loud music.", "user.dislikes", "loud music"),
    ("My favorite color is green.", "user.favorite.color", "green"),
    ("My favourite ice cream is pistachio.", "user.favorite.ice_cream", "pistachio"),
    ("My favorite hobby is climbing.", "user.favorite.hobby", "climbing"),
    ("I'm vegetarian.", "user.diet", "vegetarian"),
    ("I am a strict vegan.", "user.diet", "vegan"),
    ("I only eat halal.", "user.diet", "halal"),
    ("I don't eat pork.", "user.avoids", "pork"),
    ("I'm allergic to peanuts.", "user.allergy", "peanuts"),
    ("I'm severely allergic to tree nuts.", "user.allergy", "tree nuts"),
    ("I have a severe shellfish allergy.", "user.allergy", "shellfish"),
    ("I work as a data analyst at Acme.", "user.job", "data analyst"),
    ("I'm a software engineer.", "user.job", "software engineer"),
    ("I'm a nurse, and I live in Leeds.", "user.job", "nurse"),
    ("I'm a nurse, and I live in Leeds.", "user.location", "Leeds"),
    ("I work for Siemens.", "user.employer", "Siemens"),
    ("I work at Acme Robotics as a welder.", "user.employer", "Acme Robotics"),
    ("My brother's name is Tom.", "user.brother", "Tom"),
    ("I visited my brother Tom last week.", "user.brother", "Tom"),
    ("My wife is called Marta.", "user.wife", "Marta"),
    ("My dog Rex is three years old.", "user.dog", "Rex"),
    ("My mom, Helen, is a gardener.", "user.mother", "Helen"),
    ("That was my daughter Sara's party.", "user.daughter", "Sara"),
    # Chinese
    ("我叫李雷。", "user.name", "李雷"),
    ("我的名字是王小明。", "user.name", "王小明"),
    ("我住在上海。", "user.location", "上海"),
    ("我现在住在杭州，是一名老师。", "user.location", "杭州"),
    ("我去年搬到了北京。", "user.location", "北京"),
    ("我最近搬到深圳了。", "user.location", "深圳"),
    ("我是四川人。", "user.origin", "四川"),
    ("我的生日是5月3日。", "user.birthday", "05-03"),
    ("我出生于1990年12月1日。", "user.birthday", "1990-12-01"),
    ("我喜欢爬山。", "user.likes", "爬山"),
    ("我特别喜欢猫。", "user.likes", "猫"),
    ("我讨厌香菜。", "user.dislikes", "香菜"),
    ("我不喜欢咖啡。", "user.dislikes", "咖啡"),
    ("我是素食者。", "user.diet", "vegetarian"),
    ("我不吃牛肉。", "user.avoids", "牛肉"),
    ("我对花生过敏。", "user.allergy", "花生"),
    ("我是一名护士。", "user.job", "护士"),
    ("我在招商银行工作。", "user.employer", "招商银行"),
    ("我哥哥叫李明。", "user.brother", "李明"),
    ("我朋友住在上海。", "person.friend.location", "上海"),
    ("我的女儿叫小雨。", "user.daughter", "小雨"),
    # Korean
    ("제 이름은 김민수입니다.", "user.name", "김민수"),
    ("저는 이지은이라고 합니다.", "user.name", "이지은"),
    ("저는 서울에 살아요.", "user.location", "서울"),
    ("서울에 살아요.", "user.location", "서울"),
    ("나는 지금 부산에 살고 있어요.", "user.location", "부산"),
    ("저는 작년에 제주도로 이사했어요.", "user.location", "제주도"),
    ("저는 대구 출신입니다.", "user.origin", "대구"),
    ("제 생일은 5월 3일이에요.", "user.birthday", "05-03"),
    ("저는 등산을 좋아해요.", "user.likes", "등산"),
    ("저는 커피를 정말 좋아합니다.", "user.likes", "커피"),
    ("저는 오이를 싫어해요.", "user.dislikes", "오이"),
    ("저는 채식주의자예요.", "user.diet", "vegetarian"),
    ("저는 고기를 안 먹어요.", "user.avoids", "고기"),
    ("저는 땅콩 알레르기가 있어요.", "user.allergy", "땅콩"),
    ("저는 간호사예요.", "user.job", "간호사"),
    ("저는 네이버에서 일해요.", "user.employer", "네이버"),
    ("제 남동생 이름은 민호예요.", "user.brother", "민호"),
    ("우리 강아지 이름은 초코예요.", "user.dog", "초코"),
]

NEGATIVE: list[str] = [
    # English: questions, suppositions, wishes, others' words, the past, denials, idioms
    "Do I live in Berlin?",
    "Where do I live?",
    "Am I allergic to peanuts?",
    "My name is Ana?",
    "If I lived in Berlin, I would cycle.",
    "If I moved to Berlin I'd learn German.",
    "Imagine I live in Paris.",
    "Suppose my name is Bond.",
    "Pretend I'm a nurse.",
    "I wish I lived in Lisbon.",
    "I might move to Rome.",
    "I want to move to Rome.",
    "I'm thinking of moving to Oslo.",
    "I'm going to move to Oslo next year.",
    "Maybe I like jazz.",
    "I used to live in Boston.",
    "I lived in Boston.",
    "I moved to Paris in 2010.",
    "I moved to Paris and then to Rome.",
    "I almost moved to Vienna.",
    "She said I live in Berlin.",
    "She told me I'm allergic to peanuts.",
    "He lives in Berlin.",
    "Tom lives in Berlin.",
    "My brother says I live in Berlin.",
    'The line was "I live in Berlin".',
    "He wrote: “My name is Max.”",
    "Translate: my name is Ana",
    "Translate this sentence. 'I live in Berlin.'",
    "For example, I live in Berlin.",
    "In the novel, my name is Ishmael.",
    "I don't live in Berlin.",
    "I do not live in Berlin anymore.",
    "I no longer work for Siemens.",
    "I'm not vegetarian.",
    "I am not allergic to peanuts.",
    "My name is not Ana.",
    "I love you.",
    "I love it.",
    "I love that idea.",
    "I like your plan.",
    "I hate it when it rains.",
    "I hate to say it.",
    "I'd like coffee.",
    "I like dogs more than cats.",
    "I like how you explained that.",
    "I like the new design.",
    "I live in fear.",
    "I live in a small flat.",
    "I work at night.",
    "I work from home.",
    "I'm a morning person.",
    "I'm a bit tired.",
    "I'm from HR.",
    "I was born in May.",
    "I was born in 1990.",
    "My birthday is February 31.",
    "My birthday is soon.",
    "My number is 555-0199.",
    "My email is ana@example.org.",
    "My name is 12345.",
    "My favorite contact is ana@example.org",
    "> I live in Berlin.",
    "```\nI live in Berlin.\n```",
    "`my name is Ana`",
    "My sister I love.",
    "My favorite bookstore is closing down.",
    "I like 10 percent.",
    "I love Einaudi too.",
    "I love seeing more gardens pop up.",
    "My wife May arrive.",
    "When I was a child, I lived in Rome.",
    "My ex wife Anna is fine.",
    "I can't say I like jazz.",
    "Nobody knows where I live in Berlin.",
    "Someone who says I live in Berlin is wrong.",
    # Chinese
    "我住在上海吗？",
    "我住在哪里？",
    "如果我住在上海，我就去看你。",
    "要是我搬到北京就好了。",
    "我想搬到北京。",
    "我打算搬到北京。",
    "我可能搬到北京。",
    "我以前住在上海。",
    "我不住在上海。",
    "我不再住在上海。",
    "他说我住在上海。",
    "她住在上海。",
    "他叫李雷。",
    "“我叫李雷。”",
    "翻译：我叫李雷",
    "我喜欢你。",
    "我喜欢这个。",
    "我不是素食者。",
    "我对花生不过敏。",
    "我住在朋友家。",
    "我住在学校附近。",
    "我是好人。",
    "我是一个人。",
    "小说里我叫张三。",
    "我的生日是13月40日。",
    "我觉得我对花生过敏。",
    "听说我哥哥叫李明。",
    "我喜欢晴朗、温暖的天气。",
    # Korean
    "저는 서울에 살아요?",
    "제 이름은 뭐예요?",
    "만약 제가 서울에 살면 좋겠어요.",
    "제가 서울에 산다면 매일 갈 거예요.",
    "저는 서울에 살고 싶어요.",
    "저는 서울로 이사하려고 해요.",
    "저는 서울로 이사할 예정이에요.",
    "저는 예전에 서울에 살았어요.",
    "저는 서울에 안 살아요.",
    "저는 서울에 살지 않아요.",
    "친구가 제가 서울에 산다고 했어요.",
    "그는 서울에 살아요.",
    "민수는 서울에 살아요.",
    "저는 채식주의자가 아니에요.",
    "저는 땅콩 알레르기가 없어요.",
    "저는 당신을 좋아해요.",
    "저는 이것을 좋아해요.",
    "저는 집에 살아요.",
    "저는 학교 근처에 살아요.",
    "아마 저는 커피를 좋아해요.",
    "'저는 서울에 살아요'라는 문장",
    "영화에서 제 이름은 민수예요.",
    "제 생일은 13월 40일이에요.",
]


def test_the_tables_are_as_long_as_promised() -> None:
    assert len(POSITIVE) >= 60
    assert len(NEGATIVE) >= 60


@pytest.mark.soak
@pytest.mark.req("MP-17")
@for_each(("text", "key", "value"), POSITIVE)
def test_plain_statements_are_read(text: str, key: str, value: object) -> None:
    found = propose(text, "user", TS)
    assert (key, value) in [(each.key, each.value) for each in found]
    for each in found:
        assert each.quote in text
        assert 0.8 <= each.confidence <= 1
        assert each.why


@pytest.mark.req("MP-17")
@for_each("text", NEGATIVE)
def test_what_is_not_sure_is_not_read(text: str) -> None:
    assert propose(text, "user", TS) == []


@pytest.mark.parametrize("role", ["assistant", "tool", "system", "developer"])
def test_only_the_user_speaks_of_the_user(role: str) -> None:
    assert propose("My name is Ana. I live in Berlin.", role, TS) == []


def test_several_sentences_and_languages_at_once() -> None:
    text = "Hello! My name is Ana and I live in Berlin. Do I like tea? 我对花生过敏。 저는 커피를 좋아해요."
    assert [(each.key, each.value) for each in propose(text, "user", TS)] == [
        ("user.name", "Ana"),
        ("user.location", "Berlin"),
        ("user.allergy", "花生"),
        ("user.likes", "커피"),
    ]


def test_a_form_full_of_statements_is_no_statement() -> None:
    text = " ".join(f"I like thing{chr(97 + index)}." for index in range(PROPOSALS_MAX + 5))
    assert propose(text, "user", TS) == []


def test_the_same_thing_twice_is_one_proposal() -> None:
    assert len(propose("I live in Berlin. I live in Berlin.", "user", TS)) == 1


@pytest.mark.soak
@given(st.text(max_size=400))
def test_any_text_is_read_without_harm(text: str) -> None:
    for each in propose(text, "user", TS):
        assert each.quote in text


@for_each("seed", ["my name is " * 5000, "I live in A " * 5000, "我" * 40000, "저는 " * 20000, "`" * 40000])
def test_hostile_text_costs_little(seed: str) -> None:
    propose(seed, "user", TS)
