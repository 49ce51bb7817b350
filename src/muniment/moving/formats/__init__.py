"""Readers of other systems' files: parsed values in, items of the neutral file out, each with its place.

Pure: nothing here opens a file or knows a store. A bad item is reported as left out, never raised.
"""
