"""Measures: what a group did, in numbers. One family per file; each function turns records into a small table.

A row of the journal stands for a whole run, so everything that counts messages weighs a row by its `count`; nothing is
exploded to single messages. `docs/measures.md` says what each number means and where it may mislead.
"""
