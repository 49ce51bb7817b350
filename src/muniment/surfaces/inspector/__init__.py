"""The inspector: a page that answers "why was my agent told this?". Its source is the folder `inspector/`."""
