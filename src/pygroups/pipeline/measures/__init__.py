"""Measures: the work of a group in numbers. One family per file; each function turns a history into a small table.

A row of `runs` stands for a whole run, so everything that counts messages weighs a row by its `count`; nothing is
exploded to single messages. Rows are aggregated by keys; names are joined last, to the small result.
`docs/measures.md` explains the meaning of each number, and the cases in which a number may mislead.
"""
