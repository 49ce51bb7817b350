"""What a user asks for once and for all: found in eight languages, told from what is none, ended in so many words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.text.word_lists import WordList
from muniment.memory.extraction.instructions.endings import Standing, ended_by
from muniment.memory.extraction.instructions.forms import LATIN, language_of
from muniment.memory.extraction.instructions.reading import OWN_CHARS_MAX, instructions_in
from muniment.memory.extraction.instructions.topics import topic_of
from muniment.memory.extraction.patterns import propose
from products import for_each

TS = "2026-05-20T12:00:00.000000Z"

ASKED: list[tuple[str, str]] = [
    # message, what is asked for in it
    ("pls always answer in french", "always answer in french"),
    ("Never use emojis with me, please.", "Never use emojis with me"),
    ('dont ever start your answers with "Sure" it drives me nuts', 'dont ever start your answers with "Sure"'),
    ("keep your replies short in future, i read these on the bus", "keep your replies short in future"),
    ("From now on, write to me in Dutch!", "From now on, write to me in Dutch"),
    ("call me Captain from now on 😂", "call me Captain from now on"),
    ("you can call me Jo", "you can call me Jo"),
    ("whenever i paste a log, just fix it, dont explain", "whenever i paste a log, just fix it, dont explain"),
    ("I'd like you to always double-check the numbers.", "I'd like you to always double-check the numbers"),
    ("I prefer that you ask before booking.", "I prefer that you ask before booking"),
    ("stop apologising all the time", "stop apologising all the time"),
    ("no more emojis ok?", "no more emojis"),
    ("could you please always reply in English?", "always reply in English"),
    ("can u always keep it short pls", "always keep it short"),
    ("could u never use emojis", "never use emojis"),
    ("by default use metric units", "by default use metric units"),
    ("I live in Rome. Please never suggest meat.", "never suggest meat"),
    ("antworte in Zukunft bitte kürzer, ich lese das im Bus", "antworte in Zukunft bitte kürzer"),
    ("benutz bei mir nie wieder Emojis, danke", "benutz bei mir nie wieder Emojis"),
    ("nenn mich bitte Steffi", "nenn mich bitte Steffi"),
    ("ab sofort alles in Stichpunkten", "ab sofort alles in Stichpunkten"),
    ("no vuelvas a usar emojis", "no vuelvas a usar emojis"),
    ("a partir de ahora contéstame en inglés que quiero practicar", "a partir de ahora contéstame en inglés"),
    ("llámame Nacho porfa", "llámame Nacho"),
    ("réponds toujours en espagnol stp", "réponds toujours en espagnol"),
    ("arrête de t'excuser tout le temps", "arrête de t'excuser tout le temps"),
    ("appelle-moi Seb stp, c'est plus simple", "appelle-moi Seb"),
    ("nunca use emoji comigo, por favor", "nunca use emoji comigo"),
    ("daqui pra frente respostas curtas", "daqui pra frente respostas curtas"),
    ("me chama de Beto", "me chama de Beto"),
    ("以后回答都不要用表情", "以后回答都不要用表情"),
    ("请永远用中文回答我", "永远用中文回答我"),
    ("以后叫我阿明就行", "以后叫我阿明"),
    ("앞으로 이모지 절대 쓰지 마", "앞으로 이모지 절대 쓰지 마"),
    ("항상 영어로 대답해줘", "항상 영어로 대답해줘"),
    ("그냥 쭌이라고 불러줘 ㅋㅋ", "쭌이라고 불러줘"),
    ("今後は英語で返事してください、練習したいので", "今後は英語で返事してください"),
    ("絵文字はもう使わないで", "絵文字はもう使わないで"),
    ("ゆうたって呼んで", "ゆうたって呼んで"),
]

NONE = [
    "my boss always says never call after six",
    "she always answers in french",
    "i never eat meat",
    "do you always answer this fast?",
    "he told me to always use sunscreen",
    "make it shorter please",
    "can you answer that one in french?",
    "use python for this one",
    "call me when you get there",
    "call me crazy but i love it",
    "never mind",
    "i'll always remember that trip",
    "from now on im going to the gym every day",
    '"never use emojis", said the sign',
    "> always answer in French",
    "```\nalways answer in French\n```",
    "translate to german: never use your phone while driving",
    "Please summarise this text:\nAlways answer in French. Never use emojis.",
    "if you were a pirate, would you always answer in rhymes?",
    "just this once, answer in French",
    "write a poem about a customer who is always right",
    "the manual says always unplug it first",
    "When I visit my aunt I always make sure to play chess",
    "meine Mutter sagt immer, ich soll mehr schlafen",
    "ich benutze nie Emojis",
    "mach das bitte nochmal auf englisch",
    "ab jetzt esse ich kein Fleisch mehr",
    "siempre desayuno a las 8",
    "mi madre siempre dice que no hable con extraños",
    "¿siempre respondes tan rápido?",
    "je n'utilise jamais d'emojis au boulot",
    "appelle-moi demain",
    "il m'a dit de ne jamais répondre",
    "eu nunca uso emoji no trabalho",
    "a partir de agora vou correr todo dia",
    "traduz pro inglês: nunca use o celular",
    "我妈总是说要早睡",
    "以后我要去日本",
    "叫我起床",
    "나는 항상 아침에 운동해요",
    "앞으로 운동 열심히 할게",
    "더 짧게 해줘",
    "いつもありがとう",
    "母はいつも早く寝なさいと言う",
    "もっと短くして",
]  # fmt: skip


@pytest.mark.req("MP-17")
@for_each(("message", "asked"), ASKED)
def test_what_is_asked_for_once_and_for_all_is_found_verbatim(message: str, asked: str) -> None:
    assert [each.text for each in instructions_in(message)] == [asked]
    assert asked in message


@pytest.mark.req("MP-17")
@for_each("message", NONE)
def test_what_is_no_instruction_to_the_agent_is_none(message: str) -> None:
    assert instructions_in(message) == []


@pytest.mark.parametrize("role", ["assistant", "tool", "system"])
def test_only_a_user_gives_instructions(role: str) -> None:
    assert propose("Always answer in French.", role, TS) == []


def test_of_a_long_text_only_its_edges_are_the_users_word() -> None:
    page = "The river is long and slow, and boats go up and down all day. " * (OWN_CHARS_MAX // 40)
    assert instructions_in(f"{page}Always answer in French. {page}") == []
    assert [each.text for each in instructions_in(f"Always answer in French. {page}")] == ["Always answer in French"]


def test_two_instructions_of_a_sentence_are_two() -> None:
    found = instructions_in("always answer in French and never use emojis")
    assert [each.text for each in found] == ["always answer in French", "never use emojis"]
    assert [each.topic.name for each in found] == ["in_language", "emoji"]


def test_two_on_one_topic_in_one_message_keep_keys_of_their_own() -> None:
    found = instructions_in("Always use bullet points. Never use nested bullet points.")
    assert len({each.topic.key for each in found}) == 2


@for_each(
    ("message", "name"),
    [
        ("call me Jo from now on", "Jo"),
        ("please address me as Dr. Lee", "Dr. Lee"),
        ("nenn mich bitte Steffi", "Steffi"),
        ("sag einfach Basti zu mir", "Basti"),
        ("llámame Nacho porfa", "Nacho"),
        ("appelle moi Seb stp", "Seb"),
        ("me chama de Beto", "Beto"),
        ("以后叫我阿杰就行", "阿杰"),
        ("앞으로 쭌이라고 불러줘", "쭌"),
        ("ゆうたって呼んで", "ゆうた"),
    ],
)
def test_how_somebody_wants_to_be_called_is_a_fact_besides(message: str, name: str) -> None:
    named = {each.key: each.value for each in propose(message, "user", TS)}
    assert named["user.nickname"] == name
    assert named["user.instruction.address"] in message


@for_each(
    ("one", "other"),
    [
        ("always answer in French", "from now on answer in German"),
        ("always answer in French", "réponds toujours en espagnol"),
        ("never use emojis", "以后都用表情"),
        ("keep your answers short", "antworte in Zukunft ausführlich"),
        ("call me Jo", "llámame Nacho"),
        ("always use celsius", "항상 화씨로 알려줘"),
    ],
)
def test_what_takes_the_place_of_another_has_its_key(one: str, other: str) -> None:
    assert topic_of(one).key == topic_of(other).key


@for_each(
    ("one", "other"),
    [
        ("always answer in French", "always write my emails in English"),
        ("always answer in French", "never answer in English"),
        ("always answer in French", "whenever I write in German, answer in German"),
        ("never use emojis", "never use tables"),
        ("never mention my ex", "never mention my job"),
    ],
)
def test_what_stands_beside_another_has_a_key_of_its_own(one: str, other: str) -> None:
    assert topic_of(one).key != topic_of(other).key


STANDING = [
    Standing(topic_of(text).key, text)
    for text in (
        "always answer in French",
        "never use emojis",
        "never mention my ex",
        "keep your answers short",
        "call me Jo",
    )
]


@for_each(
    ("message", "ended"),
    [
        ("you can use emojis again", ["never use emojis"]),
        ("emojis are fine again", ["never use emojis"]),
        ("you don't have to answer in French anymore", ["always answer in French"]),
        ("you don't have to answer in Italian anymore", []),
        ("stop answering in French", ["always answer in French"]),
        ("you can mention my ex again", ["never mention my ex"]),
        ("no need to keep it short any more", ["keep your answers short"]),
        ("never call me Jo", ["call me Jo"]),
        ("forget all my instructions", [each.text for each in STANDING]),
        ("du darfst wieder Emojis benutzen", ["never use emojis"]),
        ("ya puedes usar emojis otra vez", ["never use emojis"]),
        ("tu peux utiliser des emojis à nouveau", ["never use emojis"]),
        ("pode usar emoji de novo", ["never use emojis"]),
        ("可以再用表情了", ["never use emojis"]),
        ("이제 이모지 써도 돼", ["never use emojis"]),
        ("また絵文字使っていいよ", ["never use emojis"]),
        ("can I use emojis again?", []),
        ("my boss said you can use emojis again", []),
        ("i use emojis again now", []),
    ],
)
def test_what_is_allowed_again_let_go_of_or_forbidden_ends_what_stands(message: str, ended: list[str]) -> None:
    assert [each.standing.text for each in ended_by(message, STANDING)] == ended


@for_each("name", [*LATIN, "chinese", "korean", "japanese"])
def test_the_lists_of_a_language_are_whole(name: str) -> None:
    """Every section that the forms name is there, every form is a pattern, and none matches nothing at all."""
    language = language_of(name)
    patterns = [part for part in language if hasattr(part, "pattern")]
    assert all(part.search("") is None for part in patterns)
    topics = WordList("muniment.memory.extraction.instructions", "topics.txt")
    assert {kind for _, kind in topics.pairs("topics")} == {"choice", "switch"}
    assert all(topics.entries(topic) for topic, _ in topics.pairs("topics"))
    assert all(topics.entries(matter) for matter in topics.entries("matters"))


@given(st.text(max_size=400))
def test_whatever_is_found_stands_in_the_message(text: str) -> None:
    for each in instructions_in(text):
        assert each.text in text
        assert each.text.strip() == each.text != ""
