"""docs/reference/api.md: the public Python API by handle, with signatures, docstrings and the records that cross it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, get_args, get_origin

import muniment
from muniment import aio
from muniment.contracts.kinds import ALL_KINDS, record_of
from muniment.contracts.packet import ValidationState
from muniment.core.ports.models import Embedder, Ids, TokenCounter
from muniment.core.record import Record
from muniment.core.scope import RuleType, ScopeLevel, Trust
from muniment.handles.runner import Runner
from muniment.packets.builds import Build
from muniment.runs.snapshots import Resumed
from muniment.store.ledger import Role, StopReason
from muniment.surfaces.operations.rows import LOCAL, OPERATIONS
from muniment.surfaces.operations.signatures import public_members, signature_of
from muniment.surfaces.operations.table import SUBHANDLES, Handle, class_at
from reference.examples import examples
from reference.prose import first_paragraph, headed, member_fields, paragraphs

WIDTH = 100
EXAMPLES = examples()
ABOUT = (
    """
What is named here stays; everything else may change. `mem = muniment.open(…)` is a store, `run = mem.run(…)` one
run of an agent, and the other handles are made from a store. A run and a store have the verbs that most callers use;
what belongs to long runs, to learning, to the ledger and to upkeep is on handles of its own, such as `run.log`.""",
    """
Every handle raises [typed errors](errors.md): `InvalidInput` (and `InvalidRecord`, with every issue found) for what
cannot be read, `NotFound` for what is not in the scope, `Forgotten` for what was erased, a branch of `Conflict` where
the store says no, a branch of `StorageFailure` where the world does, `Closed` after `close()`. Where a method has more
to say of it, it does so below.""",
    """
`muniment.aio.open(…)` is the same thing with `await`: every handle has a twin (`AsyncMemory`, `AsyncRun`, …) whose
methods have the same names and arguments; iterators become `async for`. `muniment.connect(…)` is the same thing over
[HTTP](http.md): below each method stands its address, under that of its handle, or why it has none.""",
    """
