"""The Spark pipeline: reads journals, judges the promises, measures. It imports `pygroups.journal` only."""
