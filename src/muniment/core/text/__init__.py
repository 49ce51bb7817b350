"""Bytes and words: canonical JSON, hashing, time stamps. Pure; never reads a clock, a file or the environment."""