Each method has an example; `# →` is what it prints. Examples follow on each other: `mem` and `run` are those of the
ones before. Whole programs: [library](examples/library.py), [documents, values, threads](examples/documents.py),
[learning and rules](examples/learning.py), [research](examples/research.py). The tests run them.""",
)
RECORDS = """
What methods take and answer. Records are frozen; `to_wire()` is a record as plain JSON data and `from_wire()`
reads it back. Where a method takes a record, it also takes the mapping. The documents of the contracts are in
[Schemas](schemas.md), the policy in [Settings](settings.md#the-policy).
"""
TYPES = """
Records use these names for plain values: `IdText` and `NonEmpty` are text that is not empty, `Timestamp` is text in ISO
8601, `Count` and `Revision` are whole numbers from 0 and 1, `Confidence` is a number from 0 to 1, `Items[T]` is a tuple
of any length, `Absent[T]` may be absent (`None` here, left out in JSON), `JsonValue` is any JSON. A `Clock` is a
function that answers the present as an aware datetime. The words that some arguments take:
"""
WORDS = {
    "Role": Role,
    "Trust": Trust,
    "ScopeLevel": ScopeLevel,
    "StopReason": StopReason,
    "ValidationState": ValidationState,
    "RuleType": RuleType,
}
PORTS: tuple[type, ...] = (Embedder, TokenCounter, Ids)
HANDLE_NAMES: dict[Handle, str] = {
    "memory": "mem",
    "run": "run",
    "corpus": "corpus",
    "study": "study",
    "bank": "bank",
    "rulebook": "book",
    "values": "values",
    "threads": "threads",
}


def _shown() -> Iterator[tuple[str, str]]:
    """Every handle by its place, and what it is called in examples; those that stand on another come after it."""
    for handle, name in HANDLE_NAMES.items():
        yield handle, name
        for place in SUBHANDLES:
            if place.startswith(f"{handle}."):
                yield place, f"{name}.{place.partition('.')[2]}"


def page() -> str:
    parts = (_contents(), _functions(), _handles(), _others(), _types(), _records())
    return "\n".join([*headed("Python API", *ABOUT), *(line for part in parts for line in part)])


def _contents() -> Iterator[str]:
    yield "Contents: [muniment](#muniment),"
    shown = {class_at(place).__name__: name for place, name in _shown()} | {each.__name__: "" for each in OTHERS}
    links = (f"[{name if '.' in name else cls}](#{cls.lower()})" for cls, name in shown.items())
    yield f"{', '.join(links)}, [Types](#types), [Records](#records).\n"


def _functions() -> Iterator[str]:
    yield "## muniment\n"
    yield from _method("muniment.open", muniment.open)
    yield from _method("muniment.connect", muniment.connect)
    yield from _method("muniment.wrap", muniment.wrap)
    yield "### muniment.aio\n"
    yield f"{paragraphs(aio.__doc__)}\n"


def _handles() -> Iterator[str]:
    for place, name in _shown():
        cls = class_at(place)
        yield f"## {cls.__name__}\n"
        yield f"{paragraphs(cls.__doc__)}\n"
        for member, method in public_members(cls).items():
            yield from _method(f"{name}.{member}", method, _address(place, member))


OTHERS: dict[type, str] = {Build: "build", Runner: "runner", Resumed: "resumed"}
"""What handles answer that can do something itself."""


def _others() -> Iterator[str]:
    for cls, name in OTHERS.items():
        yield f"## {cls.__name__}\n"
        yield f"{paragraphs(cls.__doc__)}\n"
        if cls is not Runner:
            yield from _fields(cls)
        for member, method in public_members(cls).items():
            yield from _method(f"{name}.{member}", method)


def _address(place: str, member: str) -> str:
    rows = [each for each in OPERATIONS if (each.place, each.call) == (place, member)]
    if f"{place}.{member}" in SUBHANDLES:
        cls = SUBHANDLES[f"{place}.{member}"].__name__
        return f"Its methods are [below](#{cls.lower()})."
    if not rows:
        return f"Not over HTTP: {LOCAL[f'{place}.{member}']}."
    asked = dict.fromkeys(f"`{each.method} /{each.path}`" for each in rows)
    return f"HTTP: {', '.join(asked)}"


def _method(name: str, method: Any, note: str = "") -> Iterator[str]:
    yield f"### {name}\n"
    if isinstance(method, property | cached_property):
        yield f"```py\n{name}: {_returned(_read_by(method))}\n```\n"
    else:
        yield f"```py\n{_call(name, method)}\n```\n"
    doc = paragraphs(method.__doc__)
    if doc:
        yield f"{doc}\n"
    if name in EXAMPLES:
        yield f"```py\n{EXAMPLES[name]}\n```\n"
    if note:
        yield f"{note}\n"


def _read_by(member: Any) -> Any:
    """The function behind a property; a method itself."""
    if isinstance(member, property):
        return member.fget
    return member.func if isinstance(member, cached_property) else member


def _returned(function: Any) -> str:
    return str(inspect.signature(function).return_annotation).replace("'", '"')


def _call(name: str, function: Callable[..., Any]) -> str:
    """A call as its caller writes it: on one line where it fits, else an argument a line."""
    told, starred = [], False
    for each in inspect.signature(function).parameters.values():
        if each.name == "self":
            continue
        if each.kind is each.KEYWORD_ONLY and not starred:
            told.append("*")
            starred = True
        default = "" if each.default is each.empty else f" = {each.default!r}"
        stars = "**" if each.kind is each.VAR_KEYWORD else ""
        told.append(f"{stars}{each.name}: {each.annotation}{default}")
    line = f"{name}({', '.join(told)}) -> {_returned(function)}"
    if len(line) <= WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {each},\n" for each in told) + f") -> {_returned(function)}"


# -- types and records --------------------------------------------------------------------------------


def _types() -> Iterator[str]:
    yield "## Types"
    yield TYPES
    for name, hint in WORDS.items():
        yield f"- `{name}`: {', '.join(f'`{each}`' for each in get_args(hint))}."
    yield "\nWhat callers may bring along, as objects of their own:\n"
    for port in PORTS:
        yield f"### {port.__name__}\n"
        yield f"{paragraphs(port.__doc__)}\n"
        yield "```py"
        for name, member in public_members(port).items():
            is_property = isinstance(member, property)
            line = f"{name}: {_returned(member.fget)}" if is_property else _call(name, member)
            yield f"# {first_paragraph(member.__doc__)}\n{line}"
        yield "```\n"


def _records() -> Iterator[str]:
    kinds = {record_of(kind): kind for kind in ALL_KINDS}
    handles = {*(class_at(place) for place, _ in _shown()), *OTHERS}
    yield "## Records"
    yield RECORDS
    for cls in sorted(_crossing() - handles, key=lambda each: each.__name__):
        if cls in kinds or cls is muniment.Policy or not member_fields(cls):
            continue
        yield f"### {cls.__name__}\n"
        if cls.__doc__ and not cls.__doc__.startswith(f"{cls.__name__}("):
            yield f"{paragraphs(cls.__doc__)}\n"
        yield from _fields(cls)


def _fields(cls: type) -> Iterator[str]:
    yield "```py"
    known = getattr(cls, "model_fields", None)
    for name, field in member_fields(cls).items():
        if (known is not None and name not in known) or name.startswith("_"):
            continue
        line = f"{name}: {' '.join(field.annotation.split())}"
        if not field.said:
            yield line
        elif len(line) + len(field.said) + 4 <= WIDTH:
            yield f"{line}  # {field.said}"
        else:
            yield from (f"# {field.said}", line)
    yield "```\n"


def _crossing() -> set[type]:
    """The classes of ours that stand in signatures of the handles."""
    found: set[type] = set()
    for place, _ in _shown():
        for name, member in public_members(class_at(place)).items():
            if (place, name) != ("memory", "runner"):  # takes functions of the caller's
                signature = signature_of(_read_by(member))
                for hint in (*(each.hint for each in signature.parameters), signature.returns):
                    _gather(hint, found)
    return found


def _gather(hint: Any, found: set[type]) -> None:
    for each in (hint, get_origin(hint)):
        if isinstance(each, type) and each.__module__.startswith("muniment."):
            is_plain = issubclass(each, Record | tuple) or hasattr(each, "__dataclass_fields__")
            found |= {each} if is_plain else set()
    for inner in get_args(hint):
        for each in inner if isinstance(inner, list) else (inner,):
            _gather(each, found)
