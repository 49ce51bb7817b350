"""Redaction of secrets and card numbers before anything is hashed (LG-10). A match becomes `[redacted:kind]`.

The patterns aim at credentials with a known shape and at assignments that name themselves (`password = …`). Card
numbers are recognised by issuer, length, grouping and check digit, and by the words around them: phones, orders,
parcels, barcodes and tables of figures are made of digits too, and one in ten of any kind passes a check digit. So a
number is not a card after a `+`, in a grouping that cards do not have, or where the words before it, or its key, name
something else; a length that other numbers share needs a word for card.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from muniment.core.canonical import canonical_text

__all__ = ["CARD_RUN", "find_secret", "may_hold_secret", "redact_cards", "redact_text", "redact_value"]

_NAMES = (
    r"(?:password|passwd|pwd|passphrase|api[_-]?key|secret[_-]?key|client[_-]?secret|secret[_-]access[_-]key"
    r"|(?:access|auth|refresh|api|bot|session)[_-]?token|密码|비밀번호)"
)
_PREFIXED = (
    r"gsk_[A-Za-z0-9]{40,}|xai-[A-Za-z0-9]{40,}|r8_[A-Za-z0-9]{30,}|pplx-[A-Za-z0-9]{32,}|tvly-[A-Za-z0-9_-]{20,}"
    r"|csk-[a-z0-9]{32,}|lsv2_[a-z]{2}_[0-9a-f]{32}_[0-9a-f]{10}|pcsk_[A-Za-z0-9_]{40,}|whsec_[A-Za-z0-9+/]{24,}"
    r"|SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}|do[opr]_v1_[0-9a-f]{64}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"
    r"|secret_[A-Za-z0-9]{43}|ntn_[A-Za-z0-9]{40,}|lin_api_[A-Za-z0-9]{32,}|sbp_[0-9a-f]{40}"
    r"|pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{32,}|dapi[0-9a-f]{32}|hv[sb]\.[A-Za-z0-9_-]{24,}"
    r"|AGE-SECRET-KEY-1[A-Z0-9]{50,}|dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{40,}|phx_[A-Za-z0-9]{40,}"
    r"|figd_[A-Za-z0-9_-]{36,}|ATATT3[A-Za-z0-9_=-]{60,}|fm[12]_[A-Za-z0-9+/=_-]{60,}|gl(?:sa|c)_[A-Za-z0-9_+/=]{32,}"
    r"|NRAK-[A-Z0-9]{27}|sntry[su]_[A-Za-z0-9+/=_-]{40,}|[0-9]{8,10}:AA[A-Za-z0-9_-]{32,35}"
)
"""Keys of providers with a unique prefix."""

_WORDS = r"(?:account[_-]?key|shared[_-]?access[_-]?key|passwort|kennwort|mot de passe|contrase[\u00f1\u00d1]a|senha)"
"""Names that also precede a colon in prose (`mot de passe : oublié`)."""
_SIGN = r"[^\s\"',;，。]"
_ORDINARY = (
    r"(?!\[redacted:|https?://|[a-z.-]{1,64}@[a-z-]{1,64}\.[a-z]{2,8}(?![\w@])"
    r"|(?:[0-9]{1,2}[A-Za-z]{0,2}-[^\W\d_]{4,40}|[0-9]{2,4}-?bits?|(?ai:sha-?[0-9]{1,3}|md5|base(?:32|58|64)|utf-?8|argon2[id]{0,2}|pbkdf2|oauth2"
    r"|aes-?[0-9]{3}|rsa-?[0-9]{4}|ed25519))(?:-[^\W\d_]{1,40}){0,4}[.!?:)\]*_”“»’]{0,3}(?:[\s\"',;，。]|\Z))"
)
"""Excludes prose words after `password` that contain a digit or sign: `8-stellig`, `SHA-256-hashed`."""
_TOLD = (
    rf"{_ORDINARY}(?={_SIGN}{{0,64}}(?:[0-9]|[!?][^\W_])|{_SIGN}{{1,64}}[@#$%^&+=]"
    rf"|{_SIGN}{{0,32}}[a-z][A-Z](?=[a-z]){_SIGN}{{0,32}}[a-z][A-Z][a-z])"
)
"""Requires what follows to look like a secret, not a word: a digit, a sign in it, or more than one inner capital
(product names such as GitHub have one).
"""

_ASSIGNED = r"[^\s\"',;]{5,}(?:[^\s\"',;\\]|\\(?![\"']))"
"""Matches the text after a name, without a backslash that belongs to the quote after it. A class is repeated and not a
group, which would use memory for every character.
"""

# Inline `(?ai:…)`: case is ignored for ASCII alone, so that lower() in `may_hold_secret` sees what the pattern sees.
_TOKENS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (
            "private_key",
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
            r"[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
        ),
        ("aws_access_key", r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ("github_token", r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})"),
        ("gitlab_token", r"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_-]{20,}"),
        ("stripe_key", r"(?<![A-Za-z0-9])[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
        ("api_key", r"(?<![A-Za-z0-9])sk-(?=[A-Za-z_-]{0,100}[0-9])[A-Za-z0-9_-]{20,}"),
        ("api_key", rf"(?<![A-Za-z0-9_])(?:{_PREFIXED})"),
        (
            "api_key",
            r"(?P<keep>hooks\.slack\.com/services/|/api/webhooks/)"
            r"(?P<secret>(?:[A-Z0-9]{5,20}/)?[A-Z0-9]{5,20}/[A-Za-z0-9_-]{16,})",
        ),
        ("slack_token", r"(?<![A-Za-z0-9])(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}"),
        ("google_key", r"(?<![A-Za-z0-9])AIza[0-9A-Za-z_-]{35}"),
        ("hub_token", r"(?<![A-Za-z0-9])(?:hf|npm)_[A-Za-z0-9]{30,}|(?<![A-Za-z0-9])pypi-AgE[A-Za-z0-9_-]{20,}"),
        ("jwt", r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,512}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}"),
        (
            "jwt",
            r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,512}+\.[A-Za-z0-9_-]{0,1024}+\.[A-Za-z0-9_-]{8,64}+"
            r"\.[A-Za-z0-9_-]{4,4096}+\.[A-Za-z0-9_-]{16,64}",
        ),
        ("bearer_token", r"(?ai:(?<=bearer ))(?=[A-Za-z0-9._~+/-]*[0-9])[A-Za-z0-9._~+/-]{20,}=*"),
        (
            "basic_auth",
            r"(?P<keep>(?ai:authorization\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?basic ))"
            r"(?P<secret>[A-Za-z0-9+/]{8,}={0,2})",
        ),
        # Up to the last @ before a path begins, so that a raw @ within the password hides nothing.
        ("url_password", r"(?<=://)(?P<keep>[^\s/:@?#]{0,256}:)(?P<secret>(?!\[redacted:)[^\s/?#]{1,256})(?=@)"),
        (
            "password",
            r"(?P<keep>(?ai:\b(?:password|passphrase) (?:is|was) |\b(?:passwort|kennwort) (?:ist|lautet|war) "
            r"|\bmot de passe est |\bcontrase\u00f1a es |\bsenha \u00e9 |\bpassword \u00e8 )[\"']?"
            r"|密码[是为] ?|비밀번호[는은] )"
            rf"(?P<secret>{_ORDINARY}(?={_SIGN}{{0,64}}\d){_SIGN}{{6,}})",
        ),
        # A line of a netrc file is known by its host, or by having a line (or three) to itself; prose by its words.
        (
            "password",
            r"(?P<keep>(?:\bmachine\s{1,4}(?:[\w-]{1,64}\.[\w.-]{1,200}|localhost)"
            r"|(?m:^)(?:machine\s{1,4}\S{1,200}|default)(?=\s{1,8}login\s{1,4}\S{1,64}\s{1,8}password\s{1,4}\S{4,256}\s*?(?m:$)))"
            r"\s{1,8}login\s{1,4}\S{1,64}\s{1,8}password\s{1,4})(?P<secret>(?!\[redacted:)\S{4,})",
        ),
        ("password", rf"(?P<keep>(?ai:\blogin \S{{1,64}}\s{{1,4}}password ))(?P<secret>{_TOLD}\S{{4,}})"),
        (
            "password",
            r"(?P<keep>(?ai:\bcurl (?=[-\"'$<{]|localhost|[^\s,;()]{1,200}?[./:]\w)(?:[^\n|]{0,200}?\s)?"
            r"(?:-[a-z]{0,6}u|--(?:proxy-)?user)[ =][\"']?"
            r"(?!(?:user|username|name|login|id):(?:pass|password|passwd|value|secret|token)\b))[^\s:\"']{1,64}:)"
            r"(?P<secret>(?!\[redacted:)[^\s\"']{4,})",
        ),
        (
            "password",
            r"(?P<keep>(?ai:\bcookie: ?(?:[^\s=;]{1,64}=[^\s;]{0,512}; ?){0,8}[\w.-]{0,40}?(?:sess|sid|auth|token)"
            rf"[\w.-]{{0,20}}=))(?P<secret>{_TOLD}[^\s;,\"']{{16,}})",
        ),
        ("password", r"(?P<keep>(?ai:otpauth://[^\s?]{0,200}\?[^\s]{0,200}?secret=))(?P<secret>[A-Za-z2-7]{16,})"),
        ("password", r"\$2[aby]\$[0-9]{2}\$[./A-Za-z0-9]{53}|\$argon2i?d?\$[A-Za-z0-9+/=,$]{40,}"),
        (
            "password",
            r"(?P<keep>(?ai:" + _NAMES + r"\\?[\"']?\s{0,4}(?::=|[:=：])\s{0,4}\\?[\"']?))"
            rf"(?P<secret>(?!\[redacted:){_ASSIGNED})",
        ),
        (
            "password",
            r"(?P<keep>(?ai:" + _WORDS + r"(?:\\?[\"']\s{0,4}(?::=|[:=：])|\s{0,4}:?=)\s{0,4}\\?[\"']?))"
            rf"(?P<secret>(?!\[redacted:){_ASSIGNED})",
        ),
        (
            "password",
            rf"(?P<keep>(?ai:{_WORDS}\s{{0,4}}[:：]\s{{0,4}}\\?[\"']?))"
            rf"(?P<secret>{_TOLD}{_ASSIGNED})",
        ),
    )
)

_SECRET_KEYS = re.compile(
    r"(?ai)^(?:.*[_-])?(?:password|passwd|pwd|passphrase|api[_-]?key|secret|secret[_-]?key|client[_-]?secret"
    r"|secret[_-]access[_-]key|(?:access|auth|refresh|api|bot|session)[_-]?token|private[_-]?key|authorization)$"
)
_HINTS = (
    "akia", "asia", "abia", "acca", "xox", "aiza", "eyj", "bearer ", "://", "passw", "pwd", "passph", "key", "token",
    "secret", "authoriz", ":aa", "cookie:", "curl ", "$2", "$argon2", "kennwort", "mot de passe", "contrase", "senha",
    "atatt3", "dapi", "/webhooks/", "hooks.slack", "sg.", "hvs.", "hvb.", "dp.",
)  # fmt: skip
_JOINED_HINTS = (
    "-----begin", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "_pat_", "glpat-", "k_live_", "k_test_", "sk-", "xapp-",
    "hf_", "npm_", "pypi-", "gsk_", "xai-", "r8_", "pplx-", "tvly-", "lsv2_", "pcsk_", "whsec_", "_v1_", "shpat_",
    "shpca_", "shppa_", "shpss_", "ntn_", "lin_api_", "sbp_", "pscale_", "phx_", "figd_", "fm1_", "fm2_", "glsa_",
    "glc_", "nrak-", "sntrys_", "sntryu_",
)  # fmt: skip
_DIGITS = re.compile(r"\d[\d -]{11,}\d|\d{4}\D{1,8}(?:\d{4}\D{1,8}\d{4}|\d{6}\D{1,8}\d{5})")
_ASCII_DIGITS = re.compile(
    r"[0-9][0-9 -]{11,}[0-9]|[0-9]{4}[^0-9]{1,8}(?:[0-9]{4}[^0-9]{1,8}[0-9]{4}|[0-9]{6}[^0-9]{1,8}[0-9]{5})"
)
"""Runs of digits, and groups of them with few characters between: as JSON writes these, two for the end of a line."""
_REDACTED = re.compile(r"\[redacted:[a-z_]+\]")
_ROUNDS_MAX = 4
_CHAINED = re.compile(r"(?P<keep>\[redacted:[a-z_]+\])[A-Za-z0-9_+/.~-]{16,}+=*")
"""Text directly after a secret that is long enough to be another."""


def may_hold_secret(text: str) -> bool:
    """Return whether this JSON text may hold a secret: a cheap test without false negatives."""
    lowered = text.lower()
    for hint in _HINTS:  # a loop: every text that is written comes by here, and `any` takes half as long again
        if hint in lowered:
            return True
    if ("-" in lowered or "_" in lowered) and any(map(lowered.__contains__, _JOINED_HINTS)):
        return True
    if text.isascii():
        return _ASCII_DIGITS.search(text) is not None
    return "密码" in text or "비밀번호" in text or _DIGITS.search(text) is not None


def redact_text(text: str, found: Counter[str], under: str = "") -> str:
    """Replace every secret in a text; `found` counts them by kind. `under` is the key of the text.

    Text joined to a secret may itself be one, now that its border shows. The rest of an implausibly long chain is
    redacted as a whole, as each of its secrets would require another pass.
    """
    for _ in range(_ROUNDS_MAX):
        clean = _redact_once(text, found, under, _TOKENS)
        if clean == text:
            return text
        text = clean
    return _redact_once(text, found, under, (("password", _CHAINED), *_TOKENS))


def _redact_once(text: str, found: Counter[str], under: str, tokens: Iterable[tuple[str, re.Pattern[str]]]) -> str:
    """Make one pass of each pattern over the text, and one for cards."""
    for kind, pattern in tokens:
        text = pattern.sub(_replacer(kind, found), text)
    return redact_cards(text, found, under)


def find_secret(value: Any) -> str | None:
    """Return the kind of secret a text or plain data holds; None where it holds none."""
    found: Counter[str] = Counter()
    redact_value(value, found)
    return next(iter(sorted(found)), None)


def redact_value(value: Any, found: Counter[str], under: str = "") -> Any:
    """Replace every secret in plain JSON data, in strings at any depth and under keys that name a secret."""
    if isinstance(value, str):
        return redact_text(value, found, under) if may_hold_secret(value) else value
    if isinstance(value, dict):
        return _redact_object(value, found)
    if isinstance(value, list | tuple):
        return [redact_value(item, found, under) for item in value]
    if type(value) in (int, float) and abs(value) > 10**12:
        digits = canonical_text(value)
        return value if redact_text(digits, found, under) == digits else "[redacted:card_number]"
    return value


def _redact_object(value: dict[str, Any], found: Counter[str]) -> dict[str, Any]:
    """Redact an object's keys and values; two keys that redact to the same text keep both of their values."""
    clean: dict[str, Any] = {}
    numbers: dict[str, int] = {}
    for key, item in value.items():
        name = redact_value(key, found)
        if name != key:
            base, number = name, numbers.get(name, 2)
            while name in clean or name in value:
                name, number = f"{base} {number}", number + 1
            numbers[base] = number
        clean[name] = _redact_whole(item, found) if _is_secret(key) else redact_value(item, found, str(key))
    return clean


