"""Hottest hours of two cities, computed by Spark while a group sends the temperatures.

    pip install 'pygroups[spark]'
    python examples/spark_stream.py

Two members send hourly temperatures, each those of one city, and keep archives: journals with the messages in them.
Spark reads the archives as a stream, which has each message once, in the order of the group.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import tempfile
import threading
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from pygroups import View
from pygroups.sync import Channel

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUP = "temperatures"
CITIES = {"seattle": "seattle-temps", "san francisco": "sf-temps"}
HOURS_A_DAY = 24


def temperatures(city: str, hours: int) -> Iterator[dict[str, object]]:
    """The first hours of 2010, in degrees Fahrenheit."""
    file = resources.files("pygroups.cli") / "data" / f"{CITIES[city]}.csv.gz"
    rows = csv.DictReader(gzip.decompress(file.read_bytes()).decode().splitlines())
    for _, row in zip(range(hours), rows, strict=False):
        yield {"city": city, "hour": row["date"][:16].replace("/", "-"), "degrees": float(row["temp"])}


def send(city: str, hours: int, folder: Path) -> None:
    """A member that sends the temperatures of a city, and keeps an archive."""
    found, archive = f"dir:{folder / 'found'}", folder / "journal"
    name = city.replace(" ", "-")
    with Channel(GROUP, name=name, discovery=found, journal=archive, journal_payloads=True, min_members=2) as channel:
        for row in temperatures(city, hours):
            channel.send(json.dumps(row).encode())
        channel.send(b"{}", until="stable")
        for event in channel:  # until the other city is done too
            if isinstance(event, View) and len(event.members) == 1:
                break


def hottest(arrived: DataFrame) -> DataFrame:
    """For each city and whole day the hottest hour."""
    from pyspark.sql import functions as F

    told = F.from_json(arrived["payload"].cast("string"), "city string, hour string, degrees double")
    rows = arrived.select(told.alias("told")).select("told.*").where("city is not null")
    days = rows.groupBy("city", F.substring("hour", 1, 10).alias("day")).agg(
        F.max_by("hour", "degrees").alias("hour"), F.max("degrees").alias("degrees"), F.count("hour").alias("hours")
    )
    return days.where(f"hours = {HOURS_A_DAY}").drop("hours")


def computed(spark: SparkSession, folder: Path, done: threading.Event) -> None:
    """Print the days of each batch, until the members are done and everything they sent is computed."""
    journal, checkpoint = folder / "journal" / GROUP, folder / "checkpoint"

    def show(days: DataFrame, number: int) -> None:
        for row in sorted(days.collect()):
            print(f"{row.city} {row.day}: {row.degrees} F at {row.hour[11:]}", flush=True)

    last = False
    while not last:
        last = done.is_set()  # what was sent before is in the archives now
        arrived = spark.readStream.format("pygroups").option("table", "ordered").load(str(journal))
        query = hottest(arrived).writeStream.outputMode("update").foreachBatch(show)
        query = query.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        try:
            query.start().awaitTermination()
        except Exception as error:  # a class of Spark Connect or of the JVM
            if "failed to connect back" not in str(error):
                raise
            last = False  # the machine is busy: Spark had no process within 10 s, and the checkpoint is as it was


def main(days: int) -> None:
    from pygroups.pipeline.session import make_session

    done = threading.Event()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        members = [threading.Thread(target=send, args=(city, HOURS_A_DAY * days, folder)) for city in CITIES]
        for member in members:
            member.start()
        threading.Thread(target=lambda: ([member.join() for member in members], done.set())).start()
        spark = make_session(master="local[2]", small=True)
        try:
            while not list((folder / "journal").glob("*/*/*.journal")):
                done.wait(0.1)
            computed(spark, folder, done)
        finally:
            spark.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=14, help="of the year 2010, at most 364")
    main(parser.parse_args().days)
