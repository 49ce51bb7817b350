"""Who is in a tenant."""
