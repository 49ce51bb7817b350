"""Ports to the outside world: protocols, and the values that cross them."""
