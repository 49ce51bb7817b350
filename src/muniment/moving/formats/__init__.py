"""What the files of other systems mean: parsed values in, items of the neutral file out, each with its place.

Pure: nothing here opens a file, knows a store, or raises for one bad item, which is left out and said so.
"""
