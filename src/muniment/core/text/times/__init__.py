"""When: days and stretches of time that words name, in a text and in a question."""
