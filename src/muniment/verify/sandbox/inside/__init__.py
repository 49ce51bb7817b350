"""What is put into sandboxes: a few files of /etc, the forwarder, and the two sides of a judged suite.

Nothing here runs outside of a sandbox, and nothing of it imports more than Python's own library (and pytest, in
`judge`). `serve` runs beside the code under test; `judge` and `stubs` run in a sandbox that holds none of it; `wire`
is what both speak.
"""
