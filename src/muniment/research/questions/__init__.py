"""From a question to perspectives."""
