"""The four documents as code: their records, kinds, JSON Schemas and semantic rules.

Each record of MemoryPacket, Rulecraft, the compaction snapshot and the research schemas is defined here once, with the
documents' own names. Pure functions of data: never reads a file, a clock or a store, and imports `core` alone.

Read `kinds` (every kind and its record), then the record you need (`packet`, `runs`, `learning`, `rules`, `snapshot`,
`research`), `schemas`, and `semantics` for rules that a schema cannot express.
"""
