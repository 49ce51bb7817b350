"""Signs that break a line, and texts without them. Decides nothing of what a page tells."""

from __future__ import annotations

import re

__all__ = ["BREAK", "BREAKS", "flat"]

BREAKS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
BREAK = re.compile(f"[{BREAKS}]")


def flat(text: str) -> str:
    """On one line: what is no evidence has no need of line breaks, and with none it cannot pass for another line."""
    return text if text.isprintable() or not BREAK.search(text) else " ".join(text.split())
