"""Finding and replacing secrets at the door (LG-10), before anything is hashed.

A match becomes `[redacted:kind]`. The patterns aim at credentials with a known shape, at assignments that name
themselves (`password = …`), and at card numbers (`store.ledger.cards`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from muniment.core.canonical import canonical_text
from muniment.store.ledger.cards import redact_cards

__all__ = ["find_secret", "may_hold_secret", "redact_text", "redact_value"]

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
"""Keys of providers whose first signs nobody else's have."""

_WORDS = r"(?:account[_-]?key|shared[_-]?access[_-]?key|passwort|kennwort|mot de passe|contrase[\u00f1\u00d1]a|senha)"
"""Names that stand before a colon in prose as well (`mot de passe : oublié`)."""
_SIGN = r"[^\s\"',;，。]"
_ORDINARY = (
    r"(?!\[redacted:|https?://|[a-z.-]{1,64}@[a-z-]{1,64}\.[a-z]{2,8}(?![\w@])"
    r"|(?:[0-9]{1,2}[A-Za-z]{0,2}-[^\W\d_]{4,40}|[0-9]{2,4}-?bits?|(?ai:sha-?[0-9]{1,3}|md5|base(?:32|58|64)|utf-?8|argon2[id]{0,2}|pbkdf2|oauth2"
    r"|aes-?[0-9]{3}|rsa-?[0-9]{4}|ed25519))(?:-[^\W\d_]{1,40}){0,4}[.!?:)\]*_”“»’]{0,3}(?:[\s\"',;，。]|\Z))"
)
"""No word that prose has after `password` although there is a figure or sign in it: `8-stellig`, `SHA-256-hashed`."""
_TOLD = (
    rf"{_ORDINARY}(?={_SIGN}{{0,64}}(?:[0-9]|[!?][^\W_])|{_SIGN}{{1,64}}[@#$%^&+=]"
    rf"|{_SIGN}{{0,32}}[a-z][A-Z](?=[a-z]){_SIGN}{{0,32}}[a-z][A-Z][a-z])"
)
"""What follows looks like a secret and not like a word: a figure, a sign in it, or capitals within, more than once (a
product has one, as GitHub)."""

_ASSIGNED = r"[^\s\"',;]{5,}(?:[^\s\"',;\\]|\\(?![\"']))"
"""Matches what follows a name, without a backslash that belongs to the quote behind it. A class is repeated and not a
group, which would keep its place in memory for every sign."""

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
"""Runs of digits, and groups of them with few signs between: as JSON writes these, two for the end of a line."""
_REDACTED = re.compile(r"\[redacted:[a-z_]+\]")
_ROUNDS_MAX = 4
_CHAINED = re.compile(r"(?P<keep>\[redacted:[a-z_]+\])[A-Za-z0-9_+/.~-]{16,}+=*")
"""What is glued to the end of a secret and is long enough to be another."""


def may_hold_secret(text: str) -> bool:
    """A cheap look that never misses what `redact_value` would find in data whose JSON text this is."""
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
    """The text with every secret replaced; `found` counts them by kind. `under` is the key it stands under.

    What stood glued to a secret may itself be one, now that its border shows. Of a chain of them that is longer than
    anybody writes, the rest goes as a whole: otherwise each of its secrets would have the text read once more.
    """
    for _ in range(_ROUNDS_MAX):
        clean = _redact_once(text, found, under, _TOKENS)
        if clean == text:
            return text
        text = clean
    return _redact_once(text, found, under, (("password", _CHAINED), *_TOKENS))


def _redact_once(text: str, found: Counter[str], under: str, tokens: Iterable[tuple[str, re.Pattern[str]]]) -> str:
    """One pass of each pattern over the text, and one for cards."""
    for kind, pattern in tokens:
        text = pattern.sub(_replacer(kind, found), text)
    return redact_cards(text, found, under)


def find_secret(value: Any) -> str | None:
    """What kind of secret a text or plain data holds; None where it holds none."""
    found: Counter[str] = Counter()
    redact_value(value, found)
    return next(iter(sorted(found)), None)


def redact_value(value: Any, found: Counter[str], under: str = "") -> Any:
    """Plain JSON data with every secret replaced, in strings at any depth and under keys that name a secret."""
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
    """Two keys that redact to the same text keep both of their values."""
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
    """A key that is no text is refused further on, by name."""
    return isinstance(key, str) and _SECRET_KEYS.match(key) is not None


def _redact_whole(item: Any, found: Counter[str]) -> Any:
    """What stands under a key that names a secret: every text and number in it goes, whatever its shape."""
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
