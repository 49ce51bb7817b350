"""The numbers of all workers of one server: each has files of its own in a folder, and whoever answers adds them up.

What a worker counted stays counted when it is gone; what it had open is gone with it. Files of workers that have ended
are folded into one when the next worker starts, so that a server which runs for years keeps a few of them.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from muniment.core.outside.posix import fcntl
from muniment.surfaces.http.metrics.cells import LABELS, NUMBERS, Cells, Counted, is_alive, read_counted
from muniment.surfaces.http.metrics.families import family
from muniment.surfaces.http.metrics.page import added

__all__ = ["VARIABLE", "WorkerFiles", "workers_dir"]

_PREFIX = "metrics-"
_ENDED = "metrics.ended"
_LOCK = "metrics.lock"
VARIABLE = "MUNIMENT_WORKERS_DIR"
"""Where the workers of one server keep what they share of themselves; set by whoever starts them."""


def workers_dir(environ: Mapping[str, str] | None = None) -> Path | None:
    """The folder of this server's workers; None where this process is all of the server."""
    named = (os.environ if environ is None else environ).get(VARIABLE, "")
    return Path(named) if named else None


class WorkerFiles:
    """The files of this worker and of the others in the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._place = folder / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(6)}"
        with self._locked(fcntl.LOCK_EX):
            self._fold()
            self.cells = Cells(self._place)

    def others(self) -> tuple[list[Counted], int]:
        """What the other workers, and those that ended, have counted; and how many others are alive."""
        with self._locked(fcntl.LOCK_SH):
            ended, folded = self._ended()
            parts, alive = [ended], 0
            for place in self._places():
                if place == self._place or place.name in folded:
                    continue
                is_there = is_alive(place)
                alive += is_there
                kept = read_counted(place)
                parts.append(kept if is_there else [each for each in kept if _lasts(each)])
        return added(parts), alive

    def _places(self) -> list[Path]:
        found = (path.with_suffix("") for path in self._folder.glob(f"{_PREFIX}*{NUMBERS}"))
        return sorted(place for place in found if place.with_name(place.name + LABELS).exists())

    def _ended(self) -> tuple[list[Counted], frozenset[str]]:
        """What workers counted that have ended, and those whose files may still lie there although they are in it."""
        try:
            said = json.loads((self._folder / _ENDED).read_bytes())
        except FileNotFoundError:
            return [], frozenset()
        return [Counted(name, tuple(labels), tuple(numbers)) for name, labels, numbers in said["kept"]], frozenset(
            said["folded"]
        )

    def _fold(self) -> None:
        ended, folded = self._ended()
        gone = [place for place in self._places() if not is_alive(place)]
        new = [place for place in gone if place.name not in folded]
        if new:
            lasting = ([each for each in read_counted(place) if _lasts(each)] for place in new)
            said = {"kept": added([ended, *lasting]), "folded": [place.name for place in gone]}
            part = self._folder / f"{_ENDED}.part"
            part.write_bytes(json.dumps(said).encode())
            part.replace(self._folder / _ENDED)
        for place in gone:
            for ending in (NUMBERS, LABELS):
                place.with_name(place.name + ending).unlink(missing_ok=True)

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        file = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, how)
            yield
        finally:
            os.close(file)


def _lasts(kept: Counted) -> bool:
    """Does it stay counted when its process is gone?"""
    return family(kept.name).kind != "gauge"
