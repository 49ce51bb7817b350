"""`muniment proxy`: a memory in front of any model server, for clients where only the `base_url` can be changed.

    muniment proxy --upstream https://api.openai.com --db agent.db
    OpenAI(base_url="http://127.0.0.1:8766/v1", default_headers={"muniment-user": "ana"})

Model requests (Chat Completions, Responses, Anthropic's Messages) are recorded and get a packet, as in a wrapped client
(`integrations.wrapping`), which alone decides what is recorded, what is left out and where the packet goes. Everything
else passes through byte for byte, and so does every answer.

Read in this order: `routes` (model requests, upstream addresses, headers), `callers` (the user and session), `spans`
(inserting a packet into the bytes of a request), `tee` (reading an answer as it passes); these are free of I/O. Then
`settings`, `exchange` (one request, from its body to the last byte of the answer), `app` (the ASGI application) and
`serving` (a port). It never changes an answer, and stores no upstream key.
"""
