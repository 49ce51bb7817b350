"""Moving in and out: a user's memory in one neutral file, what other systems export read into it, and the way back.

What comes in is never told as observed: every event says which system it comes from, and what another system worded
has the trust of what is outside. Files are JSON, text, or archives of these, read with bounds and never run. Nothing
here goes to a network.

Read `portable`, `sources`, then `importing` and `exporting`. `formats` says what other systems' files mean and is pure;
`sources` opens files.
"""
