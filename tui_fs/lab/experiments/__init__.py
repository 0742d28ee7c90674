"""One file an experiment; each holds a value named EXPERIMENT."""
