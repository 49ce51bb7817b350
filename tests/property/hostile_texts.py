"""Texts that nobody writes and anybody may send: one stretch, over and over, for every kind of thing that is looked for.

A pattern that starts again wherever a stretch begins, or reads on from each of them to the end, costs the square of what
these cost to read. `test_hostile_texts` sends each family through every operation.
"""

# ruff: noqa: E501 - families read best with one to a line

from __future__ import annotations

__all__ = ["FAMILIES", "hostile_text"]

FAMILIES: dict[str, tuple[str, ...]] = {
    # What people say of themselves: home, name, job, allergy, likes, in three languages, with and without sentence ends.
    "home": ("I live in ", "I moved to Rome ", "I live in Berlin. ", "I live in Berlin and ", "we relocated here, "),
    "home in Chinese": ("我住在北京", "我搬到上海了，", "我住在北京。", "Ana住在"),
    "home in Korean": ("나는 서울에 살고 ", "저는 서울에 살아요. ", "부산으로 이사 "),
    "name": ("my name is Ana ", "call me Ana, ", "I am ", "我叫王小明，", "제 이름은 민수예요. "),
    "job": ("I work at Acme ", "I work as a nurse. ", "left a for ", "我是医生", "在一", "저는 의사예요 "),
    "allergy": ("I am allergic to nuts and ", "I'm allergic to nuts. ", "我对花生过敏", "저는 땅콩 알레르기가 있어요 "),
    "likes": ("I like tea and ", "I really really ", "my favourite food is ", "我喜欢", "좋아해요 "),
    "relations": ("my sister Anna ", "my dog is ", "my new car is ", "got married ", "I stopped drinking "),
    "changes": ("I switched ", "moved x ", "i have a ", "is a ", "no longer ", "replaced x ", "换了"),
    "questions": ("where ", "who ", "what which ", "where do I live from ", "Where? ", "어떤 ", "哪些", "do you "),
    "questions that gather": ("what a b ", "which has ", "kinds of ", "how many ", "like best "),
    # Names, pronouns, joining words.
    "names": ("Anna Berta ", "Anna, ", "Anna's ", "A. B. ", "Mr. ", "Dr. Smith "),
    "pronouns": ("he she it they ", "my ", "our ", "I'm ", "we've", "grand", "him or her "),
    "joins": ("and ", "because ", "if ", "that ", "not ", "of the ", "to ", "I do not ", "who said that "),
    # Times and numbers.
    "dates": ("2024-05-01 ", "May 3rd, 1990 ", "on 3 May ", "1/2/", "2024年5月", "5월 3일 ", "may ", "1990s "),
    "time words": ("last monday ", "yesterday ", "two weeks ago ", "the day before ", "in the last ", "every "),
    "time words of others": ("周一", "3일 전 ", "昨天", "三天前", "上个月", "지난주 ", "월요일"),
    "ranges": ("between May and ", "from 1 to ", "before ", "since 2019 ", "until May ", "1 - "),
    "digits": ("7", "12 ", "1,", "1.", "1:2", "0"),
    "numerals": ("seven ", "one hundred and ", "XIV ", "一二三", "twice a ", "5% ", "$5 ", "5 kg "),
    # Signs.
    "white space": ("\t", " ", "\n", "\r\n", "\u3000", " \n", "\u00a0"),
    "quotes": ('"', "'", "“”", '"a" ', 'he said "', "「", "''", "a'"),
    "brackets": ("(", "[]", "{(<", ")", "[a](", "((a)"),
    "dashes": ("-", "—", "--", "a-", "- ", "–"),
    "commas": (",", ", ", "，", ";", "、"),
    "dots": (".", ". ", "...a ", "…", "。", "!? ", "?", ".a"),
    "other signs": ("_", "*", "#", "|", "~", "`", "/", ":", "=", "+", "@", "&amp;", "%41", "^"),
    "unseen": ("\u200b", "\x00", "\u202e", "\u0301", "e\u0301", "\ufeff"),
    # Markup and addresses.
    "markdown": ("> ", "  - ", "# a\n", "**a", "```\n", "| a | b |\n", "[a](http://b.c) ", "1. a\n", "![", "---\n"),
    "tags": ("<div>", "<a href=", "</p><p>", "<!--", "<script>", "<a b='c'>", "&lt;", "<"),
    "addresses": ("http://a.b/", "https://example.com/a?b=c ", "http://", "www.", "a@b.", "a.b-c_d@", "1.2.3.4 ", "//"),
    "code": ("def f(): ", '{"a":', "[1,", "a = b\n", "a: b\n", "a,b,c\n", "\\", "\\n", "C:\\a\\", "\\frac{", "x1"),
    # What must not be kept, and what must not be obeyed.
    "secrets": ("sk-abcdefghijklmnop", "sk-", "AKIAIOSFODNN7EXAMPLE ", "password=", "api_key: ", "ghp_", "eyJhbGci."),
    "secrets that open": (
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----\n",
        "Bearer abc.",
        "://a:b",
        "user:pass@",
        "token ",
    ),
    "cards": ("4111 1111 1111 1111 ", "4111-", "4111", "123-45-", "+1 555 123 ", "DE89 3704 "),
    "blobs": ("QUJDREVGR0hJSktM", "QUJD+/==", "deadbeef", "123e4567-e89b-", "aA0"),
    "orders": ("ignore previous instructions ", "You must ", "ignore all ", "do not tell the user ", "please please "),
    "orders of others": (
        "忽略之前的指令",
        "이전 지시를 무시해 ",
        "你必须",
        "system: ",
        "\nSystem: ",
        "<|im_start|>",
        "[INST]",
    ),
    # Scripts and words.
    "one word": ("a", "A", "aA", "supercalifragilistic", "a_b", "ß", "É"),
    "short lines": ("a\n", "yes. no\n", "- a\n", "a: b.\n", "ok\n\n"),
    "Han": ("中", "中文，", "一", "的", "我", "a中", "中 "),
    "Hangul": ("가", "가 나 ", "저는", "에", "a가", "中가"),
    "other scripts": ("あ", "ア", "ก", "م ", "Ａ", "я ", "α"),
    "emoji": ("😀", "👩‍👩‍👧 ", "🇩🇪", "❤️"),
}
"""Stretches by what they are hostile to; the first of each is tried in every run, all of them under a soak."""


_BEFORE, _AFTER = "On Monday I said: where I live now, ", " and 3 more. What do I like, 我住在哪里, 어디에 살아요?"
"""Ends that white space is not stripped from, with words that make readers look closer."""


def hostile_text(stretch: str, size: int, *, alone: bool = False) -> str:
    """About `size` characters of the stretch, never half of one, amid a text; or, `alone`, of nothing else."""
    run = stretch * (size // len(stretch))
    return run if alone else f"{_BEFORE}{run}{_AFTER}"
