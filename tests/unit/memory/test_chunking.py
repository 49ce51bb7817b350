"""Chunks of documents: verbatim, in order, covering, bounded, cut where a reader would pause; for any Unicode."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.core.policy import CorpusPolicy
from muniment.core.text.sentences import sentence_spans
from muniment.errors import InvalidInput, InvalidRecord, TooLarge
from muniment.memory._chunking import (
    Document,
    chunk_html,
    chunk_markdown,
    chunk_text,
    media_type_of,
    read_document,
)
from products import for_each

SMALL = CorpusPolicy(chunk_chars=40, chunk_chars_max=64, chunk_chars_min=10)
WAYS = {"text/plain": chunk_text, "text/markdown": chunk_markdown, "text/html": chunk_html}

_LINES = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=90),
        st.sampled_from(
            [
                "",
                "  ",
                "# One",
                "## Two",
                "#",
                "Title\n===",
                "a\n---",
                "```",
                "~~~ x",
                "- item",
                "| a | b |",
                "<p>",
                "</div>",
            ]
        ),
        st.sampled_from(
            ["A sentence. Another one! ", "这是一句。那是另一句！", "e\u0301" * 40, "👩‍👩‍👧" * 20, "x" * 200]
        ),
    ),
    max_size=30,
)
_TEXTS = st.tuples(_LINES, st.sampled_from(["\n", "\r\n", "\r", "\n\n", " "])).map(lambda made: made[1].join(made[0]))


def check(document: Document, policy: CorpusPolicy) -> None:
    """What holds of every document."""
    data = document.text.encode()
    at = 0
    assert document.chunks
    for chunk in document.chunks:
        assert data[chunk.start : chunk.end].decode() == chunk.text
        assert chunk.text in document.text
        assert chunk.text == chunk.text.strip() != ""
        assert len(chunk.text) <= policy.chunk_chars_max
        assert not data[at : chunk.start].decode().strip(), "only white space lies between chunks"
        assert chunk.start >= at
        at = chunk.end
    assert not data[at:].decode().strip()


@settings(max_examples=examples(100), deadline=None)
@given(_TEXTS, st.sampled_from(sorted(WAYS)))
@pytest.mark.req("LG-04")
def test_chunks_are_verbatim_bounded_and_cover_all(text: str, media_type: str) -> None:
    for policy in (SMALL, CorpusPolicy()):
        try:
            document = WAYS[media_type](text, policy)
        except InvalidInput:  # it holds no text
            assert media_type == "text/html" or not text.removeprefix("\ufeff").strip()
            continue
        check(document, policy)
        assert WAYS[media_type](text, policy) == document
        if media_type != "text/html":
            assert document.text == text.removeprefix("\ufeff")


@pytest.mark.soak
@for_each(
    "text",
    [
        "x" * 300_000,
        "." * 300_000,
        "word " * 20_000,
        "这是一个句子。" * 40_000,
        "e" + "\u0301" * 300_000,
        "`" * 300_000,
        "#" * 300_000,
        "# " + "h" * 300_000,
        "```\n" + "line\n" * 20_000,
        "# heading\n" * 30_000,
        "# heading\nbody\n" * 20_000,
        "x" + "\n" * 300_000 + "y",
        "x" + " " * 300_000 + "y",
        "---\n" * 75_000,
        "| a | b |\n" * 30_000,
    ],
    ids=lambda text: repr(text[:12]),
)
@for_each("media_type", sorted(WAYS))
def test_much_of_anything(text: str, media_type: str) -> None:
    check(WAYS[media_type](text, CorpusPolicy()), CorpusPolicy())


@pytest.mark.parametrize("text", ["x" * 1_000_000, "# heading\n" * 100_000])
def test_a_megabyte(text: str) -> None:
    check(chunk_markdown(text), CorpusPolicy())


def test_headings_begin_chunks_and_make_paths() -> None:
    body = "Something is said here at some length, so that the section can stand on its own. " * 2
    headings = ("# Guide", "## Install #", "Usage\n-----", "### Deep", "# Other")
    text = "\n\n".join(f"{heading}\n\n{body}" for heading in headings)
    document = chunk_markdown(text)
    assert document.title == "Guide"
    assert [chunk.headings for chunk in document.chunks] == [
        ("Guide",),
        ("Guide", "Install"),
        ("Guide", "Usage"),
        ("Guide", "Usage", "Deep"),
        ("Other",),
    ]
    starts = [chunk.text.splitlines()[0] for chunk in document.chunks]
    assert starts == ["# Guide", "## Install #", "Usage", "### Deep", "# Other"]


def test_short_sections_share_a_chunk_and_the_headings_they_have_in_common() -> None:
    (chunk,) = chunk_markdown("# A\n\n## B\n\none\n\n## C\n\ntwo").chunks
    assert chunk.headings == ("A",)


def test_a_heading_stays_with_what_it_is_the_heading_of() -> None:
    text = f"# One\n\n{'a' * 11}\n\n# Two\n\n{'b' * 39}\n\n# Three\n\n{'c ' * 40}"
    chunks = [chunk.text for chunk in chunk_markdown(text, SMALL).chunks]
    assert all(not text.startswith(("a", "b")) for text in chunks)
    assert not any(chunk.endswith(("# Two", "# Three")) for chunk in chunks)


def test_a_paragraph_between_the_two_sizes_stays_whole() -> None:
    whole = "y" * 60
    assert whole in [chunk.text for chunk in chunk_text(f"one two three\n\n{whole}\n\nfour five six", SMALL).chunks]


def test_long_paragraphs_are_cut_after_sentences() -> None:
    for sentence in ("This is a sentence of mine. ", "这是我写的一个句子，不长。", "이것은 내가 쓴 문장이다. "):
        chunks = chunk_text(sentence * 40, SMALL).chunks
        assert len(chunks) > 5
        assert all(chunk.text.endswith((".", "。")) for chunk in chunks)


def test_a_page_of_dots_is_read_once() -> None:
    """Once for each dot would take minutes."""
    assert sentence_spans("." * 500_000 + "x") == [(0, 500_001)]
    assert sentence_spans("One... Two?! (Three.) Four") == [(0, 6), (7, 12), (13, 21), (22, 26)]


def test_without_sentences_words_stay_whole_and_without_words_characters() -> None:
    assert all(set(chunk.text.split()) == {"word"} for chunk in chunk_text("word " * 100, SMALL).chunks)
    for unit in ("👩‍👩‍👧", "e\u0301", "👍🏽", "ก็"):
        for chunk in chunk_text(unit * 50, SMALL).chunks:
            assert chunk.text.replace(unit, "") == "", unit


def test_code_that_fits_is_never_cut() -> None:
    code = "```python\n# no heading\n\nx = 1\n\ny = 2. z\n```"
    text = "Some words before it. " * 3 + f"\n\n{code}\n\n# After\n\nwords"
    document = chunk_markdown(text, SMALL)
    assert [chunk.text for chunk in document.chunks if code in chunk.text]
    assert all("no heading" not in heading for chunk in document.chunks for heading in chunk.headings)
    nested = "- item\n\n    ~~~~\n    ```\n    # x\n    ~~~~\n\n# Real"
    assert [chunk.headings for chunk in chunk_markdown(nested).chunks] == [()]


def test_code_that_does_not_fit_is_cut_between_lines() -> None:
    lines = [f"line number {n} of it" for n in range(30)]
    for chunk in chunk_markdown("```\n" + "\n".join(lines) + "\n```", SMALL).chunks:
        assert all(line in (*lines, "```") for line in chunk.text.splitlines())


def test_front_matter_gives_the_title_and_no_heading() -> None:
    document = chunk_markdown("---\ntitle: 'The Book'\ntags: a\n---\n\n# First\n\nwords", SMALL)
    assert document.title == "The Book"
    assert document.chunks[0].text.startswith("---\ntitle")
    assert document.chunks[-1].headings == ("First",)
    assert chunk_markdown("a\n---\n| x |\n---\n- y\n---\n").title is None


def test_plain_text_has_no_headings() -> None:
    document = chunk_text("# Not a heading\n\n```\nnor code")
    assert (document.title, document.chunks[0].headings) == (None, ())


@for_each("text", ["", " \n\t\r\n", "\ufeff", "\u3000\u2028"])
@for_each("way", WAYS.values())
def test_a_document_without_text_is_refused(way: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match="holds no text") as caught:
        way(text)
    assert caught.value.path == "$.text"


def test_what_is_no_text_is_refused() -> None:
    cases: list[tuple[Any, str]] = [
        (b"bytes", "not bytes"),
        (None, "not NoneType"),
        ("a\ud800b", "lone surrogate"),
        ("a\x00b", "NUL"),
    ]
    for text, said in cases:
        with pytest.raises(InvalidInput, match=said):
            chunk_text(text)
    with pytest.raises(InvalidInput, match="media type") as caught:
        read_document("x", "application/pdf")
    assert caught.value.path == "$.media_type"
    assert "text/markdown" in (caught.value.hint or "")


def test_a_document_over_the_limit_is_refused_by_its_bytes() -> None:
    policy = CorpusPolicy(document_bytes_max=10)
    assert chunk_text("x" * 10, policy).text == "x" * 10
    with pytest.raises(TooLarge) as caught:
        chunk_text("é" * 6, policy)
    assert "12 bytes" in str(caught.value)


def test_cleaning_comes_before_cutting() -> None:
    secret = "a" * 37 + "SECRET" + "b" * 30
    document = read_document(secret, "text/plain", SMALL, lambda text: text.replace("SECRET", "[gone]"))
    assert "SECRET" not in document.text
    check(document, SMALL)


def test_sizes_that_contradict_each_other_are_refused() -> None:
    for sizes in ({"chunk_chars": 3000}, {"chunk_chars_min": 1300}, {"chunk_chars": 8, "chunk_chars_min": 0}):
        with pytest.raises(InvalidRecord):
            CorpusPolicy.from_wire(sizes)


def test_media_types_by_suffix() -> None:
    named = {
        "a.md": "text/markdown",
        "A.HTML": "text/html",
        "b.htm": "text/html",
        "c.txt": "text/plain",
        "README": "text/plain",
    }
    assert {name: media_type_of(name) for name in named} == named
    assert media_type_of("crane", "https://yard/crane.html?q=a.md#b.md") == "text/html"
