"""Parsing an agent's Markdown: sections, sentences with their citation marks, addresses, claims.

Blocks are found by markdown-it; the contents of a paragraph need exact positions, and are read by `_marks`. Any text
can be read, in time linear in its length; nothing is refused. Offsets are characters of the Markdown. A mark belongs to
the sentence it is in or directly behind. Marks that close a paragraph are also listed, separately (`closing`), at the
sentences before its last one: a check decides whether they support those.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from muniment.core.limits import remembered
from muniment.core.policy import ResearchPolicy
from muniment.core.text.sentences import sentence_spans
from muniment.research._figures import has_figure
from muniment.research._marks import (
    Entry,
    FoundUrl,
    Inline,
    Mark,
    Reference,
    References,
    SourceList,
    find_url,
    find_urls,
    is_entry,
    read_inline,
)
from muniment.research.urls import cid_of, try_normalize_url

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

BlockKind = Literal["prose", "bullet", "heading", "table", "quote"]
SentenceKind = Literal["prose", "bullet", "heading", "table", "quote", "reference"]


class Section(NamedTuple):
    """A heading and the span of its body: up to the next heading of its level or above, other headings included."""

    title: str
    level: int
    start: int
    end: int


class Sentence(NamedTuple):
    """A sentence, a heading, a row of a table or an entry of a list of sources.

    `text` is `markdown[start:end]` verbatim, except that marks are removed, emphasis, links and code reduced to their
    words, and white space collapsed. Marks behind its full stop are outside of the span. An entry is not reduced.
    """

    text: str
    section: str
    """The title of the nearest heading above, or ""; a line in bold counts only if there are no other headings."""
    start: int
    end: int
    marks: tuple[Mark, ...]
    closing: tuple[Mark, ...]
    kind: SentenceKind
    block: int = 0
    """The number of the paragraph, list item or row it is in."""


class Reading(NamedTuple):
    markdown: str
    sections: tuple[Section, ...]
    sentences: tuple[Sentence, ...]
    references: Mapping[str, Reference]
    urls: tuple[FoundUrl, ...]
    """All addresses in order of position, including repetitions; none from code and images."""


_CLOSING_MAX = 20
_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_HAN}]|\d+(?:[.,]\d+)*(?:[^\W{_HAN}])*|[^\W{_HAN}]+(?:['’-][^\W{_HAN}]+)*")


def read_markdown(markdown: str) -> Reading:
    """Parse an output. Code is left out; everything else is in some sentence."""
    outline = _outline(markdown, _read_blocks(markdown))
    entries, taken = _read_entries(markdown, outline)
    references = References(entries)
    sentences: list[Sentence] = []
    urls: list[FoundUrl] = []
    for number, block in enumerate(outline.blocks):
        if taken[number]:
            continue
        inline, found = _read_block(markdown, block, references, outline.titles[number], number)
        urls += inline.urls
        if found:
            sentences += found
        elif inline.marks and sentences and sentences[-1].block == number - 1:
            _close_with(sentences, inline.marks)
    starts = [block.start for block in outline.blocks]
    for entry in entries:
        number = max(0, bisect_right(starts, entry.start) - 1)
        text = " ".join(markdown[entry.start : entry.end].split())
        sentences.append(Sentence(text, outline.titles[number], entry.start, entry.end, (), (), "reference", number))
        for place, (url, start) in enumerate(find_urls(markdown, entry.start, entry.end)):
            urls.append(FoundUrl(url, entry.reference.title if place == 0 else None, start))
    sentences.sort(key=lambda sentence: sentence.start)
    urls.sort(key=lambda url: url.start)
    return Reading(markdown, outline.sections, tuple(sentences), references.by_key, tuple(urls))


def count_words(text: str) -> int:
    """Count words; each Han or kana character counts as one."""
    return sum(1 for _ in _WORD.finditer(text))


# -- blocks ---------------------------------------------------------------------------------------------

_BOLD_LEVEL = 7
"""Level of a line in bold used as a heading: below every real one."""
_NAMED_LEVEL = 2
"""Level of a line in bold, or a plain one, that is the name of a section."""
_TITLE_CHARS_MAX = 200
_PLAIN_CHARS_MAX = 40
_PARAGRAPH_CHARS_MIN = 60
_STOPS = ".!?…。！？;；:："
_BULLET = re.compile(r"(?m)^([ \t]*+)[•◦▪‣·●○■□–](?=[ \t])")
_HASHED = re.compile(r"#{2,6}(?=[^\s#])")
_BOLD_LINE = re.compile(r"(\*\*|__)(?!\s)((?:(?!\1).)++)\1\s*+[:：]?\Z")
_DELIMITERS = re.compile(r"[\s|:-]*+\Z")
_ROW_SIGNS = "| \t│├└┌┬┼─╰╭║╠╚"
_TASK = re.compile(r"\[[ xX]\]\s++")
_WRAPPED = re.compile(
    r"(?is)(?:\A|.*?\n)(?P<open>[ \t]*(?P<fence>`{3,})(?:markdown|md)[ \t]*)\r?\n"
    r".*\n(?P<close>[ \t]*(?P=fence)[ \t]*)\s*\Z"
)


class Block(NamedTuple):
    """A block as the spans of its lines, without indent, list marker and quote marks."""

    kind: BlockKind
    lines: tuple[tuple[int, int], ...]
    level: int = 0
    """Of a heading."""
    marker: str = ""
    """Of a list item: "-", or its number."""
    apart: bool = True
    """A blank line, or anything other than a paragraph, precedes it."""

    @property
    def start(self) -> int:
        return self.lines[0][0]

    @property
    def end(self) -> int:
        return self.lines[-1][1]


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    rules = ["inline", "text_join", "code", "html_block", "reference"]  # text indented or in a div is read
    return MarkdownIt("commonmark").enable("table").disable(rules)


def _read_blocks(markdown: str) -> list[Block]:
    """The blocks that contain words, in order."""
    source, tokens = _tokens(markdown)
    lines = [found.span(1) for found in re.finditer(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)", source)]
    blocks: list[Block] = []
    marker, quotes, level = "", 0, 0
    for token in tokens:
        match token.type:
            case "list_item_open":
                marker = token.info or "-"
            case "list_item_close":
                marker = ""
            case "blockquote_open":
                quotes += 1
            case "blockquote_close":
                quotes -= 1
            case "heading_open":
                level = int(token.tag[1])
            case "tr_open" if token.map is not None:
                blocks += _row(source, *lines[token.map[0]])
            case "inline" if token.map is not None and token.level and not token.meta.get("cell"):
                spans = _spans(source, token.content, lines[token.map[0] : token.map[1]])
                if level:
                    blocks += _heading(source, spans, level)
                elif spans:
                    kind: BlockKind = "quote" if quotes else "bullet" if marker else "prose"
                    blocks += _paragraph(source, Block(kind, spans, 0, marker if kind == "bullet" else ""))
                marker, level = "", 0
    return blocks


def _tokens(markdown: str) -> tuple[str, list[Token]]:
    """Parse the text after replacing each character unknown to Markdown by one of equal length.

    An unclosed fence hides nothing, and one around the whole output is ignored.
    """
    source = _BULLET.sub(r"\1-", markdown.replace("\0", "\ufffd"))
    if (wrapped := _WRAPPED.match(source)) is not None:
        source = _blank(_blank(source, *wrapped.span("open")), *wrapped.span("close"))
    parser = _parser()
    for _ in range(3):
        tokens = _without_cells(parser.parse(source))
        last = next((token for token in reversed(tokens) if token.type == "fence" and token.map is not None), None)
        if last is None or last.map is None:
            return source, tokens
        lines = (
            source.splitlines(keepends=True) if "\r" not in source else re.findall(r"[^\r\n]*(?:\r\n|\r|\n|\Z)", source)
        )
        closing = "".join(lines[last.map[1] - 1 : last.map[1]]).strip().lstrip("> \t")
        if last.map[1] - last.map[0] > 1 and closing.startswith(last.markup) and not closing.strip(last.markup[0]):
            return source, tokens
        start = sum(map(len, lines[: last.map[0]]))
        source = _blank(source, start, start + len(lines[last.map[0]].rstrip("\r\n")))
    return source, _without_cells(parser.parse(source.replace("```", "'''").replace("~~~", "'''")))


def _blank(text: str, start: int, end: int) -> str:
    return text[:start] + " " * (end - start) + text[end:]


def _without_cells(tokens: list[Token]) -> list[Token]:
    """Treat rows of tables as lines."""
    return [
        token
        for at, token in enumerate(tokens)
        if token.type != "inline" or tokens[at - 1].type not in ("th_open", "td_open")
    ]


def _spans(source: str, content: str, lines: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The positions of a token's lines in the source."""
    spans = []
    for written, (start, end) in zip(content.split("\n"), lines, strict=False):
        stripped = written.strip()
        at = source.rfind(stripped, start, end) if stripped else -1
        if at >= 0:
            spans.append((at, at + len(stripped)))
    return tuple(spans)


