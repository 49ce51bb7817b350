"""Words of other scripts in Latin letters, and the spellings that a name may have in an English text."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from muniment.core.text.latin_names import plain, spelled_hangul, spelled_katakana, spelled_names
from products import for_each


@for_each(
    ("written", "spelled"),
    [
        ("Мария", "maria"),
        ("Дмитрий", "dmitry"),
        ("Пётр", "pyotr"),
        ("Хрущёв", "hrushchev"),
        ("Раїса", "raisa"),
        ("Ђорђе", "djordje"),
        ("Љиљана", "ljiljana"),
        ("Παπαδόπουλος", "papadopoulos"),
        ("Παύλος", "pavlos"),
        ("ΜΑΡΙΑ", "maria"),
        ("ティナ", "tina"),
        ("ファティマ", "fatima"),
        ("ウィル", "wiru"),
        ("シェリー", "sheri"),
        ("ジョン", "jon"),
        ("デュラン", "dyuran"),
        ("ロッテ", "rotte"),
        ("ﾄﾑ", "tomu"),
        ("さゝき", "saki"),
        ("!é", "e"),
    ],
)
def test_a_word_sign_by_sign(written: str, spelled: str) -> None:
    assert plain(written) == plain(unicodedata.normalize("NFD", written)) == spelled


@for_each(
    ("name", "forms"),
    [
        ("anna", "Анна Анны Анне Анну Анной"),
        ("maria", "Мария Марии Марию Марией Марі́я"),
        ("katya", "Катя Кати Кате Катю Катей"),
        ("natalia", "Наталья Натальи Наталье Наталью Натальей"),
        ("natalya", "Наталья Натальи Наталье Наталью Натальей"),
        ("tatiana", "Татьяна Татьяны Татьяной"),
        ("ivan", "Иван Ивана Ивану Иваном Иване"),
        ("igor", "Игорь Игоря Игорю Игоре Игорем"),
        ("sergey", "Сергей Сергея Сергею Сергеем Сергее"),
        ("dmitry", "Дмитрий Дмитрия Дмитрию Дмитрием Дмитрии"),
        ("artem", "Артём Артем Артёма Артему"),
        ("artyom", "Артём Артёма"),
        ("mikhail", "Михаил Михаила Михаилом"),
        ("muhammad", "Мухаммад Мухаммада"),
        ("tolstoy", "Толстой"),
        ("giorgos", "Γιώργος"),
        ("evgenia", "Ευγενία"),
    ],
)
def test_a_name_in_any_case(name: str, forms: str) -> None:
    assert [form for form in forms.split() if name not in spelled_names(form, frozenset())] == []


def test_only_what_may_be_a_name_is_spelled_and_in_few_ways() -> None:
    assert spelled_names("Вчера мы ели суп, а Анна спала.", {"вчера"}) == ["ann", "anna"]
    assert spelled_names("we met Anna", frozenset()) == []
    names = ("Михаилу", "Татьяна", "Алёна", "Натальей", "Сергей")
    assert all(len(spelled_names(name, frozenset())) <= 4 for name in names)


def test_names_in_katakana() -> None:
    assert spelled_katakana("マリアとトム") == ["maria", "tomu", "tom"]
    assert spelled_katakana("ここ") == spelled_katakana("ア") == []


@for_each(
    ("word", "spelled"),
    [
        ("김민준", ["kim", "minjun"]),
        ("민준이", ["minjun"]),
        ("이지은", ["lee", "jieun"]),
        ("서연", ["seoyeon"]),
        ("도서관", []),
    ],
)
def test_korean_names_by_family_and_given_name(word: str, spelled: list[str]) -> None:
    assert spelled_hangul(word) == spelled


@given(st.text(max_size=80))
def test_any_text(text: str) -> None:
    assert all("a" <= letter <= "z" for letter in plain(text))
    found = [*spelled_names(text, frozenset()), *spelled_katakana(text)]
    assert all(name.isascii() for name in found)
