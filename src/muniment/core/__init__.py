"""The base of every other room: canonical JSON, records, text, time, ports, policy, statistics, predicates.

Nothing here knows of a ledger, a packet or a rule. It never imports another room, and apart from `outside` (the clock,
fresh ids, HTTP, token counters) it is pure: the time, ids and seeds come in as arguments.

Read `record` (what every record shares), `requests` (how arguments are checked), `canonical` (the bytes that are hashed
and stored), `scope`, `ports.engine` (what a storage engine can do) and `ports.schema` (the tables), then `policy`. Read
`text`, `stats`, `predicates` and `regex` as needed.
"""
