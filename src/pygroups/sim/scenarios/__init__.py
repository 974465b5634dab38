"""Scenarios: situations that a test describes in a few lines."""
