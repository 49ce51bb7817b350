"""What turns text into vectors, by name."""
