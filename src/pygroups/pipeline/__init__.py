"""The Spark pipeline: reads journals, judges the promises, measures.  The pipeline imports `pygroups.journal` only.  In
names of columns, tables and functions, `life` stands for one incarnation of a process in a group."""
