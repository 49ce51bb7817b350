"""Secrets at the door (LG-10). Every shape is put together from parts, so that no scanner trips over this file."""

from __future__ import annotations

import re
import string
import tracemalloc
from collections import Counter
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from effort import examples
from muniment.core.canonical import canonical_text
from muniment.store.secrets import _TOKENS, CARD_RUN, may_hold_secret, redact_text, redact_value
from products import for_each

ALNUM = (string.ascii_letters + string.digits) * 5
DASHES = "-" * 5

CARDS = {
    "visa": "4111" + "1111" + "1111" + "1111",
    "visa 13": "4222" + "2222" + "22222",
    "visa 19": "4000" + "0000" + "0000" + "0000" + "006",
    "mastercard": "5555" + "5555" + "5555" + "4444",
    "mastercard 2": "2223" + "0031" + "2200" + "3222",
    "amex": "3782" + "822463" + "10005",
    "diners": "3056" + "930902" + "5904",
    "discover": "6011" + "1111" + "1111" + "1117",
    "jcb": "3530" + "1113" + "3330" + "0000",
    "unionpay": "6200" + "0000" + "0000" + "0005",
}

POSITIVES: list[tuple[str, str]] = [
    ("private_key", f"{DASHES}BEGIN RSA PRIVATE KEY{DASHES}\nMIIEow\nAAAA\n{DASHES}END RSA PRIVATE KEY{DASHES}"),
    ("private_key", f"{DASHES}BEGIN PRIVATE KEY{DASHES}\nMIIEow"),
    ("private_key", f"{DASHES}BEGIN OPENSSH PRIVATE KEY{DASHES}\nb3BlbnNz\n{DASHES}END OPENSSH PRIVATE KEY{DASHES}"),
    (
        "private_key",
        f"{DASHES}BEGIN PGP PRIVATE KEY BLOCK{DASHES}\n\nlQdGBF\n{DASHES}END PGP PRIVATE KEY BLOCK{DASHES}",
    ),
    ("aws_access_key", "AKIA" + "IOSFODNN7EXAMPLE"),
    ("aws_access_key", "ASIA" + "Y34FZKBOKMUTVV7A"),
    *[("github_token", f"gh{letter}_" + ALNUM[:36]) for letter in "pousr"],
    ("github_token", "github_" + "pat_" + ALNUM[:22] + "_" + ALNUM[:59]),
    ("gitlab_token", "glpat" + "-" + ALNUM[:20]),
    ("stripe_key", "sk_" + "live_" + ALNUM[:24]),
    ("stripe_key", "rk_" + "test_" + ALNUM[:24]),
    ("api_key", "sk" + "-" + ALNUM[30:78]),
    ("api_key", "sk-" + "proj-" + ALNUM[:60] + "-" + ALNUM[40:80]),
    ("api_key", "sk-" + "ant-api03-" + ALNUM[:80]),
    ("slack_token", "xox" + "b-123456789012-" + ALNUM[:24]),
    ("slack_token", "xapp" + "-1-A012345-" + ALNUM[:20]),
    ("google_key", "AIza" + ALNUM[:35]),
    ("hub_token", "hf_" + ALNUM[:34]),
    ("hub_token", "npm_" + ALNUM[:36]),
    ("hub_token", "pypi-" + "AgEIcHlwaS5vcmc" + ALNUM[:40]),
    ("jwt", "eyJ" + ALNUM[:30] + ".eyJ" + ALNUM[:60] + "." + ALNUM[:43]),
    ("bearer_token", "Authorization: " + "Bearer " + "abc123." + ALNUM[:40]),
    ("basic_auth", "Authorization: " + "Basic " + "dXNlcjpodW50ZXIyMg=="),
    ("url_password", "postgres://ana:" + "s3cr3t!" + "@db.example.com:5432/app"),
    ("url_password", "redis://:" + "s3cr3t" + "@localhost:6379/0"),
    ("url_password", "https://ana:" + "p@ss:w" + "@example.com/"),
    ("password", "password=" + "hunter2222"),
    ("password", "Passwd: " + "hunter2222"),
    ("password", "PGPASSWORD=" + "hunter2222"),
    ("password", "DB_PASSWORD := " + "'hunter2222'"),
    ("password", '{"password": "' + 'hunter2222"}'),
    ("password", '{\\"api_key\\": \\"' + 'hunter2222\\"}'),
    ("password", "aws_secret_access_key = " + "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("password", "client-secret: " + "hunter2222"),
    ("password", "refresh_token=" + "hunter2222"),
    ("password", "密码：" + "hunter2222"),
    ("password", "비밀번호: " + "hunter2222"),
    *[("card_number", number) for name, number in CARDS.items() if name != "visa 13"],
    ("card_number", "visa " + CARDS["visa 13"]),  # barcodes and phones have 13 digits too: a word must say card
]

FRAMES = ["{}", "before {} after", "({})", "“{}”", "x\n{}\ny", "{}.", "see: {}, please", "字{}字"]

NEGATIVES = [
    "Call +49 30 901820, or 0171 1234567 after six.",
    "+1 (555) 010-9999 ext. 12345",
    "2026-05-01T12:00:00.000000Z and 2026-05-01 12:00:00",
    "20260501120000",
    "order 1234567890123456, invoice 2026-000123-44",
    "1715512345678 1715512345678901",
    "550e8400-e29b-41d4-a716-446655440000",
    "12345678-1234-1234-1234-123456789012",
    "9fceb02d0ae598e95dc970b74767f19372d61af8",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "the password is a secret: tell nobody",
    "Forgot your password? A new key was cut for the door.",
    "The token ring network, the bearer of bad news, basic authorization rules.",
    "keyword: budget, monkey: banana, turnkey = solution",
    "https://example.com/a/b?c=d#e and http://localhost:8080/path?next=/x@y",
    "ssh://git@github.com/owner/name.git, mailto:bob@example.com",
    "http://host:8080?email=bob@example.com",
    "task-force-alpha risk-averse-2 disk-usage-report-2024-summary",
    "0.4111111111111111 3.14159265358979 4111111111111111.50",
    "4111 1111 1111 1112",  # fails Luhn
    "1111 1111 1111 1117",  # no issuer
    "ISBN 978-3-16-148410-0, IBAN DE89 3704 0044 0532 0130 00",
    "hf_short npm_run pypi-server eyJub3Q.a.jwt AKIASHORT ghp_short",
    "그 비밀번호는 비밀이다", "密码是秘密",
]  # fmt: skip


@pytest.mark.req("LG-10")
@for_each(("kind", "secret"), POSITIVES)
def test_a_secret_is_replaced(kind: str, secret: str) -> None:
    hidden = secret.split("://")[-1].rpartition("@")[0].partition(":")[2] if kind == "url_password" else None
    words = (hidden,) if hidden else ("hunter2222", secret if "=" not in secret and ": " not in secret else None)
    for frame in FRAMES:
        text = frame.format(secret)
        found: Counter[str] = Counter()
        clean = redact_text(text, found)
        assert f"[redacted:{kind}]" in clean, text
        assert found[kind] == 1, (text, found)
        assert not [word for word in words if word is not None and word in clean], text
        assert may_hold_secret(canonical_text({"content": text})), text


@pytest.mark.req("LG-10")
@for_each("text", NEGATIVES)
def test_what_is_no_secret_stays(text: str) -> None:
    found: Counter[str] = Counter()
    assert redact_text(text, found) == text
    assert not found


@pytest.mark.req("LG-10")
@for_each("name", CARDS)
def test_a_card_number_among_other_numbers(name: str) -> None:
    number = CARDS[name]
    cuts = (4, 10) if len(number) < 16 else (4, 8, 12, 16)
    parts = [number[a:b] for a, b in zip((0, *cuts), (*cuts, None), strict=True)]
    said = "card: " if name == "visa 13" else ""
    for separator in [""] if name == "visa 13" else ["", " ", "-"]:  # 13 digits are not written in groups
        for frame in ("{}", "{} 12/27", "{} 123", "12 {}", "no.{} ok", "a {} b 4 c", "12 {} 09 27 456", "{} 2027"):
            text = said + frame.format(separator.join(part for part in parts if part))
            clean = redact_text(text, Counter())
            assert "[redacted:card_number]" in clean, text
            assert number[4:10] not in clean.replace(" ", "").replace("-", ""), text


@pytest.mark.req("LG-10")
def test_keys_that_name_a_secret_lose_their_value_at_any_depth() -> None:
    names = [
        "password", "Password", "db_password", "X-Api-Key", "apiKey", "api_key", "client_secret", "secret", "my-secret",
        "access_token", "auth-token", "Authorization", "Proxy-Authorization", "private_key", "aws_secret_access_key",
    ]  # fmt: skip
    for name in names:
        data = {"a": [{"b": {name: "x1", "n": name}}, {name: ["x2", {"deep": "x3"}, 42, None, True, ""]}]}
        found: Counter[str] = Counter()
        clean = redact_value(data, found)
        gone = "[redacted:password]"
        assert clean == {"a": [{"b": {name: gone, "n": name}}, {name: [gone, {"deep": gone}, gone, None, True, ""]}]}, (
            name
        )
        assert found == {"password": 4}
        assert may_hold_secret(canonical_text(data)), name


@pytest.mark.req("LG-10")
@for_each("name", ["keyboard", "tokens", "max_tokens", "secretary", "passwords_seen", "key", "author"])
def test_keys_that_only_sound_like_it_keep_their_value(name: str) -> None:
    data = {name: "plain", "n": {name: 5}}
    assert redact_value(data, Counter()) == data


@pytest.mark.req("LG-10")
def test_numbers_keys_and_collisions() -> None:
    card, key = CARDS["visa"], "AKIA" + "IOSFODNN7EXAMPLE"
    found: Counter[str] = Counter()
    clean = redact_value(
        {"i": int(card), "f": float(card), "neg": -int(card), "id": 2**70, key: 1, key[:-1] + "F": 2, "t": 1e300}, found
    )
    gone = "[redacted:card_number]"
    assert (clean["i"], clean["f"], clean["neg"], clean["id"], clean["t"]) == (gone, gone, gone, 2**70, 1e300)
    assert [value for name, value in clean.items() if name.startswith("[redacted:aws_access_key]")] == [1, 2]
    assert found == {"card_number": 3, "aws_access_key": 2}


PIECES = (
    [secret for _, secret in POSITIVES] + NEGATIVES + ["password", "=", ":", '"', "\\", "secret", "ſ", "ı", "K", "4"]
)
texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=4).map(" ".join),
    st.lists(st.sampled_from(PIECES), max_size=4).map("".join),
    st.text(max_size=30),
    st.text(alphabet="0123456789 -.", max_size=40),
    st.text(alphabet="paſswordıPASSWORD=:hunter2 ", max_size=40),
)
names = st.one_of(st.sampled_from(["password", "API_KEY", "paſſword", "authorızation", "x-api-key", "a"]), texts)
values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(texts, st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=6,
)


