"""Which messages a span holds, by the conventions it was written with: the GenAI conventions, and older or other ones."""
