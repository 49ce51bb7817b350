"""The demos of the command line, each played in a store that is deleted at the end."""
