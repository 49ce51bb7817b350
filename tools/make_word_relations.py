"""Make src/muniment/verify/facts/data/relations.bin again from the files of WordNet 3.0 (Princeton's licence).

python tools/make_word_relations.py FOLDER

FOLDER holds `data.verb`, `index.verb`, `cntlist.rev`, `verb.exc` and the rest, as Debian's package wordnet-base or the
dict archive of Princeton has them. What is kept, by stems as the fact checker compares them:

- verbs in groups of one sense, each group with the groups that are more general, entailed or caused, one step; a noun
  that is made of a verb (acquisition) and an irregular form (bought) stand in the verb's groups;
- pairs of opposites among words that were counted in text;
- irregular forms of verbs, as they are written;
- ordinary words: those that are written small, by which a capital at the start of a sentence is told from a name.
"""

from __future__ import annotations

import hashlib
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from muniment.core.text.analyzer import stem

READER = Path(__file__).parent.parent / "src" / "muniment" / "verify" / "facts" / "_senses.py"
TARGET = READER.parent / "data" / "relations.bin"
SENSES_MAX = 4
"""Of a verb only its commonest senses: with all of them nearly every verb is related to "take"."""
UP = ("@", "*", ">", "$")
NOUN_SENSES_MAX = 2
OPPOSITES_COUNT_MIN = 3


class Synset(NamedTuple):
    """The words of one sense, and pointers: sign, offset, part of speech, own word, their word (0: all)."""

    words: tuple[str, ...]
    pointers: tuple[tuple[str, str, str, int, int], ...]


def read_synsets(path: Path) -> dict[str, Synset]:
    made = {}
    for line in path.read_text("latin-1").splitlines():
        if line.startswith("  "):
            continue
        parts = line.split("|")[0].split()
        size = int(parts[3], 16)
        words = tuple(re.sub(r"\(.*\)", "", parts[4 + 2 * at]) for at in range(size))
        at = 4 + 2 * size
        pointers = []
        for one in range(int(parts[at])):
            sign, offset, part, ends = parts[at + 1 + 4 * one : at + 5 + 4 * one]
            pointers.append((sign, offset, part, int(ends[:2], 16), int(ends[2:], 16)))
        made[parts[0]] = Synset(words, tuple(pointers))
    return made


def read_index(path: Path) -> Iterator[tuple[str, list[str], int]]:
    """A word, its synsets by rank, and how many of them were counted in text."""
    for line in path.read_text("latin-1").splitlines():
        if not line.startswith("  "):
            parts = line.split()
            size = int(parts[2])
            yield parts[0], parts[-size:], int(parts[-size - 1])


def is_plain(word: str) -> bool:
    return word.isascii() and word.isalpha() and word.islower()


def irregular(folder: Path) -> dict[str, set[str]]:
    """A verb → its irregular forms."""
    found: dict[str, set[str]] = {}
    for line in (folder / "verb.exc").read_text("latin-1").splitlines():
        form, *bases = line.split()
        for base in bases:
            if is_plain(form) and is_plain(base):
                found.setdefault(base, set()).add(form)
    return found


def verb_groups(folder: Path) -> list[str]:
    """Lines `members|numbers of wider groups`, in the order of the file."""
    verbs, nouns = read_synsets(folder / "data.verb"), read_synsets(folder / "data.noun")
    forms = irregular(folder)
    kept: dict[str, set[str]] = {}
    for word, offsets, _ in read_index(folder / "index.verb"):
        if is_plain(word):
            for offset in offsets[:SENSES_MAX]:
                kept.setdefault(offset, set()).add(word)
    members: dict[str, set[str]] = {}
    for offset, words in kept.items():
        held = {stem(form) for word in words for form in (word, *forms.get(word, ()))}
        synset = verbs[offset]
        for sign, target, part, own, their in synset.pointers:
            if sign == "+" and part == "n" and synset.words[own - 1] in words:
                noun = nouns[target].words[their - 1]
                if is_plain(noun):
                    held.add(stem(noun))
        members[offset] = held
    order = sorted(members)
    number = {offset: at for at, offset in enumerate(order)}
    lines = []
    for offset in order:
        wider = sorted(
            {
                number[target]
                for sign, target, part, *_ in verbs[offset].pointers
                if sign in UP and part == "v" and target in number
            }
        )
        lines.append(" ".join(sorted(members[offset])) + "|" + " ".join(map(str, wider)))
    return lines


