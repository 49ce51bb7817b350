"""Traces: what an agent that is traced by OpenTelemetry said and did, read as conversations, written into the ledger.

Read `ingest` first, which orders the steps: `otlp` reads what an exporter sends (OTLP as protobuf or JSON, a file of
the collector, the console's JSON), `dialects` finds the messages in a span by whichever conventions it was written, and
`sessions` says whose they are and which of them are new.

Nothing is sent, no address is followed, and what an emitter left out is not made up.
"""
