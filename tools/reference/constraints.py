"""docs/reference/constraints.md: every kind of constraint, its fields, and an example that is run as written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

from muniment.testing.constraint_examples import EXAMPLES, PolitenessJudge
from muniment.verify._constraint import KINDS, Bounds, Constraint
from muniment.verify.constraint_files import read_constraints, to_plain
from muniment.verify.constraints import evaluate
from muniment.verify.outputs import read_output
from reference.prose import first_paragraph, headed, table

ABOUT = (
    """
A constraint file is a list in YAML, one line for each thing that must hold. `muniment check init FILE` writes a first
one, `muniment check FILE OUTPUT...` holds outputs against it, and `run.verify(…, constraints=…)` and regression packs
read the same lines. Below stands every kind: what it asks, its fields, a line of a file, an output that holds to it,
and one that does not, with what is said of it. The examples are run when this page is written.""",
    """
Every kind takes three fields more: `severity` (`fatal`, which fails, or `minor`, which leaves it PARTIAL), `key` and
`reason` (registered words of your own, under `register`). They stand beside the kind, as in
`- contains: thanks` with `severity: minor` on the next line. A field that can be given alone is marked with a star:
`- contains: thanks` is `- contains: {texts: [thanks]}`.""",
    """
An output is a text; or an object with `text` and what is known of the run; or a model's answer as it came, with
OpenAI's `tool_calls`. What nobody recorded does not hold: `tool_not_called` fails on a text, because nobody says which
tools were called. A name that is no kind, and a `rubric` where there is no grader, are errors that name it.""",
)
PACK = """\
## Cases

A file with `cases` is a pack: each case has a prompt and constraints of its own, `{{name}}` stands for a variable, and
`data` makes a case of each row (or names a file of JSON lines).

```yaml
name: support bot
constraints:                      # of every case
  - personal_data: {allow: [help@shop.example]}
  - words: {max: 80}
repeats: 5                        # each case is asked so often
least: 0.5                        # the lower bound of its pass rate (Wilson, 95 %); without it every answer must pass
cases:
  - id: order
    prompt: "Where is my order {{number}}?"
    data: [{number: 1234}, {number: 88}]
    constraints:
      - contains: "{{number}}"
      - tool_arguments: {tool: find_order, equals: {number: "{{number}}"}}
      - budget: {of: latency_ms, max: 5000}
```

    muniment check pack.yaml --agent bot:answer --save last.json --junit report.xml
    muniment check pack.yaml --agent bot:answer --baseline last.json
    muniment check pack.yaml answers.jsonl

The agent is a function of a test (`test.prompt`); answers in a file carry the `id` of their case, several lines with
one id are repeats. With `--baseline` a case fails that was good in that report and is not now. `--grader URL#NAME`
answers rubrics: any server that speaks OpenAI's chat.
"""
_GROUPS = (
    ("Form", ("FORMAT:",)),
    ("What it says", ("CONTENT:", "SCHEMA")),
    ("How it was made", ("TOOL:", "POLICY:", "MEMORY:")),
)
_GENERAL = ("key", "severity", "reason")
_BOUNDS = tuple(Bounds.model_fields)


def page() -> str:
    lines = list(headed("Constraints", *ABOUT))
    for title, prefixes in _GROUPS:
        kinds = [kind for kind in KINDS.values() if kind.KEY.startswith(prefixes)]
        lines += [f"## {title}\n", ", ".join(f"[`{kind.NAME}`](#{kind.NAME})" for kind in kinds), ""]
        for kind in kinds:
            lines += _kind(kind)
    return "\n".join([*lines, PACK])


def _kind(kind: type[Constraint]) -> Iterator[str]:
    yield f"### {kind.NAME}\n"
    yield f"{first_paragraph(kind.__doc__)} Violated, it is `{kind.KEY}`, for the reason `{kind.REASON}`.\n"
    shared = (*_GENERAL, *(_BOUNDS if issubclass(kind, Bounds) else ()))
    fields = [name for name in kind.model_fields if name not in shared]
    rows = [_field(kind, name) for name in fields]
    if issubclass(kind, Bounds):
        rows.append(("`min`, `max`, `exactly`, `more_than`, `less_than`", "whole numbers", _needed(kind)))
    if rows:
        yield from table(("field", "is", "default"), rows)
    given, holds, breaks = EXAMPLES[kind.NAME]
    constraint = kind(**given)
    yield f"```yaml\n{line_of(constraint)}\n```\n"
    asked = read_constraints(line_of(constraint)).constraints
    (good,) = evaluate(read_output(holds), asked, PolitenessJudge())
    (bad,) = evaluate(read_output(breaks), asked, PolitenessJudge())
    if not good.ok or bad.ok:
        raise SystemExit(f"the example of {kind.NAME} does not show what it should")
    yield f"Holds: `{_shown(holds)}`. Does not: `{_shown(breaks)}`: {_cut(bad.message)}.\n"


def _needed(kind: type[Bounds]) -> str:
    return "one of them is wanted" if kind.NEEDS_BOUND else "absent"


def _field(kind: type[Constraint], name: str) -> tuple[str, str, str]:
    field = kind.model_fields[name]
    star = "*" if name == kind.SHORT else ""
    default = "wanted" if field.is_required() else "absent" if field.default is None else _value(field.default)
    return f"`{field.alias or name}`{star}", _type(field.annotation), default


def _type(annotation: Any) -> str:
    """The type of a field in plain words."""
    parts = [each for each in get_args(annotation) if each is not type(None) and each is not Ellipsis]
    text = str(annotation)
    if "Literal" in text and "tuple" not in text:
        options = get_args(parts[0]) if parts and get_args(parts[0]) else parts
        return "one of " + ", ".join(f"`{each}`" for each in options)
    if "tuple" in text:
        inner = parts[0] if parts else Any
        if "Literal" in str(inner):
            return "list of " + ", ".join(f"`{each}`" for each in get_args(inner))
        return "list of constraints" if "Any" in str(inner) else "list of texts"
    words = {"dict": "object", "bool": "true or false", "float": "number", "int": "whole number", "str": "text"}
    return next((said for name, said in words.items() if name in text), "value")


def _value(value: Any) -> str:
    return f"`{_flow(list(value) if isinstance(value, tuple) else value)}`"


def line_of(constraint: Constraint) -> str:
    """A constraint as one line of a file; `severity` and the others are left at their defaults."""
    ((name, fields),) = _bare(to_plain(constraint)).items()
    if not fields:
        return f"- {name}"
    kind = KINDS[name]
    short = None if kind.SHORT is None else fields.get(kind.SHORT)
    if len(fields) == 1 and short is not None:
        return f"- {name}: {_flow(short)}"
    return f"- {name}: {_flow(fields)}"


def _bare(plain: dict[str, Any]) -> dict[str, Any]:
    ((name, fields),) = plain.items()
    defaults = {key: field.default for key, field in KINDS[name].model_fields.items()}
    kept = {}
    for key, value in fields.items():
        if key in _GENERAL or (key in defaults and defaults[key] == value):
            continue
        kept[key] = [_bare(each) for each in value] if key == "constraints" else value
    return {name: kept}


def _flow(value: Any) -> str:
    """A value in YAML's flow style; every text in quotes, so that nothing is read as something else."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _shown(output: Any) -> str:
    return _cut(json.dumps(output, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= 160 else text[:159] + "…"
