"""Import and export: a user's memory in one neutral file, other systems' exports read into it, and the way back.

Imported content is never presented as observed: every event names its source system, and text worded by another system
has the trust of outside content. Files are JSON, text, or archives of these, read within bounds and never run. Nothing
here uses the network.

Read `portable`, `sources`, then `importing` and `exporting`. `formats` interprets other systems' files and is pure;
`sources` opens files.
"""
