"""Files and web addresses of a research run."""
