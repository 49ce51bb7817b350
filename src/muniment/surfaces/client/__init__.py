"""The library's own face over HTTP: `muniment.connect`."""