def _heading(source: str, spans: tuple[tuple[int, int], ...], level: int) -> Iterator[Block]:
    """A heading; but a sentence or a whole paragraph over a line of dashes does not count as one."""
    if not spans:
        return
    start, end = spans[0][0], spans[-1][1]
    hashed = source.rfind("#", source.rfind("\n", 0, start) + 1, start) >= 0
    if hashed or (
        len(spans) == 1 and end - start <= _TITLE_CHARS_MAX and (level == 1 or source[end - 1] not in ".!?。！？;；…")
    ):
        yield Block("heading", spans[:1], level)
    else:
        yield from _paragraph(source, Block("prose", spans))


def _row(source: str, start: int, end: int) -> Iterator[Block]:
    """A row of a table, without the outer bars."""
    if "|" not in source[start:end]:
        spans = _spans(source, source[start:end], [(start, end)])
        if spans:
            yield Block("prose", spans)
        return
    while start < end and source[start] in _ROW_SIGNS + ">":
        start += 1
    while end > start and source[end - 1] in _ROW_SIGNS:
        end -= 1
    if start < end and _DELIMITERS.match(source[start:end]) is None:
        yield Block("table", ((start, end),))


def _paragraph(source: str, block: Block) -> Iterator[Block]:
    """A paragraph, cut at lines that are headings or rows without the markup."""
    lines: list[tuple[int, int]] = []
    marker, apart = block.marker, block.apart
    for number, (start, end) in enumerate(block.lines):
        if number == 0 and marker and (task := _TASK.match(source, start, end)) is not None:
            start = task.end()
        text = source[start:end]
        cut: list[Block] | None = None
        if block.kind != "quote" and (bold := _BOLD_LINE.match(text)) is not None and _is_title(bold[2]):
            cut = [Block("heading", ((start, end),), _BOLD_LEVEL)]
        elif (hashed := _HASHED.match(text)) is not None:
            cut = [Block("heading", ((start + hashed.end(), end),), hashed.end())]
        elif text[:1] and text[0] in _ROW_SIGNS:
            cut = (
                list(_row(source, start, end))
                if "|" in text
                else [Block("table", ((start, end),))]
                if text.strip(_ROW_SIGNS)
                else []
            )
        if cut is None:
            if start < end:
                lines.append((start, end))
            continue
        if lines:
            yield Block(block.kind, tuple(lines), 0, marker, apart)
        yield from cut
        lines, marker, apart = [], "", True
    if lines:
        yield Block(block.kind, tuple(lines), 0, marker, apart)


