"""Addresses as sources (RP-03): one spelling, one id; credentials never kept; what is no web address is refused."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muniment.errors import InvalidInput
from muniment.research.urls import (
    CID_HEX_MIN,
    URL_CHARS_MAX,
    cid_of,
    fetchable_url,
    normalize_url,
    short_cids,
    try_normalize_url,
    without_credentials,
)
from products import for_each

PIECES = st.sampled_from(
    [
        "http://",
        "https://",
        "HTTPS://",
        "www.",
        "a.de",
        "ß",
        "Σ",
        "ẞ.",
        "İ",
        "℀",
        "。",
        "．",
        "@",
        ":",
        ":80",
        ":443",
        ":8080",
        "/",
        "//",
        ".",
        "..",
        "/./",
        "/../",
        "%",
        "%2e",
        "%2E",
        "%2f",
        "%7E",
        "%zz",
        "%25",
        "%C3",
        "é",
        "日本",
        "?",
        "&",
        "=",
        "utm_x=1",
        "UTM_Y",
        "gclid=2",
        "b=1",
        "a",
        "a=",
        "+",
        "#",
        "[::1]",
        "[",
        "]",
        "\\",
        "|",
        "xn--mnchen-3ya",
        "127.1",
        "\u200d",
        " ",
    ]
)
MESSY = st.lists(PIECES | st.characters(), max_size=14).map("".join)
MESSY_URLS = st.tuples(
    st.sampled_from(["http://", "https://example.com/", "https://a.de?", "http://ä.de", "www.a.b"]), MESSY
).map("".join)


@pytest.mark.req("RP-03")
@for_each(
    ("written", "normal"),
    [
        ("HTTPS://Example.COM/Path", "https://example.com/Path"),
        ("https://example.com", "https://example.com"),
        ("https://example.com/", "https://example.com"),
        ("https://example.com/a/", "https://example.com/a"),
        ("https://example.com/a//", "https://example.com/a"),
        ("https://example.com//a//b", "https://example.com//a//b"),
        ("https://example.com./a", "https://example.com/a"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("http://example.com:80", "http://example.com"),
        ("http://example.com:443", "http://example.com:443"),
        ("https://example.com:/a", "https://example.com/a"),
        ("https://example.com:08080/a", "https://example.com:8080/a"),
        ("https://example.com/a#part", "https://example.com/a"),
        ("https://example.com#", "https://example.com"),
        ("https://example.com/?", "https://example.com"),
        ("https://example.com/a/?b=1", "https://example.com/a?b=1"),
        ("https://example.com/a?z=1&b=2&a=3", "https://example.com/a?a=3&b=2&z=1"),
        ("https://example.com/a?b&c=&=d&&", "https://example.com/a?=d&b&c="),
        ("https://example.com/a?b=2&a=0&b=1", "https://example.com/a?a=0&b=2&b=1"),
        (
            "https://example.com/?utm_source=x&UTM_Medium=y&gclid=1&FBCLID=2&%75tm%5Fz=3&id=7",
            "https://example.com?id=7",
        ),
        ("https://example.com/?utmost=1&gclid2=2", "https://example.com?gclid2=2&utmost=1"),
        ("https://user:secret@example.com/a", "https://example.com/a"),
        ("https://user@name:p@ss@example.com:8443/a@b", "https://example.com:8443/a@b"),
        ("https://example.com/%7Euser/%61%2f%C3%a9", "https://example.com/~user/a%2F%C3%A9"),
        ("https://example.com/é/日本?q=東", "https://example.com/%C3%A9/%E6%97%A5%E6%9C%AC?q=%E6%9D%B1"),
        ("https://example.com/100%/a%zz", "https://example.com/100%25/a%25zz"),
        ('https://example.com/a|b"<c>[d]?x[]=1', "https://example.com/a%7Cb%22%3Cc%3E%5Bd%5D?x%5B%5D=1"),
        ("https://example.com/a/./b/../c", "https://example.com/a/c"),
        ("https://example.com/../../a/%2e%2E/b/.", "https://example.com/b"),
        ("https://example.com/a(b)_c,d;e=f!$'*+:@", "https://example.com/a(b)_c,d;e=f!$'*+:@"),
        ("http://münchen.DE/", "http://xn--mnchen-3ya.de"),
        ("http://例え。テスト", "http://xn--r8jz45g.xn--zckzah"),
        ("http://ｅｘａｍｐｌｅ．ｃｏｍ", "http://example.com"),
        ("http://ex%61mple.com", "http://example.com"),
        ("http://b%C3%BCcher.de", "http://xn--bcher-kva.de"),
        ("http://straße.de", "http://xn--strae-oqa.de"),
        ("http://i❤\ufe0f.ws", "http://xn--i-7iq.ws"),
        ("http://under_score.example.com", "http://under_score.example.com"),
        ("http://localhost:3000/x", "http://localhost:3000/x"),
        ("http://192.168.0.1/x", "http://192.168.0.1/x"),
        ("http://[2001:DB8:0:0::1]:80/x", "http://[2001:db8::1]/x"),
        ("http://[::FFFF:1.2.3.4]:8080", "http://[::ffff:102:304]:8080"),
        ("www.Example.com/x/", "https://www.example.com/x"),
        ("WWW.example.com:8443", "https://www.example.com:8443"),
        (" https://example.com/a\n", "https://example.com/a"),
    ],
)
def test_normal_form(written: str, normal: str) -> None:
    assert normalize_url(written) == normal
    assert normalize_url(normal) == normal
    assert try_normalize_url(written) == normal


@pytest.mark.req("RP-03")
@for_each(
    "spellings",
    [
        (
            "http://münchen.de",
            "http://MÜNCHEN.de",
            "http://mu\u0308nchen.de",
            "http://XN--MNCHEN-3YA.de",
            "http://m%C3%BCnchen.de",
        ),
        ("http://straße.de", "http://STRAẞE.de", "http://xn--strae-oqa.de"),
        ("http://Σ.gr", "http://σ.gr", "http://xn--4xa.gr"),
        ("https://e.org/a?x=1&y=2", "https://e.org/a/?y=2&x=1&utm_id=9#z", "HTTPS://a:b@E.ORG:443/%61?y=2&x=1"),
        ("https://e.org/~a", "https://e.org/%7ea", "https://e.org/b/../%7Ea/"),
        ("https://e.org/ü", "https://e.org/%c3%bc"),
    ],
)
def test_spellings_of_one_address_have_one_cid(spellings: tuple[str, ...]) -> None:
    assert len({cid_of(normalize_url(written)) for written in spellings}) == 1


@pytest.mark.req("RP-03")
@for_each(
    ("one", "other"),
    [
        ("http://e.org", "https://e.org"),
        ("https://e.org/a", "https://e.org/A"),
        ("https://e.org/a%2Fb", "https://e.org/a/b"),
        ("https://e.org/?q=a+b", "https://e.org/?q=a%20b"),
        ("https://e.org/?a", "https://e.org/?a="),
        ("https://e.org/?a=1&a=2", "https://e.org/?a=2&a=1"),
        ("https://e.org", "https://www.e.org"),
        ("https://e.org", "https://e.org:8443"),
        ("http://ς.gr", "http://σ.gr"),
    ],
)
def test_what_a_server_may_tell_apart_stays_apart(one: str, other: str) -> None:
    assert normalize_url(one) != normalize_url(other)


@for_each(
    "written",
    [
        "",
        " ",
        "http://",
        "https:///a",
        "http://?a",
        "http://#a",
        "http:/e.org",
        "http:e.org",
        "//e.org/a",
        "e.org/a",
        "www.",
        "www.e",
        "www..org",
        "see www.e.org",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "mailto:a@e.org",
        "ftp://e.org/a",
        "https://e.org/a b",
        "https://e.org/a\nb",
        "https://e\t.org",
        "https://e.org/\x00",
        "https://e.org/\u3000a",
        "https://e.org/\x85a",
        "https://e.org/\ud800",
        "https://a..b",
        "https://...",
        "https://.e.org",
        "https://e.org:0",
        "https://e.org:65536",
        "https://e.org:x",
        "https://e.org:９",
        "https://[::1",
        "https://::1/",
        "https://[::1%25eth0]",
        "https://[e.org]",
        "https://[]",
        "https://e.org\\@f.org",
        "https://f.org\\a",
        "https://e!.org",
        "https://e%2F.org",
        "https://e%00.org",
        "https://e%ff.org",
        "https://ａ℀.com",
        "https://\u2028.de",
        "https://127.1",
        "https://2130706433",
        "https://0x7f.0.0.1",
        "https://1.2.3.256",
        "https://1.2.3.04",
        "https://" + "a" * 64 + ".de",
        "https://" + "ü" * 60 + ".de",
        "https://" + "a." * 127 + "de",
        "https://e.org/" + "a" * URL_CHARS_MAX,
        "https://e.org/" + "é" * 2_000,
    ],
)
def test_what_is_no_web_address_is_refused_with_a_hint(written: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        normalize_url(written)
    assert caught.value.hint
    assert try_normalize_url(written) is None


def test_a_refusal_repeats_no_password() -> None:
    with pytest.raises(InvalidInput) as caught:
        normalize_url("https://user:hunter2@e..org")
    assert "hunter2" not in str(caught.value.to_dict())


@given(MESSY_URLS)
@example("https://e.org/%2%35")
@example("https://e.org/%%34%31")
@example("https://e.org/.//../..//")
@example("http://\u1e9e\u0345.de")
def test_a_normal_form_is_its_own_normal_form(written: str) -> None:
    normal = try_normalize_url(written)
    if normal is not None:
        assert normalize_url(normal) == normal
        assert normal.isascii()
        assert normal.isprintable()
        assert len(normal) <= URL_CHARS_MAX
        assert normalize_url(fetchable_url(written)) == normal


@given(st.text())
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try_normalize_url(text)
    try_normalize_url(f"https://{text}")
    try_normalize_url(f"https://e.org/{text}")


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3)).flatmap(
        lambda made: st.permutations(list(made.items()))
    )
)
def test_the_order_of_different_parameters_makes_no_difference(parameters: list[tuple[str, int]]) -> None:
    written, ordered = (
        "&".join(f"{name}={value}" for name, value in some) for some in (parameters, sorted(parameters))
    )
    assert normalize_url(f"https://e.org/?{written}") == normalize_url(f"https://e.org/?{ordered}")


# -- as a server is asked, as it is kept ------------------------------------------------------------------


@for_each(
    ("written", "asked"),
    [
        ("https://e.org", "https://e.org/"),
        ("HTTPS://u:p@E.org:443/a/?b=ü&a=1&utm_id=3#x", "https://e.org/a/?b=%C3%BC&a=1&utm_id=3"),
        ("https://e.org/a/..", "https://e.org/"),
        ("https://e.org/a/b/..", "https://e.org/a/"),
        ("https://e.org/a/.", "https://e.org/a/"),
        ("www.e.org", "https://www.e.org/"),
    ],
)
def test_a_server_is_asked_for_what_was_written(written: str, asked: str) -> None:
    assert fetchable_url(written) == asked


@for_each(
    ("written", "kept"),
    [
        ("https://user:p@ss@e.org/a?b=c@d", "https://e.org/a?b=c@d"),
        ("ftp://user:pass@e.org", "ftp://e.org"),
        ("HTTPS://E.org/a/@me", "HTTPS://E.org/a/@me"),
        ("mailto:a@e.org", "mailto:a@e.org"),
        ("https://u:p@e..org", "https://e..org"),
    ],
)
def test_credentials_are_cut_out_of_any_text(written: str, kept: str) -> None:
    assert without_credentials(written) == kept


# -- ids --------------------------------------------------------------------------------------------------


@pytest.mark.req("RP-03")
def test_a_cid_is_the_hash_of_the_normal_form() -> None:
    normal = normalize_url("HTTPS://Example.org/a/")
    assert cid_of(normal) == "cid_" + sha256(b"https://example.org/a").hexdigest()


def test_short_cids_are_as_long_as_they_need_to_be() -> None:
    cids = ["cid_" + head.ljust(64, "0") for head in ("11111111a", "11111111bb", "11111111bc", "2")]
    assert short_cids(cids) == {
        cids[0]: "cid_11111111a",
        cids[1]: "cid_11111111bb",
        cids[2]: "cid_11111111bc",
        cids[3]: "cid_20000000",
    }
    assert short_cids([]) == {}
    assert short_cids([cids[0], cids[0]]) == {cids[0]: "cid_11111111"}


@given(st.lists(st.text("01", min_size=64, max_size=64).map("cid_".__add__), max_size=30))
def test_short_cids_name_one_each(cids: list[str]) -> None:
    short = short_cids(cids)
    assert set(short) == set(cids)
    assert list(short) == sorted(set(cids))
    for cid, name in short.items():
        assert len(name) >= len("cid_") + CID_HEX_MIN
        assert [other for other in short if other.startswith(name)] == [cid]
        shorter = name[:-1]
        assert len(name) == len("cid_") + CID_HEX_MIN or sum(other.startswith(shorter) for other in short) > 1
