"""Questions in other languages find what was said in other forms of their words, and names in other scripts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from muniment.core.policy import RecallPolicy
from muniment.core.text import analyzer
from muniment.core.text.text_language import LATIN_LANGUAGES
from muniment.memory._index import MemoryIndex, SpokenTurn
from muniment.memory.ranking import rank
from products import for_each

PAIRS = Path(__file__).parent / "language_pairs"
SAID = datetime(2025, 1, 1, tzinfo=UTC)


def pairs(language: str) -> list[tuple[str, str]]:
    lines = (PAIRS / f"{language}.txt").read_text("utf-8").splitlines()
    return [(question, passage) for question, _, passage in (line.partition(" | ") for line in lines)]


def first(question: str, passages: Sequence[str]) -> str:
    """The text of the best hit."""
    index = MemoryIndex(SpokenTurn(str(place), "", "user", SAID, text) for place, text in enumerate(passages))
    found = rank(question, index, RecallPolicy(), date(2025, 2, 1), 1)
    return passages[found[0].ordinal] if found else ""


def share_found(language: str) -> float:
    asked = pairs(language)
    passages = [passage for _, passage in asked]
    return sum(first(question, passages) == passage for question, passage in asked) / len(asked)


@pytest.mark.soak
@pytest.mark.parametrize("language", [*LATIN_LANGUAGES, "russian"])
def test_questions_find_other_forms_of_their_words(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And find fewer where a word is its own stem."""
    assert len(pairs(language)) > 20
    found = share_found(language)
    forget()
    monkeypatch.setattr(analyzer, "stem_in", lambda language, word: word)
    plain = share_found(language)
    forget()
    assert found >= 0.9, (found, plain)
    assert plain < found - 0.15, (found, plain)


def forget() -> None:
    for terms in (analyzer._TERMS, *analyzer._TERMS_IN.values()):
        terms.clear()


OTHERS = (
    "We had soup for lunch.",
    "My train was late again.",
    "Мы ели суп на обед.",
    "어제 비가 왔어요.",
    "昨日は雨でした。",
)


@for_each(
    ("question", "said"),
    [
        ("Where does Maria live?", "Мария живёт в Казани."),
        ("Where does Anna live?", "Мы были в гостях у Анны."),
        ("What did Ivan buy?", "Вчера Ивану подарили велосипед."),
        ("Что купил Иван?", "Ivan got a new bicycle."),
        ("Где живёт Наталья?", "Natalia has a flat in Porto."),
        ("Who is Sergei?", "Сергей работает в банке."),
        ("Who is Sergei?", "Я говорил с Сергеем."),
        ("Where is Maria?", "Мы обедали с Марией."),
        ("What did Katya paint?", "Я видел картину Кати."),
        ("Who is Mikhail?", "Михаил работает в банке."),
        ("Who is Artem?", "Артём работает в банке."),
        ("Where is Tatiana?", "Татьяну видели на вокзале."),
        ("Where is Pavlos?", "Ο Παύλος μένει στην Πάτρα."),
        ("Where is Maria?", "Η Μαρία μένει στην Πάτρα."),
        ("Πού είναι η Άννα;", "Anna is at the library."),
        ("What does Minjun play?", "민준이는 기타를 쳐요."),
        ("서연은 어디에 있어요?", "Seoyeon moved to Busan."),
        ("Where is Kim Minjun?", "김민준은 도서관에 있어요."),
        ("What did Maria order?", "マリアはコーヒーを頼んだ。"),
        ("What did Fatima order?", "ファティマはお茶を頼んだ。"),
        ("トムはどこですか。", "Tom is in the garden."),
        ("Wer ist Jürgen?", "Jurgen plays the cello."),
        ("Where is Beyonce?", "Hier, j'ai vu Beyoncé à la gare."),
        ("Who lives in Madrid?", "Mi hermana vive en Madrid desde hace años."),
        ("How much is the rent, 1250?", "我的房租是一千二百五十块。"),
        ("What cost 12 dollars?", "十二ドルの本を買った。"),
        ("Room 305?", "ฉันอยู่ห้อง ๓๐๕"),
        ("Flight ١٢٣?", "My flight is number 123."),
        ("Who has 3 cats?", "Meine Schwester hat drei Katzen."),
        ("¿Quién tiene 4 perros?", "Chez mon oncle il y a quatre chiens."),
    ],
)
def test_names_and_numbers_match_across_scripts_and_languages(question: str, said: str) -> None:
    assert first(question, [*OTHERS, said]) == said


@for_each(
    ("question", "said"),
    [
        ("サーバはどこ", "新しいサーバーは地下にあります。"),
        ("ｻｰﾊﾞｰの名前", "新しいサーバーは地下にあります。"),
        ("犬の名前は何ですか", "私の犬の名前はポチです。"),
        ("どこに引っ越しましたか", "先月、大阪に引っ越した。"),
        ("แมวชื่ออะไร", "แมวของฉันชื่อมะลิ"),
        ("บ้านอยู่ที่ไหน", "บ้านของเราอยู่เชียงใหม่"),
    ],
)
def test_words_are_found_where_nothing_stands_between_them(question: str, said: str) -> None:
    others = ("明日は会議があります。", "コーヒーが好きです。", "วันนี้ฝนตกหนัก", "พรุ่งนี้ไปตลาด")
    assert first(question, [*others, said]) == said


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Wohnungen München", "Ich habe eine Wohnung in München."),
        ("hermanas", "Mis hermanas viven lejos."),
        ("Anna Katze", "Die Katze von Anna ist krank."),
    ],
)
def test_a_query_too_short_to_tell_its_language_meets_the_words_as_they_were_written(question: str, said: str) -> None:
    assert first(question, [*OTHERS, said]) == said
