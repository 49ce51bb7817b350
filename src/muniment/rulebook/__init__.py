"""The rulebook (001: CandidateSelect, RC-14 … RC-16): rules chosen for a run, counted, linted. Pure; activates nothing."""
