"""The library over HTTP: a thin server whose routes are read off `surfaces.operations`."""
