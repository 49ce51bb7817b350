"""HTML as a reader sees it: what is said stays, furniture goes, and nothing that is no HTML breaks it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.memory._chunking import Tag, read_markup, read_page
from products import for_each

PAGE = """<!doctype html><html lang=en><head><title> The &amp; Page </title><style>p { color: red }</style>
<script>if (a < b) document.write("</p><p>written")</script></head>
<body><nav><a href="/">Home</a></nav><header><h1>A <em>real</em> heading<a class=headerlink>¶</a></h1></header>
<p>First<br>second &copy; <b>bo</b>ld.</p><div hidden>hidden</div><div aria-hidden="TRUE">aria</div>
<ul><li>one<ol><li>inner<li>last</ol></li><li><p>two</p><p>more</p></li></ul>
<table><tr><th>Key<th>Value</tr><tr><td><p>a</p></td><td></td><td>1</td></tr></table>
<pre><code>def f():
    return "&lt;x&gt;"
</code></pre>
<div role=navigation>crumbs</div><h2>Part</h2>loose words<footer>footer</footer></body></html>"""

MARKDOWN = """# A real heading

First
second © bold.

- one
  1. inner
  2. last
- two

more

Key | Value
a |  | 1

```
def f():
    return "<x>"
```

## Part

loose words"""


def test_a_page() -> None:
    assert read_page(PAGE) == ("The & Page", MARKDOWN)


@for_each(
    ("source", "text"),
    [
        ("a <3 b && c", "a <3 b && c"),
        ("1 < 2 > 0", "1 < 2 > 0"),
        ("<p>open", "open"),
        ("a</p>b", "a\n\nb"),
        ("<p>x</p", "x</p"),
        ("<!-- gone --><p>z<!-- never closed", "z<!-- never closed"),
        ("<!-->kept", "kept"),
        ("<a title='>'>q</a>", "q"),
        ("<a title='never closed>q</a> r", "q r"),
        ("<![CDATA[x]]>y<?php z ?>w", "yw"),
        ("<SCRIPT>a</ScRiPt >b", "b"),
        ("<b>never closed <script>gone", "never closed"),
        ("<textarea>typed</textarea>kept<select><option>o</select>", "kept"),
        ("<div><nav>menu</div>body", "body"),
        ("<nav>all there is</nav>", "all there is"),
        ("<td>a<td>b", "a | b"),
        ("<table><tr><td><h1>H</h1><table><tr><td>in</table>after</table>out", "# H\n\nin\n\nafter\n\nout"),
        ("<p># no heading</p><p>```</p>", "\\# no heading\n\n\\```"),
        ("<pre>a ``` b</pre>", "````\na ``` b\n````"),
        ("<h1>C#</h1>", "# C#"),
        ("&lt;b&gt; &#x41;&#0;&nope;", "<b> A\ufffd&nope;"),
    ],
)
def test_tag_soup(source: str, text: str) -> None:
    assert read_page(source).text == text


def test_titles() -> None:
    assert read_page("<h2>no</h2><h1>One</h1><h1>Two</h1>").title == "One"
    assert read_page("<title></title><p>x").title is None
    assert read_page("<title>never closed<p>x</p>") == ("never closed", "x")
    assert read_page("<svg><title>drawing</title></svg>x").title is None


def test_attributes() -> None:
    (tag,) = read_markup("<DIV Hidden CLASS='a b' id=x class=c data-q=\"&amp;\">")
    assert isinstance(tag, Tag)
    assert (tag.name, tag.is_end) == ("div", False)
    assert tag.attributes() == {"hidden": "", "class": "a b", "id": "x", "data-q": "&"}


_SOUP = st.lists(
    st.sampled_from(
        [
            "<", ">", "</", "<!--", "-->", "<!", "<?", "&", "&#", ";", '"', "'", "=", "/", "a", " ", "\n", "x ", "<p>",
            "</p>", "<td>", "<tr>", "<table>", "</table>", "<li>", "<ul>", "</ul>", "<pre>", "</pre>", "<h1>", "</h1>",
            "<title>", "</title>", "<script>", "</script>", "<nav>", "</nav>", "<div hidden>", "</div>", "<br>",
            "<![CDATA[", "]]>",
        ]
    )
)  # fmt: skip


@settings(max_examples=examples(150), deadline=None)
@given(_SOUP)
def test_no_markup_breaks_it(parts: list[str]) -> None:
    page = read_page("".join(parts))
    assert page == read_page("".join(parts))
    assert page.text == page.text.strip("\n")


@settings(max_examples=examples(30), deadline=None)
@given(st.text())
def test_text_without_markup_keeps_its_words(text: str) -> None:
    words = text.replace("\x00", "").replace("<", "").replace("&", "").split()
    read = read_page(" ".join(words)).text.split()
    assert read in (words, [f"\\{word}" for word in words[:1]] + words[1:])


@pytest.mark.soak
@for_each(
    "unit",
    ["<a ", "<!--", "<![CDATA[", "<a b='", "<a '>", '<a b="c" ', "&#", "</", "<title>", "<script", "<div>", "</div>"],
)
@for_each("end", ["", ">", " x > y '"])
def test_the_same_over_and_over(unit: str, end: str) -> None:
    """Each is read once: what takes a parser that looks back minutes is over at once."""
    read_page(unit * (300_000 // len(unit)) + end)
