"""What a hint says and what it is like: episodes in words, several as one, runs by their tools. Pure."""
