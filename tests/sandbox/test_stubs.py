"""An ordinary suite, judged from outside, says of ordinary code what it says of it in one process."""

from __future__ import annotations

import pytest

from effort import one_in
from muniment.verify.sandbox import Harness, run_harness
from muniment.verify.sandbox.bubblewrap import BubblewrapSandbox
from muniment.verify.sandbox.harness import beside_suite, module_names, roots_of, shadowed
from products import for_each

pytestmark = pytest.mark.req("RC-17")

CODE = """
import collections, decimal
MAX = 10
NAMES = ["a", "b"]
class Empty(IndexError):
    def __init__(self, where, code=3):
        super().__init__(f"empty: {where}"); self.code = code
class Worse(Empty): pass
class Stack:
    LIMIT = 7
    @staticmethod
    def double(x): return 2 * x
def pop(items):
    if not items: raise Empty("stack")
    return items.pop()
def sort(items): items.sort()
def same(items): return items
def nested(d): d["a"].append(1); d["b"] = 2
def hello(): print("hello")
def div(a, b): return a / b
def counts(t): return collections.Counter(t)
def kw(a, *, b=2, **c): return (a, b, c)
def boom(): raise Worse("x", code=7)
def isok(x): return x > 3
def cost(x): return decimal.Decimal(x) * 2
"""

SUITE = """
import pytest
from math import isclose
import solution
from solution import *
from solution import Empty, MAX

def test_const(): assert MAX == 10 and solution.MAX == 10 and NAMES == ["a", "b"]
def test_of_a_class(): assert solution.Stack.LIMIT == 7 and solution.Stack.double(4) == 8
def test_raises():
    with pytest.raises(Empty, match="empty: stack") as caught:
        pop([])
    assert isinstance(caught.value, IndexError)
    assert caught.value.code == 3
    with pytest.raises(IndexError): pop([])
    with pytest.raises(ZeroDivisionError): div(1, 0)
    with pytest.raises(TypeError): div(1)
    with pytest.raises(Empty) as c2: solution.boom()
    assert c2.value.code == 7
    with pytest.raises(solution.Worse): solution.boom()
def test_inplace():
    items = [3, 1, 2]
    assert sort(items) is None
    assert items == [1, 2, 3]
    assert same(items) is items
    inner = []
    d = {"a": inner}
    nested(d)
    assert inner == [1] and d == {"a": [1], "b": 2}
def test_print(capsys):
    hello()
    assert capsys.readouterr().out == "hello\\n"
def test_float(): assert div(1, 3) == pytest.approx(0.3333, abs=1e-3); assert isclose(div(1, 4), .25)
def test_counter(): assert counts("aab") == {"a": 2, "b": 1}; assert counts("aab").most_common(1) == [("a", 2)]
def test_isinstance():
    assert isinstance(counts("a"), dict)
    assert isinstance(MAX, int)
def test_kw(): assert kw(1, b=3, z=4) == (1, 3, {"z": 4})
def test_decimal(): from decimal import Decimal; assert cost("1.5") == Decimal("3.0")
@pytest.mark.parametrize(("n", "ok"), [(1, False), (4, True)])
def test_param(n, ok): assert isok(n) is ok
import unittest
class Unit(unittest.TestCase):
    def test_y(self):
        self.assertEqual(div(4, 2), 2)
        with self.assertRaises(Empty): pop([])
        self.assertTrue(isok(5))
"""


def judged(code: str, suite: str) -> tuple[str, str | None]:
    harness = Harness(pytest=("test_s.py",), files={"test_s.py": suite.encode()})
    result = run_harness(harness, {"solution.py": code.encode()}, trace_id="trc_1")
    return result.outcome, result.message if result.outcome != "FAIL" else None


def test_an_ordinary_suite_passes(bwrap: str) -> None:
    assert judged(CODE, SUITE) == ("OK", None)


BREAKS = {
    "a constant": ("MAX = 10", "MAX = 11"),
    "a result": ("return items.pop()", "return items.pop(0)"),
    "an exception": ('raise Empty("stack")', 'raise KeyError("stack")'),
    "an attribute of one": ("code=7", "code=8"),
    "its class": ("class Worse(Empty)", "class Worse(KeyError)"),
    "what is done to a list": ("items.sort()", "items.reverse()"),
    "the same list": ("return items\n", "return list(items)\n"),
    "what is printed": ('print("hello")', 'print("hullo")'),
    "what a class does": ("return 2 * x", "return 3 * x"),
    "a count": ("collections.Counter(t)", "collections.Counter(t[1:])"),
}


