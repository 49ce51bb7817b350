"""What a stretch of conversation was about, in its own words: sentences, episodes, open loops. Extractive and pure."""
