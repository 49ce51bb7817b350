"""The engine that keeps everything in this process: for tests, trials and as the yardstick of the others."""
