"""Bytes flipped at random in a store's file: every read gives what was written, or one typed error (TM-12).

A byte of a key may make a row that no question reaches. Then something is missing from an answer, which holds nothing
but what was written, and `verify` notices.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from row_damage import NOW, USERS, Door, Written, packets_last, run_of, told, words_in

import muniment
from effort import examples
from muniment.errors import DuplicateId, MunimentError, NotADatabase, NotFound, SchemaMismatch, StoreDamaged

pytestmark = pytest.mark.req("TM-12")

ROUNDS = 24
HEADER_BYTES = 100


def doors_of(written: Written) -> dict[str, Door]:
    """Those of a store whose rows are edited, and what it says as a whole; packets, which write, come last."""
    doors: dict[str, Door] = {"verify": lambda mem: (mem.verify().ok, mem.verify().lacking)}
    doors |= written.doors()
    for user in USERS:
        doors[f"packet by a cue of {user}"] = lambda mem, user=user: (
            run_of(mem, user).compose("planner", cues={"tags": ["t1"]}, now=NOW).text
        )
    return dict(packets_last(list(doors.items())))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    made = Written(tmp_path_factory.mktemp("whole") / "store.db")
    with muniment.open(made.path) as mem:
        made.given |= {name: told(door(mem)) for name, door in doors_of(made).items() if name not in made.given}
    made.words |= words_in(list(made.given.values()))
    return made


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
    is_noticed = False
    for name, door in doors_of(written).items():
        try:
            with muniment.open(path) as mem:
                given = told(door(mem))
        except (StoreDamaged, NotADatabase, SchemaMismatch):
            is_noticed = is_noticed or name == "verify"
        except (NotFound, DuplicateId):  # of a row that no question reaches
            found[name] = "missing"
        except MunimentError as error:
            found[name] = f"{type(error).__name__}: {error}"
        else:
            if given != written.given[name] and name != "verify":
                found[name] = "missing" if words_in(given) <= written.words else f"altered: {str(given)[:200]}"
            elif name == "verify":
                is_noticed = given != written.given[name]
    if is_noticed:
        found = {name: None if wrong == "missing" else wrong for name, wrong in found.items()}
    return found
