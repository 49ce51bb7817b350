"""MemoryPackets: the context for one purpose within a token budget, each item cited, each omission explained.

A build keeps all its inputs, so that it can be composed again byte for byte. Nothing unvalidated reaches a responder:
the composer refuses it, and so does the renderer.

Read `builds` (a request from start to end), `gather` and `_run_section` (the pool of candidates), `sections` and
`conversation` (candidate lines, each with a value and a way to shorten it), `allocate` (the budget), `compose` (the
packet), `page` and `layout` (the text), `render` (messages for a model). `compare` and `why` inspect kept builds.
"""
