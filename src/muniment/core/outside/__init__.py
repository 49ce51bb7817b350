"""The outside world behind the small ports: clock, ids, HTTP, token counters."""
