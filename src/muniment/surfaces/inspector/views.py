"""A view of the page by its address: the builds it shows, and the other data it needs.

The address is the page's own (`inspector/src/route.ts`): `#/{tenant}/{user}/{page}/{ids…}?{query}`.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from muniment.errors import InvalidInput
from muniment.store.ledger import RunState

__all__ = ["View", "preview_body", "read_link"]

_SECTIONS = ("working_state", "facts", "procedures", "short_term_summary", "episodes", "insights")
_BUILD_PAGES = ("packet", "purposes", "diff", "whatif")
"""Pages whose address names builds."""


class View(NamedTuple):
    """A reader's location in the page."""

    page: str
    ids: tuple[str, ...]
    query: dict[str, str]
    address: str

    @property
    def builds(self) -> tuple[str, ...]:
        """The builds it names."""
        count = 2 if self.page == "diff" else 1
        return self.ids[:count] if self.page in _BUILD_PAGES else ()


def read_link(link: str, run: RunState) -> View:
    """Parse a link to a view of the run's user, as in the page's address bar; another user's is refused."""
    _, has_hash, address = link.partition("#")
    path, _, query = address.partition("?")
    parts = [unquote(part) for part in path.removeprefix("/").split("/")]
    if not has_hash or len(parts) < 3:
        raise InvalidInput("no view is named there", path="$.link", hint="copy the whole address of the inspector")
    tenant_id, user_id, page, *ids = parts
    if (tenant_id, user_id) != (run.scope.tenant_id, run.scope.user_id):
        raise InvalidInput("the link shows another user than the run is of", path="$.link", hint="name a run of theirs")
    return View(
        page, tuple(ids), dict(parse_qsl(query, keep_blank_values=True)), f"#/{path.removeprefix('/')}{_asked(query)}"
    )


def _asked(query: str) -> str:
    return f"?{query}" if query else ""


def preview_body(query: dict[str, str]) -> dict[str, Any]:
    """The request body the page sends for the settings in an address: the same names in the same order
    (`whatif.tsx`).
    """
    body: dict[str, Any] = {}
    if query.get("purpose"):
        body["purpose"] = query["purpose"]
    if "query" in query:
        body["query"] = query["query"]
    if query.get("max_tokens"):
        body["max_tokens"] = _number(query, "max_tokens")
    limits = {name: _number(query, name) for name in _SECTIONS if query.get(name)}
    if limits:
        body["per_section"] = limits
    if query.get("window_turns"):
        body["window_turns"] = _number(query, "window_turns")
    if query.get("basis"):
        body["basis"] = query["basis"]
    return body


def _number(query: dict[str, str], name: str) -> int:
    said = query[name]
    if not (said.isascii() and said.isdecimal() and len(said) <= len("10000000")):
        raise InvalidInput(f"{name} in the link is no whole number", path="$.link")
    return int(said)
