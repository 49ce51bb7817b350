"""What is a word, a sentence, a heading; which language is it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from muniment.verify._text_measures import (
    detect_language,
    find_headings,
    known_languages,
    sentence_count,
    split_paragraphs,
    word_count,
)
from products import for_each


@for_each(
    ("text", "count"),
    [("", 0), ("don't stop", 3), ("a_b c-d", 3), ("我住在北京", 5), ("나는 서울에 산다", 3), ("3.14 is pi", 4)],
)
def test_words(text: str, count: int) -> None:
    assert word_count(text) == count


@for_each(
    ("text", "count"),
    [
        ("", 0),
        ("no stop", 1),
        ("One. Two! Three?", 3),
        ("Dr. Smith of the U.S. Army met Mr. Jones. They left.", 2),
        ("He lives in the U.S. The weather is fine.", 2),
        ('She said "Stop." Then she left.', 2),
        ("Version 2.5 is out.", 1),
        ("A line\nwithout a stop\nis one", 1),
        ("1. First\n2. Second", 3),
        ("I met J. Smith today.", 1),
        ("今天很好。明天也好！", 2),
        ("Wait... what", 1),
    ],
)
def test_sentences(text: str, count: int) -> None:
    assert sentence_count(text) == count


def test_headings_stand_outside_of_fences() -> None:
    text = "# One #\n```\n# not this\n```\n   ### Three\n#no\n\n~~~\n# nor this"
    assert find_headings(text) == [(1, "One"), (3, "Three")]


def test_paragraphs_between_separators_keep_what_is_empty_inside() -> None:
    assert split_paragraphs("a\n \n\nb\n") == ["a", "b"]
    assert split_paragraphs("***a***b***", "***") == ["a", "b"]
    assert len(split_paragraphs("a******b", "***")) == 3


SENTENCES = {
    "en": "The quick brown fox jumps over the lazy dog near the river.",
    "de": "Der schnelle braune Fuchs springt über den faulen Hund am Fluss.",
    "fr": "Le renard brun saute par-dessus le chien paresseux près de la rivière.",
    "es": "El rápido zorro marrón salta sobre el perro perezoso cerca del río.",
    "pt": "A rápida raposa marrom salta sobre o cão preguiçoso perto do rio.",
    "it": "La veloce volpe marrone salta sopra il cane pigro vicino al fiume.",
    "ru": "Быстрая коричневая лиса прыгает через ленивую собаку у реки.",
    "uk": "Швидка коричнева лисиця стрибає через ледачого собаку біля річки.",
    "ar": "الثعلب البني السريع يقفز فوق الكلب الكسول بالقرب من النهر.",
    "fa": "روباه قهوه‌ای سریع از روی سگ تنبل کنار رودخانه می‌پرد.",
    "hi": "तेज़ भूरी लोमड़ी नदी के पास आलसी कुत्ते के ऊपर से कूदती है।",
    "ko": "빠른 갈색 여우가 강가의 게으른 개를 뛰어넘는다.",
    "ja": "素早い茶色の狐が川のそばの怠け者の犬を飛び越える。",
    "zh": "敏捷的棕色狐狸跳过河边那只懒狗。",
    "th": "สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัขขี้เกียจ",
    "el": "Η γρήγορη καφέ αλεπού πηδά πάνω από το τεμπέλικο σκυλί.",
    "he": "השועל החום המהיר קופץ מעל הכלב העצלן.",
    "vi": "Con cáo nâu nhanh nhẹn nhảy qua con chó lười biếng gần bờ sông.",
}


@for_each("code", SENTENCES)
def test_languages(code: str) -> None:
    found = detect_language(SENTENCES[code])
    assert found is not None
    assert found.code == code
    assert code in known_languages()
    assert detect_language(SENTENCES[code]) == found


def test_capitals_are_read_as_the_words_they_spell_unless_they_are_taken_literally() -> None:
    shouted = SENTENCES["de"].upper()
    assert detect_language(shouted).code == "de"  # type: ignore[union-attr]
    assert detect_language("XYZZY", literal=True) is not None
    assert detect_language("12:30 — 14.5 %") is None
    assert detect_language("see https://example.org/der-die-das and me@example.org") is not None


@given(st.text())
def test_any_text_has_a_language_or_none(text: str) -> None:
    found = detect_language(text)
    assert found is None or found.code in known_languages()
