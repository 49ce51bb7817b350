"""Token counters: exact ones agree, the estimate errs upward, and none reaches for a network."""

from __future__ import annotations

import importlib.util
import random
import re
import socket
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.core.outside import token_counters
from muniment.core.outside.token_counters import EstimateCounter, ExactCounter, load_token_counter
from muniment.core.ports.models import TokenCounter, adds_lines
from muniment.core.text import tokens
from muniment.core.text.tokens import estimate_tokens, is_single_token
from muniment.errors import InvalidInput, MissingDependency
from products import for_each
from strategies import CountBy

pytestmark = pytest.mark.filterwarnings("ignore:open_binary is deprecated:DeprecationWarning")
"""bpe-openai reads its vocabulary in an old way."""

SAMPLES = {
    "english": "Caroline told me last Tuesday that she had finally applied to the adoption agencies. She was nervous, "
    "but her friends and her therapist encouraged her, and the paperwork turned out to be simpler than expected.",
    "names": "Attendees: Nnamdi Okonkwo, Siobhán O'Dwyer, Przemysław Wiśniewski, Thandiwe Mkhize, Guðrún Jónsdóttir, "
    "Xiuying Zheng, Anastasiya Voloshyna, Bartholomew Featherstonehaugh and Oluwaseun Adeyemi-Ransome-Kuti.",
    "chinese": "她上个月搬到了杭州，在西湖边租了一套小公寓。周末的时候，她喜欢骑自行车去龙井村喝茶，"
    "顺便拍一些照片发给父母。她说以后想开一家自己的咖啡馆，不过现在还在存钱，所以每天都自己做饭。",
    "korean": "저는 지난달에 부산으로 이사했고 새로운 회사에서 일을 시작했습니다. 주말에는 바닷가를 산책하거나 "
    "친구들과 함께 맛있는 음식을 먹으러 다닙니다. 내년에는 강아지를 한 마리 키우고 싶어요.",
    "japanese": "先週の土曜日に友達と一緒に京都へ行って、お寺をいくつか見てから、抹茶のアイスクリームを食べました。"
    "天気がとても良かったので、写真をたくさん撮りました。来月はまた大阪に行くつもりです。",
    "russian": "В прошлом месяце мы переехали в новый дом за городом, и теперь по утрам слышно, как поют птицы. "
    "Дети быстро привыкли к школе, а собака целыми днями бегает по саду.",
    "french": "L'été dernier, nous avons traversé les Alpes à vélo; c'était épuisant, mais la vue depuis le col "
    "était extraordinaire et nous y retournerons sûrement l'année prochaine avec les enfants.",
    "python": "def estimate(values: Sequence[float], *, bound: float = 0.05) -> tuple[float, float]:\n"
    '    """Mean and half-width."""\n    if not values:\n        raise ValueError("no values")\n'
    "    mean = sum(values) / len(values)\n    return mean, math.sqrt(math.log(2 / bound) / (2 * len(values)))\n",
    "json": '{"id": "evt_0192ab34cd", "scope": {"tenant_id": "acme", "user_id": null}, "tokens": [1, 22, 333, 4444], '
    '"created_at": "2026-01-05T09:30:00.123Z", "body": {"text": "hello", "ok": true, "score": 0.7312}}',
    "table": "| name | qty | price |\n|------|----:|------:|\n| bolt | 120 | 0.15 |\n| nut  |  80 | 0.09 |\n\n" * 2,
    "url": "See https://example.com/a/very/long/path?query=string&utm_source=newsletter&id=9f86d081884c7d659a2feaa0 "
    "and mail first.last+tag@sub.example.org before 17:45 on 2026-03-31.",
    "emoji": "Happy birthday!!! 🎉🎂🥳 love you ❤️ see you soon 👋🏽 ... haha 😂😂😂",
}


def exact_or_skip() -> TokenCounter:
    for name in ("splintr", "bpe_openai"):
        if importlib.util.find_spec(name) is not None:
            return load_token_counter(name)
    pytest.skip("neither splintr-rs nor bpe-openai is installed: the estimate was not held against o200k")


@for_each("name", SAMPLES)
def test_estimate_covers_the_exact_count(name: str) -> None:
    exact = exact_or_skip().count(SAMPLES[name])
    assert exact <= estimate_tokens(SAMPLES[name]) <= exact * 1.6 + 4


