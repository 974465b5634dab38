"""A check for each promise, which runs while a schedule runs."""
