"""Where people meet muniment: the command line now; HTTP, MCP and the inspector later. Nothing is decided here."""