def noun_groups(folder: Path) -> list[str]:
    """Lines of nouns with one sense among their first ones."""
    kept: dict[str, set[str]] = {}
    for word, offsets, counted in read_index(folder / "index.noun"):
        if is_plain(word):
            for offset in offsets[: max(1, min(NOUN_SENSES_MAX, counted))]:
                kept.setdefault(offset, set()).add(stem(word))
    return sorted(" ".join(sorted(words)) for words in kept.values() if len(words) > 1)


def counts(folder: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in (folder / "cntlist.rev").read_text("latin-1").splitlines():
        key, _, count = line.split()
        word = key.split("%")[0]
        found[word] = found.get(word, 0) + int(count)
    return found


def opposites(folder: Path, counted: dict[str, int]) -> list[str]:
    pairs = set()
    for part in ("verb", "noun", "adj", "adv"):
        synsets = read_synsets(folder / f"data.{part}")
        for synset in synsets.values():
            for sign, target, other, own, their in synset.pointers:
                if sign != "!" or other not in part[0] + "s" or target not in synsets:
                    continue
                one, two = synset.words[own - 1], synsets[target].words[their - 1]
                if not (is_plain(one) and is_plain(two)):
                    continue
                if min(counted.get(one, 0), counted.get(two, 0)) < OPPOSITES_COUNT_MIN or stem(one) == stem(two):
                    continue
                pairs.add(tuple(sorted((stem(one), stem(two)))))
    return [" ".join(pair) for pair in sorted(pairs)]


def ordinary(folder: Path, counted: dict[str, int]) -> list[str]:
    found = {stem(word) for word in counted if is_plain(word)}
    for part in ("verb", "adj", "adv", "noun"):
        for word, offsets, _ in read_index(folder / f"index.{part}"):
            if is_plain(word) and len(word) > 2 and (part != "noun" or len(offsets) > 1 or word in counted):
                found.add(stem(word))
    return sorted(found)


def lay_out(
    verbs: list[str], nouns: list[str], opposed: list[str], ordinary_words: list[str], forms: list[str]
) -> bytes:
    """A sorted line for each word, then the wider groups of each group of verbs: `_senses.py` looks words up in it."""
    rows: dict[str, tuple[list[str], list[str], list[str], list[str]]] = {}

    def row(word: str) -> tuple[list[str], list[str], list[str], list[str]]:
        return rows.setdefault(word, ([], [], [], []))

    for number, line in enumerate(verbs):
        for word in line.partition("|")[0].split():
            row(word)[0].append(str(number))
    for number, line in enumerate(nouns):
        for word in line.split():
            row(word)[1].append(str(number))
    for one, other in map(str.split, opposed):
        row(one)[2].append(other)
        row(other)[2].append(one)
    for mark, words in (("o", ordinary_words), ("i", forms)):
        for word in words:
            row(word)[3].append(mark)
    lines = sorted("|".join((word, *(" ".join(part) for part in parts))) for word, parts in rows.items())
    wider = [line.partition("|")[2] for line in verbs]
    return zlib.compress(("\n".join(lines) + "\n\n" + "\n".join(wider)).encode(), 9)


def main() -> None:
    folder = Path(sys.argv[1])
    counted = counts(folder)
    forms = sorted({form for base, held in irregular(folder).items() if base in counted for form in held})
    blocks = [verb_groups(folder), noun_groups(folder), opposites(folder, counted), ordinary(folder, counted), forms]
    made = lay_out(*blocks)
    TARGET.write_bytes(made)
    text = READER.read_text("utf-8")
    READER.write_text(re.sub(r'(?m)^_DIGEST = "\w*"', f'_DIGEST = "{hashlib.sha256(made).hexdigest()}"', text), "utf-8")
    print([len(block) for block in blocks], len(made))


if __name__ == "__main__":
    main()
