"""What is asked of the stores of `benchmarks.scale`, and what it costs there: processor time, rows, blocks, steps.

Every operation is carried out for the same users in stores of every size. Beside it stands *bare* SQL: the very
statements with which the operation read, caught and sent again by the driver alone, their rows fetched and thrown away.
It says what of the cost is the database's.
"""

from __future__ import annotations

import resource
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

import muniment
from benchmarks.scale_stores import ASKED, FORGOTTEN, Store
from muniment.store.engines import _sqlite_files as connections

QUERIES = (
    "where does she live now",
    "what did we decide about the invoice from the printer",
    "who is vegetarian",
    "when does the ferry leave",
)
STEP = 10
TAKES = 3
FLUSH_S = 0.5
"""After a connection was closed its counts are the server's; this is for the message to arrive."""
_COUNTS = """
SELECT coalesce(sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), 0),
       coalesce(sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0)
                    + coalesce(toast_blks_read + toast_blks_hit, 0) + coalesce(tidx_blks_read + tidx_blks_hit, 0)), 0)
FROM pg_stat_user_tables JOIN pg_statio_user_tables USING (relid)
"""

Work = Callable[[], object]
Works = Callable[[muniment.Memory], list[Work]]


class Question(NamedTuple):
    """An operation: what it does in a store that was just opened, once for each of its users."""

    name: str
    works: Works
    rounds: int = 1
    """How often it is asked, for the processor's clock of the server counts hundredths of a second."""
    cold: bool = False
    """Caches are emptied before each round."""


def questions() -> list[Question]:
    def search(mem: muniment.Memory, user: str, query: str) -> None:
        assert mem.run(user_id=user, session_id="ask").search(query)

    def compose(mem: muniment.Memory, user: str, query: str) -> None:
        mem.run(user_id=user, session_id="ask").compose("responder", query=query, max_tokens=1024)

    def changes(mem: muniment.Memory, user: str) -> None:
        start = mem.ledger.changes(user_id=user)
        assert mem.ledger.changes(user_id=user, after=start.position).is_empty

    def forgets(mem: muniment.Memory) -> list[Work]:
        last = [
            [each.id for each in mem.ledger.entries(user_id=user) if each.kind == "message" and each.content][-3:]
            for user in FORGOTTEN
        ]
        return [partial(mem.forget, event=id_) for ids in last for id_ in ids]

    every = [(user, query) for user in ASKED for query in QUERIES]
    return [
        Question("search_cold", lambda mem: [partial(search, mem, user, QUERIES[0]) for user in ASKED], 6, cold=True),
        Question("search_warm", lambda mem: [partial(search, mem, *each) for each in every], 6),
        Question("compose", lambda mem: [partial(compose, mem, *each) for each in every], 3),
        Question("changes", lambda mem: [partial(changes, mem, user) for user in ASKED], 12),
        Question("search_large_cold", lambda mem: [partial(search, mem, "large", QUERIES[1])], 3, cold=True),
        Question("search_large_warm", lambda mem: [partial(search, mem, "large", query) for query in QUERIES], 5),
        Question("verify_quick", lambda mem: [partial(mem.verify, quick=True)], 3),
        Question("forget", forgets),
    ]


