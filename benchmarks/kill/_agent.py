"""A scripted agent that knows only what is on a page, the world it acts on, and tasks whose end states are known.

The world says which things there are and acts on one when it is told to. It does not say which are done: that the
agent has to know. A user holds things back, lets them go again, and holds some back anew. Between two actions the agent
looks at things nobody needs. It can be stopped after each act and each word that is recorded; so it says what it is
about to do, and whoever resumes it asks the world about that one thing.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple


class Family(NamedTuple):
    """Tasks of one kind: what is done to what, and what the agent looks at meanwhile."""

    name: str
    act: str
    argument: str
    item: str
    done: str
    looks: tuple[str, ...]
    hold: str
    release: str


FAMILIES = (
    Family("tables", "migrate_table", "table", "tbl_{:03}", "migrated {} rows", ("show_locks", "table_stats"),
           "Do not migrate {} for now.", "You can migrate {} now."),
    Family("invoices", "send_invoice", "invoice", "INV-{:04}", "sent, receipt {}", ("open_customer", "exchange_rate"),
           "Hold {} back, the customer complained.", "{} is settled, so send it."),
    Family("hosts", "upgrade_host", "host", "node-{:02}.rack", "upgraded, build {}", ("read_load", "list_processes"),
           "Leave {} alone, it runs an experiment.", "The experiment on {} is over, upgrade it."),
    Family("seeds", "sow_plot", "plot", "plot {:02}B", "sown with {} seeds", ("soil_probe", "forecast"),
           "Nothing goes into {} yet.", "Please sow {} as well."),
    Family("tickets", "answer_ticket", "ticket", "#{:05}", "answered, note {}", ("search_articles", "read_history"),
           "Wait with {} until legal replies.", "Legal is fine with {}, answer it."),
)  # fmt: skip


class Turn(NamedTuple):
    """What is recorded: somebody's words, or a call and its result."""

    role: str
    text: str
    tool: str = ""
    args: dict[str, Any] | None = None
    ok: bool = True

    @property
    def line(self) -> str:
        if not self.tool:
            return f"{self.role}: {self.text}"
        args = ", ".join(f"{key}={value}" for key, value in (self.args or {}).items())
        return f"{self.tool}({args}){'' if self.ok else ' failed'} → {self.text}"


class Task:
    """A family with so many things, who is held back when, and what the world should be in the end."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self.seed = seed
        self.family = FAMILIES[seed % len(FAMILIES)]
        self.items = [
            self.family.item.format(number) for number in chance.sample(range(1, 100), chance.randint(14, 30))
        ]
        later = self.items[len(self.items) // 3 :]
        held = chance.sample(later, 4)
        self.orders: list[tuple[int, str]] = [(chance.randint(1, 3), self.family.hold.format(item)) for item in held]
        last = len(self.items) - 1
        self.orders += [(chance.randint(4, last - 2), self.family.release.format(item)) for item in held[:3]]
        self.orders.append((last - 1, self.family.hold.format(held[0])))
        self.orders.sort(key=lambda order: order[0])
        self.flaky = set(chance.sample(self.items, 3))
        """These fail once before they succeed."""


class Stopped(Exception):
    """The agent was stopped here."""


class World:
    """What was done, by how often; acting has consequences that cannot be taken back."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.done: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.asked = 0
        """How many of the user's orders were given."""
        self.disobeyed = 0
        """Acts on what the user had held back."""

    def copy(self) -> World:
        other = World(self.task)
        other.done, other.failed = self.done.copy(), self.failed.copy()
        other.asked, other.disobeyed = self.asked, self.disobeyed
        return other

    def act(self, item: str) -> Turn:
        family = self.task.family
        args = {family.argument: item, "batch": self.task.seed}
        if item in self.task.flaky and not self.failed[item]:
            self.failed[item] += 1
            return Turn("tool", "busy, try again", family.act, args, ok=False)
        self.done[item] += 1
        self.disobeyed += self.is_held(item)
        return Turn("tool", family.done.format(1000 + self.task.seed + len(self.done)), family.act, args)

    def is_held(self, item: str) -> bool:
        """By the newest of the orders that were given."""
        family = self.task.family
        for _, order in reversed(self.task.orders[: self.asked]):
            if order in (family.hold.format(item), family.release.format(item)):
                return order == family.hold.format(item)
        return False

    def look(self, chance: random.Random) -> Turn:
        tool = chance.choice(self.task.family.looks)
        rows = "\n".join(
            f"{n:>3} {chance.randrange(10**6):06x} {chance.random():.3f}" for n in range(chance.randint(4, 14))
        )
        return Turn("tool", rows, tool, {"page": chance.randrange(1000)})

    def next_order(self) -> Turn | None:
        """The user's next order, once enough is done."""
        if self.asked < len(self.task.orders) and len(self.done) >= self.task.orders[self.asked][0]:
            self.asked += 1
            return Turn("user", self.task.orders[self.asked - 1][1])
        return None


