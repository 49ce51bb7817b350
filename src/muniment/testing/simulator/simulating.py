"""Running a story on several stores: step by step, with injected faults, checking every promise; and shrinking it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from random import Random
from types import TracebackType
from typing import Any

from muniment.errors import InvalidInput
from muniment.handles.memory import Memory
from muniment.testing.simulator import asking, damage, knowing, loading, races, saying, upkeep
from muniment.testing.simulator.act import Act, Args, owner_of
from muniment.testing.simulator.faults import Fault
from muniment.testing.simulator.model import Model, Owner, must
from muniment.testing.simulator.promises import PROMISES
from muniment.testing.simulator.specimens import Outcome, Specimen

__all__ = ["ACTS", "STEPS", "Failure", "Opener", "Tally", "acts_named", "command", "shrink", "simulate", "tell"]

ACTS: tuple[Act, ...] = (
    *saying.ACTS,
    *knowing.ACTS,
    *asking.ACTS,
    *upkeep.ACTS,
    *damage.ACTS,
    *races.ACTS,
    *loading.ACTS,
)
STEPS = 14
_OBSERVE = ACTS[0]
_FAULTS = ("kill", "kill", "kill_after", "lost", "lost_after", "full")
_FAULT_SHARE = 0.15
_WRITES_MAX, _COMMITS_MAX = 14, 2
_SKEW_SHARE = 0.06
_SKEWS = (timedelta(seconds=-40), timedelta(minutes=-2), timedelta(hours=-2), timedelta(minutes=2))
_JUMPS = (timedelta(minutes=1), timedelta(minutes=7), timedelta(hours=5), timedelta(days=9))
_CLOCK = "clock_went_back"

Opener = Callable[[int], list[Specimen]]


@dataclass(slots=True)
class Tally:
    """Statistics of the stories so far."""

    stories: int = 0
    steps: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        self.stories += other.stories
        for name in ("steps", "faults", "refusals", "checks"):
            getattr(self, name).update(getattr(other, name))


@dataclass(slots=True)
class Failure:
    """A broken promise: its story and step, and the shortest story that still breaks it."""

    seed: int
    steps: tuple[int, ...]
    engines: tuple[str, ...]
    acts: tuple[Act, ...]
    error: BaseException
    story: list[str]

    def __str__(self) -> str:
        told = "\n".join(f"  {line}" for line in self.story)
        error = f"{type(self.error).__name__}: {self.error}"
        return f"seed {self.seed} broke a promise\n{error}\n{told}\nrepeat it: {command(self)}"


def command(failure: Failure) -> str:
    """Return the command line that repeats a failure."""
    steps, engines = ",".join(map(str, failure.steps)), ",".join(failure.engines)
    acts = "" if failure.acts == ACTS else f" --acts {','.join(act.name for act in failure.acts)}"
    return f"python -m benchmarks.simulator --seed {failure.seed} --steps {steps}, --engine {engines}{acts}"


def acts_named(names: Iterable[str]) -> tuple[Act, ...]:
    """Return the acts of these names, to draw a story from them only."""
    wanted = set(names)
    if unknown := wanted - {act.name for act in ACTS}:
        raise InvalidInput(f"no act {', '.join(sorted(unknown))}", hint=", ".join(act.name for act in ACTS))
    return tuple(act for act in ACTS if act.name in wanted)


class _Watch:
    """Keeps the error that ended a story: any, since an error outside of the tree breaks a promise as well."""

    error: Exception | None = None

    def __enter__(self) -> _Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> bool:
        if isinstance(error, Exception):
            self.error = error
        return isinstance(error, Exception)


class _Story:
    """A story in progress: the stores, the model, and the steps so far."""

    def __init__(self, seed: int, specimens: Sequence[Specimen], tally: Tally, acts: tuple[Act, ...]) -> None:
        self.seed = seed
        self.specimens = specimens
        self.tally = tally
        self.acts = acts
        self.model = Model(seed, (f"t1-{seed}", f"t2-{seed}"))
        self.told: list[str] = []

    def step(self, number: int, *, is_last: bool) -> None:
        rng = Random(f"{self.seed}/{number}")
        act = rng.choices(self.acts, [act.weight for act in self.acts])[0]
        args = act.plan(self.model, rng, number)
        if args is None:
            act = _OBSERVE
            args = act.plan(self.model, rng, number)
        assert args is not None
        fault = _draw_fault(rng) if act.is_struck and rng.random() < _FAULT_SHARE else None
        skew = rng.choice(_SKEWS) if rng.random() < _SKEW_SHARE and act.visit is None else timedelta(0)
        self.told.append(f"{number}. {_shown(act, args, fault, skew)}")
        outcome = self._ask(number, act, args, fault, skew)
        self.told[-1] += f" → {outcome.how}{'' if outcome.how != 'error' else ' ' + outcome.answer[0]}"
        self.tally.steps[act.name] += 1
        self._settle(act, args, fault, skew, outcome)
        self.model.now += rng.choice(_JUMPS)
        self._check(args, rng, is_last=is_last)

    def _ask(self, number: int, act: Act, args: Args, fault: Fault | None, skew: timedelta) -> Outcome:
        """Make the same call on every store, and compare the results."""
        outcomes: list[Outcome] = []
        for specimen in self.specimens:
            specimen.begin(number, self.model.at(skew))
            if act.visit is not None:
                act.visit(specimen, self.model, args)
                outcomes.append(Outcome("done"))
            else:
                outcomes.append(specimen.attempt(partial(_done, act, args), fault))
        for specimen, outcome in zip(self.specimens, outcomes, strict=True):
            must(
                outcome == outcomes[0],
                f"{specimen.name} answers as {self.specimens[0].name} does",
                _difference(outcomes[0], outcome),
            )
        return outcomes[0]

    def _settle(self, act: Act, args: Args, fault: Fault | None, skew: timedelta, outcome: Outcome) -> None:
        """Record the result in the model; the effect of an interrupted call is read from the stores."""
        wanted = act.refusals(self.model, args)
        if outcome.how == "done":
            must(not wanted or "" in wanted, f"{act.name} is refused", outcome.answer)
            act.learn(self.model, args, outcome.answer)
        elif fault is not None:
            self.tally.faults[fault.kind] += 1
            self._look(act, args)
        else:
            must(outcome.how == "error", f"{act.name} lost its connection by itself")
            code = outcome.answer[0]
            self.tally.refusals[code] += 1
            must(code in wanted or (code == _CLOCK and skew), f"{act.name} is done", outcome.answer)

    def _look(self, act: Act, args: Args) -> None:
        if act.seen is None:
            act.learn(self.model, args, None)
            return
        seen = [act.seen(specimen.mem, self.model, args) for specimen in self.specimens]
        must(all(each == seen[0] for each in seen), "what was broken off is done on all engines, or on none", seen)
        if seen[0] is not None:
            act.learn(self.model, args, seen[0])

    def _check(self, args: Args, rng: Random, *, is_last: bool) -> None:
        owners = self.model.owners()
        if owners and not is_last:
            owners = [_draw_owner(owners, args, rng)]
        for promise in PROMISES:
            if not is_last and rng.random() >= promise.share:
                continue
            drawn = rng.random()
            for specimen in self.specimens:
                specimen.begin(999, self.model.now)
                for each in promise.asked_of(owners):
                    promise.check(specimen, self.model, each, Random(drawn))
                    self.tally.checks[promise.name] += 1
        if is_last:
            self._compare_dumps()

    def _compare_dumps(self) -> None:
        for tenant_id in sorted({owner.tenant_id for owner in self.model.owners()}):
            dumps = [upkeep.shown_dump(list(each.mem.export(tenant_id=tenant_id))) for each in self.specimens]
            for specimen, dump in zip(self.specimens, dumps, strict=True):
                must(dump == dumps[0], f"same bytes on {specimen.name}", _first_difference(dumps[0], dump))
            self.tally.checks["same_bytes"] += len(dumps)


def tell(seed: int, steps: Sequence[int], opener: Opener, tally: Tally, acts: tuple[Act, ...] = ACTS) -> Failure | None:
    """Run one story; returns the failure if a promise did not hold."""
    specimens = opener(seed)
    story = _Story(seed, specimens, tally, acts)
    try:
        with _Watch() as watch:
            for place, number in enumerate(steps):
                story.step(number, is_last=place == len(steps) - 1)
    finally:
        for specimen in specimens:
            specimen.close()
    if watch.error is None:
        tally.stories += 1
        return None
    engines = tuple(specimen.name for specimen in specimens)
    return Failure(seed, tuple(steps[: len(story.told)]), engines, acts, watch.error, story.told)


def shrink(failure: Failure, opener: Opener, *, tries_max: int = 60) -> Failure:
    """Leave out steps, many at once and then one by one, while the story still fails in the same way."""
    best, size, tries = failure, max(1, len(failure.steps) // 2), 0
    while tries < tries_max:
        for start in range(0, len(best.steps), size):
            fewer = (*best.steps[:start], *best.steps[start + size :])
            again = tell(best.seed, fewer, opener, Tally(), best.acts) if fewer else None
            tries += 1
            if again is not None and type(again.error) is type(best.error):
                best = again
                break
        else:
            if size == 1:
                break
            size = max(1, size // 2)
    return best


def simulate(
    seeds: Iterable[int], opener: Opener, *, steps: int = STEPS, acts: tuple[Act, ...] = ACTS
) -> tuple[Tally, list[Failure]]:
    """Run the story of every seed; each failing one is shrunk."""
    tally = Tally()
    failures = []
    for seed in seeds:
        failure = tell(seed, range(1, steps + 1), opener, tally, acts)
        if failure is not None:
            failures.append(shrink(failure, opener))
    return tally, failures


# -- drawing and showing


def _done(act: Act, args: Args, mem: Memory) -> Any:
    assert act.do is not None
    return act.do(mem, args)


def _draw_fault(rng: Random) -> Fault:
    kind = rng.choice(_FAULTS)
    most = _COMMITS_MAX if kind.endswith("_after") else _WRITES_MAX
    return Fault(kind, rng.randint(1, most))  # type: ignore[arg-type]


def _draw_owner(owners: Sequence[Owner], args: Args, rng: Random) -> Owner:
    """Draw the owner to check after a step: usually that of the step, sometimes another."""
    about = [owner for owner in owners if "scope" in args and owner == owner_of(args)]
    return about[0] if about and rng.random() < 0.8 else rng.choice(owners)


def _shown(act: Act, args: Args, fault: Fault | None, skew: timedelta) -> str:
    said = ", ".join(f"{name}={value!r:.120}" for name, value in args.items() if name not in ("words", "before"))
    struck = f" [{fault.kind} at {fault.at}]" if fault else ""
    return f"{act.name}({said}){struck}{f' [clock {skew}]' if skew else ''}"


def _difference(one: Outcome, other: Outcome) -> str:
    return f"{one.how} {one.answer!r:.280} | {other.how} {other.answer!r:.280}"


def _first_difference(one: list[bytes], other: list[bytes]) -> Any:
    return next(((a, b) for a, b in zip(one, other, strict=False) if a != b), (len(one), len(other)))
