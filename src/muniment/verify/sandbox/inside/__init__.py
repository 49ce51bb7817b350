"""Files placed in sandboxes: a few files of /etc, the forwarder, and the two sides of a judged suite.

Nothing here runs outside a sandbox or imports more than Python's standard library (and pytest, in `judge`). `serve`
runs with the code under test; `judge` and its stubs run in a sandbox that holds none of it; `wire` is their protocol.
"""
