"""Make `classes.bin` of English extraction again from the files of WordNet 3.0 (Princeton's licence).

python tools/make_word_classes.py FOLDER

FOLDER holds `data.noun`, `index.noun`, `data.verb`, `index.verb`, `noun.exc`, `verb.exc`, as Debian's package
wordnet-base has them. What is kept: for each noun and verb that is written small, the class of its commonest sense. A
class of nouns is the nearest of the anchors below above that sense, else the file of the lexicographers it stands in; a
class of verbs is that file. The reader is `muniment.memory.extraction.english.classes`.
"""

# ruff: noqa: E501 - a table of words reads best with few lines

from __future__ import annotations

import hashlib
import re
import sys
import zlib
from pathlib import Path

from tools.make_word_relations import read_index, read_synsets

READER = Path(__file__).parent.parent / "src" / "muniment" / "memory" / "extraction" / "english" / "classes.py"
TARGET = READER.parent / "data" / "classes.bin"
ANCHORS = {
    "animal": ("animal",),
    "food": ("food", "foodstuff", "produce", "edible_fruit", "dish"),
    "beverage": ("beverage",),
    "medicine": ("medicine", "drug"),
    "illness": ("illness", "disorder", "pathology", "symptom", "ill_health", "injury", "pain"),
    "sport": ("sport", "exercise", "athletic_game"),
    "game": ("game",),
    "pastime": ("pastime", "diversion", "dancing", "handicraft", "art"),
    "instrument": ("musical_instrument",),
    "vehicle": ("vehicle",),
    "machine": ("device", "machine", "equipment", "furniture", "appliance"),
    "clothing": ("clothing", "footwear", "jewelry"),
    "building": ("building", "dwelling", "housing", "room"),
    "worker": ("worker", "professional", "creator", "performer", "employee", "skilled_worker"),
    "kin": ("relative",),
    "discipline": ("discipline", "subject"),
    "language": ("language",),
    "music": ("music", "musical_composition"),
    "writing": ("writing", "publication", "literary_composition", "movie", "show"),
    "plant": ("plant",),
    "meeting": ("meeting", "social_gathering", "appointment"),
    "money": ("sum", "currency", "income", "possession"),
    "period": ("time_period", "time_unit", "day"),
}  # fmt: skip
TELLING = frozenset(
    [
        "food",
        "beverage",
        "illness",
        "sport",
        "game",
        "pastime",
        "instrument",
        "vehicle",
        "machine",
        "clothing",
        "building",
        "kin",
        "music",
    ]
)
"""Of these the rarer words are kept as well."""
FILES = {
    "04": "act", "05": "animal", "06": "artifact", "07": "attribute", "08": "body", "09": "cognition", "10": "communication",
    "11": "event", "12": "feeling", "13": "food", "14": "group", "15": "location", "16": "motive", "17": "object",
    "18": "person", "19": "phenomenon", "20": "plant", "21": "money", "22": "process", "23": "quantity", "24": "relation",
    "25": "shape", "26": "state", "27": "substance", "28": "period",
    "29": "v-body", "30": "v-change", "31": "v-cognition", "32": "v-communication", "33": "v-competition",
    "34": "v-consumption", "35": "v-contact", "36": "v-creation", "37": "v-emotion", "38": "v-motion", "39": "v-perception",
    "40": "v-possession", "41": "v-social", "42": "v-stative", "43": "v-weather",
}  # fmt: skip


def files_of(path: Path) -> dict[str, str]:
    """A synset's place → the number of the file it stands in."""
    lines = (line.split(None, 2) for line in path.read_text("latin-1").splitlines() if not line.startswith("  "))
    return {parts[0]: parts[1] for parts in lines}


def is_kept(word: str) -> bool:
    return word.isascii() and word.replace("_", "").isalpha() and word.islower() and word.count("_") <= 1


def nouns(folder: Path) -> dict[str, str]:
    synsets, files = read_synsets(folder / "data.noun"), files_of(folder / "data.noun")
    index = {word: (offsets, counted) for word, offsets, counted in read_index(folder / "index.noun")}
    anchors: dict[str, str] = {}
    for name, words in ANCHORS.items():
        for word in words:
            anchors.setdefault(index[word][0][0], name)
    known: dict[str, str] = {}

    def class_of(offset: str) -> str:
        if offset not in known:
            known[offset] = anchors.get(offset, "")
            wider = [target for sign, target, *_ in synsets[offset].pointers if sign in ("@", "@i")]
            found = [name for target in wider if (name := class_of(target))]
            known[offset] = known[offset] or (found[0] if found else "")
        return known[offset]

    made = {}
    for word, (offsets, counted) in index.items():
        name = class_of(offsets[0]) or FILES.get(files[offsets[0]], "")
        if is_kept(word) and (counted or (name in TELLING and len(offsets) <= 2)) and len(word) > 2:
            made[word] = name
    for line in (folder / "noun.exc").read_text("latin-1").splitlines():
        form, base = line.split()[:2]
        if base in made and is_kept(form):
            made.setdefault(form, made[base])
    return {word: name for word, name in made.items() if name}


def verbs(folder: Path) -> dict[str, str]:
    files = files_of(folder / "data.verb")
    made = {
        word: FILES[files[offsets[0]]]
        for word, offsets, counted in read_index(folder / "index.verb")
        if is_kept(word) and "_" not in word and (counted or len(offsets) <= 2)
    }
    for line in (folder / "verb.exc").read_text("latin-1").splitlines():
        form, base = line.split()[:2]
        if base in made and is_kept(form):
            made.setdefault(form, made[base])
    return made


def main() -> None:
    folder = Path(sys.argv[1])
    blocks = []
    for words in (nouns(folder), verbs(folder)):
        names = sorted(set(words.values()))
        blocks.append(
            "\n".join(f"{name}|{' '.join(sorted(w for w, n in words.items() if n == name))}" for name in names)
        )
    made = zlib.compress("\n\n".join(blocks).encode(), 9)
    TARGET.write_bytes(made)
    text = READER.read_text("utf-8")
    READER.write_text(re.sub(r'(?m)^_DIGEST = "\w*"', f'_DIGEST = "{hashlib.sha256(made).hexdigest()}"', text), "utf-8")
    print([len(block) for block in blocks], len(made))


if __name__ == "__main__":
    main()