def _is_title(words: str) -> bool:
    return len(words) <= _TITLE_CHARS_MAX and words.rstrip()[-1:] not in ".!?。！？;；…"


# -- sections -------------------------------------------------------------------------------------------

_SECTION_NAMES = {
    "findings": "findings, finding, results, research findings, evidence, 发现, 研究发现, 研究结果, 结果",
    "sources": "sources, source, references, reference, bibliography, works cited, citations, cited sources, "
    "source list, reference list, list of sources, footnotes, 参考文献, 参考资料, 参考来源, 参考链接, 来源, 资料来源, "
    "信息来源, 数据来源, 来源列表, 引用, 引用来源, 引用文献, 文献, 参考, 脚注, 参考书目",
    "gaps": "gaps, gap, knowledge gaps, research gaps, information gaps, evidence gaps, data gaps, remaining gaps, "
    "open questions, unanswered questions, unknowns, open issues, 空白, 缺口, 研究空白, 知识空白, 信息空白, 研究缺口, "
    "信息缺口, 数据缺口, 知识缺口, 未解决的问题, 未解决问题, 待解决的问题, 开放问题",
    "summary": "summary, executive summary, abstract, overview, tl;dr, key takeaways, takeaways, 摘要, 概要, 执行摘要, "
    "内容摘要, 要点, 概览",
    "limitations": "limitations, limitation, caveats, limits, 局限, 局限性, 研究局限, 研究局限性, 限制, 不足",
    "conclusion": "conclusion, conclusions, 结论, 总结, 结语, 小结",
    "introduction": "introduction, background, 引言, 前言, 背景, 研究背景, 简介",
    "methods": "methods, method, methodology, approach, 方法, 研究方法",
    "recommendations": "recommendations, suggestions, 建议, 政策建议, 对策建议",
    "analysis": "analysis, discussion, 分析, 讨论",
    "change note": "change note, change notes, changes, change log, changelog, 修改说明, 变更说明, 修订说明",
    "contents": "contents, table of contents, toc, outline, 目录",
}
"""Kinds of sections and their names, in English and Chinese."""
_KINDS = {name.strip(): kind for kind, names in _SECTION_NAMES.items() for name in names.split(",")}
_OWN = frozenset({"sources", "gaps", "change note"})
"""Kinds that end the section they are in, even if they are only a line."""
_NUMBERING = re.compile(
    r"(?:第?[一二三四五六七八九十百]{1,4}(?:[、.．:：]|[章节部篇][分]?[、.．:：\s]?)|[(（][一二三四五六七八九十\d]{1,4}[)）]"
    r"|\d{1,3}(?:\.\d{1,3}){0,4}(?:[.、．)）:：]|\s|(?=[^\W\d_a-z]))|[ivxlc]{1,6}[.、)]\s?|[a-z][.)]\s"
    r"|(?:section|part|chapter|step)\s\d{1,3}[.:：\s-]{0,3})\s*"
)
_EDGE = re.compile(r"^[\W_]+|[\W_]+$")
_JOINT = re.compile(r"\s*(?:[&/,，;；|:：(（—–]|\s-\s|\band\b|以及|[与及和、])\s*")
_ADJECTIVE = re.compile(
    r"(?:(?:key|main|major|important|detailed|final|remaining|selected|brief)\s|主要|关键|核心|重要|报告)"
)
_SIGNS = re.compile(r"[*_`#]+|\[\^?[\w,\s-]{1,20}\](?!\()")
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)")