@pytest.mark.req("LG-10")
@settings(max_examples=examples(120), deadline=None)
@given(values)
def test_the_cheap_look_never_misses_and_redacting_twice_changes_nothing(value: Any) -> None:
    found: Counter[str] = Counter()
    clean = redact_value(value, found)
    if canonical_text(clean) != canonical_text(value):
        assert found
        assert may_hold_secret(canonical_text({"content": value}))
    again: Counter[str] = Counter()
    assert redact_value(clean, again) == clean
    assert not again


@pytest.mark.soak
@pytest.mark.req("LG-10")
@pytest.mark.parametrize("pattern", [pattern for _, pattern in _TOKENS], ids=[kind for kind, _ in _TOKENS])
@settings(max_examples=examples(16), deadline=None)
@given(st.data())
def test_whatever_a_pattern_finds_is_hinted_at(pattern: re.Pattern[str], data: st.DataObject) -> None:
    text = data.draw(st.from_regex(pattern))
    assert redact_text(text, Counter()) != text  # looked for without the hint
    assert may_hold_secret(text)
    assert may_hold_secret(canonical_text({"content": text}))  # as the door asks
    assert redact_value(text, Counter()) == redact_text(text, Counter())
    assert redact_value({text: [text]}, Counter()) != {text: [text]}


