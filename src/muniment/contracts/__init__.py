"""The four documents as code: their records, which kinds there are, their JSON Schemas, whether a document holds.

Each record of MemoryPacket, Rulecraft, the compaction snapshot and the research schemas stands here once, with the
documents' own names. Pure functions of data: never reads a file, a clock or a store, and imports `core` alone.

Read `kinds` (every kind and its record), then the record you are after (`packet`,
`runs`, `learning`, `rules`, `snapshot`, `research`), `schemas`, and `semantics` for rules that a shape cannot express.
"""
