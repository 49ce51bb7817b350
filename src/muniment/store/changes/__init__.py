"""What changed in a user's scope after a position."""
