"""Files of other systems, opened: large JSON by its elements, and archives, none of them believed.

What is read here was written by somebody else. Nothing is run, nothing is unpacked to disk, every size is bounded, and
what a reader does not know it refuses with a typed error.
"""
