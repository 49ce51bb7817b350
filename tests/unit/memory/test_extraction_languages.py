"""What is read in languages besides English (MP-17): statements, traps, which language a sentence is, what it costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muniment.handles.memory import Memory
from muniment.memory.extraction.languages.choice import language_of
from muniment.memory.extraction.languages.tables import LANGUAGES, table
from muniment.memory.extraction.patterns import propose, take_back
from products import for_each

TS = "2026-05-20T12:00:00.000000Z"
FIXTURES = Path(__file__).parents[3] / "benchmarks" / "data" / "chat_facts"
CODES = ("zh", "ko", "ja", "es", "de", "fr", "pt")
RECALL_LEAST, PRECISION_LEAST = 0.85, 0.95

STATEMENTS: list[tuple[str, str, str]] = [
    ("vivo en Zaragoza y trabajo de enfermera", "user.location", "Zaragoza"),
    ("vivo en Zaragoza y trabajo de enfermera", "user.job", "enfermera"),
    ("mi hermano vive en Roma", "person.brother.location", "Roma"),
    ("soy alergico a los cacahuetes, ojo", "user.allergy", "cacahuetes"),
    ("mi amigo Dani trabaja ahora en Iberia", "person.dani.employer", "Iberia"),
    ("me encanta escalar y hacer ganchillo", "user.likes", "escalar"),
    ("me encanta escalar y hacer ganchillo", "user.likes", "hacer ganchillo"),
    ("llámame Nacho", "user.nickname", "Nacho"),
    ("ich wohne in Kassel und arbeite als Hebamme", "user.location", "Kassel"),
    ("ich wohne in Kassel und arbeite als Hebamme", "user.job", "Hebamme"),
    ("mein Bruder wohnt in Rom", "person.brother.location", "Rom"),
    ("bin übrigens veganerin", "user.diet", "veganerin"),
    ("meine schwester Annika heiratet im juni", "user.sister", "Annika"),
    ("hab ne haselnussallergie", "user.allergy", "haselnuss"),
    ("j'habite à Nantes", "user.location", "Nantes"),
    ("chui allergique aux arachides", "user.allergy", "arachides"),
    ("mon pote Karim bosse à la SNCF maintenant", "person.karim.employer", "SNCF"),
    ("ma couleur préférée c'est le bordeaux", "user.favorite.color", "bordeaux"),
    ("moro em Curitiba e sou fisioterapeuta", "user.location", "Curitiba"),
    ("moro em Curitiba e sou fisioterapeuta", "user.job", "fisioterapeuta"),
    ("minha esposa é dentista", "person.wife.job", "dentista"),
    ("não como carne de porco", "user.avoids", "carne de porco"),
    ("福岡に住んでるんだけど、週末どこ行こう", "user.location", "福岡"),
    ("兄がローマに住んでて年末しか帰ってこない", "person.brother.location", "ローマ"),
    ("ボルダリングと編み物が好き", "user.likes", "ボルダリング"),
    ("ボルダリングと編み物が好き", "user.likes", "編み物"),
    ("えびアレルギーです、念のため", "user.allergy", "えび"),
    ("我朋友大伟现在在腾讯", "person.大伟.employer", "腾讯"),
    ("喜欢攀岩和钩针", "user.likes", "钩针"),
    ("以后叫我阿杰就行", "user.nickname", "阿杰"),
    ("지난달에 카카오로 이직했는데 아직 적응중", "user.employer", "카카오"),
    ("우리 형 로마에 살아서 명절에만 봐", "person.brother.location", "로마"),
    ("클라이밍이랑 뜨개질 좋아해", "user.likes", "뜨개질"),
]

TRAPS = [
    "si viviera en parís comería croissants",
    "traduce al inglés: me llamo Pedro y vivo en Soria",
    'mi jefe dijo "soy alérgico a las reuniones"',
    "antes vivía en Roma",
    "¿vivo en Madrid?",
    "juguemos a rol: yo soy un enano y odio a los elfos",
    "mi hermana cree que soy un adicto al trabajo",
    "wenn ich in berlin wohnen würde, wär ich froh",
    "übersetz mal ins englische: ich heiße Karl und wohne in Ulm",
    "früher hab ich mal in Köln gewohnt",
    "bin kein vegetarier",
    "im film spielt er einen witwer, der in Hamburg lebt",
    "si j'habitais à Paris je mangerais des croissants",
    "je ne suis pas végétarien",
    "mon chef a dit « je suis allergique aux réunions »",
    "avant j'habitais à Rome",
    "se eu morasse em paris comeria croissant todo dia",
    "não sou vegetariano",
    "no filme ele é um viúvo que mora em Ouro Preto",
    "talvez a gente vá morar na Espanha um dia",
    "パリに住んでたら毎日クロワッサン食べるのに",
    "英語に訳して：私の名前はケンです、京都に住んでいます",
    "昔はローマに住んでたなあ",
    "ベジタリアンではないです",
    "上司が「俺は会議アレルギーなんだ」って言ってて笑った",
    "要是我住在巴黎就天天吃可颂了",
    "以前在罗马住过，好多年前了",
    "帮我翻译成英文：我叫李雷，我住在北京",
    "파리에 살면 매일 크루아상 먹을텐데",
    "영어로 번역해줘: 제 이름은 철수이고 수원에 삽니다",
    "예전에는 로마에 살았었지",
]


@pytest.mark.soak
@pytest.mark.req("MP-17")
@for_each(("text", "key", "value"), STATEMENTS)
def test_statements_of_chats_are_read(text: str, key: str, value: str) -> None:
    found = propose(text, "user", TS)
    assert (key, value) in [(each.key, each.value) for each in found]
    assert all(each.quote in text and each.why for each in found)


@pytest.mark.req("MP-17")
@for_each("text", TRAPS)
def test_no_trap_is_taken(text: str) -> None:
    assert propose(text, "user", TS) == []


@for_each("code", CODES)
def test_messages_to_develop_on_are_read(code: str) -> None:
    """Most of what was written to develop on is found, little else is, and none of its traps is taken."""
    rows = [
        json.loads(line) for line in (FIXTURES / f"lang_{code}_develop.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    wanted = hits = proposed = right = 0
    for row in rows:
        facts = [fact for fact in row["facts"] if fact["key"] != "instruction"]
        found = [each for each in propose(row["text"], "user", TS) if "instruction" not in each.key]
        assert row["facts"] or not found, row["text"]
        wanted += len(facts)
        hits += sum(any(_fits(each.key, each.quote, fact) for each in found) for fact in facts)
        proposed += len(found)
        right += sum(any(_fits(each.key, each.quote, fact) for fact in facts) for each in found)
    assert hits / wanted >= RECALL_LEAST
    assert right / proposed >= PRECISION_LEAST


def _fits(key: str, quote: str, fact: dict[str, str]) -> bool:
    named = {"user.dog": "user.pet", "user.cat": "user.pet"}.get(key, key)
    said, told = quote.casefold(), str(fact["value"]).casefold()
    return named == fact["key"] and (told in said or said in told or said.split()[-1] in told)


@for_each(
    ("text", "language"),
    [
        ("my abuela lives in Rome and loves siestas", "english"),
        ("I said ich bin ein Berliner", "english"),
        ("we had a déjà vu at the café", "english"),
        ("the film is called La vita è bella", "english"),
        ("tengo dos gatos y un perro", "spanish"),
        ("tenho dois gatos e um cachorro", "portuguese"),
        ("j'ai deux chats et un chien", "french"),
        ("ich hab zwei katzen und einen hund", "german"),
        ("猫を二匹飼ってます", "japanese"),
        ("我有两只猫", "chinese"),
        ("고양이 두 마리 키워요", "korean"),
        ("123 !!", None),
    ],
)
def test_a_sentence_is_read_in_its_own_language(text: str, language: str | None) -> None:
    assert language_of(text, text) == language


def test_english_with_foreign_words_says_what_it_says() -> None:
    assert propose("The waiter said me llamo Juan and left", "user", TS) == []
    assert propose("how do you say vivo en Roma in Italian", "user", TS) == []
    found = propose("I live in São Paulo with my mãe", "user", TS)
    assert [(each.key, each.value) for each in found] == [("user.location", "São Paulo")]


@for_each(
    ("text", "key", "value"),
    [
        ("ya no vivo en Madrid", "user.location", "Madrid"),
        ("ich wohne nicht mehr in Berlin", "user.location", "Berlin"),
        ("je n'habite plus à Lyon", "user.location", "Lyon"),
        ("não moro mais em Recife", "user.location", "Recife"),
        ("もう東京には住んでいません", "user.location", "東京"),
        ("我不住在北京了", "user.location", "北京"),
        ("저는 더 이상 서울에 살지 않아요", "user.location", "서울"),
    ],
)
def test_what_no_longer_holds_is_taken_back(text: str, key: str, value: str) -> None:
    assert [(each.key, each.value) for each in take_back(text, "user")] == [(key, value)]
    assert propose(text, "user", TS) == []


@pytest.mark.req("MP-06", "MP-17")
@pytest.mark.parametrize(
    ("said", "asked", "told"),
    [
        ("soy vegana y vivo en Zaragoza", "¿dónde vivo?", "Zaragoza"),
        ("我对花生过敏，点外卖要注意啥", "我对什么过敏？", "花生"),
    ],
)
def test_what_was_said_stands_in_the_packet(mem: Memory, said: str, asked: str, told: str) -> None:
    first = mem.run(user_id="u-1", session_id="a")
    first.observe("user", said)
    (found,) = [each for each in first.extract() if each.value == told]
    if found.status != "promoted":  # read in a language that was tried on few chats: it waits for a decision
        assert "confidence" in found.explanation
        first.memory.decide(found.candidate_id, True)
    later = mem.run(user_id="u-1", session_id="b")
    assert told in [fact.value for fact in later.facts()]
    assert told in later.compose("responder", query=asked).text


HOSTILE = {
    "spanish": "tengo un perro que se llama y ",
    "german": "ich habe eine und meine schwester ",
    "french": "j'ai un chat et mon frère ",
    "portuguese": "tenho um gato e minha irmã ",
    "japanese": "私の母の名前は、",
    "chinese": "我的妹妹叫喜欢",
    "korean": "제 동생 이름은 좋아하는 ",
}


@pytest.mark.soak
@pytest.mark.timeout(120)
@for_each("language", LANGUAGES)
def test_long_texts_are_read(language: str) -> None:
    table(language)
    seed = HOSTILE[language]

    propose("\n".join([seed * (500 // len(seed))] * 200), "user", TS)


def test_every_language_has_rules_and_guards() -> None:
    for language in LANGUAGES:
        made = table(language)
        assert len(made.rules) > 50
        assert len(made.kin) > 20
        assert made.taken_back
        for guard in ("silence", "doubt", "past", "question", "negation"):
            assert not made.form(guard).search("zzz")
