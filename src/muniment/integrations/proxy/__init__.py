"""`muniment proxy`: a memory in front of any model server, for whoever can change a `base_url` and nothing else.

    muniment proxy --upstream https://api.openai.com --db agent.db
    OpenAI(base_url="http://127.0.0.1:8766/v1", default_headers={"muniment-user": "ana"})

What asks a model (Chat Completions, Responses, Anthropic's Messages) is recorded and told a packet, as a wrapped client
does it (`integrations.wrapping`): what is recorded, what is left out and where the packet goes is decided there, and
only there. Everything else passes through byte for byte, and so does every answer.

Read in this order: `routes` (which request asks a model, where it goes, which headers go with it), `callers` (whose
memory it is), `spans` (a packet put into the bytes of a request), `tee` (an answer read while it passes); these decide
and touch nothing. Then `settings`, `exchange` (one request, from its body to the last byte of the answer), `app` (the
ASGI application) and `serving` (a port). It never changes an answer, and keeps no key of an upstream.
"""
