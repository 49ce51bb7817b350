"""The pages at `/docs`: the OpenAPI document for people, made on the server; no script, no other host."""
