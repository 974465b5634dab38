"""The protocols, one per file: no I/O, no clock, no threads; imports core only."""
