"""What a packet must contain: labelled stores and requests, and a score for whatever is handed to a model."""
