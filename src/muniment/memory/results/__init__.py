"""A tool's call as a line of text, and the parts of a long result that are shown. Pure."""
