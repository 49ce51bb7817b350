"""MCP: nine tools, resources and prompts over one fixed scope, for agents that a model drives."""
