"""The working state of a run."""
