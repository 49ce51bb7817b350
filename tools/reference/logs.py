"""docs/reference/logs.md: every line of a server's log."""

from __future__ import annotations

from muniment.surfaces.http.log_lines import COMMON, LINES
from reference.prose import headed, table

ABOUT = (
    """
`muniment serve` writes its log to standard error, one JSON object a line. It holds no content: no query, no body, no
name of a tenant or a user. `request_id` is in the answer as well (`X-Request-Id`), and is taken over from whoever asks
where it has 1 to 64 letters, digits, `.`, `_` or `-`.""",
    "Before it listens, it also logs as warnings what whoever starts it ought to know: no keys, no TLS.",
)


def page() -> str:
    fields = ((f"`{line.message}`", f"`{line.logger}`", line.level, _named(line.fields), line.means) for line in LINES)
    return "\n".join(
        [
            *headed("Log lines", *ABOUT),
            "Every line has:\n",
            *(f"- `{name}`: {means}" for name, means in COMMON.items()),
            "\nThen, by its message:\n",
            *table(("message", "logger", "level", "further fields", "what it means"), fields),
            "",
        ]
    )


def _named(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "-"