Record = Callable[[Turn], None]


class Agent:
    """Goes through the things of a task. `page` is what it was handed when it began; what it does is added to it."""

    def __init__(self, world: World, page: str, record: Record, stop_at: int | None = None) -> None:
        self.world, self.record, self.stop_at = world, record, stop_at
        self.lines = page.splitlines()[::-1] if stop_at is None else []
        """Newest first, as far as the page says."""
        self.own: list[str] = []
        self.moments = 0

    @classmethod
    def resumed(cls, world: World, page: str, record: Record, *, newest_first: bool) -> Agent:
        agent = cls(world, page, record)
        if newest_first:
            agent.lines.reverse()
        return agent

    def run(self) -> None:
        task, chance = self.world.task, random.Random(self.world.task.seed)
        for item in task.items:
            if self.is_begun(item) and not self.is_done(item) and self.world.done[item]:
                self.note(Turn("tool", "it was done", task.family.act, {task.family.argument: item}))
        for _ in range(40 * len(task.items)):
            while (order := self.world.next_order()) is not None:
                self.note(order)
            open_items = [item for item in task.items if not self.is_done(item) and not self.is_held(item)]
            if not open_items:
                return
            for _ in range(chance.randint(2, 5)):
                self.note(self.world.look(chance))
            self.note(Turn("assistant", self.intent(open_items[0])))
            turn = self.world.act(open_items[0])
            self.moment()
            self.note(turn)

    def note(self, turn: Turn) -> None:
        self.record(turn)
        self.own.append(turn.line)
        self.moment()

    def moment(self) -> None:
        self.moments += 1
        if self.moments == self.stop_at:
            raise Stopped

    def intent(self, item: str) -> str:
        return f"Now {self.world.task.family.act} {item}."

    def is_begun(self, item: str) -> bool:
        """Does the page say that it was about to be done? Then the world is asked about it first."""
        return any(self.intent(item) in line for line in self.lines)

    def is_done(self, item: str) -> bool:
        """Is there a line that says so?"""
        said = re.compile(rf"{self.world.task.family.act}\([^)]*{re.escape(item)}\b[^)]*\)(?! failed) →")
        return any(said.search(line) for line in (*self.own, *self.lines))

    def is_held(self, item: str) -> bool:
        """What the newest line that names it, and is an order, says of it last."""
        family = self.world.task.family
        hold, release = family.hold.format(item), family.release.format(item)
        for line in (*reversed(self.own), *self.lines):
            at, off = line.rfind(hold), line.rfind(release)
            if at >= 0 or off >= 0:
                return at > off
        return False


class Outcome(NamedTuple):
    """How a task ended for one arm."""

    doubled: int
    disobeyed: int
    """Things that were done while they were held back."""
    lost: int
    """Things done and recorded before the stop that the page does not show as done."""
    missing: int

    @property
    def is_right(self) -> bool:
        return not any(self)


def go_on(task: Task, world: World, page: str, known_done: set[str], *, newest_first: bool) -> Outcome:
    """Resume an agent from this page in a copy of the world, and let it finish."""
    world = world.copy()
    agent = Agent.resumed(world, page, lambda _turn: None, newest_first=newest_first)
    lost = sum(not agent.is_done(item) for item in known_done)
    agent.run()
    wanted = {item for item in task.items if not world.is_held(item)}
    return Outcome(
        doubled=sum(count - 1 for count in world.done.values()),
        disobeyed=world.disobeyed,
        lost=lost,
        missing=len(wanted - set(world.done)),
    )
