"""Web addresses as sources: one spelling for each, the id made of it, and the shortest form of such ids.

Two spellings of one address are one source. Ignored: the case of scheme and host, a host in Unicode or in punycode, the
default port, trailing slashes, the host's last dot, dot segments, the order of parameters, needless escapes, tracking
parameters (`utm_*`, `gclid`, `fbclid`) and the fragment. A name and password are dropped and never kept. Kept apart, as
only the server knows their meaning: http and https, `%2F` and `/`, `+` and `%20`, a parameter with an empty value and
one with none, repeated parameters in another order.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from hashlib import sha256
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from itertools import pairwise

from muniment.core.text.patterns import lazy_pattern
from muniment.errors import InvalidInput

URL_CHARS_MAX = 8_192
CID_HEX_MIN = 8

_CID = "cid_"
_HOST_CHARS_MAX = 253
_LABEL_CHARS_MAX = 63
_PORT_MAX = 65_535
_DEFAULT_PORTS = {"http": 80, "https": 443}
_TRACKERS = frozenset({"gclid", "fbclid"})
_TRACKER_PREFIX = "utm_"

_SHAPE = lazy_pattern(r"(?i)(https?)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#.*)?\Z")
_BARE = lazy_pattern(r"(?i)www\.[^/?#@.]+\.[^/?#@]+(?:[/?#]|\Z)")
_CREDENTIALS = lazy_pattern(r"(?<=//)[^/?#]*@")
_CREDENTIALS_IN_TEXT = lazy_pattern(r"(?ai)(https?://)[\w%!$&*+;=:@^~.-]{1,512}@(?=[^\s@])")
_AUTHORITY = lazy_pattern(r"(\[[^\]]*\]|[^:\[\]]*)(?::(?:0*([1-9][0-9]{0,5}))?)?\Z")
_TO_ENCODE = lazy_pattern(r"%([0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~!$&'()*+,;=:@/?]")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ESCAPES = lazy_pattern(r"(?:%[0-9A-Fa-f]{2})+")
_LABEL = lazy_pattern(r"[a-z0-9_-]+\Z")
_NUMBER = lazy_pattern(r"(?:[0-9]+|0x[0-9a-f]*)\Z")

_KEPT_BY_CASE = frozenset("ßς\u200c\u200d")
"""Case folding would change these hosts: since IDNA 2008 they are separate letters."""
_IGNORED = dict.fromkeys([0xAD, 0x200B, 0x2060, 0xFEFF, *range(0xFE00, 0xFE10)])
"""Invisible in a host, and not part of it (UTS 46)."""
_DOTS = {0x3002: "."}


# -- addresses ----------------------------------------------------------------------------------------


def normalize_url(url: str) -> str:
    """The canonical spelling of an http or https address. Raises `InvalidInput` with the reason if it is none.

    An address without a scheme is taken for https if it starts with `www.` and a host.
    """
    origin, path, query = _parts(url)
    return _bounded(f"{origin}{path.rstrip('/')}{_sorted_query(query)}")


def fetchable_url(url: str) -> str:
    """The address to request: encoded, with slashes and parameters as written."""
    origin, path, query = _parts(url)
    return _bounded(f"{origin}{path or '/'}{'?' if query else ''}{query}")


def try_normalize_url(url: str) -> str | None:
    """`normalize_url`, or None for an invalid address."""
    try:
        return normalize_url(url)
    except InvalidInput:
        return None


def without_credentials(url: str) -> str:
    """Remove any name and password from an address, leaving the rest as written."""
    return _CREDENTIALS.sub("", url, count=1)


def without_all_credentials(text: str) -> str:
    """Remove names and passwords from all addresses in running text."""
    return _CREDENTIALS_IN_TEXT.sub(r"\1", text) if "@" in text else text


def _parts(url: str) -> tuple[str, str, str]:
    """Scheme and host, path, query; uniformly encoded."""
    url = url.strip()
    _bounded(url)
    if any(char.isspace() or unicodedata.category(char) in ("Cc", "Cs") for char in url):
        raise _refusal("an address holds no white space and no control characters")
    found = _SHAPE.match(f"https://{url}" if _BARE.match(url) else url)
    if found is None:
        raise _refusal("only what begins with http:// or https:// is the address of a source")
    scheme, authority, path, query = found.groups(default="")
    scheme = scheme.lower()
    return f"{scheme}://{_authority(scheme, authority)}", _path(path), _encode(query)


def _bounded(url: str) -> str:
    if len(url) > URL_CHARS_MAX:
        raise _refusal(f"the address is longer than {URL_CHARS_MAX} characters")
    return url


def _refusal(message: str) -> InvalidInput:
    return InvalidInput(message, hint="write it as https://host/path")


def _authority(scheme: str, authority: str) -> str:
    found = _AUTHORITY.match(authority.rpartition("@")[2])
    if found is None or "\\" in authority:  # browsers take a backslash for a slash
        raise _refusal("its host or port cannot be read")
    host, digits = found.groups(default="")
    made = _ipv6(host[1:-1]) if host.startswith("[") else _host(host)
    port = int(digits or _DEFAULT_PORTS[scheme])
    if port > _PORT_MAX:
        raise _refusal(f"there is no port {port}")
    return made if port == _DEFAULT_PORTS[scheme] else f"{made}:{port}"


def _ipv6(text: str) -> str:
    try:
        address = IPv6Address("" if "%" in text else text)
    except AddressValueError:
        raise _refusal("what stands in brackets is no IPv6 address") from None
    if address.ipv4_mapped is None:
        return f"[{address}]"
    high, low = divmod(int(address.ipv4_mapped), 1 << 16)  # Python writes these differently by version
    return f"[::ffff:{high:x}:{low:x}]"


def _host(text: str) -> str:
    if not text.isascii() or "%" in text:
        text = _fold(_unescape(text)).translate(_DOTS)
    labels = [_label(label) for label in text.lower().removesuffix(".").split(".")]
    host = ".".join(labels)
    if len(host) > _HOST_CHARS_MAX:
        raise _refusal("the host is too long")
    if _NUMBER.match(labels[-1]):
        try:
            IPv4Address(host)
        except AddressValueError:
            raise _refusal("the host is a number, and no IPv4 address") from None
    return host


def _unescape(host: str) -> str:
    try:
        return _ESCAPES.sub(lambda found: bytes.fromhex(found[0].replace("%", "")).decode(), host)
    except UnicodeDecodeError:
        raise _refusal("the host is percent-encoded, and not in UTF-8") from None


def _fold(host: str) -> str:
    """Case and width folded, as UTS 46 maps a host. Twice, as each step can require the other again."""
    for _ in range(2):
        folded = "".join(char if char in _KEPT_BY_CASE else "ß" if char == "ẞ" else char.casefold() for char in host)
        host = unicodedata.normalize("NFKC", folded.translate(_IGNORED))
    return host


def _label(label: str) -> str:
    if not label:
        raise _refusal("it has no host, or an empty part in its host")
    if not label.isascii():
        if any(_never_in_host(char) for char in label):
            raise _refusal("the host holds characters that no host can")
        label = f"xn--{label.encode('punycode').decode('ascii')}"
    if not _LABEL.match(label) or len(label) > _LABEL_CHARS_MAX:
        raise _refusal("the host holds characters that no host can, or a part that is too long")
    return label


def _never_in_host(char: str) -> bool:
    return char not in _KEPT_BY_CASE and unicodedata.category(char)[0] in "CZ"


def _path(path: str) -> str:
    """Encoded first, as an escaped dot is a dot. A dot segment at the end leaves its slash (RFC 3986, 5.2.4)."""
    kept: list[str] = []
    segments = _encode(path).split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments and segments[-1] in (".", ".."):
        kept.append("")
    return "".join(f"/{segment}" for segment in kept)


def _sorted_query(query: str) -> str:
    parameters = [part for part in query.split("&") if part and not _tracks(_name(part))]
    return "?" + "&".join(sorted(parameters, key=_name)) if parameters else ""


def _name(parameter: str) -> str:
    return parameter.partition("=")[0]


def _tracks(name: str) -> bool:
    lowered = name.lower()
    return lowered in _TRACKERS or lowered.startswith(_TRACKER_PREFIX)


def _encode(text: str) -> str:
    """Normalise escapes: none for unreserved characters, upper case for others, UTF-8 for unescaped ones."""

    def escape(found: re.Match[str]) -> str:
        if found[1] is None:
            return "".join(f"%{byte:02X}" for byte in found[0].encode())
        char = chr(int(found[1], 16))
        return char if char in _UNRESERVED else found[0].upper()

    return _TO_ENCODE.sub(escape, text)


# -- ids ----------------------------------------------------------------------------------------------


def cid_of(normalized: str) -> str:
    """The id of a source: `cid_` and the SHA-256 of its normalised address, in hex."""
    return f"{_CID}{sha256(normalized.encode()).hexdigest()}"


def short_cids(cids: Collection[str]) -> dict[str, str]:
    """Each id's shortest unique prefix, of at least eight hex digits."""
    ordered = sorted(set(cids))
    shared = [_shared(one, two) for one, two in pairwise(ordered)]
    least = len(_CID) + CID_HEX_MIN
    return {
        cid: cid[: max(least, before + 1, after + 1)]
        for cid, before, after in zip(ordered, [0, *shared], [*shared, 0], strict=False)
    }


def _shared(one: str, two: str) -> int:
    """The length of their common prefix."""
    return next((at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
