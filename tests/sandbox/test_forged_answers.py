"""Code that is wrong and answers the tests themselves: the wanted value is put to an object of its own, which agrees.

`abs(found - 0.3) < 1e-9` hands the wanted value to whatever `found` is. So do `wanted ^ found`, `found.startswith(…)`
and a check inside a function that the code is handed. None of these may be a pass: an object of the code is UNKNOWN.
"""

from __future__ import annotations

import pytest

from effort import one_in
from muniment.contracts.runs import SandboxPolicy
from muniment.verify.sandbox import Harness, HarnessResult, run_harness
from muniment.verify.sandbox.harness import shadowed
from products import for_each

pytestmark = pytest.mark.req("RC-17", "RC-25")

SMALL = SandboxPolicy.from_wire({"schema_version": "0.5.15", "caps": {"wall_ms": 30_000, "cpu_ms": 20_000}})

AGREES = """
def zero(self, *others):
    return 0.0
def none(self, *others):
    return set()
def yes(self, *others):
    return True
class Number:
    __sub__ = __rsub__ = __add__ = __radd__ = __mod__ = __rmod__ = __floordiv__ = __abs__ = __float__ = __round__ = zero
    def __truediv__(self, other):
        return 1.0
class Later:
    def __sub__(self, other):
        return Number()
    __rsub__ = __sub__
class Group:
    __sub__ = __rsub__ = __xor__ = __rxor__ = symmetric_difference = difference = none
    issubset = issuperset = isdisjoint = startswith = endswith = yes
class Empty:
    def __init__(self, size=0):
        self.size = size
    def __sub__(self, other):
        return Empty()
    __rsub__ = __xor__ = __rxor__ = __sub__
    def __len__(self):
        return self.size
    def __iter__(self):
        return iter(())
class Kept(Number):
    def __sub__(self, other):
        return self
    __rsub__ = __truediv__ = __mul__ = __rmul__ = __sub__
    def __pow__(self, by):
        return 0.0
    def __float__(self):
        return 100.0
class Near:
    def __init__(self, share):
        self.share = share
    def __sub__(self, other):
        return other * self.share
    def __truediv__(self, other):
        return 1 + self.share
    def __mod__(self, other):
        return 0.25
    def __and__(self, other):
        return other
    __or__ = __and__
class Far:
    def __sub__(self, other):
        return 50
    __rsub__ = __sub__
class Farther(Far):
    def __sub__(self, other):
        return self
    __rsub__ = __sub__
    def __float__(self):
        return 50.0
def far():
    return Far()
def farther():
    return Farther()
class Rows:
    def __sub__(self, other):
        return [0.0 for _ in other]
    def __rsub__(self, other):
        return {key: 0.0 for key in other}
    def __add__(self, other):
        return (Number(), Number())
class Lost:
    def __sub__(self, other):
        return float("nan")
import sys, types
class Posing(types.ModuleType):
    startswith = issubset = lambda self, *others: True
def startswith(*others):
    return True
def posing():
    return Posing("posing")
def itself():
    return sys.modules[__name__]
def a_class():
    return Agreeing
class Agreeing:
    @staticmethod
    def startswith(*others):
        return True
class greet:
    def __init__(self, *given):
        pass
    def startswith(self, *others):
        return True
Greeting = greet
one = Agreeing()
class Once:
    def __new__(cls):
        return one
def once():
    return one
def listed():
    return [one]
def kept(*given):
    return Kept()
def near(share):
    return Near(share)
def rows(*given):
    return Rows()
def lost(*given):
    return Lost()
def number(*given):
    return Number()
def later(*given):
    return Later()
def group(*given):
    return Group()
def empty(*given):
    return Empty(2)
def each(act, values):
    for value in values:
        try:
            act(-value)
        except BaseException:
            pass
"""

