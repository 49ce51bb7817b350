"""A store whose rows are edited at random, and what its doors then say: the campaign of `test_row_damage`.

    python -m tests.fault.row_damage --rounds 1000 [--first 0]

An edit changes, empties, deletes or swaps values of any column of any table. A door gives what was written, or a typed
error; what is merely missing is noticed by `verify`. A forget says of no store that nothing is left where words are.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sqlite3
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import muniment
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.policy import Policy
from muniment.errors import IntegrityFailure, MunimentError, NotADatabase
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.store.engines.opening import open_engine

__all__ = ["NOW", "USERS", "Door", "Written", "packets_last", "play", "run_of", "told", "words_in"]

USERS = ("ana", "bob")
QUERY, NOW = "which clinic is closed?", "2030-01-01T00:00:00Z"
FURNITURE = ("state_version", "0", "Today", "Last", "Yesterday")
"""Words of packets that have other evidence, or none."""
Door = Callable[[Memory], Any]


def secret(user: str, number: int) -> str:
    """A word that nobody else says."""
    return f"{user}secret{number:02}"


class Written:
    """A store, and what its doors gave when it was whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events: list[str] = []
        self.builds: list[str] = []
        context = new_context(open_engine(path), Policy(), TickingClock(), CountingIds("whole"))
        with closing(Memory(context)) as mem:
            for user in USERS:
                self._tell(mem, user)
            gone = mem.run(user_id="eve", session_id="s9").observe("user", "this turn of eve goes again at once")
            mem.forget(event=gone.id)
        with closing(sqlite3.connect(path)) as file:
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.data = path.read_bytes()
        with muniment.open(path) as mem:
            self.given = {name: told(door(mem)) for name, door in packets_last(list(self.doors().items()))}
        self.words = {*words_in(list(self.given.values())), *FURNITURE}

    def _tell(self, mem: Memory, user: str) -> None:
        run = mem.run(user_id=user, session_id="s1", run_id=f"run-{user}", objective=f"help {user} to cook")
        for number in range(4):
            text = f"{user} says {secret(user, number)}: the clinic of street {number * 7} is closed on day {number}."
            self.events.append(run.observe("user", text, tags={f"t{number % 3}"}).id)
        said = self.events[-1]
        page = f"page {secret(user, 4)} of {user} " * 3200
        self.events.append(run.observe_tool("read", content=page, args={"n": 1}, idempotency_key=f"k-{user}").id)
        run.remember("user.city", f"city {secret(user, 5)}", sources=[said])
        run.procedure("cook", {"steps": [f"wash {secret(user, 6)}"]}, sources=[said])
        run.patch(goal=f"cook {secret(user, 7)}")
        self.builds.append(run.compose("planner", query=QUERY, now=NOW).id)

    def doors(self) -> dict[str, Door]:
        doors: dict[str, Door] = {"export": lambda mem: list(mem.export())}
        for user, build in zip(USERS, self.builds, strict=True):
            doors |= {
                f"entries of {user}": lambda mem, user=user: list(mem.ledger.entries(user_id=user)),
                f"search of {user}": lambda mem, user=user: [
                    (hit.id, hit.text) for hit in run_of(mem, user).search(QUERY, now=NOW)
                ],
                f"packet of {user}": lambda mem, user=user: (
                    run_of(mem, user).compose("planner", query=QUERY, now=NOW).text
                ),
                f"facts of {user}": lambda mem, user=user: [fact.to_wire() for fact in run_of(mem, user).facts()],
                f"state of {user}": lambda mem, user=user: run_of(mem, user).working_state().to_wire(),
                f"dump of {user}": lambda mem, user=user: list(mem.export(user_id=user)),
                f"replay of {user}": lambda mem, build=build: mem.replay(build).text,
                f"why of {user}": lambda mem, user=user: [
                    each.line for each in mem.why(secret(user, 5), user_id=user) if each.build_id in self.builds
                ],
                f"changes of {user}": lambda mem, user=user: mem.ledger.changes(user_id=user).is_empty,
            }
        doors["users"] = lambda mem: [state.to_wire() for state in mem.store.users()]
        for id_ in self.events[::3]:
            doors[f"get {id_}"] = lambda mem, id_=id_: mem.ledger.get(id_)
            doors[f"content {id_}"] = lambda mem, id_=id_: mem.ledger.content(id_)
            doors[f"resolve {id_}"] = lambda mem, id_=id_: mem.ledger.resolve(id_)
        return doors


def packets_last(doors: list[tuple[str, Door]]) -> list[tuple[str, Door]]:
    """A packet is kept as a build: after it a dump is another."""
    return sorted(doors, key=lambda door: door[0].startswith("packet"))


