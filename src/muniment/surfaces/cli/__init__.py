"""The command line. Each command is a module of its own, loaded only when it is called."""
