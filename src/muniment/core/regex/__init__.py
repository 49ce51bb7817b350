"""Regular expressions that users write, searched in time linear in the text."""
