"""Embedders: names, checked answers, the same bits in any company, weights that are what they should be."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_onnx import WORDS, write_model

import muniment
from muniment.errors import (
    EmbedderFailure,
    EmbedderMalformed,
    EmbedderRefused,
    EmbedderUnreachable,
    IntegrityFailure,
    InvalidInput,
    MissingDependency,
)
from muniment.memory.embedding import CheckedEmbedder, check_embedder, load_embedder
from muniment.memory.outside import onnx_embedder
from muniment.memory.outside.openai_embedder import OpenAiEmbedder
from muniment.testing.hash_embedder import HashEmbedder
from products import for_each

TEXTS = ["the cat sat", "the dog", "", "  \n", "她昨天", "the cat sat", "the " * 700, "\ud800 a lone surrogate"]
EMPTY = (2, 3)


def loaded(name: str) -> CheckedEmbedder:
    found = load_embedder(name)
    assert found is not None
    return found


@pytest.fixture(params=["hash", "onnx"])
def embedder(request: pytest.FixtureRequest, tmp_path: Path) -> CheckedEmbedder:
    if request.param == "hash":
        return loaded("hash")
    pytest.importorskip("onnxruntime")
    return loaded(f"onnx:{write_model(tmp_path / 'tiny')}")


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: Any, **_options: Any) -> None:
        raise AssertionError("something reached for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


# -- the port


def test_rows_are_unit_or_zero(embedder: CheckedEmbedder) -> None:
    rows = embedder.embed_passages(TEXTS)
    assert rows.shape == (len(TEXTS), embedder.dim)
    assert rows.dtype == np.float32
    for at, length in enumerate(np.linalg.norm(rows, axis=1)):
        assert length == pytest.approx(0.0 if at in EMPTY else 1.0, abs=1e-6)
    assert embedder.embed_queries([]).shape == (0, embedder.dim)


@pytest.mark.usefixtures("no_network")
def test_same_bits_in_any_batch_and_order(embedder: CheckedEmbedder) -> None:
    for embed in (embedder.embed_passages, embedder.embed_queries):
        together = embed(TEXTS)
        assert np.array_equal(together, np.concatenate([embed([text]) for text in TEXTS]))
        assert np.array_equal(together, embed(TEXTS[::-1])[::-1])


class TwoSided:
    """One that tells queries from passages, and remembers its batches."""

    identity, dim = "two-sided@1", 2

    def __init__(self) -> None:
        self.batches: list[int] = []

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        return [[2.0, 0.0] for _ in texts]

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        self.batches.append(len(texts))
        return [[0.0, 3.0] for _ in texts]


def test_queries_and_passages_are_embedded_apart_and_in_batches() -> None:
    given = TwoSided()
    checked = check_embedder(given)
    assert checked is not None
    assert checked.embed_queries(["where?"]).tolist() == [[1.0, 0.0]]
    assert checked.embed_passages(["there"] * 150).tolist() == [[0.0, 1.0]] * 150
    assert given.batches == [64, 64, 22]


def test_an_embedder_with_embed_alone_reads_both_alike() -> None:
    class Plain:
        identity, dim = "plain@1", 3

        def embed(self, texts: Sequence[str]) -> Any:
            return np.full((len(texts), 3), len(texts[0]))

    checked = check_embedder(Plain())
    assert checked is not None
    assert checked.embed_queries(["a"]).tolist() == checked.embed_passages(["a"]).tolist()


@for_each("port", [
    {"identity": "", "dim": 2}, {"identity": "two\nlines", "dim": 2}, {"identity": "x" * 300, "dim": 2},
    {"identity": 5, "dim": 2}, {"identity": "a@1", "dim": -1}, {"identity": "a@1", "dim": 2.0},
    {"identity": "a@1", "dim": True}, {"identity": "a@1"}, {"dim": 2},
])  # fmt: skip
def test_a_wrong_identity_or_dimension_is_refused_when_a_store_is_opened(port: dict[str, Any]) -> None:
    given = type("Wrong", (), {**port, "embed": lambda self, texts: [[1.0, 0.0] for _ in texts]})()
    with pytest.raises(InvalidInput) as caught:
        muniment.open(":memory:", embedder=given)
    assert caught.value.path.startswith("$.embedder")


def test_an_embedder_without_dimensions_is_none() -> None:
    nothing = type("Nothing", (), {"identity": "none", "dim": 0, "embed": None})()
    assert check_embedder(nothing) is check_embedder("none") is check_embedder(None) is None


@for_each("answer", [
    [], None, [[1.0]], [[1.0, 2.0, 3.0]], [[1.0, float("nan")]], [["a", "b"]], [[1.0, 0.0]] * 2, [[1.0, 0.0], [1.0]],
])  # fmt: skip
def test_answers_that_are_no_table_of_vectors_are_refused(answer: Any) -> None:
    given = TwoSided()
    given.embed_passages = lambda _texts: answer  # type: ignore[method-assign]
    with pytest.raises(EmbedderMalformed):
        CheckedEmbedder(given).embed_passages(["a"])


def test_an_embedder_that_becomes_another_is_refused() -> None:
    given = TwoSided()
    checked = check_embedder(given)
    assert checked is not None
    given.identity = "another@2"
    with pytest.raises(EmbedderMalformed, match="another@2"):
        checked.embed_passages(["a"])


# -- names


@for_each("name", ["", "bert", "NONE", "hash:12", "e5-small:x", "onnx:", "e5-small\n", "x" * 10_000])
def test_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        load_embedder(name)
    assert len(caught.value.message) < 200


def test_another_package_adds_an_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        name = "theirs"

        def load(self) -> Callable[[str], Any]:
            return lambda rest: type("Theirs", (HashEmbedder,), {"identity": f"theirs-{rest}@1"})()

    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: [Entry()] if group == "muniment.embedders" else []
    )
    with muniment.open(":memory:", embedder="theirs:large") as mem:
        assert mem._ctx.embedder is not None
        assert mem._ctx.embedder.identity == "theirs-large@1"


# -- ONNX


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.usefixtures("no_network", "home")
@pytest.mark.parametrize("name", ["e5-small", "multilingual-e5-small"])
def test_missing_weights_say_exactly_how_to_get_them(name: str) -> None:
    with pytest.raises(MissingDependency, match=name) as caught:
        muniment.open(":memory:", embedder=name)
    hint = caught.value.hint or ""
    assert f"hf download intfloat/{name} " in hint
    assert 'pip install "muniment[embed]" huggingface_hub' in hint
    assert str(Path.home() / ".muniment" / "models" / name) in hint


@pytest.mark.parametrize("where", ["hub", "own"])
def test_pinned_weights_are_found_and_others_refused(home: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    pytest.importorskip("onnxruntime")
    folder = home / ".muniment" / "models" / "e5-small"
    if where == "hub":
        held = home / ".cache" / "huggingface" / "hub" / "models--intfloat--e5-small"
        (held / "refs").mkdir(parents=True)
        (held / "refs" / "main").write_text("b" * 40)
        write_model(held / "snapshots" / ("a" * 40), seed=1)
        folder = held / "snapshots" / ("b" * 40)
    write_model(folder)
    with pytest.raises(IntegrityFailure) as caught:
        load_embedder("e5-small")
    assert caught.value.details["sha256"] == list(onnx_embedder.digests_of(folder / "model.onnx"))
    pinned = onnx_embedder.E5_SMALL._replace(pins=frozenset((onnx_embedder.digests_of(folder / "model.onnx"),)))
    monkeypatch.setattr(onnx_embedder, "E5_SMALL", pinned)
    found = loaded("e5-small")
    assert found.identity.startswith("e5-small@1-6-")
    # the two sides are read under their prefixes
    assert not np.array_equal(found.embed_queries(["the cat"]), found.embed_passages(["the cat"]))


def test_a_folder_says_how_its_model_reads(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    first = loaded(
        f"onnx:{write_model(tmp_path / 'a', files={'1_Pooling/config.json': {'pooling_mode_cls_token': True}})}"
    )
    mean = loaded(f"onnx:{write_model(tmp_path / 'b')}")
    assert np.array_equal(first.embed_passages(["cat dog"]), first.embed_passages(["cat"]))
    table = mean.embed_passages(["cat", "dog"]).astype(np.float64)
    assert not np.array_equal(mean.embed_passages(["cat dog"])[0], table[0])
    prompts = {"config_sentence_transformers.json": {"prompts": {"query": "query: ", "passage": "passage: "}}}
    told = loaded(f"onnx:{write_model(tmp_path / 'c', files=prompts)}")
    assert np.array_equal(told.embed_queries(["cat"]), mean.embed_passages(["query: cat"]))
    assert np.array_equal(told.embed_passages(["cat"]), mean.embed_passages(["passage: cat"]))


def test_long_texts_are_cut_counted_and_told_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("onnxruntime")
    cut = loaded(f"onnx:{write_model(tmp_path / 'a', files={'sentence_bert_config.json': {'max_seq_length': 3}})}")
    rows = cut.embed_passages(["the cat sat", "the cat sat dog", "the cat sat the dog"])
    assert np.array_equal(rows[0], rows[1])
    assert cut.truncated == 2
    cut.embed_passages(["the cat sat dog"])
    assert cut.truncated == 3
    assert [record.name for record in caplog.records] == ["muniment.embedding"]


def test_the_identity_moves_with_weights_tokenizer_and_reading(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    made = {
        "one": write_model(tmp_path / "1" / "m"),
        "same": write_model(tmp_path / "2" / "m"),
        "other weights": write_model(tmp_path / "3" / "m", seed=1),
        "shorter": write_model(tmp_path / "4" / "m", files={"sentence_bert_config.json": {"max_seq_length": 9}}),
        "other tokenizer": write_model(tmp_path / "5" / "m"),
    }
    tokenizer = made["other tokenizer"] / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text().replace(WORDS[2], "cow"))
    found = {name: loaded(f"onnx:{folder}").identity for name, folder in made.items()}
    assert found["one"] == found["same"]
    assert len(set(found.values())) == 4
    assert found["one"].startswith("m@1-6-")


@pytest.mark.parametrize("damage", ["weights", "tokenizer", "settings", "empty"])
def test_damaged_files_are_an_integrity_failure(tmp_path: Path, damage: str) -> None:
    pytest.importorskip("onnxruntime")
    folder = write_model(tmp_path / "m")
    if damage == "empty":
        with pytest.raises(MissingDependency, match=r"model\.onnx"):
            load_embedder(f"onnx:{tmp_path}")
        return
    name = {"weights": "model.onnx", "tokenizer": "tokenizer.json", "settings": "sentence_bert_config.json"}[damage]
    (folder / name).write_bytes(b"[1, 2")
    with pytest.raises(IntegrityFailure):
        load_embedder(f"onnx:{folder}")


@pytest.mark.timeout(120)
def test_very_long_texts_are_embedded(embedder: CheckedEmbedder) -> None:
    embedder.embed_passages(["x" * 1_000_000, "word " * 200_000, "书" * 1_000_000])


def test_e5_small_knows_meaning() -> None:
    try:
        found = loaded("e5-small")
    except MissingDependency:
        pytest.skip("optional: the weights of e5-small are not on this machine")
    query = found.embed_queries(["What should I cook for somebody who must not eat nuts?"])[0]
    near = (
        found.embed_passages(['Ana said: "I am allergic to peanuts."', 'Ana said: "The train leaves at nine."']) @ query
    )
    assert near[0] > near[1] + 0.02


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


def client(server: Server, **options: Any) -> OpenAiEmbedder:
    return OpenAiEmbedder(server.url, "m", **{"timeout_s": 5.0, "sleep": lambda _: None, **options})


def test_http_embeds_in_order_and_in_batches(server: Server) -> None:
    embedder = CheckedEmbedder(client(server, batch_texts=2, api_key="secret"))
    rows = embedder.embed_passages(["a", "", "bbb", "  ", "cc"])
    assert rows.dtype == np.float32
    assert rows[1].tolist() == rows[3].tolist() == [0.0, 0.0, 0.0]
    assert rows[2] == pytest.approx(np.array([3.0, 3.0, 4.0]) / np.sqrt(34.0))
    assert [request["input"] for request in server.requests if request["input"] != ["dimension"]] == [
        ["a", "bbb"],
        ["cc"],
    ]
    assert server.headers[0]["authorization"] == "Bearer secret"


def test_http_is_not_contacted_at_load_and_asks_for_the_dimension_once(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with muniment.open(":memory:", embedder=f"openai:{server.url}#some/model:v2") as mem:
        mem.run(user_id="ana").observe("user", "Hello.")
    embedder = loaded(f"openai:{server.url}#some/model:v2")
    assert server.requests == []
    assert embedder.dim == 3
    assert embedder.identity == embedder.identity
    assert "some/model:v2@1-3-" in embedder.identity
    assert "secret" not in embedder.identity
    assert len(server.requests) == 1
    assert server.headers[0]["authorization"] == "Bearer secret"
    assert embedder.identity != OpenAiEmbedder(server.url + "/x", "some/model:v2").identity


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
        embedder = OpenAiEmbedder(f"http://127.0.0.1:{taken.getsockname()[1]}", "m", sleep=waits.append)
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


def test_a_name_that_cannot_be_loaded_points_at_the_argument() -> None:
    for name in ("nobody", "", "onnx:", "e5-small:more", "multilingual-e5-small:x", "openai:http://localhost:1/v1"):
        with pytest.raises(InvalidInput) as caught:
            muniment.open(":memory:", embedder=name)
        assert caught.value.path == "$.embedder", name