def _is_secret(key: Any) -> bool:
    """Return whether a key names a secret; a key that is not text is refused later, by name."""
    return isinstance(key, str) and _SECRET_KEYS.match(key) is not None


def _redact_whole(item: Any, found: Counter[str]) -> Any:
    """Redact every text and number under a key that names a secret, whatever its shape."""
    if isinstance(item, dict):
        return {redact_text(key, found): _redact_whole(inner, found) for key, inner in item.items()}
    if isinstance(item, list | tuple):
        return [_redact_whole(inner, found) for inner in item]
    if item is None or isinstance(item, bool) or item == "" or _is_redacted(item):
        return item
    found["password"] += 1
    return "[redacted:password]"


def _is_redacted(item: Any) -> bool:
    return isinstance(item, str) and _REDACTED.fullmatch(item) is not None


def _replacer(kind: str, found: Counter[str]) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        found[kind] += 1
        keep = match.groupdict().get("keep") or ""
        return f"{keep}[redacted:{kind}]"

    return replace


# -- card numbers ---------------------------------------------------------------------------------------------


CARD_RUN = re.compile(r"(?<![\dA-Za-z_])(?<!\d\.)\d(?:[ -]?\d){12}")
"""The first digits of a long enough run; `_RUN_END` finds its end, since a repeated group uses memory for every digit.
Not next to a letter: then it is part of an id.
"""
_RUN_END = re.compile(r"[ -](?!\d)|[^\d -]|\Z")
_ID_SIGN = re.compile(r"\.\d|[A-Za-z_]")
"""Text after a run of digits that makes its last group part of something else."""
_LOOSE = re.compile(
    r"(?<![\dA-Za-z_])(?<!\d[^\w\s])\d{4}(?:_|[^\w\x00-\x08\x0b\x0c\x0e-\x1f]{1,4})"
    r"(?:\d{4}(?:_|[^\w\x00-\x08\x0b\x0c\x0e-\x1f]{1,4})\d{4}(?:_|[^\w\x00-\x08\x0b\x0c\x0e-\x1f]{1,4})\d{4}"
    r"|\d{6}(?:_|[^\w\x00-\x08\x0b\x0c\x0e-\x1f]{1,4})\d{5})(?![^\w\s]?\d)(?![A-Za-z_])"
)
"""Groups with other characters between them: typeset spaces and dashes, dots, line ends."""
_ANY_RUN = re.compile(f"(?P<run>{CARD_RUN.pattern})|{_LOOSE.pattern}")
_TYPESET = frozenset("\u00a0\u2007\u2008\u2009\u200a\u200b\u2060\u202f\u3000\u2010\u2011\u2012\u2013.·")
"""Characters that may separate groups of a card like a space. Others need a word for card."""
_REPLACED = "[redacted:card_number]"
_LENGTHS = range(13, 20)
_SHAPES = frozenset({(4, 4, 4, 4), (4, 4, 4, 4, 3), (4, 6, 5), (4, 6, 4), (4, 3, 3, 3)})
_GROUP = re.compile(r"\d+")
_FIRST_GROUP = re.compile(r"(?<!\d)(?:\d{13,19}|\d{4})(?!\d)")
"""A whole card number, or the first group of one that is written in groups."""
_GROUPS_MAX = 5
_BESIDE_CHARS = 10
_ROW_BEFORE = re.compile(r"(?:^|\D)\d{4}[ -]\d{4}[ -]$")
_ROW_BEHIND = re.compile(r"[ -]\d{4}[ -]\d{4}(?!\d)")
_BEFORE_CHARS, _BEHIND_CHARS, _UNDER_CHARS = 48, 24, 256
_CARD = re.compile(
    r"(?ai)card|visa|master|amex|american express|diners|discover|\bjcb\b|unionpay|maestro|credit|debit|\bcc\b|\bpan\b"
    r"|karte|carte|carta|tarjeta|cart[aã]o|カード|卡|카드"
)
_OTHER = re.compile(
    r"(?ai)\b(?:order|invoice|tracking|parcel|shipment|shipping|delivery|consignment|reference|ref|ticket|case|booking|serial"
    r"|imei|isbn|ean|gtin|upc|sku|barcode|account|acct|iban|tel|phone|mobile|cell|fax|call|dial|whatsapp|sms|customer|client"
    r"|member|article|item|product|part|batch|lot|transaction|payment|txn|trace|request|message|event|user|job|run|build"
    r"|timestamp|epoch|snowflake|tweet|status|post|record|row|hash|digest|version|bestell\w*|rechnung\w*|sendung\w*|auftrag\w*"
    r"|konto\w*|telefon\w*|handy\w*|kunden\w*|artikel\w*|commande|facture|colis|suivi|t[eé]l[eé]phone|pedido|factura|env[ií]o"
    r"|tel[eé]fono|cuenta|encomenda|fatura|rastreio|telefone|conta|ordine|fattura|spedizione|telefono|zam[oó]wieni\w*)"
    r"|(?:_|\b)(?:id|ids|uid|uuid|guid)\b|[a-z]Id\b|#\s?$|订单|单号|运单|电话|手机|账号|발주|주문|송장|운송장|전화|휴대폰|계좌|注文|伝票|追跡|電話|口座"
)
_CLAUSE_END = re.compile(r"[\n;!?。！？]|(?<![nN][oOrR])\. ")
_REDACTED_WORD = re.compile(r"\[?redacted:[a-z_]+\]?")
"""Placeholders, which say nothing about neighbouring text."""
_IBAN = re.compile(r"(?a)\b[A-Z]{2}\d\d(?:[ -]?[A-Z0-9]{4}){0,3}[ -]?$")