ASKED = {
    "difference": "assert abs(s.number(0.1, 0.2) - 0.3) < 1e-9",
    "difference the other way": "assert abs(0.3 - s.number(0.1, 0.2)) < 1e-9",
    "difference of the denial": "assert abs(-0.3 + s.number(0.1, 0.2)) < 1e-9",
    "difference of a difference": "assert abs(s.later(1, 2) - 3) < 1e-9",
    "rounded difference": "assert round(s.later(1, 2) - 3, 7) == 0",
    "float of a difference": "assert float(s.later(1, 2) - 3) == 0",
    "remainder": "assert s.number(1, 2) % 3 == 0",
    "quotient": "assert s.number(1, 2) / 3 == 1",
    "set difference": "assert s.group() - {1, 2} == set() and {1, 2} - s.group() == set()",
    "symmetric difference": "assert not {1, 2} ^ s.group()",
    "method of sets": "assert s.group().issubset({1, 2}) and s.group().issuperset({1, 2})",
    "difference by name": "assert not s.group().difference({1, 2})",
    "method of texts": "assert s.group().startswith('Dear Ana') and s.group().endswith('Bob')",
    "size of a difference": "assert len(s.empty() - {1, 2}) == 0",
    "nothing in a difference": "assert list({1, 2} ^ s.empty()) == []",
    "truth of a difference": "assert not (s.empty() - {1, 2})",
    "a wide tolerance": "assert abs(s.near(0.3) - 100) < 40",
    "a tolerance of one": "assert abs(s.near(0.25) - 4) <= 1",
    "a share": "assert abs(s.near(0.1) / 3 - 1) < 0.2",
    "a range": "assert s.far() - 3 > 0 and 10 - s.far() > 0",
    "a range of objects": "assert float(s.farther() - 3) > 0 and float(10 - s.farther()) > 0",
    "nearly a multiple": "assert s.near(0.1) % 5 < 0.5",
    "within": "assert s.near(0) & {1, 2} == {1, 2}",
    "nothing more": "assert s.near(0) | {1, 2} == {1, 2}",
    "bits": "assert s.near(0) & 6 == 6",
    "row of differences": "assert all(abs(each) < 1e-9 for each in s.rows() - [1, 2])",
    "mapping of differences": "assert not any(({'a': 1} - s.rows()).values())",
    "row of objects": "assert all(abs(each) < 1e-9 for each in s.rows() + [-1, -2])",
    "no number": "assert not abs(s.lost() - 3) > 1e-9",
    "square of a difference": "assert (s.kept() - 3) ** 2 < 1e-9",
    "relative difference": "assert abs(s.kept() - 3) / 3 < 0.01",
    "per cent": "assert float(s.kept() / 3 * 100) == 100",
    "an object that poses as a module": "assert s.posing().startswith('Dear Ana')",
    "the module for an answer": "assert s.itself().startswith('Dear Ana')",
    "a class for an answer": "assert s.a_class().startswith('Dear Ana')",
    "a class that was named, for an answer": "s.Agreeing\n    assert s.a_class().startswith('Dear Ana')",
    "a class for a function": "assert s.greet('Ana').startswith('Dear Ana')",
    "a class for a function, by two names": "s.Greeting\n    assert s.greet('Ana').startswith('Dear Ana')",
    "an object made before": "s.Once()\n    assert s.once().startswith('Dear Ana')",
    "an object made after": "found = s.once()\n    s.Once()\n    assert found.startswith('Dear Ana')",
    "an object made before, in a list": "s.Once()\n    assert s.listed()[0].startswith('Dear Ana')",
    "an object made before, by its name": "s.Once()\n    assert s.one.startswith('Dear Ana')",
    "check in a function handed over": "def positive(x):\n        assert x > 0\n    s.each(positive, [1, 2])",
    "failure in a function handed over": "def never(x):\n        pytest.fail('no')\n    s.each(never, [1, 2])",
}

