"""What learning asks of the outside: a model that writes lessons, where a caller names one."""
