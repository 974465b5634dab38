"""Situations that a test plays in a few lines."""
