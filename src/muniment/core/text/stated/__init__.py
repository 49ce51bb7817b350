"""What a text states: of whom, of what kind, and with which value."""
