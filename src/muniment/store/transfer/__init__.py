"""Export and import of whole scopes."""
