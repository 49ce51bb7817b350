"""MCP: six tools or more, resources and prompts over one fixed scope, for agents driven by a model."""
