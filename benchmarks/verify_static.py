"""Static checks: do they say what the reference checkers of IFEval say, and how fast are they?

    python -m benchmarks.verify_static [--data DIR] [--scratch DIR] [--quick] [--speed-only]

The reference is the code inside `lm-eval`, installed into a virtual environment of its own. It counts sentences with
NLTK's punkt, whose data is a download of its own: where NLTK finds it (`NLTK_DATA`), it is used; where it does not, a
punkt trained on the given responses stands in, and the result says so. langdetect draws lots: its seed is fixed.

Each response is judged as given and after mutations (lines dropped or doubled, case, punctuation, keywords, marks,
answers of other prompts). A row is one kind of instruction; every disagreement is listed in the result file.

This file is also the program that runs inside the reference's environment, where there is no muniment: hence the late
imports.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import types
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

PACKAGES = ("langdetect", "nltk", "immutabledict", "packaging")
BAR = 0.98
SPEED_BAR = 2000
SEED = 11
COUNTED = ("given", "given_agree", "all", "all_agree", "held", "lots")

Case = dict[str, Any]


# -- the texts ----------------------------------------------------------------------------------------


def cases(data: Path, quick: bool) -> list[dict[str, Any]]:
    """One case a text: prompt, instructions, the text and which mutation made it."""
    prompts = [json.loads(line) for line in (data / "ifeval_input_data.jsonl").open(encoding="utf-8")]
    answers = {}
    for line in (data / "ifeval_gpt4_responses.jsonl").open(encoding="utf-8"):
        row = json.loads(line)
        answers[row["prompt"]] = row["response"]
    known = [prompt for prompt in prompts if prompt["prompt"] in answers]
    chance, others = Random(SEED), list(answers.values())
    made = []
    for prompt in known[:: 5 if quick else 1]:
        for name, text in mutated(answers[prompt["prompt"]], prompt, chance, others):
            made.append({**prompt, "mutation": name, "text": text})
    return made


def mutated(text: str, prompt: dict[str, Any], chance: Random, others: list[str]) -> Iterator[tuple[str, str]]:
    lines = text.split("\n")
    words = [
        str(word)
        for given in prompt["kwargs"]
        for value in given.values()
        if isinstance(value, str | list)
        for word in (value if isinstance(value, list) else [value])
    ]
    at = chance.randrange(len(lines))
    yield "given", text
    yield "first line dropped", "\n".join(lines[1:])
    yield "last line dropped", "\n".join(lines[:-1])
    yield "a line dropped", "\n".join(lines[:at] + lines[at + 1 :])
    yield "a line doubled", "\n".join(lines[: at + 1] + lines[at:])
    yield "upper case", text.upper()
    yield "lower case", text.lower()
    yield "no punctuation", "".join(char for char in text if char not in ".,;:!?\"'")
    yield "no marks", text.replace("*", "").replace("[", "").replace("]", "").replace("<<", "").replace("#", "")
    yield "words added", f"{text} {' '.join(words)}, Indeed."
    yield "words added twice", f"{' '.join(words)}\n\n{text} {' '.join(words)}"
    yield "half", text[: len(text) // 2]
    yield "quoted", f'"{text.strip()}"'
    yield "marks added", f"<<Title>>\n* **one** *two* [a] [b]\n- {text}\n\nP.S. Thanks.\n***\nSECTION 1"
    yield "twice", f"{text}\n******\n{text}"
    yield "prompt first", f"{prompt['prompt']}\n\n{text}"
    yield "another answer", chance.choice(others)
    yield "fenced JSON", "```json\n" + json.dumps({"answer": text[:200]}) + "\n```"
    yield "blank", "  \n"


# -- the reference, in its own environment ------------------------------------------------------------


def reference_modules() -> tuple[Any, Any]:
    """The registry and the helpers of the reference, without the package around them."""
    import langdetect  # type: ignore[import-not-found]
    import nltk

    found = importlib.util.find_spec("lm_eval")
    assert found is not None
    assert found.submodule_search_locations is not None
    folder = Path(found.submodule_search_locations[0])
    for name, path in (("lm_eval", folder), ("lm_eval.tasks", folder / "tasks")):
        package = types.ModuleType(name)
        package.__path__ = [str(path)]
        sys.modules[name] = package
    nltk.download = lambda *_, **__: False
    langdetect.DetectorFactory.seed = 0
    registry = importlib.import_module("lm_eval.tasks.ifeval.instructions_registry")
    return registry, importlib.import_module("lm_eval.tasks.ifeval.instructions_util")


def sentence_splitter(helpers: Any, texts: list[str]) -> str:
    """Give the reference a punkt: NLTK's own where its data is here, else one trained on the texts. Says which."""
    from nltk.tokenize import NLTKWordTokenizer
    from nltk.tokenize.punkt import PunktSentenceTokenizer, PunktTokenizer

    try:
        splitter, which = PunktTokenizer("english"), "punkt_tab"
    except LookupError:
        splitter, which = PunktSentenceTokenizer("\n".join(texts)), "a punkt trained on the given responses"
    words = NLTKWordTokenizer()
    helpers._get_sentence_tokenizer = lambda: splitter
    helpers.nltk.word_tokenize = lambda text: [
        token for sentence in splitter.tokenize(text) for token in words.tokenize(sentence)
    ]
    return which


