"""Measures: what a group did, in numbers. One family per file; each function turns a history into a small table.

A row of `runs` stands for a whole run, so everything that counts messages weighs a row by its `count`; nothing is
exploded to single messages. Rows are aggregated by keys; names are joined last, to what is left.
`docs/measures.md` says what each number means and where it may mislead.
"""
