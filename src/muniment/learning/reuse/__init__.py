"""The reuse buffer (001 §4.8, RC-21): which seed to start from (PUCT), what goes when a store is full. Pure."""
