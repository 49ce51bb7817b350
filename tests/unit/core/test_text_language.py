"""The language of a text: from a few words, the same always, and English where nothing says otherwise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.text.analyzer import analyze, ascii_words, stem, stem_in, stop_words
from muniment.core.text.patterns import numbers_in_han, plain_letters
from muniment.core.text.text_language import LATIN_LANGUAGES, text_language
from products import for_each


def judged(text: str) -> str | None:
    folded = text.casefold()
    return text_language(folded, plain_letters(folded).replace("?", " ").replace("'", " ").split())


@for_each(
    ("text", "language"),
    [
        ("Wo wohnt Anna?", "german"),
        ("Ich habe zwei Katzen", "german"),
        ("donde vive Ana", "spanish"),
        ("Mi casa es tu casa", "spanish"),
        ("où habite Anne", "french"),
        ("je ne sais pas", "french"),
        ("onde mora a Ana", "portuguese"),
        ("não sei", "portuguese"),
        ("dove abita Anna e perché", "italian"),
        ("il gatto della signora", "italian"),
        ("waar woont Anna", "dutch"),
        ("Ik heb een hond", "dutch"),
        ("Grüße aus der Straße", "german"),
        ("Where does Anna live?", None),
        ("hotel booking dates", None),
        ("Die Hard", None),
        ("I met him in Los Angeles, near La Brea", None),
        ("Vincent van Gogh", None),
        ("She said she loved the song La vie en rose and the hat", None),
        ("café", None),
        ("", None),
    ],
)
def test_the_language_of_a_text(text: str, language: str | None) -> None:
    assert judged(text) == language


@given(st.lists(st.sampled_from(("cat", "dog", "train", "soup", "planet", "river", "music")), min_size=1))
def test_english_words_stand_under_the_terms_that_english_gives_them(words: list[str]) -> None:
    text = " ".join(words)
    assert analyze(text) == [stem(word) for word in words]


@given(st.sampled_from(LATIN_LANGUAGES), st.lists(st.sampled_from(("garten", "perro", "maison", "gatto", "livro"))))
def test_a_text_in_any_language_keeps_its_words_as_they_are_written(language: str, words: list[str]) -> None:
    small = sorted(stop_words(language) - stop_words("english"), key=len)[-3:]
    terms = analyze(" ".join([*small, *words]))
    assert {stem(word) for word in words} <= set(terms)


@given(st.text())
def test_any_text_is_judged_and_always_the_same(text: str) -> None:
    words = ascii_words(text) if text.isascii() else text.split()
    assert text_language(text, words) == text_language(text, words)


@for_each(
    ("run", "numbers"),
    [
        ("十二", ["12"]), ("二十", ["20"]), ("三百", ["300"]), ("一千零一夜", ["1001"]), ("两万五千", ["25000"]),
        ("三亿二千万", ["320000000"]), ("二〇一九年", ["2019"]), ("三五个", []), ("万一", []),
        ("十分", []), ("一", []), ("千万", []), ("十万", ["100000"]), ("零", []),
    ],
)  # fmt: skip
def test_chinese_numerals(run: str, numbers: list[str]) -> None:
    assert numbers_in_han(run) == numbers


@for_each("digits", ["１２３", "๑๒๓", "١٢٣", "۱۲۳", "१२३", "১২৩"])
def test_digits_of_every_script_are_the_same_number(digits: str) -> None:
    assert analyze(digits) == ["123"]


@for_each(
    ("text", "term"),
    [("en enero", "#m1"), ("im März", "#m3"), ("en août", "#m8"), ("não, em dezembro", "#m12"), ("nel maggio", "#m5"),
     ("in maart ging ik", "#m3"), ("5 мая", "#m5"), ("siebzehn und drei", "17"), ("две кошки", "2")],
)  # fmt: skip
def test_months_and_small_numbers_have_the_terms_of_english(text: str, term: str) -> None:
    assert term in analyze(text)


@pytest.mark.parametrize(("sentence", "end"), [("แมวของฉันชื่อมะลิ", "ใหม่"), ("我家的猫叫小白", "上海")])
def test_the_end_of_a_long_run_without_blanks_is_indexed(sentence: str, end: str) -> None:
    terms = set(analyze(end))
    assert terms
    assert terms.isdisjoint(analyze(sentence * 20))
    assert terms <= set(analyze(sentence * 20 + end))


def test_forms_of_a_word_share_a_stem_in_each_language() -> None:
    forms = {
        "spanish": "vive vivían",
        "german": "wohnung wohnungen",
        "french": "continuation continuations",
        "portuguese": "morava moravam",
        "italian": "abitava abitavano",
        "dutch": "maan manen",
        "russian": "квартира квартиры",
    }
    assert sorted(forms) == sorted((*LATIN_LANGUAGES, "russian"))
    shared = {language: {stem_in(language, word) for word in words.split()} for language, words in forms.items()}
    assert {language: found for language, found in shared.items() if len(found) != 1} == {}
