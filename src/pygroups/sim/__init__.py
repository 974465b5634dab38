"""The deterministic world in which the same layers run, with faults and running checks."""
