"""Whose turn it is, and for how long: requests wait in lanes, tenants share them, and each has a deadline.

Read `shares` first, which decides; then `running`, which has the threads; then `deadlines`. Nothing here knows what a
request asks for, or opens a store.
"""