def told(given: Any) -> Any:
    """A dump without its last line, whose digest is another where a row is missing. And without idempotency keys, which
    are not derived from anything, and without links, which `verify` names and an import refuses.
    """
    if not isinstance(given, list) or not given or not isinstance(given[-1], bytes):
        return given
    return [line for line in given[:-1] if not line.endswith((b'"table":"idempotency"}\n', b'"table":"links"}\n'))]


def words_in(given: Any) -> set[str]:
    return set(re.findall(r"[^\W_]+", str(given)))


def run_of(mem: Memory, user: str) -> Any:
    return mem.run(user_id=user, session_id="s1", run_id=f"run-{user}")


# -- edits --------------------------------------------------------------------------------------------


def edit(path: Path, rng: random.Random) -> str:
    """One edit of one row, or a swap of two; answers what was done."""
    with closing(sqlite3.connect(path)) as file:
        tables = [name for (name,) in file.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
        tables = [name for name in tables if name not in ("layout", "sqlite_stat1")]
        while True:
            name = rng.choice(tables)
            file.text_factory = str
            columns = [(row[1], row[2]) for row in file.execute(f"PRAGMA table_info({name})")]
            if "shard" not in [column for column, _ in columns]:
                continue
            made = _edit_table(file, rng, name, columns)
            if made is not None:
                file.commit()
                file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                return f"{name}: {made}"


def _edit_table(file: sqlite3.Connection, rng: random.Random, name: str, columns: list[tuple[str, str]]) -> str | None:
    keys = [row[1] for row in file.execute(f"PRAGMA table_info({name})") if row[5]]
    file.text_factory = bytes
    rows = file.execute(f"SELECT {', '.join(keys)} FROM {name} ORDER BY {', '.join(keys)}").fetchall()
    if not rows:
        return None
    values = [tuple(each.decode() if isinstance(each, bytes) and _is_text(columns, key) else each
                    for key, each in zip(keys, row, strict=True)) for row in rows]  # fmt: skip
    row, other = rng.choice(values), rng.choice(values)
    where = " AND ".join(f"{key} = ?" for key in keys)
    column, kind = rng.choice(columns)
    how = rng.choice(("change", "change", "null", "delete", "swap", "broken text"))
    try:
        if how == "delete":
            count = file.execute(f"DELETE FROM {name} WHERE {where}", row).rowcount
        elif how == "null":
            null = f"UPDATE {name} SET {column} = NULL WHERE {where} AND {column} IS NOT NULL"
            count = file.execute(null, row).rowcount
        elif how == "broken text":
            if kind != "TEXT":
                return None
            broken = f"UPDATE {name} SET {column} = CAST({column} || x'ff' AS TEXT) WHERE {where}"
            count = file.execute(broken, row).rowcount
        elif how == "swap":
            (one,) = file.execute(f"SELECT {column} FROM {name} WHERE {where}", row).fetchone()
            (two,) = file.execute(f"SELECT {column} FROM {name} WHERE {where}", other).fetchone()
            if one == two:
                return None
            one, two = (each.decode() if kind == "TEXT" and each is not None else each for each in (one, two))
            file.execute(f"UPDATE {name} SET {column} = ? WHERE {where}", (two, *row))
            count = 1
            if column not in keys:
                file.execute(f"UPDATE {name} SET {column} = ? WHERE {where}", (one, *other))
        else:
            (one,) = file.execute(f"SELECT {column} FROM {name} WHERE {where}", row).fetchone()
            count = file.execute(
                f"UPDATE {name} SET {column} = ? WHERE {where}", (_other(rng, kind, one), *row)
            ).rowcount
    except sqlite3.IntegrityError:
        file.rollback()
        return None
    return f"{how} {column} of {row!r:.90}" if count else None


def _is_text(columns: list[tuple[str, str]], name: str) -> bool:
    return dict(columns)[name] == "TEXT"


def _other(rng: random.Random, kind: str, value: Any) -> Any:
    if kind == "INTEGER":
        return (value or 0) + rng.choice((-1, 1, 7))
    if value is None:
        return "forged" if kind == "TEXT" else b"forged"
    data = bytearray(value)
    if kind == "BLOB":
        if not data:
            return b"\1"
        data[rng.randrange(len(data))] ^= rng.randrange(1, 256)
        return bytes(data)
    text = bytes(data).decode()
    letters = [at for at, sign in enumerate(text) if sign.isalnum()]
    if not letters:
        return "forged"
    at = rng.choice(letters)
    return text[:at] + rng.choice([sign for sign in "abcxyz0189" if sign != text[at]]) + text[at + 1 :]


# -- what came of it ----------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What an edit came to."""

    made: str
    wrong: dict[str, str]
    """By door, what is wrong with its answer."""
    is_noticed: bool
    errors: int


def play(written: Written, path: Path, seed: int) -> Outcome:
    rng = random.Random(seed)
    shutil.copy(written.path, path)
    path.write_bytes(written.data)
    made = edit(path, rng)
    damaged = path.read_bytes()
    wrong: dict[str, str] = {}
    errors = 0
    is_noticed = _verify(path, wrong)
    doors = list(written.doors().items())
    rng.shuffle(doors)
    for name, answer in _ask(path, packets_last(doors)):
        if isinstance(answer, IntegrityFailure | NotADatabase):
            errors += 1
        elif isinstance(answer, MunimentError):
            if not is_noticed:
                wrong[name] = f"{type(answer).__name__}: {answer}"
        elif isinstance(answer, Exception):
            wrong[name] = f"raw {type(answer).__name__}: {answer}: {_where(answer)}"
        elif told(answer) != written.given[name]:
            new = words_in(told(answer)) - written.words
            if name.startswith("packet"):  # with other evidence it counts otherwise
                new = {word for word in new if not word.isdecimal()}
            if new:
                wrong[name] = f"altered: {sorted(new)[:5]}"
            elif not is_noticed:
                wrong[name] = "missing, and verify says nothing"
    for user in USERS:
        path.write_bytes(damaged)
        _forget(path, user, wrong)
    path.write_bytes(damaged)
    _write(path, is_noticed, wrong)
    return Outcome(made, wrong, is_noticed, errors)


def _where(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


def _verify(path: Path, wrong: dict[str, str]) -> bool:
    try:
        with muniment.open(path) as mem:
            report = mem.verify()
            return not report.ok or report.lacking > 0 or report.unreceipted > 0
    except (IntegrityFailure, NotADatabase) as error:
        wrong["verify"] = f"blocked: {error}"
    except Exception as error:  # noqa: BLE001 whatever is raised is what is looked for
        wrong["verify"] = f"raw {type(error).__name__}: {error}: {_where(error)}"
    return True


def _ask(path: Path, doors: list[tuple[str, Door]]) -> Iterator[tuple[str, Any]]:
    with muniment.open(path) as mem:
        for name, door in doors:
            try:
                yield name, door(mem)
            except Exception as error:  # noqa: BLE001
                yield name, error


def _forget(path: Path, user: str, wrong: dict[str, str]) -> None:
    """Forget a user; what is theirs is gone or is told of, what is another's stays."""
    name, other = f"forget {user}", next(each for each in USERS if each != user)
    before = path.read_bytes()
    try:
        with muniment.open(path) as mem:
            receipt = mem.forget(user_id=user)
    except MunimentError as error:
        wrong[name] = f"blocked by {type(error).__name__}: {error}"
        return
    except Exception as error:  # noqa: BLE001
        wrong[name] = f"raw {type(error).__name__}: {error}: {_where(error)}"
        return
    data = path.read_bytes()
    if receipt.scrubbed:
        left = [secret(user, number) for number in range(8) if secret(user, number).encode() in data]
        if left:
            wrong[name] = f"told clean ({receipt.note}), left: {left}"
    lost = [secret(other, number) for number in range(8) if secret(other, number).encode() in before]
    lost = [word for word in lost if word.encode() not in data]
    if lost:
        wrong[name] = f"took what is another's: {lost}"


def _write(path: Path, is_noticed: bool, wrong: dict[str, str]) -> None:
    """Go on writing: it is taken, or refused by a typed error; where it is taken, the chain goes on."""
    for user in USERS:
        try:
            with muniment.open(path) as mem:
                mem.run(user_id=user, session_id="s1", run_id=f"late-{user}").observe("user", "one more turn of mine")
        except MunimentError:
            continue
        except Exception as error:  # noqa: BLE001
            wrong[f"write of {user}"] = f"raw {type(error).__name__}: {error}: {_where(error)}"
            continue
    if not is_noticed and _verify(path, wrong):
        wrong["write"] = "the store was whole before it was written to, and is not after it"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--show", type=int, default=40)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        written = Written(Path(folder) / "whole.db")
        counts: Counter[str] = Counter()
        shown = 0
        for seed in range(given.first, given.first + given.rounds):
            outcome = play(written, Path(folder) / "damaged.db", seed)
            counts["rounds"] += 1
            counts["noticed by verify"] += outcome.is_noticed
            counts["typed errors"] += outcome.errors
            counts["rounds with a fault"] += bool(outcome.wrong)
            for wrong in outcome.wrong.values():
                counts[f"fault: {wrong.split(':')[0].split(' by ')[0].split(' (')[0]}"] += 1
            if outcome.wrong and shown < given.show:
                shown += 1
                print(seed, outcome.made, outcome.wrong, flush=True)
        print(dict(counts))


if __name__ == "__main__":
    main()
