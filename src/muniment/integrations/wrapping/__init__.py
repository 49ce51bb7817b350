"""`muniment.wrap`: OpenAI's and Anthropic's clients, and others with their calls, with a memory.

    client = muniment.wrap(OpenAI(), mem, user_id="ana", session_id="s1")
    answer = client.chat.completions.create(model="…", messages=messages)      # the client's own answer
    answer.muniment_build_id, client.last_build                                # the packet

Each call records the new messages of the caller's list, composes for its last question, sends the packet with that
question, and records the answer with its build. It imports neither package.

Read in this order: `dialects` (each API's message list, system prompt and answer), `answers` (assembling streamed
answers), `placing` (where a packet goes), `conversation` (memory's part of one call, through `integrations.session`),
`streams` and `clients` (observing and passing through the client's own objects). The first three are free of I/O.
"""

from muniment.integrations.wrapping.clients import WrappedClient, wrap

__all__ = ["WrappedClient", "wrap"]
