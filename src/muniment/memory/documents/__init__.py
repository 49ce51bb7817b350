"""Documents as chunks: what a text, Markdown or HTML source says, cut where it may be cut. Never stores anything."""
