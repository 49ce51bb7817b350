"""The addresses of resources: `muniment://builds/…`, `muniment://events/…`, `muniment://facts/…`,
`muniment://runs/…/narrative`."""

from __future__ import annotations

from urllib.parse import quote, unquote

from muniment.errors import NotFound

__all__ = ["TEMPLATES", "build_uri", "event_uri", "fact_uri", "narrative_uri", "parts_of"]

_SCHEME = "muniment://"
_URI_CHARS_MAX = 4096

TEMPLATES: dict[str, tuple[str, str, str]] = {
    "packet": ("muniment://builds/{build_id}", "application/json", "The MemoryPacket of a build, as canonical JSON."),
    "event": ("muniment://events/{event_id}", "application/json", "An event of the ledger with its whole content."),
    "fact": ("muniment://facts/{fact_id}", "application/json", "A fact of this user as it stands, with its sources."),
    "session": (
        "muniment://sessions/{session_id}",
        "text/markdown",
        "The latest turns of a session, each with the id of its event.",
    ),
    "narrative": (
        "muniment://runs/{run_id}/narrative",
        "text/markdown",
        "A run told in words, from its last snapshot.",
    ),
    "narrative_at": (
        "muniment://runs/{run_id}/narrative/{sequence}",
        "text/markdown",
        "A run told in words, from its snapshot of that number.",
    ),
}
"""Name → the template, the media type, the description."""


def build_uri(build_id: str) -> str:
    return f"{_SCHEME}builds/{_quoted(build_id)}"


def event_uri(event_id: str) -> str:
    return f"{_SCHEME}events/{_quoted(event_id)}"


def fact_uri(fact_id: str) -> str:
    return f"{_SCHEME}facts/{_quoted(fact_id)}"


def narrative_uri(run_id: str, sequence: int) -> str:
    return f"{_SCHEME}runs/{_quoted(run_id)}/narrative/{sequence}"


def parts_of(uri: str) -> list[str]:
    """Parse the parts of one of our addresses."""
    if not uri.startswith(_SCHEME) or len(uri) > _URI_CHARS_MAX:
        raise NotFound(
            f"no resource {uri!r:.120}", path="$.uri", hint="`resources/templates/list` says which there are"
        )
    return [unquote(part) for part in uri.removeprefix(_SCHEME).split("/")]


def _quoted(name: str) -> str:
    return quote(name, safe="")