@remembered(1024)
def _names_of(title: str) -> tuple[str, ...]:
    """A normalised title, then its parts: "3. **Gaps & limits**" gives "gaps & limits", "gaps", "limits"."""
    plain = _bare(" ".join(title[:300].casefold().replace("*", "").replace("_", " ").replace("`", "").split()))
    if plain in _KINDS:
        return (plain,)
    return tuple(dict.fromkeys(name for part in (plain, *_JOINT.split(plain)) if (name := _bare(part))))


def _bare(name: str) -> str:
    name = _EDGE.sub("", name) if not name.startswith(("(", "（")) else name.strip()
    name = _EDGE.sub("", _NUMBERING.sub("", name, count=1) if _NUMBERING.match(name) else name)
    while name not in _KINDS and (found := _ADJECTIVE.match(name)) and found.end() < len(name):
        name = name[found.end() :]
    return name


def section_kind(title: str) -> str | None:
    """The kind named by a whole heading: "findings", "sources", "gaps", …"""
    names = _names_of(title)
    return _KINDS.get(names[0]) if names else None


def _is_sources(title: str) -> bool:
    """Return whether the heading announces a list of sources, and nothing else."""
    names = _names_of(title)
    return section_kind(title) == "sources" or (
        len(names) > 1 and all(_KINDS.get(name) == "sources" for name in names[1:])
    )


def find_section(reading: Reading, name: str) -> Section | None:
    """The section of that name, ignoring case, numbering and emphasis, by any of its English and Chinese names.

    A heading that joins several names ("Gaps and limitations") counts as each of them. Of several sections, those with
    exactly this name are preferred, then the first that is not empty.
    """
    whole = _names_of(name)[:1]
    ranked = sorted(sections_named(reading, name), key=lambda section: _names_of(section.title)[:1] != whole)
    return next(
        (section for section in ranked if reading.markdown[section.start : section.end].strip()),
        next(iter(ranked), None),
    )


def sections_named(reading: Reading, name: str) -> list[Section]:
    """All sections of a name, in order."""
    wanted = {_KINDS.get(each, each) for each in _names_of(name)}
    return [
        section
        for section in reading.sections
        if not wanted.isdisjoint(_KINDS.get(each, each) for each in _names_of(section.title))
    ]


def sentences_between(reading: Reading, start: int, end: int) -> tuple[Sentence, ...]:
    """The sentences that begin in a span, such as a section's."""
    first = bisect_left(reading.sentences, start, key=lambda sentence: sentence.start)
    last = bisect_left(reading.sentences, end, key=lambda sentence: sentence.start)
    return reading.sentences[first:last]


class _Outline(NamedTuple):
    blocks: list[Block]
    sections: tuple[Section, ...]
    titles: list[str]
    """For each block, the title of its heading."""
    listed: list[bool]
    """For each block, whether it is in a list of sources."""


