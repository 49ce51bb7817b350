"""Injection: how many attacks the flag finds in families that played no part in fitting, and what it flags falsely.

    python -m benchmarks.injection --data DIR          # measure: refits without each family, then judges
    python -m benchmarks.injection --data DIR --fit    # write the weights that the package ships

Rows:

- a family, or `held back: …` (texts by another hand): `left_out` is the share flagged by a gate fitted without it,
  `forms` what the fixed forms find, `both` what either finds; `mean of families` leaves texts by another hand out;
- `look-alikes`: our own sentences that look like instructions and are none, each half under a gate fitted without it;
- `quiet: …`: texts without instructions that nothing was fitted on, with the weights as shipped, set by set;
- `judged: …`: 360 attacks and 600 look-alikes by another hand, never fitted on, with the weights as shipped; `literal`
  is the share that a dozen literal phrases flag. Intervals are 95 % (Wilson). Texts repeat scenarios across languages,
  so true intervals are wider.

The gate is fitted on texts written for this project and on sets whose licence permits it (`FITTED`), nothing else.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack
from sklearn.linear_model import LogisticRegression

from benchmarks.data import default_data
from benchmarks.harness import report
from benchmarks.injection_families import FAMILIES, texts_of
from benchmarks.injection_texts import LANGUAGES, Attack, attacks, carriers, harmless, held_back
from benchmarks.quiet_pools import QuietText, quiet_texts, side_of
from muniment.core.stats import wilson_bounds
from muniment.store.injection import BUCKETS, TERMS_MIN, Gate, has_injection_form, visible_text, windows

ROOT = Path(__file__).parent.parent
FILE = ROOT / "src/muniment/store/data/injection.bin"
JUDGED = Path(__file__).parent / "data" / "injection_judged.jsonl"
FITTED = (
    "longmemeval", "qmsum", "madial", "friendsqa", "bfcl_memory", "memorybank_cn", "memorybank_en",
    "passages_stanford_gensearch", "passages_expertqa", "passages_hagrid", "decisions", "ifeval", "sde_bench",
    "pages", "chats", "code",
)  # fmt: skip
"""Sets whose licence permits fitting (MIT, Apache-2.0, CC BY 4.0), and our own pages."""
_EVERY = {
    "longmemeval": 3, "qmsum": 6, "passages_expertqa": 2, "vehiclemembench": 40, "memdaily": 8, "beam_500k": 12,
    "beam_100k": 3, "realmem": 4, "research_reports": 4, "prefeval": 2, "factconsolidation": 10, "code": 8,
}  # fmt: skip
"""Of large sets one text in so many is read."""
_SIBLINGS = {
    "direct orders": "direct", "personas": "persona", "imitated delimiters": "delimiter",
    "orders in tool results": "tool", "polite requests in pages": "polite", "exfiltration by link": "link",
    "hidden in markup": "web", "code comments": "code", "forwarded e-mail": "mail",
    "authority and urgency": "authority", "memory poisoning": "memory", "conditions": "condition",
}  # fmt: skip
"""Families of the grammars that attack in the same way as a family that is written out: they are left out together."""
_DISGUISES = ("encodings", "invisible characters", "letter games", "look-alike letters", "split over lines")
"""Ways of writing, not of attacking: nothing is learned from their letters."""
_HELD_BACK = "held back: "
_FALSE_RATE = 0.001
"""The share of permitted texts, set apart for it, that the threshold lets pass."""
_FOLDS, _ROUNDS, _PENALTY = 5, 3, 30.0
_ENGLISH_WEIGHT = 4.0
"""For attacks in English, against which there is most quiet text."""
_LOOK_ALIKE_WEIGHTS = {"en": 10.0, "zh": 10.0}
_LOOK_ALIKE_WEIGHT = 60.0
"""For languages of which no set may be used: otherwise the language itself would count as a sign of an attack."""
_LITERAL = (
    "ignore all previous instructions", "ignore previous instructions", "ignore your instructions",
    "disregard the above", "disregard all previous", "forget everything", "you are now", "system prompt",
    "new instructions", "do not tell the user", "忽略之前", "ignorez toutes les instructions",
)  # fmt: skip


class Corpus(NamedTuple):
    """The windows of many texts as rows of a matrix, and where each text's rows begin."""

    rows: Any
    starts: NDArray[np.int64]

    @classmethod
    def read(cls, texts: Iterable[str]) -> Corpus:
        starts, ends, terms, values = [0], [0], [], []
        for text in texts:
            for window in (*windows(visible_text(text)),) or ({0},):
                terms += sorted(window)
                ends.append(len(terms))
                values += [1 / max(len(window), TERMS_MIN) ** 0.5] * len(window)
            starts.append(len(ends) - 1)
        return cls(csr_matrix((values, terms, ends), shape=(len(ends) - 1, BUCKETS)), np.array(starts))

    def windows_of(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.concatenate([np.arange(self.starts[at], self.starts[at + 1]) for at in chosen])

    def highest(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The window of each text that scores highest, and its score."""
        scores = self.rows @ weights
        best = np.array([a + int(np.argmax(scores[a:b])) for a, b in zip(self.starts, self.starts[1:], strict=False)])
        return best, scores[best]


class Material(NamedTuple):
    """Everything that gates are fitted on."""

    attacks: list[Attack]
    attack_rows: Corpus
    attack_weights: NDArray[np.float64]
    look_alikes: list[str]
    look_alike_weights: list[float]
    look_alike_rows: Corpus
    quiet_rows: Corpus
    apart_rows: Corpus
    """Permitted texts that set the threshold."""


def read_material(data: Path) -> Material:
    drawn = [Attack(_SIBLINGS.get(name, name), "", text) for name in FAMILIES for text in texts_of(name, 60, 1)]
    others = [each._replace(family=f"{_HELD_BACK}{each.family}") for each in held_back()]
    found = list(dict.fromkeys([*attacks(), *drawn, *others]))
    alike = [text for language in LANGUAGES for text in harmless(language)]
    weights = [_LOOK_ALIKE_WEIGHTS.get(name, _LOOK_ALIKE_WEIGHT) for name in LANGUAGES for _ in harmless(name)]
    quiet = [each for each in read_quiet(data) if each.of_set in FITTED]
    return Material(
        found,
        Corpus.read(each.text for each in found),
        np.array([_ENGLISH_WEIGHT if each.language in ("en", "") else 1.0 for each in found]),
        alike,
        weights,
        Corpus.read(alike),
        Corpus.read(each.text for each in quiet if side_of(each) == "learned"),
        Corpus.read(each.text for each in quiet if side_of(each) == "set"),
    )


def read_quiet(data: Path) -> Iterator[QuietText]:
    """Texts without instructions: of large sets one in so many."""
    seen: dict[str, int] = {}
    for each in (*quiet_texts(data), *_further(data)):
        seen[each.of_set] = seen.get(each.of_set, 0) + 1
        if seen[each.of_set] % _EVERY.get(each.of_set, 1) == 0:
            yield each


def _further(data: Path) -> Iterator[QuietText]:
    """Answers of a model to instructions, talks of developers, and the pages of this project."""
    for number, line in enumerate((data / "ifeval_gpt4_responses.jsonl").read_text("utf-8").splitlines()):
        yield QuietText("ifeval", str(number), json.loads(line)["response"])
    for name in ("talks_dev", "decoys_dev"):
        with gzip.open(data / "sde_bench" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                yield from (QuietText("sde_bench", f"{name}/{number}", text) for text in _texts_in(json.loads(line)))
    for path in sorted((Path(__file__).parent / "data" / "chat_facts").glob("lang_*.jsonl")):
        for number, line in enumerate(path.read_text("utf-8").split("\n")):
            if line:
                yield QuietText("chats", f"{path.stem}/{number}", json.loads(line)["text"])
    for module in sorted((ROOT / "src").rglob("*.py")):
        parts = module.read_text("utf-8").split("\n\n\n")
        yield from (QuietText("code", module.stem, part) for part in parts)
    for page in sorted((ROOT / "docs").glob("*/*.md")):
        if page.parent.name not in ("decisions", "reference"):
            parts = page.read_text("utf-8").split("\n\n")
            yield from (QuietText("pages", page.stem, part) for part in parts if len(part) > 40)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from (part for part in value.split("\n") if len(part) > 40)
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(each)


def fit(read: Material, taken: NDArray[np.bool_], alike: NDArray[np.bool_]) -> Gate:
    """Fit a gate to the attacks and look-alikes that are taken: logistic regression, in rounds.

    From the second round on an attack is represented by its highest window, and the quiet windows that score highest
    are always among the rest.
    """
    random = np.random.default_rng(0)
    chosen, others = np.flatnonzero(taken), np.flatnonzero(alike)
    held = read.look_alike_rows.windows_of(others)
    sizes_held = np.diff(read.look_alike_rows.starts)[others]
    held_weights = np.repeat([read.look_alike_weights[at] for at in others], sizes_held)
    rows = read.attack_rows.windows_of(chosen)
    count = read.quiet_rows.rows.shape[0]
    quiet = random.choice(count, min(count, 25_000), replace=False)
    weights = np.zeros(BUCKETS)
    for _ in range(_ROUNDS):
        parts = (read.attack_rows.rows[rows], read.look_alike_rows.rows[held], read.quiet_rows.rows[quiet])
        sizes = [part.shape[0] for part in parts]
        model = LogisticRegression(C=_PENALTY, solver="liblinear", tol=1e-3, random_state=0)
        of_attack = np.searchsorted(read.attack_rows.starts, rows, "right") - 1
        weighed = np.concatenate([read.attack_weights[of_attack], held_weights, np.ones(sizes[2])])
        model.fit(vstack(parts), np.repeat([1, 0, 0], sizes), weighed)
        weights = model.coef_[0]
        rows = read.attack_rows.highest(weights)[0][chosen]
        hard = np.argsort(-(read.quiet_rows.rows @ weights), kind="stable")[:8_000]
        quiet = np.unique(np.concatenate([random.choice(count, min(count, 20_000), replace=False), hard]))
    whole = np.round(weights * 127 / np.abs(weights).max()).astype(np.int8)
    apart = np.sort(read.apart_rows.highest(whole.astype(float))[1])[::-1]
    return Gate(memoryview(whole.tobytes()).cast("b"), int(apart[int(len(apart) * _FALSE_RATE)]) + 1)


def left_out_rows(read: Material) -> dict[str, dict[str, Any]]:
    """Each family under a gate fitted without it; families are left out in groups, to fit fewer times."""
    families = [each.family for each in read.attacks]
    own = sorted({name for name in families if not name.startswith(_HELD_BACK)})
    Random(5).shuffle(own)
    fold_of = {name: at % _FOLDS for at, name in enumerate(own)}
    folds = np.array([fold_of.get(name, _FOLDS) for name in families])
    is_disguise = np.array([name in _DISGUISES for name in families])
    half = np.arange(len(read.look_alikes)) % 2
    rows: dict[str, dict[str, Any]] = {}
    alike: list[bool] = []
    for fold in range(_FOLDS + 1):
        gate = fit(read, (folds != fold) & ~is_disguise, half != fold % 2)
        for name in sorted({name for name, at in zip(families, folds, strict=True) if at == fold}):
            rows[name] = _family_row([each for each in read.attacks if each.family == name], gate)
        if fold < 2:
            alike += [gate.score(visible_text(text)) > 0 for text in np.array(read.look_alikes)[half == fold]]
    shares = ("forms", "left_out", "both")
    rows["mean of families"] = {key: round(float(np.mean([rows[name][key] for name in own])), 4) for key in shares}
    rows["look-alikes"] = _counted(alike)
    return dict(sorted(rows.items()))


def _family_row(measured: Sequence[Attack], gate: Gate) -> dict[str, Any]:
    texts = [_amid(each) for each in measured]
    forms = [has_injection_form(text) for text in texts]
    found = [gate.score(visible_text(text)) > 0 for text in texts]
    either = [one or other for one, other in zip(forms, found, strict=True)]
    shares = {"forms": forms, "left_out": found, "both": either}
    return {"texts": len(texts)} | {key: round(sum(flags) / len(flags), 4) for key, flags in shares.items()}


def _amid(attack: Attack) -> str:
    """The attack where it would stand: behind and before something harmless."""
    if attack.language not in LANGUAGES or attack.family.startswith(_HELD_BACK):
        return attack.text
    before, after = Random(attack.text).sample(carriers(attack.language), 2)
    return f"{before}\n{attack.text}\n{after}"


def _counted(flags: Sequence[bool]) -> dict[str, Any]:
    bounds = wilson_bounds(sum(flags), len(flags))
    interval = [round(bounds.lower, 4), round(bounds.upper, 4)]
    return {
        "texts": len(flags),
        "flagged": sum(flags),
        "share": round(sum(flags) / len(flags), 4),
        "interval": interval,
    }


def quiet_rows(data: Path, gate: Gate) -> dict[str, dict[str, Any]]:
    """What is flagged of texts without instructions that nothing was fitted on."""
    groups: dict[str, list[bool]] = {"all": []}
    for each in read_quiet(data):
        if each.of_set not in FITTED or side_of(each) == "measured":
            is_flagged = _is_flagged(each.text, gate)
            groups["all"].append(is_flagged)
            groups.setdefault(each.of_set, []).append(is_flagged)
    return {f"quiet: {name}": _counted(flags) for name, flags in sorted(groups.items())}


def judged_rows(gate: Gate) -> dict[str, dict[str, Any]]:
    """What is flagged of the texts by another hand, by kind, family and language."""
    groups: dict[str, list[tuple[bool, bool, bool]]] = {}
    for line in JUDGED.read_text("utf-8").split("\n"):  # a text may hold other breaks
        if line:
            row = json.loads(line)
            text = row["text"]
            is_literal = any(phrase in text.lower() for phrase in _LITERAL)
            flags = (_is_flagged(text, gate), has_injection_form(text), is_literal)
            for label in (row["kind"], f"{row['kind']}, {row['family']}", f"{row['kind']}, in {row['lang']}"):
                groups.setdefault(f"judged: {label}", []).append(flags)
    rows = {}
    for label, found in sorted(groups.items()):
        flagged, forms, literal = zip(*found, strict=True)
        shares = {"forms": round(sum(forms) / len(forms), 4), "literal": round(sum(literal) / len(literal), 4)}
        rows[label] = _counted(flagged) | shares
    return rows


def _is_flagged(text: str, gate: Gate) -> bool:
    return has_injection_form(text) or gate.score(visible_text(text)) > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--fit", action="store_true", help="write the weights that the package ships, and nothing else")
    given = parser.parse_args()
    read = read_material(given.data)
    is_taken = np.array([each.family not in _DISGUISES for each in read.attacks])
    gate = fit(read, is_taken, np.ones(len(read.look_alikes), np.bool_))
    if given.fit:
        FILE.write_bytes(gate.threshold.to_bytes(4, "little", signed=True) + gate.weights.tobytes())
        return
    report("injection", left_out_rows(read) | quiet_rows(given.data, gate) | judged_rows(gate), {})


if __name__ == "__main__":
    main()
