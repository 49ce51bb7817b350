"""The rulebook (001, RC-14 to RC-16): rules chosen for a run, counted, linted. Pure; it activates nothing."""
