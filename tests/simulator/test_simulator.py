"""Stories told to three stores at once: every promise holds, whatever goes wrong.

`make soak` tells ten thousand (`python -m benchmarks.simulator --seeds 10000`); here are some, and a failing one says
how to repeat it.
"""

from __future__ import annotations

import pytest

from effort import SOAK
from muniment.testing.simulator.simulating import ACTS, STEPS, Failure, acts_named, simulate
from muniment.testing.simulator.specimens import BEHIND, open_specimens

pytestmark = pytest.mark.req("LG-01", "LG-02", "LG-05", "LG-06", "LG-07", "LG-10", "X-05", "X-06", "TM-12")

SHORT = 8
"""Steps of a story in every run; a soak tells whole ones."""


def told(failures: list[Failure]) -> str:
    return "\n\n".join(map(str, failures))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4 if SOAK else 1))
def test_two_stores_keep_their_promises(part: int) -> None:
    """Many stories on what is quick; PostgreSQL has its own below."""
    with open_specimens(("memory", "sqlite")) as opener:
        tally, failures = simulate(
            range(part * 1000, part * 1000 + (400 if SOAK else 26)), opener, steps=STEPS if SOAK else SHORT
        )
    assert not failures, told(failures)
    assert tally.faults.total() > 5


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2 if SOAK else 1))
def test_three_stores_keep_their_promises(postgres_dsn: str, part: int) -> None:
    first, count = 5000 + part * 1000, 200 if SOAK else 5
    with open_specimens() as opener:
        tally, failures = simulate(range(first, first + count), opener, steps=STEPS if SOAK else SHORT)
    assert not failures, told(failures)
    assert tally.stories == count


LOADED = "observe_many,record,forget_event,forget_session,load,load_again,index,search,verify"


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("BL-02")
def test_bulk_loads_keep_their_promises() -> None:
    """Stories of these acts alone, so that each of them comes often."""
    with open_specimens(("memory", "sqlite")) as opener:
        tally, failures = simulate(
            range(9001, 9001 + (400 if SOAK else 12)), opener, steps=STEPS, acts=acts_named(LOADED.split(","))
        )
    assert not failures, told(failures)
    assert set(tally.steps) >= set(LOADED.split(",")), "some act was never told"


@pytest.mark.slow
@pytest.mark.parametrize("engine", BEHIND)
def test_postgres_behind_a_pooler_and_with_a_replica_keeps_its_promises(
    postgres_dsn: str, request: pytest.FixtureRequest, engine: str
) -> None:
    request.getfixturevalue("pooled_dsn" if engine == "postgres-pooler" else "cluster")  # skips where there is none
    first, count = (7000 if engine == "postgres-pooler" else 8000), 200 if SOAK else 2
    with open_specimens(("memory", engine)) as opener:
        tally, failures = simulate(range(first, first + count), opener, steps=STEPS if SOAK else SHORT)
        (_, last) = opener(first - 1)
    assert not failures, told(failures)
    assert tally.stories == count
    if engine == "postgres-replica":
        assert last.engine.inner._replica.reads["replica"] > 20 * count  # type: ignore[attr-defined]


def test_a_story_is_the_same_every_time() -> None:
    with open_specimens(("memory",)) as opener:
        tallies = [simulate(range(3), opener)[0] for _ in range(2)]
    assert tallies[0] == tallies[1]
    assert tallies[0].steps.total() == 3 * STEPS
    assert len({act.name for act in ACTS}) == len(ACTS)
