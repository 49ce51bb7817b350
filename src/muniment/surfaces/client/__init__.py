"""The library's API over HTTP: `muniment.connect`."""