def ask_all(store: Store) -> dict[str, float]:
    """Every figure of every question."""
    told: dict[str, float] = {}
    for question in questions():
        figures = _ask(store, question)
        told |= {f"{question.name}_{name}": value for name, value in figures.items()}
        print(f"  {store.name} {question.name} {figures}", flush=True)
    told["process_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return told


def _ask(store: Store, question: Question) -> dict[str, float]:
    told: dict[str, float] = {}
    if question.name != "forget":  # what is forgotten is forgotten once
        with _caught(store) as said, muniment.open(store.url) as mem:
            works = question.works(mem)
            said.clear()
            _all(works)
            caught, times = list(said), len(works)
        told["bare_ms"] = _bare_ms(store, caught, times, rounds=question.rounds)
    takes = []
    with muniment.open(store.url) as mem:
        for take in range(TAKES):
            works = question.works(mem)
            if question.rounds > 1 and not take:  # what the first of all loads is no question's
                _all(works)
            rounds = [_round(mem, works, is_cold=question.cold) for _ in range(question.rounds)]
            takes.append(store.meter.spent(partial(_all, rounds)))
        told["server_mb"] = store.meter.server_memory_mb()
    takes.sort(key=lambda spent: spent.all)
    lowest, spent, highest = takes[0], takes[TAKES // 2], takes[-1]
    each_ms = 1000 / (len(works) * question.rounds)
    told |= {"ms": each_ms * spent.all, "own_ms": each_ms * spent.own, "wall_ms": each_ms * spent.wall}
    told |= {"ms_low": each_ms * lowest.all, "ms_high": each_ms * highest.all}
    names = ("rows", "blocks") if store.dsn is not None else ("steps",)
    return told | dict(zip(names, _counted(store, question.works), strict=True))


def _round(mem: muniment.Memory, works: list[Work], *, is_cold: bool) -> Work:
    def work() -> None:
        if is_cold:
            mem._ctx.clear_caches()
        _all(works)

    return work


def _all(works: list[Work]) -> None:
    for work in works:
        work()


# -- what the database looks at -----------------------------------------------------------------------


def _counted(store: Store, works: Works) -> tuple[float, ...]:
    """Of one operation in a store that was just opened: rows and blocks on a server, steps of SQLite's machine."""
    return _steps(store, works) if store.dsn is None else _rows(store, works)


def _rows(store: Store, works: Works) -> tuple[float, ...]:
    """What carrying them out adds to opening the store and naming them."""
    import psycopg

    def counts() -> tuple[float, ...]:
        time.sleep(FLUSH_S)
        with closing(psycopg.connect(store.dsn or "", autocommit=True)) as admin:
            return tuple(map(float, admin.execute(_COUNTS).fetchone() or ()))

    at = [counts()]
    count = 1
    for is_asked in (False, True):
        with muniment.open(store.url) as mem:
            asked = works(mem)
            count = len(asked)
            _all(asked if is_asked else [])
        at.append(counts())
    return tuple((last - named - (named - first)) / count for first, named, last in zip(*at, strict=True))


def _steps(store: Store, works: Works) -> tuple[float, ...]:
    steps = [0]
    inner = connections.connect

    def count() -> int:
        steps[0] += STEP
        return 0

    def connect(*args: Any, **more: Any) -> sqlite3.Connection:
        connection = inner(*args, **more)
        connection.set_progress_handler(count, STEP)
        return connection

    with mock.patch.object(connections, "connect", connect), muniment.open(store.url) as mem:
        asked = works(mem)
        steps[0] = 0
        _all(asked)
    return (steps[0] / len(asked),)


# -- bare ---------------------------------------------------------------------------------------------


@contextmanager
def _caught(store: Store) -> Iterator[list[tuple[str, Any]]]:
    """The statements that read, with their values, as they are said to the database."""
    said: list[tuple[str, Any]] = []
    if store.dsn is None:
        inner = connections.connect

        def connect(*args: Any, **more: Any) -> sqlite3.Connection:
            connection = inner(*args, **more)
            connection.set_trace_callback(lambda text: said.append((text, None)) if _reads(text) else None)
            return connection

        with mock.patch.object(connections, "connect", connect):
            yield said
        return
    import psycopg

    def caught(cls: Any) -> Any:
        method = cls.execute

        def execute(self: Any, query: Any, params: Any = None, **more: Any) -> Any:
            text = query.decode() if isinstance(query, bytes) else str(query)
            if _reads(text):
                said.append((text, params))
            return method(self, query, params, **more)

        return mock.patch.object(cls, "execute", execute)

    with caught(psycopg.Cursor), caught(psycopg.ServerCursor):
        yield said


def _reads(text: str) -> bool:
    return text.lstrip().startswith(("SELECT", "WITH")) and "pg_" not in text


def _bare_ms(store: Store, said: list[tuple[str, Any]], times: int, *, rounds: int) -> float:
    """The processor time of sending these again and fetching what they answer, for one operation."""
    if store.dsn is None:
        with closing(sqlite3.connect(store.url)) as connection:
            replay = partial(_replay, connection.execute, said, rounds)
            replay()
            return 1000 * store.meter.spent(replay).all / times / rounds
    import psycopg

    with closing(psycopg.connect(store.dsn, autocommit=True)) as admin:
        replay = partial(_replay, admin.execute, said, rounds)
        replay()
        return 1000 * store.meter.spent(replay).all / times / rounds


def _replay(execute: Callable[..., Any], said: list[tuple[str, Any]], rounds: int) -> None:
    for _ in range(rounds):
        for text, params in said:
            (execute(text) if params is None else execute(text, params)).fetchall()