class _Run(NamedTuple):
    """A run of digits, its place in the text, and the surrounding words."""

    text: str
    start: int
    end: int
    says_card: bool
    says_other: bool


def redact_cards(text: str, found: Counter[str], under: str = "") -> str:
    """Replace card numbers in a text; `found` counts them. `under` is the key of the text."""
    clean: list[str] = []
    at = 0
    for start, end, is_loose in _runs(text):
        run = _read_run(text, start, end, is_loose, under[-_UNDER_CHARS:])
        for first, last in () if run is None else _cards_in(run):
            clean += (text[at:first], _REPLACED)
            found["card_number"] += 1
            at = last
    return "".join((*clean, text[at:])) if clean else text


def _runs(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield the runs of digits long enough for a card: start, end, and whether it is loose."""
    at = 0
    while (met := _ANY_RUN.search(text, at)) is not None:
        loose = met if met["run"] is None else None
        end = met.end() if loose is not None else _end_of_run(text, met.start(), met.end())
        if end is None:
            loose = _LOOSE.match(text, met.start())
            end = None if loose is None else loose.end()
        if end is not None:
            yield met.start(), end, loose is not None
        at = met.start() + 1 if end is None else end


def _end_of_run(text: str, start: int, enough: int) -> int | None:
    """Return the end of a run whose first digits end at `enough`; None where it is not one. A last group that is part
    of something else is left out.
    """
    met = _RUN_END.search(text, enough)
    end = len(text) if met is None else met.start()
    if not _ID_SIGN.match(text, end):
        return end
    end = max(text.rfind(" ", start, end), text.rfind("-", start, end))
    return end if end >= enough else None


def _read_run(text: str, start: int, end: int, is_loose: bool, under: str) -> _Run | None:
    """Return a run with its context; None where the context rules out a card."""
    if is_loose and not _has_check(text[start:end]):  # before examining the words around it
        return None
    before = text[max(0, start - _BEFORE_CHARS) : start]
    if before.rstrip(" (").endswith("+") or _IBAN.search(before):
        return None
    around = f"{under} {before}\0{text[end : end + _BEHIND_CHARS]}"
    named = f"{under} {_CLAUSE_END.split(before)[-1]}"  # a number is named in its own sentence
    says_card = _CARD.search(_REDACTED_WORD.sub("", around)) is not None
    if is_loose and not says_card and not _is_typeset(text[start:end]):
        return None
    return _Run(text, start, end, says_card, says_other=_OTHER.search(named) is not None)


def _cards_in(run: _Run) -> Iterator[tuple[int, int]]:
    """Yield the spans of the cards in a run. Longer numbers are tried first."""
    at = run.start
    while (first := _FIRST_GROUP.search(run.text, at, run.end)) is not None:
        at = first.end()
        for end in reversed(_card_ends(run, first.start())):
            if _is_card(run, first.start(), end, is_grouped=end > first.end()):
                yield first.start(), end
                at = end
                break


def _card_ends(run: _Run, start: int) -> list[int]:
    """Return the possible ends of a number starting with this group, by the groupings of cards."""
    ends: list[int] = []
    shape: tuple[int, ...] = ()
    for group in islice(_GROUP.finditer(run.text, start, run.end), _GROUPS_MAX):
        shape = (*shape, group.end() - group.start())
        if (len(shape) == 1 and shape[0] in _LENGTHS) or shape in _SHAPES:
            ends.append(group.end())
    return ends


def _has_check(run: str) -> bool:
    digits = [int(sign) for sign in run if sign.isdigit()]
    return _has_issuer(digits) and _passes_luhn(digits)


def _is_typeset(run: str) -> bool:
    """Return whether one separator that acts as a space is between all groups."""
    between = set(re.findall(r"\D+", run))
    return len(between) == 1 and between <= _TYPESET


def _is_card(run: _Run, start: int, end: int, *, is_grouped: bool) -> bool:
    text = run.text[start:end]
    digits = [int(char) for char in text if char.isdigit()]
    if len(digits) not in _LENGTHS or not _has_issuer(digits) or not _passes_luhn(digits):
        return False
    if run.says_card:
        return True
    if len(set(re.findall(r"\D", text))) > 1 or len(digits) == 13:  # barcodes, and phones without their plus
        return False
    return not run.says_other and not (is_grouped and _is_in_table(run, start, end))


def _is_in_table(run: _Run, start: int, end: int) -> bool:
    """Return whether two groups of four adjoin it: a row of figures. One may be the year of expiry."""
    before = run.text[max(run.start, start - _BESIDE_CHARS - 1) : start]
    behind = run.text[end : min(run.end, end + _BESIDE_CHARS + 1)]
    return _ROW_BEFORE.search(before) is not None or _ROW_BEHIND.match(behind) is not None


def _has_issuer(digits: list[int]) -> bool:
    number, size = "".join(map(str, digits)), len(digits)
    head2, head3, head4 = int(number[:2]), int(number[:3]), int(number[:4])
    return (
        (number[0] == "4" and size in (13, 16, 19))
        or (size == 16 and (51 <= head2 <= 55 or 2221 <= head4 <= 2720))
        or (size in (16, 19) and (head4 == 6011 or 644 <= head3 <= 649 or head2 == 65 or 3528 <= head4 <= 3589))
        or (size == 15 and head2 in (34, 37))
        or (size == 14 and (300 <= head3 <= 305 or head2 in (36, 38, 39)))
        or (size in (16, 17, 18, 19) and head2 == 62)
    )


def _passes_luhn(digits: list[int]) -> bool:
    doubled = [digit if index % 2 == 0 else sum(divmod(digit * 2, 10)) for index, digit in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0
