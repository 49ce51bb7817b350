"""Which messages a span holds, by the conventions it was written with: GenAI's own, and older or other ones."""
