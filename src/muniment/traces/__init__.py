"""Traces: what an agent that is traced by OpenTelemetry said and did, read as conversations, written into the ledger.

Read `ingesting` first, which orders the steps: `otlp` reads what an exporter sends (OTLP as protobuf or JSON, a file of
the collector, the console's JSON), `dialects` finds the messages in a span by whichever conventions it was written,
`units` puts them into one form, `placing` says whose they are, and `aligning` which of them are new.

It never sends anything, never follows an address, never invents what an emitter left out, and writes through a run's
own door alone.
"""
