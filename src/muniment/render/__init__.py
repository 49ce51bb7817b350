"""From a MemoryPacket to what a model reads, and from its answer back to the evidence. Checks before it shows.

`rendering.render` refuses what does not hold, composed by us or not; `messages` has the two common wire
forms; `answers` resolves marks. For people: `narrative` tells a compaction snapshot, `snapshot_diff` compares two.
"""
