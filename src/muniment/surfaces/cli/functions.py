"""Functions of the caller's, named on the command line as `module:function`. The present folder is looked in first."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from muniment.core.outside.calling import outcome_of
from muniment.errors import InvalidInput

__all__ = ["AGENT_HELP", "VERIFIER_HELP", "load_function"]

AGENT_HELP = "The agent: called with a task, it answers text or an output."
VERIFIER_HELP = "The verifier: called with the output and the task, it says whether it passed."


def load_function(given: str, option: str) -> Callable[..., Any]:
    """The function; raises `InvalidInput` where there is none, or where importing its module fails."""
    module, _, name = given.partition(":")
    if not module or not name:
        raise InvalidInput(
            f"{given!r:.80} names no function", path=f"$.{option}", hint=f"write --{option} module:function"
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    imported = outcome_of(lambda: importlib.import_module(module))
    error = imported.exception()
    if error is not None:
        raise InvalidInput(
            f"cannot import {module}: {type(error).__name__}: {error!s:.200}",
            path=f"$.{option}",
            hint="it is looked for in this folder and among what is installed",
        ) from error
    found: Any = imported.result()
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise InvalidInput(f"{module} has no function {name}", path=f"$.{option}")
    function: Callable[..., Any] = found
    return function
