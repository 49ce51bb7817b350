"""Languages besides English: each is a file of words and patterns in `data`, read by one engine.

`tables` makes patterns out of a file, `mentions` tells of whom a place in a sentence speaks, `values` reads what stands
in a slot, `reading` puts them together, `choice` tells which language a sentence is in. No language has its own code.
"""
