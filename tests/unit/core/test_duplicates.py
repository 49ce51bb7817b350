"""Near-duplicates by words: what turns a sentence round, or counts otherwise, makes it another."""

from __future__ import annotations

from muniment.core.text.sentences import Seen
from products import for_each

LONG = "根据这份报告的数据热泵在寒冷地区的冬季仍然能够为大多数家庭提供足够的热量并且明显地降低供暖的费用"


@for_each(
    ("one", "other", "alike"),
    [
        ("Heat pumps work.", " Heat pumps work. ", True),
        ("Heat pumps work in the cold.", "heat PUMPS work, in the cold!", True),
        ("Heat pumps work.", "Boilers do too.", False),
        (LONG, LONG.replace("明显地", "明显的"), True),
        (LONG, LONG.replace("能够", "不能够"), False),
        (LONG, LONG.replace("多数", "三数"), False),
        (
            "one two three four five six seven eight nine ten eleven",
            "one two three four five six seven eight nine ten eleven 12",
            False,
        ),
        ("it did work in a b c d e f g h i j k l", "it did not work in a b c d e f g h i j k l", False),
    ],
)
def test_alike(one: str, other: str, alike: bool) -> None:
    seen = Seen(0.9)
    seen.add(one, "first")
    assert (seen.find(other) == "first") is alike
