"""The handles people hold: a memory, a run, and what stands on them."""
