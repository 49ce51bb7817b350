"""What can be done with a store from outside, declared once: server, client, OpenAPI and docs are read off this."""