def _outline(markdown: str, blocks: Sequence[Block]) -> _Outline:
    real = [block for block in blocks if block.kind == "heading" and block.level < _BOLD_LEVEL]
    structured = len(real) > 1 or any(block.level > 1 for block in real)
    named = [each for block in blocks for each in _with_names(markdown, block, structured=structured)]
    titled = any(block.kind == "heading" and block.level < _BOLD_LEVEL for block in named)
    headings = {block.start for block in real}
    sections: list[Section] = []
    opened: list[int] = []
    before: list[int] | None = None  # the section that was open before a list of sources announced by a plain line
    titles: list[str] = []
    listed: list[bool] = []
    for block in named:
        if block.kind == "heading":
            title = _title_of(markdown, block)
            before = list(opened) if block.start not in headings and _is_sources(title) else None
            while opened and sections[opened[-1]].level >= block.level:
                closed = opened.pop()
                sections[closed] = sections[closed]._replace(end=markdown.rfind("\n", 0, block.start) + 1)
            opened.append(len(sections))
            body = markdown.find("\n", block.end)
            sections.append(Section(title, block.level, len(markdown) if body < 0 else body + 1, len(markdown)))
        elif before is not None and _is_paragraph(markdown, block):
            sections[opened[-1]] = sections[opened[-1]]._replace(end=markdown.rfind("\n", 0, block.start) + 1)
            opened, before = before, None
        shown = [sections[at].title for at in opened if sections[at].level < _BOLD_LEVEL or not titled]
        titles.append(shown[-1] if shown else "")
        listed.append(any(_is_sources(sections[at].title) for at in opened))
    return _Outline(named, tuple(sections), titles, listed)


def _title_of(markdown: str, block: Block) -> str:
    written = _LINK.sub(r"\1", markdown[block.start : block.end])
    return " ".join(_SIGNS.sub("", written).split()).rstrip(" :：")


def _is_paragraph(markdown: str, block: Block) -> bool:
    """Return whether it is a paragraph of sentences, which does not occur in lists of sources."""
    text = markdown[block.start : block.end]
    long = block.kind == "prose" and block.apart and len(text) >= _PARAGRAPH_CHARS_MIN and text[-1] in ".。!！]】"
    return long and text[0] not in "[【" and find_url(text) is None


def _with_names(markdown: str, block: Block, *, structured: bool) -> Iterator[Block]:
    """A block, cut at lines that are names of sections."""
    if block.kind == "heading" and block.level == _BOLD_LEVEL:
        kind = section_kind(_title_of(markdown, block))
        yield block._replace(level=_NAMED_LEVEL) if kind in _OWN or (kind and not structured) else block
    elif block.kind != "prose":
        yield block
    else:
        lines, begun = list(block.lines), 0
        for at, (start, end) in enumerate(lines):
            if end - start <= _PLAIN_CHARS_MAX and _is_name(markdown[start:end], first=at == 0, structured=structured):
                if at > begun:
                    yield block._replace(lines=tuple(lines[begun:at]))
                yield Block("heading", ((start, end),), _NAMED_LEVEL)
                begun = at + 1
        if begun < len(lines):
            yield block._replace(lines=tuple(lines[begun:]), apart=block.apart or begun > 0)


def _is_name(line: str, *, first: bool, structured: bool) -> bool:
    announced = line.rstrip().endswith((":", "："))
    kind = section_kind(line) if announced or first else None
    return kind in _OWN or (kind is not None and announced and not structured)


def _read_entries(markdown: str, outline: _Outline) -> tuple[list[Entry], list[bool]]:
    """The entries of lists of sources, and which blocks contain nothing else."""
    blocks = outline.blocks
    taken = [False] * len(blocks)
    tail = len(blocks) if any(outline.listed) else _tail(markdown, blocks)
    found = SourceList()
    for at, block in enumerate(blocks):
        inside = (outline.listed[at] or at >= tail) and block.kind != "heading"
        text = markdown[block.start : block.end]
        if not inside and not (block.kind in ("prose", "bullet") and is_entry(text)):
            found.end()
            continue
        taken[at] = True
        for number, (start, end) in enumerate(block.lines):
            marker, apart = (block.marker, block.apart) if number == 0 else ("", False)
            found.take(markdown[start:end], start, marker, table=block.kind == "table", apart=apart)
        if not outline.listed[at]:
            found.flush()
    found.end()
    return found.entries, taken


def _tail(markdown: str, blocks: Sequence[Block]) -> int:
    """The start of the numbered addresses that close an output without a heading, and that its marks refer to."""
    at = len(blocks)
    while at and blocks[at - 1].marker.isdecimal() and find_url(markdown[blocks[at - 1].start : blocks[at - 1].end]):
        at -= 1
    cited = at < len(blocks) and f"[{int(blocks[at].marker)}]" in markdown[: blocks[at].start]
    return at if cited else len(blocks)


