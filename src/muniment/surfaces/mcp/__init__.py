"""MCP: six tools or more, resources and prompts over one fixed scope, for agents that a model drives."""