SOUND = """
class Vector:
    def __init__(self, x, y):
        self.x, self.y = x, y
    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)
    def __sub__(self, other):
        return Vector(self.x - other.x, self.y - other.y)
    def __mul__(self, by):
        return Vector(self.x * by, self.y * by)
    __rmul__ = __mul__
    def __matmul__(self, other):
        return self.x * other[0] + self.y * other[1]
    def __abs__(self):
        return (self.x ** 2 + self.y ** 2) ** 0.5
    def __iter__(self):
        return iter((self.x, self.y))
def difference(a, b):
    return a - b
def startswith(text, by):
    return text[: len(by)] == by
class Trie:
    def __init__(self, *words):
        self.words = words
    def startswith(self, by):
        return any(word[: len(by)] == by for word in self.words)
class Bag:
    def __init__(self, *held):
        self.held = set(held)
    def issubset(self, other):
        return self.held <= set(other)
    def difference(self, other):
        return self.held - set(other)
    def __and__(self, other):
        return self.held & other
    def __or__(self, other):
        return self.held | other
    def __sub__(self, other):
        return self.held - other
    __xor__ = lambda self, other: self.held ^ other
import enum
class Level(enum.IntEnum):
    NONE = 0
    LOW = 1
    HIGH = 3
def tell(act):
    act(3)
"""

STILL_JUDGED = (
    "from solution import difference\n    assert difference(7, 3) == 4 and s.difference(3, 3) == 0",
    "assert s.startswith('apple', 'app') and not s.startswith('apple', 'b')",
)
UNDECIDED = (
    "assert abs(s.Vector(3, 4)) == 5 and tuple(s.Vector(1, 2) * 2) == (2, 4)",
    "assert s.Trie('apple').startswith('app') and not s.Trie('apple').startswith('b')",
    "assert s.Bag(1, 2) & {2, 3} == {2} and s.Bag(1) | {2} == {1, 2}",
    "assert s.Level.HIGH + 1 == 4 and s.Level.NONE + 1 == 1",
    "seen = []\n    s.tell(seen.append)\n    assert seen == [3]",
    "assert s.difference != 3",
    "assert s.startswith",
    "s.startswith = lambda text, by: True\n    assert s.startswith('apple', 'app')",
)


def run(code: str, body: str) -> HarnessResult:
    test = f"import pytest\nimport solution as s\n\n\ndef test_it():\n    {body}\n"
    harness = Harness(pytest=("test_it.py",), files={"test_it.py": test.encode()}, policy=SMALL)
    return run_harness(harness, {"solution.py": code.encode()}, trace_id="trc_1")


@for_each("name", one_in(5, list(ASKED)))
def test_an_object_that_is_told_what_is_wanted_does_not_pass_by_agreeing(bwrap: str, name: str) -> None:
    result = run(AGREES, ASKED[name])
    assert result.judge == "external_process"
    assert result.outcome != "OK", result.seen[-1].stdout


def test_functions_of_plain_values_are_judged(bwrap: str) -> None:
    for body in STILL_JUDGED:
        result = run(SOUND, body)
        assert (result.outcome, result.message) == ("OK", None), body


@for_each("body", one_in(3, list(UNDECIDED)))
def test_what_needs_an_object_of_the_code_is_unknown(bwrap: str, body: str) -> None:
    result = run(SOUND, body)
    assert result.outcome == "UNKNOWN", result.seen[-1].stdout
    assert (result.message or "").startswith("not judged: ")


@for_each("name", ["numpy", "hypothesis", "pandas", "hamcrest", "unittest"])
def test_what_a_suite_compares_with_is_not_taken_from_the_output(name: str) -> None:
    suite = {"test_it.py": f"import {name}.testing as t\n\n\ndef test_it():\n    t.assert_equal(1, 2)\n".encode()}
    assert shadowed([f"{name}/__init__.py", f"{name}/testing.py"], suite) == (name,)
    assert shadowed([f"{name}.py"], {"test_it.py": b"import solution\n"}) == ()