# -- sentences ------------------------------------------------------------------------------------------

_GONE, _MARKUP = "\x00", "\x01"
_WRAPPED_CHARS_MIN = 60
"""Shorter lines were not wrapped for lack of space."""
_SENTENCE_CHARS_MAX = 1_000
"""Sentences are not joined beyond this length."""
_LABEL = (
    r"(?:sources?|references?|refs?|citations?|see(?:\salso)?|via|from|"
    r"资料来源|数据来源|来源|参考资料|参考文献|参考|引用|出处|参见|见)"
)
_SHELL = re.compile(
    rf"(?i)[(（\[【]\s*+(?:{_LABEL}\s*+[:：]?\s*+)?(?=\x00)[\x00\x01\s,，;；、&|]*+[)）\]】]"
    rf"|[(（\[]\s*+{_LABEL}\s*+[:：][^()（）\[\]\x00\n]{{0,80}}\x00[^()（）\[\]\n]{{0,500}}[)）\]]"
    rf"|(?m:^)[\x01\s]*+{_LABEL}[\x01\s]*+[:：][\x01\s]*+(?=\x00)[\x00\x01\s,，;；、.。]*+(?m:$)"
)
"""The remains of marks: "(Sources: [1], [2])"."""
_HARD_BREAK = re.compile(r"(?:  |\\)\r?\n")
_ABBREVIATED = re.compile(r"(?i)(?:^|\W)(?:al|inc|corp|ltd|co|nos?|figs?|eqs?|vols?|pp|approx|ca)\.\Z")
_INITIALISM = re.compile(r"\b[A-Z](?:\.[A-Z])+\.\Z")
_BEGINS = re.compile(r"(?:The|This|These|It|In|A|An|But|And|However)\b")
_LEADING_CLOSERS = ')]）】”’」』》"'
_TIGHT = ".,;:!?…%)]}。，；：！？、）】」』”’"
_OPENED = {"(": ")", "（": "）", "“": "”", "「": "」", "『": "』", "《": "》"}


def _read_block(
    markdown: str, block: Block, references: References, section: str, number: int
) -> tuple[Inline, list[Sentence]]:
    base = block.start
    text = markdown[base : block.end]
    found = read_inline(text, references, base)
    masked = _mask(text, found, _gaps(markdown, block))
    inline = Inline(
        [mark._replace(start=mark.start + base, end=mark.end + base) for mark in found.marks],
        [url._replace(start=base + url.start) for url in found.urls],
        found.cuts,
    )
    places = [(0, len(text))] if block.kind in ("heading", "table") else _sentence_places(masked)
    dealt = _deal(places, found.marks)
    end = len(masked)
    while end > 0 and not masked[end - 1].isalnum():
        end -= 1
    closing = tuple(mark for mark in inline.marks if mark.start >= base + end)[:_CLOSING_MAX] if len(places) > 1 else ()
    sentences = []
    for place, ((start, stop), marks) in enumerate(zip(places, dealt, strict=True)):
        words = _words_between(masked, start, stop)
        if words:
            own = tuple(inline.marks[at] for at in marks)
            last = place == len(places) - 1
            sentences.append(
                Sentence(words, section, base + start, base + stop, own, () if last else closing, block.kind, number)
            )
    return inline, sentences


def _gaps(markdown: str, block: Block) -> Iterator[tuple[int, int, str]]:
    """For each break between lines: a line end if a sentence may end there, a blank if the line was merely wrapped."""
    for (start, end), (after, _) in zip(block.lines, block.lines[1:], strict=False):
        last, first = markdown[end - 1], markdown[after]
        soft = first.islower() or (end - start >= _WRAPPED_CHARS_MIN and last.isascii() and first.isascii())
        hard = _HARD_BREAK.match(markdown, end) is not None or last in _STOPS or not soft
        yield end - block.start, after - block.start, "\n" if hard else " "


def _mask(text: str, inline: Inline, gaps: Iterator[tuple[int, int, str]]) -> str:
    """The text, of equal length: marks as \\x00, markup as \\x01, breaks between lines as a blank or line end."""
    pieces = [(cut.start, cut.end, _GONE if cut.is_mark else _MARKUP) for cut in inline.cuts]
    parts: list[str] = []
    at = 0
    for start, end, sign in sorted([*pieces, *gaps]):
        if end > at:
            start = max(start, at)
            parts += (text[at:start], sign * (end - start))
            at = end
    masked = "".join((*parts, text[at:]))
    return _SHELL.sub(lambda found: _GONE * len(found[0]), masked) if _GONE in masked else masked


