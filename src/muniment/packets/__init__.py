"""MemoryPackets: the context for one purpose within a token budget, each item cited, each omission explained.

A build keeps everything it was made of, so that it can be composed again to the byte. Nothing reaches a responder that
was not validated: the composer refuses it, and the renderer once more.

Read `builds` (a request from start to end), `gather` and `_run_section` (the pool of candidates), `sections` and
`conversation` (candidate lines, each with a worth and a way to shorten it), `allocate` (the budget), `compose` (the
packet), `page` and `layout` (the text), `render` (messages for a model). `compare` and `why` look at kept builds.
"""
