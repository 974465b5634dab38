"""Spark imports every installed module named `pyspark_*` and registers its `DefaultSource`: `.format("pygroups")`."""

from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from pygroups.pipeline.source import GroupsDataSource


class DefaultSource(GroupsDataSource):
    """The data source `pygroups` under the name that Spark looks for; it writes too."""

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pygroups.contrib.spark_sink import GroupWriter, target_of

        return GroupWriter(target_of(dict(self.options), schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from pygroups.contrib.spark_sink import GroupStreamWriter, target_of

        return GroupStreamWriter(target_of(dict(self.options), schema))
