"""Hooks of coding agents, as a module that is run: `python -m muniment.integrations.hooks` is `muniment hook`.

What it does stands in `muniment.surfaces.hosts`; `muniment install` writes it into a host's configuration.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, Any

from muniment.surfaces.hosts.hook_command import main

if TYPE_CHECKING:
    from muniment.surfaces.hosts.hooks import handle

__all__ = ["handle", "main"]


def __getattr__(name: str) -> Any:
    """`handle` is loaded when it is asked for: a hook that only puts an event down needs nothing of it."""
    if name != "handle":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from muniment.surfaces.hosts.hooks import handle

    return handle


def _run() -> None:
    """One event, in a process that lives for it alone: what it leaves is not looked for, and not taken down piece by
    piece. That is a sixth of what a hook costs.
    """
    gc.disable()
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _run()
