"""What lasts of a person and bears on advice, beyond what becomes a fact: read by the same guards."""

from __future__ import annotations

from muniment.memory.extraction.standing import propose_standing
from products import for_each

READ = """
We write everything in Go here. = stack
All our services run on AWS. = stack
I use Linux for everything. = stack
Our frontend is written in TypeScript with React. = stack
Our team works in Python. = stack
We don't use Docker. = stack
We already run PostgreSQL. = stack
We are a team of three developers. = team
Our data must stay in the EU. = constraint
The app has to work offline. = constraint
We have to comply with GDPR. = constraint
We aren't allowed to use the cloud. = constraint
I'm afraid of flying. = limit
I don't do well in the heat. = limit
I can't swim. = limit
My mother uses a wheelchair. = limit
I have small hands. = limit
I work night shifts. = schedule
I only have time before work. = schedule
Our budget for groceries is about 120 euros a week. = budget
I can't afford more than 300 euros. = budget
Money is tight at the moment. = budget
I have $40 for it. = budget
We don't own a car. = lacks
"""
NOTHING = """
Should we write it in Java?
If we use Java we are lost.
We might use Rust.
We used Java before.
We had to use Java.
My colleague said we use Rust.
They write everything in Go.
If our data must stay in the EU, which cloud works?
Would we have to comply with GDPR?
My boss is afraid of flying too.
If I'm afraid of flying, what then?
I'm afraid of what comes.
I wish I could swim.
I run every morning.
I can't go to the party.
Is our budget 500 euros?
The shop can't sell a car.
Does anybody work night shifts?
"We write everything in Go", it said.
```
We write everything in Go.
```
"""


def keys(text: str, role: str = "user") -> set[str]:
    return {each.key.removeprefix("user.") for each in propose_standing(text, role, "2026-01-01T00:00:00Z")}


@for_each("line", READ.strip().splitlines())
def test_what_lasts_is_read(line: str) -> None:
    text, _, wanted = line.partition(" = ")
    assert keys(text) == {wanted}
    assert not keys(text, "assistant")
    assert all(each.quote in text for each in propose_standing(text, "user", "2026-01-01T00:00:00Z"))


@for_each("text", NOTHING.strip().partition("```")[0].strip().splitlines())
def test_what_is_asked_supposed_past_or_anothers_is_not(text: str) -> None:
    assert not keys(text)


def test_code_says_nothing_of_anybody() -> None:
    assert not keys("```\nWe write everything in Go.\n```")


def test_a_list_of_many_is_nobodys_plain_word() -> None:
    assert not keys(" ".join(f"We use Docker in project {number}." for number in range(40)))
