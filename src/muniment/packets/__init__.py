"""MemoryPackets: what an agent is told for one purpose within a token budget, each item cited, each omission explained.

A build keeps everything it was made of, so that it can be composed again to the byte. Nothing reaches a responder that
was not validated: the composer refuses it, and the renderer once more.

Read `builds` (a request from start to end), `gathering` (the pool of candidates) and `run_state` (what the run is for
and where it stands), `compose.composition` and `compose.draft` (what stands in the packet, section by section),
`page.layout` and `rendering` (what a model reads).
`comparing`, `tracing` and `listing` look at builds that were kept; `searching` is what `run.search` does.
"""
