"""Places of the server's machine in what is sent: those who do not keep the server are told of none.

The store is called so; a folder of research files is told as the path below the server's own folder.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from muniment.handles.study import Study, StudyStatus

__all__ = ["THE_STORE", "hide_places", "places_of", "tell_study"]

THE_STORE = "the store"
"""What a place of this machine is called before those who are not told of it."""


def places_of(location: str, research_dir: Path) -> tuple[tuple[str, str], ...]:
    """What is hidden, each with what is told in its place."""
    folders = dict.fromkeys(f"{folder}{os.sep}" for folder in (research_dir.absolute(), research_dir))
    found = [(folder, "") for folder in folders if len(folder) > len(os.sep)]
    return ((location, THE_STORE), *found) if os.sep in location else tuple(found)


def hide_places(told: Any, places: Sequence[tuple[str, str]]) -> Any:
    """Plain data without the names of these places."""
    if isinstance(told, dict):
        return {name: hide_places(value, places) for name, value in told.items()}
    if isinstance(told, list | tuple):
        return [hide_places(value, places) for value in told]
    if isinstance(told, str):
        for place, name in places:
            told = told.replace(place, name)
    return told


def tell_study(result: Any, plain: Any, research_dir: Path) -> Any:
    """A research run, or where it stands, with its folder below the server's own; anything else as it is."""
    if not isinstance(result, Study | StudyStatus):
        return plain
    return {**plain, "directory": hide_places(plain["directory"], places_of("", research_dir))}
