"""What is drawn from a seed: a schedule, which is a list of steps, as data."""
