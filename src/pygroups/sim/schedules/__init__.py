"""A schedule is a list of steps, as data; the modules of this package draw it from a seed."""
