"""Bytes flipped at random in a store's file: every read gives what was written, or one typed error (TM-12)."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import muniment
from effort import examples
from muniment.errors import MunimentError, NotADatabase, SchemaMismatch, StoreDamaged
from muniment.handles.memory import Memory

pytestmark = pytest.mark.req("TM-12")

ROUNDS = 24
USERS = ("ana", "bob")
HEADER_BYTES = 100
QUERY, NOW = "which clinic is closed?", "2030-01-01T00:00:00Z"


class Written:
    """A store, and what its doors gave when it was whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events: list[str] = []
        self.builds: list[str] = []
        with muniment.open(path) as mem:
            for user in USERS:
                run = mem.run(user_id=user, session_id="s1", run_id=f"run-{user}", objective=f"help {user} to cook")
                for number in range(12):
                    text = f"{user} says thing {number}: the clinic of street {number * 7} is closed on day {number}."
                    self.events.append(run.observe("user", text, tags={f"t{number % 3}"}).id)
                said = self.events[-1]
                self.events.append(run.observe_tool("read", content=f"page of {user} " * 6000, args={"n": 1}).id)
                run.remember("user.city", f"city of {user}", sources=[said])
                run.procedure("cook", {"steps": [f"{user} washes the hands"]}, sources=[said])
                run.patch(goal=f"cook with {user}")
                self.builds.append(run.compose("planner", query=QUERY, now=NOW).id)
        with closing(sqlite3.connect(path)) as file:
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.data = path.read_bytes()
        with muniment.open(path) as mem:
            self.given = {name: door(mem) for name, door in self.doors().items()}

    def doors(self) -> dict[str, Callable[[Memory], Any]]:
        doors: dict[str, Callable[[Memory], Any]] = {
            "export": lambda mem: list(mem.export()),
            "verify": lambda mem: mem.verify().ok,
        }
        for user, build in zip(USERS, self.builds, strict=True):
            doors |= {
                f"entries of {user}": lambda mem, user=user: list(mem.ledger.entries(user_id=user)),
                f"search of {user}": lambda mem, user=user: [
                    (hit.id, hit.text) for hit in _run(mem, user).search(QUERY, now=NOW)
                ],
                f"packet of {user}": lambda mem, user=user: (
                    _run(mem, user).compose("planner", query=QUERY, now=NOW).text
                ),
                f"cue of {user}": lambda mem, user=user: (
                    _run(mem, user).compose("planner", cues={"tags": ["t1"]}, now=NOW).text
                ),
                f"facts of {user}": lambda mem, user=user: [fact.to_wire() for fact in _run(mem, user).facts()],
                f"state of {user}": lambda mem, user=user: _run(mem, user).working_state().to_wire(),
                f"replay of {user}": lambda mem, build=build: mem.replay(build).text,
            }
        for id_ in self.events[::5]:
            doors[f"get {id_}"] = lambda mem, id_=id_: mem.ledger.get(id_)
            doors[f"content {id_}"] = lambda mem, id_=id_: mem.ledger.content(id_)
            doors[f"resolve {id_}"] = lambda mem, id_=id_: mem.ledger.resolve(id_)
        return doors


def _run(mem: Memory, user: str) -> Any:
    return mem.run(user_id=user, session_id="s1", run_id=f"run-{user}")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return Written(tmp_path_factory.mktemp("whole") / "store.db")


def damage(written: Written, path: Path, seed: int) -> None:
    """Some bytes behind the header of the file, each set to another value."""
    rng = random.Random(seed)
    data = bytearray(written.data)
    for _ in range(rng.choice((1, 1, 4, 32))):
        at = rng.randrange(HEADER_BYTES, len(data))
        data[at] ^= rng.randrange(1, 256)
    shutil.copy(written.path, path)
    path.write_bytes(data)


@pytest.mark.parametrize("seed", range(examples(ROUNDS)))
def test_every_read_gives_what_was_written_or_the_typed_error(written: Written, tmp_path: Path, seed: int) -> None:
    wrong = [name for name, answer in answers(written, tmp_path / "damaged.db", seed).items() if answer is not None]
    assert wrong == []


def answers(written: Written, path: Path, seed: int) -> dict[str, str | None]:
    """By door, what is wrong with its answer; None where it is what was written, or the typed error."""
    damage(written, path, seed)
    found: dict[str, str | None] = {}
    for name, door in written.doors().items():
        try:
            with muniment.open(path) as mem:
                given = door(mem)
        except (StoreDamaged, NotADatabase, SchemaMismatch):
            found[name] = None
        except MunimentError as error:
            found[name] = f"{type(error).__name__}: {error}"
        else:
            is_same = given == written.given[name] or (name == "verify" and given is False)
            found[name] = None if is_same else f"altered: {str(given)[:200]}"
    return found
