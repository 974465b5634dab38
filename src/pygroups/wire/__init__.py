"""Heads and runs to bytes and back, frames and the seal; imports core only."""
