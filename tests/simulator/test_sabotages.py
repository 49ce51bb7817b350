"""The simulator can fail: a product that breaks a promise is caught, shrunk to a few steps, and can be repeated."""

from __future__ import annotations

import pytest
from benchmarks import simulator as bench
from sabotages import SABOTAGES, Sabotage, noticed

from effort import one_in
from muniment.testing.simulator.simulating import Tally, acts_named, command, shrink, tell
from muniment.testing.simulator.specimens import open_specimens
from products import for_each

NAMED = {each.name: each for each in SABOTAGES}


@for_each("sabotage", one_in(8, SABOTAGES), ids=lambda each: each.name)
def test_a_sabotage_is_noticed(sabotage: Sabotage) -> None:
    assert noticed(sabotage) is not None


def test_every_sabotage_still_finds_what_it_breaks() -> None:
    """One that names what is not there any more breaks nothing, and would only be missed where it is tried."""
    for sabotage in SABOTAGES:
        with sabotage.patch():
            pass


def test_a_failure_is_shrunk_and_its_command_repeats_it(capsys: pytest.CaptureFixture[str]) -> None:
    sabotage = NAMED["secrets are not redacted"]
    acts = acts_named(sabotage.acts.split(","))
    with sabotage.patch():
        with open_specimens(("memory",)) as opener:
            failure = next(
                found for seed in range(60) if (found := tell(seed, range(1, 15), opener, Tally(), acts)) is not None
            )
            short = shrink(failure, opener)
        assert len(short.steps) == 1, "one message with a secret is the whole story"
        line = command(short)
        assert line in str(short)
        assert bench.main(line.split()[3:]) == 1
        assert "secrets stop at the door" in capsys.readouterr().out
    assert bench.main(line.split()[3:]) == 0, "and without the sabotage it holds"
