"""The Spark pipeline: reads journals, judges the promises, measures. The pipeline imports `pygroups.journal` only."""