@pytest.mark.soak
@for_each("name", one_in(3, list(BREAKS)))
def test_ordinary_code_that_is_wrong_fails(bwrap: str, name: str) -> None:
    before, after = BREAKS[name]
    assert before in CODE
    assert judged(CODE.replace(before, after, 1), SUITE) == ("FAIL", None)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("code", "test"),
    [
        ("class P:\n    def __eq__(self, other):\n        return True\n", "assert solution.P() == solution.P()"),
        ("def f():\n    return open(__file__).read()\n", "assert solution.f() == open('solution.py').read()"),
        ("import random\ndef f():\n    return random.random()\n", "import random; random.seed(1); a = solution.f(); "
         "random.seed(1); assert a == solution.f()"),
    ],
    ids=["objects compared", "files shared", "state shared"],
)  # fmt: skip
def test_what_plain_values_cannot_show_is_unknown_not_failed(bwrap: str, code: str, test: str) -> None:
    """Code that is right in one process is never called wrong because it was judged from outside."""
    outcome, message = judged(code, f"import solution\n\n\ndef test_x():\n    {test}\n")
    assert outcome == "UNKNOWN"
    assert (message or "").startswith("not judged: ")


def test_packages_and_folders(bwrap: str) -> None:
    """Modules of a package, beside helpers of the suite that import them too."""
    output = {"shop/__init__.py": b"", "shop/cart/total.py": b"def total(items):\n    return sum(items)\n"}
    suite = {
        "tests/helpers.py": b"from shop.cart.total import total\n\n\ndef twice(items):\n    return 2 * total(items)\n",
        "tests/conftest.py": b"import pytest\n\n\n@pytest.fixture\ndef items():\n    return [1, 2]\n",
        "tests/test_total.py": b"import shop.cart.total as module\nfrom helpers import twice\n\n\n"
        b"def test_total(items):\n    assert module.total(items) == 3\n    assert twice(items) == 6\n",
    }
    result = run_harness(Harness(pytest=("tests",), files=suite), output, trace_id="trc_1")
    assert result.outcome == "OK", result.seen[-1].stdout


def test_a_sandbox_that_cannot_be_joined_decides_nothing(bwrap: str) -> None:
    class Plain:
        """A session of another make: it knows commands alone."""

        def __init__(self, session: object) -> None:
            self._session = session

        def __enter__(self) -> object:
            return self

        def __exit__(self, *exc: object) -> None:
            self._session.close()  # type: ignore[attr-defined]

    class Other:
        def open(self, policy: object, files: object = None, *, trace_id: str) -> Plain:
            return Plain(BubblewrapSandbox().open(policy, files, trace_id=trace_id))  # type: ignore[arg-type]

    harness = Harness(pytest=("test_s.py",), files={"test_s.py": b"def test_x():\n    pass\n"})
    result = run_harness(harness, {}, trace_id="trc_1", sandbox=Other())  # type: ignore[arg-type]
    assert (result.outcome, result.reason_codes) == ("UNKNOWN", ("exec_unavailable",))
    assert "joined" in (result.message or "")


def test_which_modules_are_the_outputs() -> None:
    suite = ["tests/test_a.py", "tests/helpers.py", "data/x.json"]
    output = [
        "a.py",
        "pkg/mod.py",
        "tests/near.py",
        "tests/helpers.py",
        "json.py",
        "conftest.py",
        "pytest/x.py",
        "no-name.py",
    ]
    assert module_names(output, suite) == ("a", "near", "pkg", "pkg.mod", "tests.near")
    assert roots_of(suite) == (".", "tests")
    assert shadowed(["json.py", "heapq.py"], {"test_a.py": b"import json.decoder\nfrom . import heapq\n"}) == ("json",)
    assert shadowed(["a.py"], {"test_a.py": b"def broken("}) == ()


def test_what_may_lie_beside_a_suite() -> None:
    kept = {"a.py": b"", "pkg/b.py": b"", "data.json": b"", "my_pytest_notes.txt": b""}
    gone = [
        "conftest.py", "pkg/conftest.py", "pytest.py", "pytest/__init__.py", "pytest_x.py", "_pytest/a.py", "pluggy.py",
        "pytest.ini", "sub/tox.ini", "setup.cfg", "pyproject.toml", "sitecustomize.py", "usercustomize/__init__.py",
        "x.pth", "__pycache__/a.pyc", "x.dist-info/entry_points.txt", "pkg/x.pyc", "conftest/__init__.py",
    ]  # fmt: skip
    assert beside_suite(kept | dict.fromkeys(gone, b"")) == kept
