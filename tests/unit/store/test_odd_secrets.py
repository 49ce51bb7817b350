"""Secrets in odd clothes go: cards with other signs between their groups, keys of newer providers, passwords said in
other languages or to a program. What has their look and is none stays."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from effort import one_in
from muniment.core.canonical import canonical_text
from muniment.store.secrets import may_hold_secret, redact_text, redact_value
from products import for_each

pytestmark = pytest.mark.req("LG-10")

SIGNS = {
    "no-break space": "\u00a0", "thin space": "\u2009", "narrow space": "\u202f", "figure space": "\u2007",
    "zero width": "\u200b", "en dash": "\u2013", "no-break hyphen": "\u2011", "dot": ".", "middle dot": "·",
}  # fmt: skip
WILD = ("\n", "\r\n", "  ", " - ", "_", " / ", "\t", "\n> ", ", ")
LETTERS, HEX = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", "0123456789abcdef"
KEYS: dict[str, tuple[str, int, str]] = {
    # provider: what its keys begin with, how many signs follow, of which kind
    "groq": ("gsk_", 52, LETTERS), "xai": ("xai-", 80, LETTERS), "replicate": ("r8_", 37, LETTERS),
    "perplexity": ("pplx-", 48, HEX), "tavily": ("tvly-", 32, LETTERS), "cerebras": ("csk-", 48, HEX),
    "pinecone": ("pcsk_", 66, LETTERS), "webhooks": ("whsec_", 32, LETTERS), "droplets": ("dop_v1_", 64, HEX),
    "shops": ("shpat_", 32, HEX), "notes": ("ntn_", 46, LETTERS), "issues": ("lin_api_", 40, LETTERS),
    "bases": ("sbp_", 40, HEX), "scaled": ("pscale_tkn_", 43, LETTERS), "bricks": ("dapi", 32, HEX),
    "vault": ("hvs.", 90, LETTERS), "age": ("AGE-SECRET-" + "KEY-1", 58, "ABCDEFGHJKLMNPQRSTUVWXYZ023456789"),
    "doppler": ("dp.pt.", 43, LETTERS), "hogs": ("phx_", 43, LETTERS), "figures": ("figd_", 40, LETTERS),
    "tickets": ("ATATT3xFfGF0", 180, LETTERS), "flies": ("fm2_", 100, LETTERS),
    "relics": ("NRAK-", 27, "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"), "sentries": ("sntrys_", 100, LETTERS),
    "bots": ("1234567890:" + "AA", 33, LETTERS),
    "slack hooks": ("https://hooks.slack.com/services/T0A1B2C3D/B0A1B2C3D/", 24, LETTERS),
    "discord hooks": ("https://discord.com/api/webhooks/123456789012345678/", 68, LETTERS),
}  # fmt: skip
SAID = (
    "Mein Passwort ist {}.", "Das Kennwort lautet {}", "mon mot de passe est {}", "mot de passe : {}",
    "mi contraseña es {}",
    "a minha senha é {}", "la mia password è {}", "machine h login ana password {}", "curl -u ana:{} https://example.com",
    "curl -s --user 'ana:{}' https://example.com", "Cookie: theme=dark; sessionid={}",
    "set-cookie: auth_token={}; HttpOnly",
    "AccountName=x;AccountKey={};EndpointSuffix=y", "Endpoint=x;SharedAccessKey={}", "Passwort: {}", "contraseña={}",
)  # fmt: skip
STAYS = (
    "Das Passwort ist falsch.", "mon mot de passe est oublié", "la contraseña es obligatoria", "a senha é curta",
    "SG. 1 is a street", "dp.pt. is short", "version 1234.5678.9012.3456 of the firmware", "curl -u is an option",
    "10.1234.5678.9012 and 3.1415.9265.3589", "a cookie: session=short",
    "gsk_short xai-model r8_x pplx-small tvly-x csk-a",
    "years 2019\n2020\n2021\n2022", "4000\n4100\n4200\n4300", "rooms 4111  4112  4113  4114",
    "hooks.slack.com/services/",
    "fm2_radio dapi hvs.io notes_secret_plan", "1234567890:AAB", "whsec_ is a prefix", "$2 for a coffee, $2y later",
)  # fmt: skip


def drawn(random: Random, size: int, signs: str = "0123456789") -> str:
    return "".join(random.choices(signs, k=size))


def card(random: Random) -> str:
    body = random.choice(("4", "51", "55", "2221", "6011"))
    body += drawn(random, 15 - len(body))
    doubled = [int(sign) if at % 2 else sum(divmod(int(sign) * 2, 10)) for at, sign in enumerate(body)]
    return body + str(-sum(doubled) % 10)


def grouped(number: str, sign: str) -> str:
    return sign.join(number[at : at + 4] for at in range(0, 16, 4))


def is_gone(text: str, secret: str) -> bool:
    at_door = redact_value({"content": text}, Counter())["content"]
    assert may_hold_secret(canonical_text({"content": text})), text
    assert at_door == redact_text(text, Counter())
    return "[redacted:" in at_door and secret not in at_door


@for_each("name", SIGNS)
def test_a_card_goes_whatever_typeset_sign_stands_between_its_groups(name: str) -> None:
    random = Random(name)
    for frame in ("{}", "charge {} please", "**{}**", "今天 {}"):
        shown = grouped(card(random), SIGNS[name])
        assert is_gone(frame.format(shown), shown), shown


@for_each("sign", WILD)
def test_a_card_that_is_called_one_goes_whatever_stands_between_its_groups(sign: str) -> None:
    random = Random(sign)
    for frame in ("my card is {}", "Kreditkarte:\n{}", "visa {} 12/27"):
        shown = grouped(card(random), sign)
        assert is_gone(frame.format(shown), shown), shown
    number = card(random)
    assert is_gone(f"card {number[:4]} {number[4:8]}\n{number[8:12]} {number[12:]}", number[12:])


@for_each("provider", KEYS)
def test_the_key_of_a_provider_goes(provider: str) -> None:
    begins, size, signs = KEYS[provider]
    random = Random(provider)
    for frame in ("{}", "use {} for it", 'key="{}"', "KEY={}\n"):
        rest = drawn(random, size, signs)
        assert is_gone(frame.format(begins + rest), rest)
    short = begins + drawn(random, 6, signs)
    assert redact_text(f"see {short} there", Counter()) == f"see {short} there"


@for_each("frame", SAID)
def test_a_password_goes_however_it_is_said(frame: str) -> None:
    secret = "Tr0ub4dor" + "x9" * 8
    assert is_gone(frame.format(secret), secret)


@for_each("text", STAYS)
def test_what_only_looks_so_stays(text: str) -> None:
    found: Counter[str] = Counter()
    assert redact_text(text, found) == text
    assert not found


def test_groups_of_figures_in_lines_and_columns_stay() -> None:
    """Under one in ten thousand: no word says card, and their signs are those of tables."""
    random = Random(11)
    for _ in range(250):
        figures = [drawn(random, 4) for _ in range(4)]
        for sign in ("\n", "  ", "\t", ", ", " | ", "; "):
            text = f"readings: {sign.join(figures)} end"
            assert redact_text(text, Counter()) == text


@pytest.mark.soak
@pytest.mark.timeout(60)
@pytest.mark.req("TM-13")
@for_each(
    "stretch",
    one_in(3, [
        "curl ", "curl -u a:", "cookie: ", "cookie: sess", "otpauth://a?", "eyJaaaaaaaa.", "-eyJaaaaaaaa.-",
        "login a password ",
        "1234\n", "1234\u00a0", "1234.", "gsk_", "dp.pt.", "12345678:AA", "pscale_tkn_", "$2a$10$", "/api/webhooks/",
        "SG.a.",
        "mot de passe ", "T0A1B/", "cookie: a=b; ", "cookie: sess=1; ", "a=b; cookie:", "machine a.b ", "machine a\n",
        "machine a.b login a password ", "machine a login ", "mot de passe : aBc", "senha: aBcDe",
        "login a password a!", "curl -u user:pass ", "curl x.y ",
    ]),
)  # fmt: skip
def test_no_text_makes_the_search_slow(stretch: str) -> None:
    redact_text(stretch * (200_000 // len(stretch)), Counter())
