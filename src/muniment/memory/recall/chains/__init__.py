"""Questions that are followed from one statement to the next, and their turns put first. Pure."""
