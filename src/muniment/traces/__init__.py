"""OpenTelemetry traces of an agent, read as conversations and written into the ledger.

Read `ingest` first, which orders the steps: `otlp` parses what an exporter sends (OTLP as protobuf or JSON, a collector
file, the console's JSON), `dialects` finds the messages in a span under any convention, and `sessions` works out their
user and which of them are new.

Nothing is sent, no address is followed, and content that an emitter left out is never made up.
"""
