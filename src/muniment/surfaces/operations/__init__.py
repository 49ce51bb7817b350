"""The operations on a store available from outside, declared once: server, client, OpenAPI and docs derive from
this.
"""
