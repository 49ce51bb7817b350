"""What of memory is shown in lists, a page at a time: episodes, facts, candidates, documents."""
