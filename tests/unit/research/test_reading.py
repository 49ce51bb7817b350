"""Agents' Markdown in its usual forms, and any text at all."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.research._markdown import Reading, Sentence, count_words, find_section, read_markdown, sections_named
from products import for_each

LIST = "\n\n## Sources\n[1] https://a.org/x - Title A\n[2] https://b.org/y - Title B\n[3] https://c.org/z - C\n"
A, B, C = "https://a.org/x", "https://b.org/y", "https://c.org/z"


def prose(markdown: str) -> list[Sentence]:
    return [each for each in read_markdown(markdown).sentences if each.kind not in ("reference", "heading")]


def cited(sentence: Sentence) -> list[str | None]:
    return [mark.url for mark in sentence.marks]


def keys(sentence: Sentence) -> list[str]:
    return [mark.key for mark in sentence.marks]


# -- marks ----------------------------------------------------------------------------------------------------------


@pytest.mark.req("RP-08")
@for_each(
    ("written", "urls", "text"),
    [
        ("A grew [1].", [A], "A grew."),
        ("A grew.[1]", [A], "A grew."),
        ("A grew. [1][2]", [A, B], "A grew."),
        ("A grew [1, 3].", [A, C], "A grew."),
        ("A grew [1-3].", [A, B, C], "A grew."),
        ("A grew [1–2; 3].", [A, B, C], "A grew."),
        ("A grew【1】.", [A], "A grew."),
        ("A grew 【2†source】.", [B], "A grew."),
        ("A grew [1†L3-L9].", [A], "A grew."),
        ("A grew [Source 2].", [B], "A grew."),
        ("A grew [来源：3].", [C], "A grew."),
        ("A grew [[2]].", [B], "A grew."),
        ("A was growing.²", [B], "A was growing."),
        ("A was growing¹,³.", [A, C], "A was growing."),
        ("A was growing.<sup>1</sup>", [A], "A was growing."),
        ("A grew (Sources: [1], [2]).", [A, B], "A grew."),
        ("A grew（来源：[1]）。", [A], "A grew。"),
        ("A grew (https://q.org/a_(b)).", ["https://q.org/a_(b)"], "A grew."),
        ("A grew <https://q.org/a>.", ["https://q.org/a"], "A grew."),
        ("A grew, https://q.org/a, fast.", ["https://q.org/a"], "A grew,, fast."),
        ("A grew (Source: Reuters, https://q.org/a).", ["https://q.org/a"], "A grew."),
        ("A grew [https://q.org/a].", ["https://q.org/a"], "A grew."),
        ("A grew `https://q.org/a`.", ["https://q.org/a"], "A grew."),
        ("A grew [[1]](https://q.org/a).", ["https://q.org/a"], "A grew."),
        ("A grew [4](https://q.org/a).", ["https://q.org/a"], "A grew."),
        (
            "A grew ([Reuters](https://q.org/a), [FT](https://q.org/b)).",
            ["https://q.org/a", "https://q.org/b"],
            "A grew.",
        ),
        ("A grew. [Reuters](https://q.org/a)", ["https://q.org/a"], "A grew."),
        ("A grew ([source](https://q.org/a)).", ["https://q.org/a"], "A grew."),
        ('[The paper](https://q.org/a "T") says A grew.', ["https://q.org/a"], "The paper says A grew."),
        ("[The paper][2] says A grew.", [B], "The paper says A grew."),
        ('<a href="https://q.org/a">The paper</a> says A grew.', ["https://q.org/a"], "The paper says A grew."),
    ],
)
def test_marks_in_all_usual_forms(written: str, urls: list[str], text: str) -> None:
    (sentence,) = prose(written + LIST)
    assert cited(sentence) == urls
    assert sentence.text == text


@for_each(
    "written",
    [
        "The array[0] holds it.",
        "It was [2024] then.",
        "He said [sic] so.",
        "The value `x[1]` is set.",
        "It lies in the range [1, 3] always.",
        "An area of 10 cm² is left.",
        "An area of 10 cm<sup>2</sup> is left.",
        "The escaped \\[1\\] is none.",
        "It cost 5亿澳元[3.63亿美元] then.",
        "【专家观点】没有引用。",
        "See [the next part](#next) there.",
        "![chart [1]](https://img.org/x.png) stands here.",
        "Write to www. and http:// as such.",
    ],
)
def test_what_is_no_mark(written: str) -> None:
    (sentence,) = prose(written + LIST)
    assert sentence.marks == ()


def test_a_mark_without_an_entry_is_kept_without_an_address() -> None:
    first, second = prose("A grew [7]. B fell [^none]." + LIST)
    assert (keys(first), cited(first)) == (["7"], [None])
    assert (keys(second), cited(second)) == (["^none"], [None])


def test_a_cid_is_a_mark_that_others_resolve() -> None:
    (sentence,) = prose("A grew [cid_1a2b3c4d, cid_00ff00ff].")
    assert keys(sentence) == ["cid_1a2b3c4d", "cid_00ff00ff"]
    assert cited(sentence) == [None, None]


@pytest.mark.req("RP-08")
def test_a_mark_belongs_to_the_sentence_it_stands_in_or_behind() -> None:
    first, second, third = prose("A grew. [1] B [2] fell. C stayed." + LIST)
    assert (cited(first), cited(second), cited(third)) == ([A], [B], [])
    assert first.closing == second.closing == ()


@pytest.mark.req("RP-08")
def test_marks_that_close_a_paragraph_are_only_candidates_before() -> None:
    first, second, other = prose("A grew. B fell. [1][2]\n\nC stayed." + LIST)
    assert (cited(first), [mark.url for mark in first.closing]) == ([], [A, B])
    assert (cited(second), second.closing) == ([A, B], ())
    assert other.marks == other.closing == ()


def test_a_line_of_sources_closes_the_paragraph_before_it() -> None:
    (sentence,) = prose("A grew in spring.\n\nSources: [1], [2]" + LIST)
    assert (sentence.marks, [mark.key for mark in sentence.closing]) == ((), ["1", "2"])


def test_addresses_end_where_they_end() -> None:
    text = (
        "见https://e.com/path。（https://f.com/路径，2024）"
        "到https://g.com/page看 (see https://h.com/a_(b)). https://i.com/x, **https://j.com/y** https://k.com/q?a=1&b=2#c!"
    )
    assert [found.url for found in read_markdown(text).urls] == [
        "https://e.com/path",
        "https://f.com/路径",
        "https://g.com/page",
        "https://h.com/a_(b)",
        "https://i.com/x",
        "https://j.com/y",
        "https://k.com/q?a=1&b=2#c",
    ]


# -- lists of sources -----------------------------------------------------------------------------------------------


@for_each(
    ("written", "expected"),
    [
        ("## References\n[1] https://a.org/x - T\n[2] U https://b.org/y", {"1": (A, "T"), "2": (B, "U")}),
        ("参考文献：\n[1] https://a.org/x - 标题", {"1": (A, "标题")}),
        ("References\n[1] Smith. Title A. https://a.org/x.", {"1": (A, "Smith. Title A.")}),
        ("**Sources:**\n1. T. https://a.org/x\n2. [U](https://b.org/y)", {"1": (A, "T."), "2": (B, "U")}),
        ("## 三、来源\n1. T\n   https://a.org/x\n2. U\n\n   https://b.org/y", {"1": (A, "T"), "2": (B, "U")}),
        ("# Bibliography\n- [T](https://a.org/x)\n* https://b.org/y — U", {A: (A, "T"), B: (B, "U")}),
        ("Text.\n\n[^1]: https://a.org/x T\n[^b]: U, <https://b.org/y>", {"^1": (A, "T"), "^b": (B, "U")}),
        ("Text.\n\n[1]: https://a.org/x\n[2]: https://b.org/y", {"1": (A, None), "2": (B, None)}),
        ("Text.\n\n[1] https://a.org/x - T", {"1": (A, "T")}),
        ("## Sources\n| # | Title | Link |\n|---|---|---|\n| 1 | T | https://a.org/x |", {"1": (A, "T")}),
        ("## Sources\n1. https://a.org/x\n1. https://b.org/y", {"1": (A, None), "2": (B, None)}),
        ("## Sources\n[1] A book. Berlin, 1990.", {"1": (None, "A book. Berlin, 1990.")}),
        ("## Sources\n### Papers\n- [1]: https://a.org/x", {"1": (A, None)}),
    ],
)
def test_lists_of_sources_in_all_usual_forms(written: str, expected: dict[str, tuple[str | None, str | None]]) -> None:
    found = read_markdown(written).references
    assert {key: found[key][1:] for key in expected} == expected


def test_a_heading_row_of_a_table_of_sources_gives_no_address() -> None:
    reading = read_markdown(
        "X [1].\n\n## Sources\n| # | Title | Link |\n|---|---|---|\n| 1 | Title A | https://a.org/x |"
    )
    assert cited(reading.sentences[0]) == [A]
    assert [found.url for found in reading.urls] == [A]


def test_numbered_addresses_at_the_end_need_no_heading_where_marks_mean_them() -> None:
    tail = "\n\n1. Title A. https://a.org/x\n2. Title B. https://b.org/y\n"
    assert cited(prose(f"A grew [1]. B fell [2].{tail}")[0]) == [A]
    assert read_markdown(f"A grew.{tail}").references == {}


def test_a_list_that_a_line_announces_ends_with_the_next_paragraph() -> None:
    more = "After the list the text goes on with a paragraph of whole sentences about prices."
    reading = read_markdown(
        f"## One\n\nA grew [1].\n\n**Sources:**\n- [1] https://a.org/x\n\n{more}\n\n## Two\n\nB fell.\n"
    )
    assert [(each.text, each.section) for each in reading.sentences if each.kind == "prose"] == [
        ("A grew.", "One"),
        (more, "One"),
        ("B fell.", "Two"),
    ]


def test_an_entry_without_a_number_is_given_none() -> None:
    (sentence,) = prose("A grew [1].\n\n## Sources\n- https://a.org/x\n- https://b.org/y")
    assert cited(sentence) == [None]


def test_entries_in_brackets_count_before_the_numbers_of_a_list() -> None:
    (sentence,) = prose("A grew [1].\n\n## 参考资料\n1. 一本书，1990年\n\n参考文献：\n[1] https://a.org/x - 标题")
    assert cited(sentence) == [A]


def test_a_list_under_each_chapter_is_that_chapters() -> None:
    one, two = prose(
        "# One\nA grew [1].\n\n## Sources\n[1] https://a.org/x\n\n# Two\nB fell [1].\n\n## Sources\n[1] https://b.org/y"
    )
    assert (cited(one), cited(two)) == ([A], [B])


def test_footnotes_and_numbers_find_each_other() -> None:
    (sentence,) = prose("A grew [^1].\n\n## Sources\n1. https://a.org/x")
    assert cited(sentence) == [A]


def test_entries_are_references_and_nothing_else() -> None:
    reading = read_markdown("A grew [1]." + LIST + "\nThe end of the list, in words.")
    assert [each.kind for each in reading.sentences] == ["prose", "heading"] + ["reference"] * 4
    assert all(each.section == "Sources" for each in reading.sentences[1:])


# -- blocks and sentences -------------------------------------------------------------------------------------------


def test_blocks_of_all_kinds() -> None:
    reading = read_markdown(
        "Title\n=====\n\nA para\nthat goes on.\n\nSub\n---\n- One. Two\n  more\n2) three\n\n"
        "| h | k |\n|---|---|\n| a | b [1] |\n\n"
        "x | y\n--|--\nz | w\n\n> quoted words.\n> go on\n\n```python\ncode = here[1]\n```\n\n***\n\nlast words" + LIST
    )
    assert [(each.kind, each.text) for each in reading.sentences if each.kind != "reference"] == [
        ("heading", "Title"),
        ("prose", "A para that goes on."),
        ("heading", "Sub"),
        ("bullet", "One."),
        ("bullet", "Two more"),
        ("bullet", "three"),
        ("table", "h | k"),
        ("table", "a | b"),
        ("table", "x | y"),
        ("table", "z | w"),
        ("quote", "quoted words."),
        ("quote", "go on"),
        ("prose", "last words"),
        ("heading", "Sources"),
    ]


def test_headings_real_bold_and_plain() -> None:
    reading = read_markdown(
        "# Report\n\n## 1. Findings\n\n**A point**\n\nText.\n\n##标题\n\n### Closed ###\n\n**Sources:**\n- https://a.org/x\n\n"
        "Gaps:\n- one\n\n**This is a sentence.**\n"
    )
    assert [(section.title, section.level) for section in reading.sections] == [
        ("Report", 1),
        ("1. Findings", 2),
        ("A point", 7),
        ("标题", 2),
        ("Closed", 3),
        ("Sources", 2),
        ("Gaps", 2),
    ]
    assert [each.section for each in reading.sentences if each.text == "Text."] == ["1. Findings"]


def test_plain_names_are_headings_where_there_are_no_others() -> None:
    reading = read_markdown("Findings:\nA grew.\n\nAnalysis:\nB fell.\n\nSources:\n- https://a.org/x\n")
    assert [section.title for section in reading.sections] == ["Findings", "Analysis", "Sources"]
    assert [section.title for section in read_markdown("## One\n\nAnalysis:\nB fell.\n").sections] == ["One"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_ends_make_no_difference(newline: str) -> None:
    markdown = f"# T\n\nA grew\nby [1] far.\n\n- b [2]{LIST}".replace("\n", newline)
    reading = read_markdown(markdown)
    assert [each.text for each in reading.sentences][:3] == ["T", "A grew by far.", "b"]
    assert [cited(each) for each in reading.sentences][:3] == [[], [A], [B]]
    assert len(reading.references) == 3


@for_each(
    ("text", "sentences"),
    [
        ("The U.S. did. Dr. Smith et al. (2020) did so.", ["The U.S. did.", "Dr. Smith et al. (2020) did so."]),
        ('"Who knows?" asks Jo. Nobody.', ['"Who knows?" asks Jo.', "Nobody."]),
        ('He said "A is. B is." today. C is.', ['He said "A is. B is." today.', "C is."]),
        ("他说\"很好。\"然后走了。再见。", ['他说"很好。"', "然后走了。", "再见。"]),
        ("（第一句。第二句。）第三句。", ["（第一句。第二句。）", "第三句。"]),
        ("**Bold one.** Then two.", ["Bold one.", "Then two."]),
        ("It is v1.**2** now.", ["It is v1.2 now."]),
        ("Inc. as no. 5 in the U.K. The U.S. Navy left.", ["Inc. as no. 5 in the U.K.", "The U.S. Navy left."]),
        ("Short line\nAnother line", ["Short line", "Another line"]),
        ("A long line of words that was broken only because it had no more room\nAnd goes on.",
         ["A long line of words that was broken only because it had no more room And goes on."]),
    ],
)  # fmt: skip
def test_sentences(text: str, sentences: list[str]) -> None:
    assert [each.text for each in prose(text)] == sentences


def test_words_without_markup() -> None:
    (sentence,) = prose("Uses *emph*, **bold**, snake_case_name, 2*3*4, ~~old~~, \\*lit\\*, `code` and <b>tags</b>.")
    assert sentence.text == "Uses emph, bold, snake_case_name, 2*3*4, old, *lit*, code and tags."


def test_an_output_in_a_fence_is_read() -> None:
    reading = read_markdown("Here it is:\n\n```markdown\n# T\n\nA grew.\n\n```\ncode\n```\n\nB fell.\n```\n")
    assert [each.text for each in reading.sentences] == ["Here it is:", "T", "A grew.", "B fell."]


def test_a_fence_that_is_never_closed_hides_nothing() -> None:
    assert [each.text for each in prose("A grew.\n```\nB fell.\n\nC stayed.")] == ["A grew.", "B fell.", "C stayed."]


# -- sections -------------------------------------------------------------------------------------------------------


@pytest.mark.req("RP-02")
@for_each(
    ("title", "name"),
    [
        ("## Findings", "Findings"),
        ("## 3. **Key Findings**", "findings"),
        ("## III. Results", "Findings"),
        ("# 二、主要发现", "Findings"),
        ("### References:", "Sources"),
        ("## 参考文献 (References)", "Sources"),
        ("## （三）来源", "Sources"),
        ("**Open questions**", "Gaps"),
        ("## 4.2 研究空白与局限", "Gaps"),
        ("## Gaps & Limitations", "Limitations"),
        ("## Executive Summary", "Summary"),
        ("## 🔍 Findings", "Findings"),
        ("## Market size", "market size"),
        ("## Risks and mitigation", "Risks"),
    ],
)
def test_a_section_is_found_under_its_names(title: str, name: str) -> None:
    section = find_section(read_markdown(f"{title}\n\nSome text.\n"), name)
    assert section is not None


@pytest.mark.parametrize(
    ("title", "name"), [("## Findings", "Sources"), ("## Sources of growth", "Sources"), ("", "Gaps"), ("## ", "")]
)
def test_a_section_of_another_name_is_not(title: str, name: str) -> None:
    assert find_section(read_markdown(f"{title}\n\nSome text.\n"), name) is None


def test_the_section_that_says_something_is_found_first() -> None:
    reading = read_markdown("## Findings\n\n## Findings\n\nA grew.\n")
    section = find_section(reading, "Findings")
    assert section is not None
    assert "A grew." in reading.markdown[section.start : section.end]
    assert len(sections_named(reading, "Findings")) == 2


def test_a_section_holds_those_below_it() -> None:
    reading = read_markdown("# T\n\n## Findings\na\n### Sub\nb\n## Gaps\nc\n")
    section = find_section(reading, "findings")
    assert section is not None
    assert reading.markdown[section.start : section.end] == "a\n### Sub\nb\n"


@for_each(
    ("text", "words"),
    [
        ("", 0),
        ("one two", 2),
        ("don't well-known", 2),
        ("3.5 million", 2),
        ("中文字 and 2", 5),
        ("— … —", 0),
        ("한국어 단어", 2),
    ],
)
def test_words_are_counted(text: str, words: int) -> None:
    assert count_words(text) == words


# -- any text -------------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    ["[", "]", "(", ")", "[1]", "[^a]", "[^a]: ", "**", "*", "_", "`", "```", "```md", "\n", "\r\n", "\n\n", "# ",
     "## Sources\n", "> ", "- ", "1. ", "|", "|---|", "---", "===", "https://a.org/b", "http://", "www.", "<", ">",
     "<sup>1</sup>", "【1†s】", "¹", "²", "。", ". ", "! ", "“", "”", '"', "（", "）", "来源：", "参考文献：",
     "Sources: ", "word ", "中文", "\\", "\x00", "\x01", "\t", " ", "cid_", "[cid_ab]", "[t](https://c.d)", "![i](https://e.f)",
     "[t][1]", "[1] https://g.h - T\n", "U.S. ", "A", "…", "\u2028", "\u0661", "é", "😀", "$5 ", "1,000 "]
)  # fmt: skip
MARKDOWN = st.one_of(st.lists(PIECES, max_size=60).map("".join), st.text(max_size=200))


def check(reading: Reading) -> None:
    markdown = reading.markdown
    for sentence in reading.sentences:
        assert 0 <= sentence.start < sentence.end <= len(markdown)
        assert sentence.text == " ".join(sentence.text.split()) != ""
        pieces = markdown[sentence.start : sentence.end]
        rest = iter(pieces)
        assert all(char == " " or char in rest for char in sentence.text), (sentence.text, pieces)
        for mark in (*sentence.marks, *sentence.closing):
            assert 0 <= mark.start < mark.end <= len(markdown)
            assert mark.url is None or mark.url in markdown
    assert [each.start for each in reading.sentences] == sorted(each.start for each in reading.sentences)
    for section in reading.sections:
        assert 0 <= section.start <= len(markdown)
        assert section.end <= len(markdown)
    for found in reading.urls:
        assert found.url in markdown[found.start :]


@pytest.mark.soak
@settings(max_examples=examples(120), deadline=None)
@given(MARKDOWN)
def test_any_text_is_read(markdown: str) -> None:
    reading = read_markdown(markdown)
    check(reading)
    assert read_markdown(markdown) == reading
    find_section(reading, "Sources")


@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(
        st.sampled_from(["Alpha grew by five", "贝塔下降", "Gamma (delta) holds", "Eps said so"]),
        min_size=1,
        max_size=8,
    )
)
def test_plain_sentences_are_slices_of_the_text(sentences: list[str]) -> None:
    markdown = " ".join(f"{sentence}." for sentence in sentences)
    assert [(each.text, markdown[each.start : each.end]) for each in prose(markdown)] == [
        (f"{s}.", f"{s}.") for s in sentences
    ]


@pytest.mark.soak
@for_each(
    "piece",
    ["[", "(", "*", "#", "`", "<", ">", "[1]", "[a](", "https://", "句。", "a. ", "- a\n", "\\", '"a. ', "（来源："],
)
def test_long_runs_are_read(piece: str) -> None:
    check(read_markdown(piece * (20_000 // len(piece))))
