"""On which device each operator runs: a model of what a placement costs, and searches on it."""
