"""An agent's Markdown, read."""
