"""From a request and a pool to a MemoryPacket: pure, in a fixed order, within the budget, explained.

`composition.compose` is the way in. Nothing here searches, reads a clock or keeps state between two calls.
"""