def _sentence_places(masked: str) -> list[tuple[int, int]]:
    """Half-open spans of sentences in a masked text, each from its first word to its last character."""
    # A mark acts as closing punctuation followed by a blank: a sentence may end before it.
    plain = re.sub("\x00++", lambda found: "'" * (len(found[0]) - 1) + " ", masked).replace(_MARKUP, "'")
    joined: list[tuple[int, int]] = []
    for whole in sentence_spans(plain):
        start, end = _trim(masked, *whole)
        if start == end:
            continue
        if joined and "\n" not in plain[joined[-1][1] : start]:
            before = joined[-1][0]
            quoted = plain.count('"', *joined[-1]) % 2 == 1
            while start < end and plain[start] in _LEADING_CLOSERS and (plain[start] != '"' or quoted):
                joined[-1] = (before, start + 1)
                start += 1
            start, end = _trim(masked, start, end)
            if start == end:
                continue
            if end - before <= _SENTENCE_CHARS_MAX and _goes_on(plain, joined[-1], (start, end)):
                joined[-1] = (before, end)
                continue
        joined.append((start, end))
    return _join_open(plain, joined)


def _trim(masked: str, start: int, end: int) -> tuple[int, int]:
    while start < end and (masked[start] in "\x00\x01" or masked[start].isspace()):
        start += 1
    while end > start and (masked[end - 1] in "\x00\x01" or masked[end - 1].isspace()):
        end -= 1
    return start, end


def _goes_on(plain: str, before: tuple[int, int], after: tuple[int, int]) -> bool:
    """Return whether a sentence was cut at an abbreviation."""
    first = plain[before[0] : before[1]]
    rest = plain[after[0] : after[1]].lstrip("'\"“(")
    if not any(map(str.isalnum, rest)) or (rest[0].islower() and first[-1:] in '.!?…"”)'):
        return True
    if _INITIALISM.search(first[-20:]):
        return _BEGINS.match(rest) is None
    return _ABBREVIATED.search(first[-20:]) is not None and not rest[0].isupper()


