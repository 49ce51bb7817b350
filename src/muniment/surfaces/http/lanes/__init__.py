"""Request scheduling: requests wait in lanes, tenants share them, and each has a deadline.

Read `shares` first, which decides; then `running`, which has the threads; then `deadlines`. Nothing here knows what a
request does, or opens a store.
"""