def test_estimate_over_a_whole_text_is_close() -> None:
    whole = "\n\n".join(SAMPLES.values())
    exact = exact_or_skip().count(whole)
    assert exact <= estimate_tokens(whole) <= exact * 1.25


def scrambled(alphabet: str, size: int) -> str:
    noise = random.Random(0)
    return "".join(noise.choice(alphabet) for _ in range(size))


RUNS = {
    "line feeds": "\n" * 2_000,
    "spaces": " " * 2_000,
    "blank lines": " \n" * 1_000,
    "quotes": "'" * 500,
    "letters": scrambled("abcdefghijklmnopqrstuvwxyz", 500),
    "hex": scrambled("0123456789abcdef", 640),
    "marks": scrambled("!@#$%^&*()_+{}|:<>?[];,./", 400),
    "braces": "{" * 400,
    "new emoji": "🫠🦆🧿🛼" * 30,
    "controls": "\x00\x01\x02" * 50,
    "dead scripts": "𐤀𐤁𐤂" * 30,
    "rare ideographs": "龘靐齉爩麤" * 20,
}


@for_each("name", RUNS)
def test_estimate_covers_what_nobody_writes(name: str) -> None:
    assert estimate_tokens(RUNS[name]) >= exact_or_skip().count(RUNS[name])


@given(st.text(max_size=300))
def test_estimate_is_total_and_stable(text: str) -> None:
    first = estimate_tokens(text)
    assert first == estimate_tokens(text)
    assert (first == 0) == (text == "")


@given(st.text(max_size=120), st.text(max_size=120))
def test_estimate_of_the_parts_covers_paragraphs(one: str, two: str) -> None:
    """Budgets are filled part by part: parts joined by a line feed never cost much more than their sum."""
    assert estimate_tokens(f"{one}\n{two}") <= estimate_tokens(one) + estimate_tokens(two) + 4


@given(st.text(alphabet=" \t\n\r\u00a0\u3000\u2028\x0b5a,-中가", max_size=30))
def test_white_space_is_cut_as_if_every_place_of_it_were_looked_at(text: str) -> None:
    """Mutation: a line break or a number behind white space is not looked for where white space stands before it."""
    everywhere = re.compile(tokens._PIECE.pattern.replace(r"(?<![^\S\r\n])", ""))
    assert everywhere.pattern != tokens._PIECE.pattern
    assert tokens._PIECE.findall(text) == everywhere.findall(text)


@pytest.mark.timeout(60)
@pytest.mark.req("TM-13")
def test_long_texts_are_estimated() -> None:
    prose = (" ".join(SAMPLES.values()) + "\n") * 200
    long = ("a" * 1_000_000, " " * 1_000_000, "\t" * 300_000, "你" * 300_000, "Aé" * 300_000, "1 " * 300_000)
    for text in (prose, *long):
        estimate_tokens(text)


def test_filter_knows_every_common_word_and_few_others() -> None:
    for piece in ("return", "about", "their", "function", "的", "我们", "있는", " 있는"):
        assert is_single_token(piece)
    noise = random.Random(1)
    strangers = ["".join(noise.choice("bcdfghjklmnpqrstvwxz") for _ in range(9)) for _ in range(2_000)]
    assert sum(map(is_single_token, strangers)) < 100


def test_filter_holds_the_vocabulary() -> None:
    splintr = pytest.importorskip("splintr", reason="splintr-rs is not installed: the filter was not checked")
    vocabulary = splintr.Tokenizer.from_pretrained("o200k_base")
    shape = re.compile(r" ([a-z]{5,13})|([\u3400-\u9fff]{1,4})|( ?[\uac00-\ud7a3]{1,4})")
    found = 0
    for number in range(199_998):
        match = shape.fullmatch(vocabulary.decode_lossy([number]))
        if match is not None:
            found += 1
            assert is_single_token(next(filter(None, match.groups()))), match[0]
    assert found > 40_000


# -- counters by name