def _join_open(plain: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join up to four spans that were cut within quotes or brackets, if that closes them."""
    joined: list[tuple[int, int]] = []
    at = 0
    while at < len(spans):
        (start, end), used = spans[at], 1
        if has_open_ends(plain[start:end]):
            for more in range(1, min(4, len(spans) - at)):
                reach = spans[at + more][1]
                if "\n" in plain[spans[at + more - 1][1] : spans[at + more][0]] or reach - start > _SENTENCE_CHARS_MAX:
                    break
                if not has_open_ends(plain[start:reach]):
                    end, used = reach, more + 1
                    break
        joined.append((start, end))
        at += used
    return joined


def has_open_ends(text: str) -> bool:
    """Return whether a quote or bracket is opened in a sentence and not closed in it."""
    if len(text) > _SENTENCE_CHARS_MAX:
        return False
    return text.count('"') % 2 == 1 or any(text.count(opens) > text.count(close) for opens, close in _OPENED.items())


def _deal(places: Sequence[tuple[int, int]], marks: Sequence[Mark]) -> list[list[int]]:
    """Assign each mark to the last sentence that begins before it; one before the first sentence goes to that."""
    dealt: list[list[int]] = [[] for _ in places]
    starts = [start for start, _ in places]
    for at, mark in enumerate(marks if places else ()):
        place = bisect_right(starts, mark.start) - 1
        if 0 <= place + 1 < len(places) and mark.start <= starts[place + 1] < mark.end:
            place += 1  # a link at the start of its sentence
        dealt[max(0, place)].append(at)
    return dealt


def _close_with(sentences: list[Sentence], marks: Sequence[Mark]) -> None:
    """Assign the marks of a paragraph of marks alone to the sentences of the paragraph before it."""
    block = sentences[-1].block
    for at in range(len(sentences) - 1, -1, -1):
        if sentences[at].block != block or sentences[at].kind == "heading":
            return
        sentences[at] = sentences[at]._replace(closing=(*sentences[at].closing, *marks[:_CLOSING_MAX]))


def _words_between(masked: str, start: int, end: int) -> str:
    """The words of a span, with marks and markup removed, white space collapsed, and no space before a stop."""
    text = ""
    for part in filter(None, masked[start:end].replace(_MARKUP, "").split(_GONE)):
        if text and part.lstrip()[:1] in _TIGHT:  # also true of an empty text
            text, part = text.rstrip(), part.lstrip()
            if text[-1:] in ".!?。！？" and part[:1] in (".", "!", "?", "。", "！", "？"):
                part = part[1:]
        elif text[-1:].isascii() and text[-1:].isalnum() and part[0].isascii() and part[0].isalnum():
            text += " "
        text += part
    return " ".join(text.split())


# -- claims ---------------------------------------------------------------------------------------------

_NO_CLAIMS = frozenset({"sources", "gaps", "contents", "change note"})
"""Sections that contain no claims."""
_NOT_DECLARED = re.compile(
    r"[?？][\"'”’)）」』\s]*\Z|[:：][\s*]*\Z|\A(?:[a-z]{2}|[,;:，；：、)）”])|\A[\[{<].*[\]}>]\W*\Z"
)
"""A question, a line that introduces others, a fragment, a placeholder in brackets."""
_HALF_WORDS = re.compile(f"[{_HAN}]")
_FULL_CID = re.compile(r"cid_[0-9a-f]{64}\Z")
_POINTS_AT_MARK = re.compile(
    r"(?:(?i:\b(?:in|by|from|of|see|to|with|per|refs?|references?|sources?|and|as))|参考|文献|根据|参见|见|如|由|据)\s*\Z"
)


class Claim(NamedTuple):
    """A sentence that cites something or gives a figure."""

    sentence: Sentence
    cited: tuple[str, ...]
    """cids of the marks in it or directly after it."""
    closing: tuple[str, ...]
    """cids at the end of its paragraph, if it has none of its own: a check decides whether they apply."""
    figure: bool


def find_claims(reading: Reading, policy: ResearchPolicy) -> list[Claim]:
    """The claims of an output, in order: sentences with a mark (or with one at the end of the paragraph) or a figure.

    Questions, headings, rows of tables, fragments and the sections on sources and gaps are excluded.
    """
    apart = [(each.start, each.end) for each in reading.sections if _first_kind(each.title) in _NO_CLAIMS]
    cids: dict[str, str | None] = {}
    claims: list[Claim] = []
    at, reach = 0, -1
    for sentence in reading.sentences:
        while at < len(apart) and apart[at][0] <= sentence.start:
            reach = max(reach, apart[at][1])
            at += 1
        if sentence.start < reach or not _is_declared(reading, sentence, policy):
            continue
        cited = _cids(sentence.marks, cids)
        closing = () if sentence.marks else _cids(sentence.closing, cids)
        figure = has_figure(sentence.text)
        if cited or closing or figure:
            claims.append(Claim(sentence, cited, closing, figure))
    return claims


def _first_kind(title: str) -> str | None:
    """The kind named by a heading, or by its first part: "Gaps and limitations" is "gaps"."""
    return next((_KINDS[name] for name in _names_of(title)[:2] if name in _KINDS), None)


def _is_declared(reading: Reading, sentence: Sentence, policy: ResearchPolicy) -> bool:
    text = sentence.text
    if sentence.kind in ("heading", "table", "reference") or len(text) > policy.claim_chars_max:
        return False
    if _NOT_DECLARED.search(text) or has_open_ends(text):
        return False
    if count_words(text) - len(_HALF_WORDS.findall(text)) / 2 < policy.claim_words_min:
        return False
    return not any(_is_part(reading.markdown, sentence, mark) for mark in sentence.marks)


def _is_part(markdown: str, sentence: Sentence, mark: Mark) -> bool:
    """Return whether the sentence needs the mark: as an object ("shown in [3]"), or as its only content (a
    bare link).
    """
    if mark.start <= sentence.start and sentence.end <= mark.end:
        return True
    inside = sentence.start < mark.start < sentence.end
    bare = mark.key != mark.url or markdown[mark.start] not in "[<"  # links have words of their own
    before = markdown[max(sentence.start, mark.start - 20) : mark.start]
    return inside and bare and _POINTS_AT_MARK.search(before) is not None


def _cids(marks: Sequence[Mark], known: dict[str, str | None]) -> tuple[str, ...]:
    """The distinct sources named by marks, in order; dangling marks and invalid addresses name none."""
    named: dict[str, None] = {}
    for mark in marks:
        if mark.url is None:
            cid = mark.key if _FULL_CID.match(mark.key) else None
        elif mark.url in known:
            cid = known[mark.url]
        else:
            normalized = try_normalize_url(mark.url)
            cid = known[mark.url] = None if normalized is None else cid_of(normalized)
        if cid is not None:
            named[cid] = None
    return tuple(named)
