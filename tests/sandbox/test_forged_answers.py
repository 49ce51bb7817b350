"""Code that is wrong and answers the tests themselves: the wanted value is put to an object of its own, which agrees.

`abs(found - 0.3) < 1e-9` hands the wanted value to whatever `found` is. So do `wanted ^ found`, `found.startswith(…)`
and a check inside a function that the code is handed. None of these may be a pass; classes with operators still are.
"""

from __future__ import annotations

import pytest

from muniment.contracts.sandbox import SandboxPolicy
from muniment.verify.sandbox import Harness, HarnessResult, run_harness
from muniment.verify.sandbox.suite_files import shadowed

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
class Money:
    def __init__(self, amount):
        self.amount = amount
    def __sub__(self, other):
        return Money(self.amount - other)
    def __str__(self):
        return f"{self.amount:.2f}"
def tell(act):
    act(3)
def each(act, values):
    return [act(value) for value in values]
"""

STILL_JUDGED = (
    "assert abs(s.Vector(3, 4)) == 5 and tuple(s.Vector(1, 2) * 2) == (2, 4) and (2 * s.Vector(1, 2)).y == 4",
    "assert abs(s.Vector(4, 6) - s.Vector(1, 2)) == 5 and (s.Vector(1, 2) + s.Vector(1, 2)).x == 2",
    "assert s.Vector(1, 2) @ [3, 4] == 11",
    "left = s.Money(5) - 3\n    assert left.amount == 2 and str(left) == '2.00'",
    "seen = []\n    s.tell(seen.append)\n    assert seen == [3]",
    "def check(x):\n        assert x > 0\n        return -x\n    assert s.each(check, [1, 2]) == [-1, -2]",
)


def run(code: str, body: str) -> HarnessResult:
    test = f"import pytest\nimport solution as s\n\n\ndef test_it():\n    {body}\n"
    harness = Harness(pytest=("test_it.py",), files={"test_it.py": test.encode()}, policy=SMALL)
    return run_harness(harness, {"solution.py": code.encode()}, trace_id="trc_1")


@pytest.mark.parametrize("name", list(ASKED))
def test_an_object_that_is_told_what_is_wanted_does_not_pass_by_agreeing(bwrap: str, name: str) -> None:
    result = run(AGREES, ASKED[name])
    assert result.judge == "external_process"
    assert result.outcome != "OK", result.seen[-1].stdout


@pytest.mark.parametrize("body", STILL_JUDGED)
def test_operators_and_callbacks_of_honest_code_are_still_judged(bwrap: str, body: str) -> None:
    result = run(SOUND, body)
    assert (result.outcome, result.message) == ("OK", None)


@pytest.mark.parametrize("name", ["numpy", "hypothesis", "pandas", "hamcrest", "unittest"])
def test_what_a_suite_compares_with_is_not_taken_from_the_output(name: str) -> None:
    suite = {"test_it.py": f"import {name}.testing as t\n\n\ndef test_it():\n    t.assert_equal(1, 2)\n".encode()}
    assert shadowed([f"{name}/__init__.py", f"{name}/testing.py"], suite) == (name,)
    assert shadowed([f"{name}.py"], {"test_it.py": b"import solution\n"}) == ()
