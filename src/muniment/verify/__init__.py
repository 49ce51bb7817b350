"""Static checks, fact checking, regression tests: what can be said of an output without a model."""
