"""Spark imports every installed module named `pyspark_*` and registers its `DefaultSource`: `.format("pygroups")`."""

from pygroups.pipeline.source import GroupsDataSource


class DefaultSource(GroupsDataSource):
    """The data source `pygroups` under the name that Spark looks for."""
