"""Long runs (002): what entries make of a run, its snapshots, and whether they hold.

Pure: no clock, no ids, no storage. The runtime brings entries, stored bytes and times, and writes what comes out.
"""
