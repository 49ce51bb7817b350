"""Research runs (003): from a question to perspectives, from outputs to checked claims and a pack bounded in bytes.

Pure: functions of records and policy. It reads no page and asks no model; whether a source supports a claim is said by
the fact checker, which is handed in (`judging`).
"""
