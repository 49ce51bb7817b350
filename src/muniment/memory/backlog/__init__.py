"""What was loaded in bulk and waits for its index: how much there is, and bringing it in, a piece at a time."""
