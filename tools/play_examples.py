"""Play the examples of the Python API (docs/reference/examples).

python tools/play_examples.py             exit code 1 where one does not print what it says
python tools/play_examples.py --write     write down what was printed; read it before you commit it
"""

from __future__ import annotations

import sys

from reference.examples import FILES, play, shown


def main(arguments: list[str]) -> int:
    wrong = 0
    for file in FILES:
        played = list(play(file))
        head = file.read_text("utf-8").partition("# -- ")[0]
        for each, printed in played:
            if printed != each.printed:
                wrong += 1
                print(f"{file.name}: {each.name} printed:\n{printed}\n-- it says:\n{each.printed}")
        if "--write" in arguments:
            now = (f"# -- {each.name}\n{shown(each._replace(printed=printed))}\n" for each, printed in played)
            file.write_text(head + "\n".join(now), "utf-8")
    return 1 if wrong and "--write" not in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
