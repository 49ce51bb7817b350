"""What a model proposes (MP-17): the prompt, the budget, whose words count, and the checks of each proposal."""
