"""The outside world behind the small ports: the system clock, fresh ids. Later embedders, models, sandboxes."""