@pytest.mark.req("LG-10")
@settings(max_examples=examples(30), deadline=None)
@given(st.one_of(st.from_regex(CARD_RUN), texts))
def test_whatever_may_be_a_card_number_is_hinted_at(text: str) -> None:
    assert may_hold_secret(text) or (CARD_RUN.search(text) is None and redact_text(text, Counter()) == text)


@pytest.mark.soak
@pytest.mark.timeout(60)
@pytest.mark.req("LG-10", "TM-13")
@for_each(
    "text",
    [
        "-eyJ" * 50_000, "-sk" * 50_000 + "-", "1 " * 100_000 + "1.5", DASHES + "BEGIN " * 50_000, "://" * 100_000,
        "password" * 30_000, "bearer " * 30_000, "4" * 200_000, "password" + ":" * 200_000,
    ],
)  # fmt: skip
def test_no_text_makes_the_search_slow(text: str) -> None:
    redact_text(text, Counter())


SIZE = 40_000
GROUPED = " ".join(("4111", *["1111"] * 3))


@pytest.mark.soak
@pytest.mark.req("LG-10")
@pytest.mark.parametrize(
    "text",
    [
        "0" * SIZE, "1 " * SIZE, "1-" * SIZE, "1234 " * (SIZE // 4), "\u0664" * SIZE, "\u0664 " * SIZE,
        "1\u0664" * SIZE,
        "1" * SIZE + "A", "1 " * SIZE + "1A", "1 " * SIZE + "1.5", "0" * 12 + " " + "1" * SIZE + "A",
        "\u0664" * SIZE + "A", "1234.1234." * (SIZE // 8), GROUPED + " " + "1" * SIZE, "1 " * SIZE + GROUPED,
        "password=" + "a" * SIZE, "password=" + "\\" * SIZE, "password=" + "\\" * SIZE + '"', "senha=" + "a" * SIZE,
        "senha: a1@" + "a" * SIZE, "bearer " + "a" * SIZE, "ghp_" + "a" * SIZE, DASHES + "BEGIN " + "A" * SIZE,
    ],
)  # fmt: skip
def test_a_search_takes_no_memory_for_each_sign(text: str) -> None:
    tracemalloc.start()
    try:
        redact_text(text, Counter())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * len(text.encode("utf-16-le")), "a copy or two, and nothing for each match"


@pytest.mark.req("LG-10")
@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"{GROUPED} 7A", "[redacted:card_number] 7A"),
        (f"{GROUPED} 7.5", "[redacted:card_number] 7.5"),
        (f"{GROUPED}A", f"{GROUPED}A"),
        (f"{GROUPED}.5", f"{GROUPED}.5"),
        (f"5 {GROUPED}", "5 [redacted:card_number]"),
        (f"{'1 ' * 3_000}{GROUPED}{' 1' * 3_000}", f"{'1 ' * 3_000}[redacted:card_number]{' 1' * 3_000}"),
        (f"1234 5678 {GROUPED}", f"1234 5678 {GROUPED}"),  # a row of figures
        (f"{GROUPED} 1234 5678", f"{GROUPED} 1234 5678"),
        (f"{GROUPED} 1234", "[redacted:card_number] 1234"),
        (f"{GROUPED}  {GROUPED}", "[redacted:card_number]  [redacted:card_number]"),
        ("\u0664" + "\u0661" * 15, "[redacted:card_number]"),
        ("A\u0660\u0664" + "\u0661" * 15, "A\u0660\u0664" + "\u0661" * 15),  # part of an id in any digits
        ('{"password": "abcdef\\"}', '{"password": "[redacted:password]\\"}'),
    ],
)
def test_where_a_run_of_digits_ends(text: str, clean: str) -> None:
    assert redact_text(text, Counter()) == clean