def judge_as_reference(source: Path, target: Path) -> None:
    """The program inside the reference's environment: cases in, one list of verdicts for each case out."""
    registry, helpers = reference_modules()
    given = [json.loads(line) for line in source.open(encoding="utf-8")]
    which = sentence_splitter(helpers, [case["text"] for case in given if case["mutation"] == "given"])
    with target.open("w", encoding="utf-8") as out:
        print(json.dumps({"sentences": which}), file=out)
        for case in given:
            print(json.dumps([follows(registry, case, number) for number in range(len(case["kwargs"]))]), file=out)


def follows(registry: Any, case: dict[str, Any], number: int) -> bool | None:
    """The reference's strict reading of one instruction; None where it draws lots about what was asked."""
    name = case["instruction_id_list"][number]
    if name == "keywords:letter_frequency" and not "a" <= case["kwargs"][number]["letter"].lower() <= "z":
        return None  # it takes a random letter in place of a sign
    instruction = registry.INSTRUCTION_DICT[name](name)
    instruction.build_description(**{key: value for key, value in case["kwargs"][number].items() if value})
    return bool(case["text"].strip()) and bool(instruction.check_following(case["text"]))


def ask_reference(scratch: Path, given: list[dict[str, Any]]) -> tuple[str, list[list[bool | None]]] | None:
    """Install the reference and run it; None, with a word about why, where it cannot be had."""
    home = scratch / "reference"
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
    quiet = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in ([*quiet, "--no-deps", "lm-eval"], [*quiet, *PACKAGES]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"SKIPPED: the reference cannot be installed: {done.stderr.strip()[-300:]}", file=sys.stderr)
            return None
    source, target = scratch / "cases.jsonl", scratch / "reference.jsonl"
    source.write_text("".join(json.dumps(case) + "\n" for case in given), "utf-8")
    environment = {"PATH": os.environ.get("PATH", ""), "NLTK_DATA": os.environ.get("NLTK_DATA", "")}
    command = [str(python), str(Path(__file__).resolve()), "--judge", str(source), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        print(f"SKIPPED: the reference failed: {done.stderr.strip()[-1000:]}", file=sys.stderr)
        return None
    first, *rest = target.read_text("utf-8").splitlines()
    return json.loads(first)["sentences"], [json.loads(line) for line in rest]


# -- ours ---------------------------------------------------------------------------------------------


def judge(case: dict[str, Any]) -> list[bool]:
    from benchmarks.ifeval import from_ifeval
    from muniment.verify.constraints import evaluate
    from muniment.verify.outputs import Output

    output = Output(text=case["text"])
    groups = from_ifeval(case["instruction_id_list"], case["kwargs"])
    return [all(finding.ok for finding in evaluate(output, group)) for group in groups]


def agreement(
    given: list[dict[str, Any]], theirs: list[list[bool | None]]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A row for each kind, and each disagreement."""
    counts: dict[str, dict[str, int]] = {}
    differing = []
    for case, wanted in zip(given, theirs, strict=True):
        for name, ours, reference in zip(case["instruction_id_list"], judge(case), wanted, strict=True):
            row = counts.setdefault(
                name, dict.fromkeys(("given", "given_agree", "all", "all_agree", "held", "lots"), 0)
            )
            if reference is None:
                row["lots"] += 1
                continue
            row["all"] += 1
            row["all_agree"] += ours == reference
            row["held"] += reference
            if case["mutation"] == "given":
                row["given"] += 1
                row["given_agree"] += ours == reference
            if ours != reference:
                differing.append({"kind": name, "key": case["key"], "mutation": case["mutation"], "ours": ours})
    rows = {
        name: {
            "given": row["given_agree"] / row["given"] if row["given"] else 1.0,
            "mutated": row["all_agree"] / row["all"],
            "cases": row["all"],
            "held": row["held"] / row["all"],
            **({"left_out_random_reference": row["lots"]} if row["lots"] else {}),
            "meets_bar": row["all_agree"] >= BAR * row["all"] and row["given_agree"] >= BAR * row["given"],
        }
        for name, row in sorted(counts.items())
    }
    return rows, differing


# -- speed --------------------------------------------------------------------------------------------

TEXT = """
- words: {min: 50, max: 400}
- sentences: {min: 3}
- paragraphs: {min: 1}
- bullets: {max: 12}
- keywords: [the, and]
- forbidden_words: [synergy, leverage, "as an ai"]
- regex_present: '\\b[A-Z][a-z]+\\b'
- regex_absent: '(?i)as an ai|i cannot help'
- no_punctuation: ";"
- length: {max: 5000}
"""
LANGUAGE = TEXT.replace("- length: {max: 5000}", "- language: en")
JSON = """
- json_only
- json_schema: {type: object, required: [answer, sources], properties: {answer: {type: string}, sources: {type: array}}}
- length: {max: 5000}
- not_contains: "```"
- regex_absent: '(?i)as an ai'
- tool_called: search
- tool_not_called: delete
- tool_order: [search, open]
- tool_calls: {max: 4}
- budget: {of: tokens_out, max: 600}
"""


def speed(texts: list[str], rounds: int) -> dict[str, Any]:
    """Outputs of 1 KB a second and core, ten constraints each: processor time, the median of some rounds."""
    from muniment.verify.constraint_files import read_constraints
    from muniment.verify.constraints import evaluate
    from muniment.verify.outputs import Output

    joined = "\n\n".join(texts)
    pieces = [joined[at : at + 1024] for at in range(0, min(len(joined) - 1024, 1024 * 600), 1024)]
    tools: dict[str, Any] = {
        "tool_calls": [{"name": "search"}, {"name": "open"}],
        "usage": {"tokens_out": 300},
    }
    plain = [Output.from_wire({"text": piece}) for piece in pieces]
    wrapped = [json.dumps({"answer": piece[:900], "sources": ["a", "b"]}) for piece in pieces]
    coded = [Output.from_wire({"text": text, **tools}) for text in wrapped]
    rows = {}
    for name, source, outputs in (
        ("text", TEXT, plain),
        ("language", LANGUAGE, plain),
        ("json and tools", JSON, coded),
    ):
        constraints = read_constraints(source).constraints
        assert len(constraints) == 10
        seconds = sorted(
            processor_time(lambda: [evaluate(output, constraints) for output in outputs])  # noqa: B023
            for _ in range(rounds)
        )
        rate = len(outputs) / seconds[len(seconds) // 2]
        rows[f"L1 {name}"] = {"outputs_per_second": rate, "outputs": len(outputs), "meets_bar": rate >= SPEED_BAR}
    return rows


def processor_time(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


# -- the report ---------------------------------------------------------------------------------------


def measure(data: Path, scratch: Path, quick: bool) -> dict[str, Any]:
    """Every figure of this file, for a report of its own or as part of a larger one."""
    given = cases(data, quick)
    rows: dict[str, Any] = {}
    answered = ask_reference(scratch, given)
    if answered is not None:
        sentences, theirs = answered
        kinds, differing = agreement(given, theirs)
        total = sum(row["cases"] for row in kinds.values())
        rows = {
            **kinds,
            "IFEval, all": {
                "kinds": len(kinds),
                "cases": total,
                "agreement": 1 - len(differing) / total,
                "kinds_below_bar": sum(not row["meets_bar"] for row in kinds.values()),
                "sentences_by": sentences,
            },
        }
        rows |= {f"disagreement {number}": each for number, each in enumerate(differing, 1)}
    texts = [case["text"] for case in given if case["mutation"] == "given"]
    return rows | speed(texts, 3 if quick else 7)


def main() -> None:
    from benchmarks.data import default_data
    from benchmarks.harness import report

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--scratch", type=Path, help="keep the reference's environment here")
    parser.add_argument("--quick", action="store_true", help="every fifth prompt")
    parser.add_argument("--speed-only", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        scratch = options.scratch or Path(temporary)
        scratch.mkdir(parents=True, exist_ok=True)
        if options.speed_only:
            given = cases(options.data, options.quick)
            rows = speed([case["text"] for case in given if case["mutation"] == "given"], 7)
        else:
            rows = measure(options.data, scratch, options.quick)
    report("verify_static", rows, {"quick": options.quick})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--judge"]:
        judge_as_reference(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
