"""Hooks of coding agents as a runnable module: `python -m muniment.integrations.hooks` is `muniment hook`.

The implementation is in `muniment.surfaces.hosts`; `muniment install` writes it into a host's configuration.
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
    """Load `handle` on demand: a hook that only records an event does not need it."""
    if name != "handle":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from muniment.surfaces.hosts.hooks import handle

    return handle


def _run() -> None:
    """Handle one event in a process of its own, which exits without cleanup: that saves a sixth of a hook's cost."""
    gc.disable()
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _run()
