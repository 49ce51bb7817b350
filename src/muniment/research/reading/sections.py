"""Headings and what they are called: the same section under its English and Chinese names, numbered or not."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

__all__ = ["Section", "is_sources", "kinds_of", "main_kind", "names_of", "section_kind"]


class Section(NamedTuple):
    """A heading and the span of its body: up to the next heading of its level or above, other headings included."""

    title: str
    level: int
    start: int
    end: int


_ALIASES = {
    "findings": "findings; finding; results; result; research findings; research results; findings and results; "
    "evidence; "
    "发现; 研究发现; 调研发现; 调查发现; 研究结果; 调研结果; 调查结果; 结果; 发现与分析",
    "sources": "sources; source; references; reference; bibliography; works cited; citations; source list; sources "
    "cited; "
    "cited sources; sources used; sources consulted; reference list; references list; list of sources; footnotes; "
    "endnotes; "
    "参考文献; 参考资料; 参考来源; 参考链接; 来源; 资料来源; 信息来源; 数据来源; 文献来源; 来源列表; 引用; 引用来源; "
    "引用文献; "
    "引文; 文献; 参考; 出处; 脚注; 尾注; 参考文献列表; 参考书目; 信源; 文献列表",
    "gaps": "gaps; gap; knowledge gaps; research gaps; information gaps; evidence gaps; data gaps; remaining gaps; "
    "open questions; "
    "unanswered questions; unresolved questions; outstanding questions; unknowns; open issues; what is missing; "
    "what's missing; "
    "空白; 缺口; 研究空白; 知识空白; 信息空白; 数据空白; 研究缺口; 信息缺口; 数据缺口; 知识缺口; 证据缺口; "
    "未解决的问题; 未解决问题; "
    "未解问题; 待解决的问题; 待解决问题; 待解答的问题; 开放问题; 悬而未决的问题; 尚未解答的问题; 未知; 遗漏; "
    "尚待研究的问题; 待查问题",
    "summary": "summary; executive summary; abstract; overview; tl;dr; tldr; at a glance; key takeaways; takeaways; "
    "synopsis; "
    "摘要; 概要; 执行摘要; 内容摘要; 报告摘要; 研究摘要; 内容提要; 提要; 要点; 核心要点; 概览",
    "limitations": "limitations; limitation; caveats; study limitations; research limitations; limits; "
    "局限; 局限性; 研究局限; 研究局限性; 限制; 不足; 研究不足; 研究限制; 不足之处; 局限与不足",
    "conclusion": "conclusion; conclusions; concluding remarks; closing; 结论; 总结; 结语; 小结; 结束语",
    "introduction": "introduction; background; 引言; 前言; 导言; 绪论; 背景; 研究背景; 介绍; 简介",
    "methods": "methods; method; methodology; approach; research methods; research methodology; 方法; 研究方法; "
    "方法论; 调研方法",
    "recommendations": "recommendations; recommendation; suggestions; 建议; 政策建议; 对策建议; 对策",
    "analysis": "analysis; discussion; 分析; 讨论; 探讨",
    "change note": "change note; change notes; changes; change log; changelog; changes made; what changed; "
    "修改说明; 变更说明; 更改说明; 修订说明; 改动说明; 变更记录; 修改记录",
    "contents": "contents; table of contents; toc; outline; 目录; 目次; 大纲",
}
_KIND = {name.strip(): kind for kind, names in _ALIASES.items() for name in names.split("; ")} | {"tl;dr": "summary"}
_NUMBERING = re.compile(
    r"(?:第?[一二三四五六七八九十百]{1,4}(?:[、.．:：]|[章节部篇][分]?[、.．:：\s]?)|"
    r"[(（][一二三四五六七八九十\d]{1,4}[)）]"
    r"|\d{1,3}(?:\.\d{1,3}){0,4}(?:[.、．)）:：]|\s|(?=[^\W\d_a-z]))|[ivxlc]{1,6}[.、)]\s?|[a-z][.)]\s"
    r"|(?:section|part|chapter|step)\s\d{1,3}[.:：\s-]{0,3})\s*"
)
_EDGE = re.compile(r"^[\W_]+|[\W_]+$")
_JOINT = re.compile(r"\s*(?:[&/,，;；|:：(（—–]|\s-\s|\band\b|以及|[与及和、])\s*")
_ADJECTIVE = re.compile(
    r"(?:(?:key|main|major|core|primary|principal|important|detailed|overall|final|full|remaining|complete|selected|"
    r"brief|critical)\s|"
    r"主要|关键|核心|重要|详细|总体|最终|具体|本报告|报告)"
)
_CHARS_MAX = 300


@lru_cache(maxsize=1024)
def names_of(title: str) -> tuple[str, ...]:
    """A title in plain form, then its parts: "3. **Gaps & limits**" is "gaps & limits", "gaps", "limits"."""
    plain = " ".join(title[:_CHARS_MAX].casefold().replace("*", "").replace("_", " ").replace("`", "").split())
    plain = _bare(plain)
    if plain in _KIND:
        return (plain,)
    return tuple(dict.fromkeys(name for part in (plain, *_JOINT.split(plain)) if (name := _bare(part))))


def _bare(name: str) -> str:
    name = _EDGE.sub("", name) if not name.startswith(("(", "（")) else name.strip()
    name = _NUMBERING.sub("", name, count=1) if _NUMBERING.match(name) else name
    name = _EDGE.sub("", name)
    while name not in _KIND and (found := _ADJECTIVE.match(name)) and found.end() < len(name):
        name = name[found.end() :]
    return name


def section_kind(title: str) -> str | None:
    """What a heading is one of the names of, whole: "findings", "sources", "gaps", …"""
    return _KIND.get(names_of(title)[0]) if names_of(title) else None


def main_kind(title: str) -> str | None:
    """What a heading is a name of, whole or in its first part: "Gaps and limitations" is "gaps"."""
    return next((_KIND[name] for name in names_of(title)[:2] if name in _KIND), None)


def is_sources(title: str) -> bool:
    """Does the heading announce a list of sources, and nothing else?"""
    names = names_of(title)
    whole = _KIND.get(names[0]) if names else None
    return whole == "sources" or (len(names) > 1 and all(_KIND.get(name) == "sources" for name in names[1:]))


def kinds_of(title: str) -> frozenset[str]:
    """All that the heading or a part of it is a name of; a name of none stands for itself."""
    return frozenset(_KIND.get(name, name) for name in names_of(title))
