"""`muniment.wrap`: OpenAI's and Anthropic's clients, and others with their calls, with a memory.

    client = muniment.wrap(OpenAI(), mem, user_id="ana", session_id="s1")
    answer = client.chat.completions.create(model="…", messages=messages)      # the client's own answer
    answer.muniment_build_id, client.last_build                                # what the model was told

Each call records what of the caller's list is new, composes for its last question, sends the packet behind the caller's
own system prompt, and records the answer with the build it was given. It needs neither package to be imported.

Read in this order: `dialects` (where each API has its list, its system prompt and its answer), `answers` (an answer
put together while it streams), `placing` (where a packet goes), `conversation` (what one call does with memory, through
`integrations.session`), `streams` and `clients` (the client's own objects, followed and passed through). The first
three decide and touch nothing.
"""

from muniment.integrations.wrapping.clients import WrappedClient, wrap

__all__ = ["WrappedClient", "wrap"]