def test_auto_always_finds_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_token_counter().count("hello world") >= 2
    monkeypatch.setattr(token_counters, "_is_installed", lambda _: False)
    counter = load_token_counter()
    assert isinstance(counter, EstimateCounter)
    assert (counter.name, counter.is_exact) == ("estimate_v1", False)
    assert counter.count_many(["", "one two"]) == [0, counter.count("one two")]


@pytest.mark.parametrize("name", ["splintr", "bpe_openai", "tiktoken"])
def test_a_missing_package_says_how_to_get_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_counters, "_is_installed", lambda _: False)
    with pytest.raises(MissingDependency) as caught:
        load_token_counter(name)
    assert "pip install" in str(caught.value.hint)


@pytest.mark.parametrize("name", ["", "o300k", "AUTO", "x" * 10_000])
def test_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="no token counter is called"):
        load_token_counter(name)


@pytest.mark.parametrize("package", ["splintr", "bpe_openai"])
def test_exact_counters(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"optional: {package} is not installed: its counts were not tested")

    def refuse(*_args: Any, **_options: Any) -> None:
        raise AssertionError("something reached for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    counter = load_token_counter(package)
    assert isinstance(counter, ExactCounter)
    assert (counter.name, counter.is_exact) == ("o200k_base", True)
    known = {"": 0, "hello world": 2, "<|endoftext|>": 7, "你好，世界": 3, "안녕하세요": 2, " 1234567": 4}
    assert {text: counter.count(text) for text in known} == known
    assert counter.count_many(list(known)) == list(known.values())
    assert counter.count("\ud800") == counter.count("?")


def test_exact_counters_agree() -> None:
    here = [name for name in ("splintr", "bpe_openai") if importlib.util.find_spec(name) is not None]
    if len(here) < 2:
        pytest.skip("optional: fewer than two exact tokenizers are installed: they were not compared")
    one, two = (load_token_counter(name) for name in here)
    for text in (*SAMPLES.values(), *RUNS.values()):
        assert one.count(text) == two.count(text)


_LINE_SIGNS = " \t\n\r\v\f\x1c\x85\xa0\u2028\u3000/.,!?'\"#[](){}<>|-_=+*&^%$@~`:;aAéßñ0129٣你好안가あア\u0301\u200dя🎉"
_LINE_STARTS = "#-[goal2你안я🎉.'(_\u0301"


@given(
    st.lists(
        st.tuples(st.sampled_from(_LINE_STARTS), st.text(_LINE_SIGNS, max_size=30) | st.text(max_size=30)),
        min_size=1,
        max_size=8,
    )
)
def test_the_tokens_of_lines_add_up(parts: list[tuple[str, str]]) -> None:
    """What is counted line by line is what the page counts for, whatever stands within the lines."""
    counter = exact_or_skip()
    assert adds_lines(counter)
    lines = [f"{start}{rest}\n" for start, rest in parts]
    assert sum(counter.count_many(lines)) == counter.count("".join(lines))


def test_a_mark_counts_for_the_same_whatever_its_number() -> None:
    counter = exact_or_skip()
    for form in (
        "[{}] Ana: so it was\n",
        "- city: Berlin [{}]\n",
        "said [1]({}), [{}]: “no”\n",
        "你好[{}]。\n",
        "x[{}]y",
    ):
        assert len({counter.count(form.replace("{}", str(number))) for number in range(1, 1000)}) == 1


@pytest.mark.parametrize("counter", [EstimateCounter(), CountBy()])
def test_other_counters_say_nothing_of_lines(counter: TokenCounter) -> None:
    assert not adds_lines(counter)


def test_tiktoken_is_used_only_with_a_whole_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It downloads a vocabulary that is missing or damaged, so neither may count as present."""
    monkeypatch.setattr(token_counters, "_is_installed", lambda package: package == "tiktoken")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert isinstance(load_token_counter(), EstimateCounter)
    with pytest.raises(MissingDependency, match="cached vocabulary"):
        load_token_counter("tiktoken")
    path = tmp_path / token_counters._TIKTOKEN_FILE
    path.write_bytes(b"damaged")
    assert isinstance(load_token_counter(), EstimateCounter)
    monkeypatch.setattr(token_counters, "_TIKTOKEN_SHA256", sha256(b"damaged").hexdigest())
    assert isinstance(load_token_counter(), ExactCounter)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert isinstance(load_token_counter(), EstimateCounter)
