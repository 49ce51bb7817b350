"""Days and periods named in texts and questions."""
