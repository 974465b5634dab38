"""Spark sessions: on this machine by default, on a cluster when asked.  Only commands make sessions."""

import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

from pygroups.pipeline.archive import archive_options

_LOG: Final = logging.getLogger("pygroups.pipeline")
JAVA_NEEDED: Final = 17
EXECUTOR_SECONDS: Final = 120  # until a cluster has run a first task
CONNECT_SECONDS: Final = 20  # until a server of Spark Connect is reached; Spark itself tries for many minutes
_QUIET_LOGGING: Final = Path(__file__).parent / "log4j2.properties"
_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.autoBroadcastJoinThreshold": "32m",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "64m",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "false",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
}
_OF_QUERIES: Final = ("spark.sql.", "spark.hadoop.")  # settings that a session can make in a server that runs already
_LOCAL_SETTINGS: Final = {
    "spark.sql.shuffle.partitions": "8",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1120m",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "32m",  # such a table is in memory for each of the tasks
}
# Above SMALL_BYTES: with this heap and collector the JVM and Python stay below 2 GB. The second compiler begins ten
# times as late: an audit has many short queries, and by default it compiles longer than the tasks run. Half of the heap
# is for new objects: the batches of a scan live for a short time.
_LARGE_JAVA: Final = (
    "-XX:+UseParallelGC -XX:NewRatio=1 -XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000"
    " -XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
# A small audit spends its time on compiling and planning, not on rows: the quick compiler only, no code generation,
# one task a stage. Above SMALL_BYTES of journals other settings are faster. By default the JVM collects the whole
# heap each time its classes outgrow a limit that begins at 21 MB: an audit loads 24,000 of them.
SMALL_BYTES: Final = 64 << 20
_SMALL_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=256m"
_SMALL_SETTINGS: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.minPartitionNum": "1",
}


class NoSpark(RuntimeError):
    """Spark cannot run here or in this way; the text is one sentence that names the missing program or option."""


def make_session(*, master: str | None = None, remote: str | None = None, small: bool = False) -> "SparkSession":
    """A session on `master` (default `local[*]`), or of the server of Spark Connect at `remote` (`sc://host:port`).

    With `small` it is tuned for start-up instead of throughput. Raises NoSpark if PySpark or Java is missing, if Spark
    does not start there, if a cluster runs no task within EXECUTOR_SECONDS, or if no server answers. Log4j is set to be
    quiet; Python workers use this interpreter. A server of Spark Connect has its own Java, log and interpreter.
    """
    try:
        import pyspark
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise NoSpark(f"the audit needs Spark ({error}): pip install 'pygroups[spark]'") from error
    if remote is not None:
        return _connected(remote, small=small)
    local = is_local(master)
    _quiet_py4j()
    _prepare_environment(local=local)
    check_java()
    java = [f"-Dlog4j2.configurationFile={_QUIET_LOGGING}"]
    if local:
        java += java_options(_SMALL_JAVA if small else _LARGE_JAVA, os.environ)
        java += archive_options() if small else []
    settings = _SETTINGS | (_LOCAL_SETTINGS if local else {}) | (_SMALL_SETTINGS if small else {})
    if sets_memory(os.environ, os.path.dirname(pyspark.__file__)):
        settings.pop("spark.driver.memory", None)
    builder = SparkSession.builder.appName("pygroups").master(master or "local[*]")
    for name, value in {**settings, "spark.driver.extraJavaOptions": " ".join(java)}.items():
        builder = builder.config(name, value)
    with _quiet_java() as said:
        try:
            session = builder.getOrCreate()
        except (PySparkException, Py4JError) as error:
            raise NoSpark(f"Spark does not start on {master or 'local[*]'}: {said(error)}") from error
    _quiet_end(session)
    if not local:
        _wait_for_executor(session)
    return session


def _connected(remote: str, *, small: bool) -> "SparkSession":
    """A session of the server of Spark Connect at `remote`.  From here on PySpark in this process uses Connect."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        from pyspark.sql.connect.client import DefaultChannelBuilder
    except ImportError as error:
        raise NoSpark(f"--remote needs Spark Connect ({error}): pip install 'pygroups[connect]'") from error
    logging.getLogger("pyspark.sql.connect").setLevel(logging.CRITICAL)
    try:
        place = DefaultChannelBuilder(remote)
        socket.create_connection((place.host, int(place.endpoint.rpartition(":")[2])), CONNECT_SECONDS).close()
        session = SparkSession.builder.remote(remote).getOrCreate()
        set_up(session, small=small)
    except (PySparkException, OSError) as error:
        raise NoSpark(f"no server of Spark Connect answers at {remote}: {_first_line(str(error))}") from error
    return session


def set_up(session: "SparkSession", *, small: bool) -> None:
    """Make the settings of queries in a session that somebody else's server has, for a small history or a large one."""
    for name, value in (_SETTINGS | (_SMALL_SETTINGS if small else {})).items():
        if name.startswith(_OF_QUERIES):
            session.conf.set(name.removeprefix("spark.hadoop."), value)


def is_remote(session: "SparkSession") -> bool:
    """Whether the session is one of Spark Connect."""
    return ".connect." in type(session).__module__


def describe(session: "SparkSession", text: str) -> None:
    """Name the jobs that follow in Spark's UI.  A server of Spark Connect names them itself, by their query."""
    if not is_remote(session):
        session.sparkContext.setJobDescription(text)


def _quiet_end(session: "SparkSession") -> None:
    """Ctrl-C ends the JVM too, and PySpark's server for accumulators then prints a traceback: its connection has ended.
    Nothing here uses accumulators."""

    def handle_error(request: object, client_address: object) -> None:
        _LOG.debug("the accumulators of Spark", exc_info=True)

    server: Any = session.sparkContext._accumulatorServer
    server.handle_error = handle_error


def _quiet_py4j() -> None:
    """py4j logs what it raises too, with tracebacks, and some of it as the root logger: Ctrl-C, above all."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return f"{os.sep}py4j{os.sep}" not in record.pathname


def _wait_for_executor(session: "SparkSession") -> None:
    """Run a task on the cluster. Raises NoSpark after EXECUTOR_SECONDS: Spark itself waits without end and silently."""
    context = session.sparkContext
    with ThreadPoolExecutor(1) as pool:
        task = pool.submit(session.range(1).count)
        try:
            task.result(EXECUTOR_SECONDS)
        except TimeoutError:
            memory = context.getConf().get("spark.executor.memory", "1g")
            context.stop()
            raise NoSpark(
                f"Spark on {context.master} started no executor within {EXECUTOR_SECONDS} s: check that the "
                f"cluster has a worker with a free core and {memory} of free memory"
            ) from None


def java_options(wanted: str, environment: Mapping[str, str]) -> list[str]:
    """The options of `wanted` that JAVA_TOOL_OPTIONS and JDK_JAVA_OPTIONS leave open.

    The JVM takes the command line for more than these variables, and refuses to start with two collectors.
    """
    theirs = " ".join(environment.get(name, "") for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")).split()
    taken = {_option(option) for option in theirs}
    return [option for option in wanted.split() if _option(option) not in taken]


def _option(option: str) -> str:
    """The name of a JVM option. All collectors are one choice."""
    return "collector" if re.fullmatch(r"-XX:[+-]Use\w+GC", option) else option.partition("=")[0]


def sets_memory(environment: Mapping[str, str], home: str) -> bool:
    """Whether the user sets the memory of Spark's JVM where a session's own setting would take its place.

    Such a setting is SPARK_DRIVER_MEMORY or `spark-defaults.conf`; PYSPARK_SUBMIT_ARGS takes the place of the session's
    setting. `home` is Spark's folder, unless SPARK_HOME names another.
    """
    if "SPARK_DRIVER_MEMORY" in environment:
        return True
    folder = environment.get("SPARK_CONF_DIR") or f"{environment.get('SPARK_HOME', home)}/conf"
    file = Path(folder) / "spark-defaults.conf"
    return file.is_file() and re.search(r"(?m)^\s*spark\.driver\.memory[\s=:]", file.read_text()) is not None


def is_local(master: str | None) -> bool:
    """Whether `master` means Spark within one process of this machine."""
    return master is None or master == "local" or master.startswith("local[")


def _prepare_environment(*, local: bool) -> None:
    """Spark's Python workers use this interpreter and this process's modules."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if local:  # a cluster's machines call this one by another address
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    here = str(Path(__file__).parents[2])
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if here not in paths:  # workers take PYTHONPATH, not this process's sys.path
        os.environ["PYTHONPATH"] = os.pathsep.join([here, *paths])


@contextmanager
def _quiet_java() -> Iterator[Callable[[Exception], str]]:
    """Send the standard error of a starting JVM to a file, because no setting stops the JVM's warnings.

    Yields a function that gives the reason of a failed start in one line. With `--verbose` the JVM keeps the standard
    error of this process.
    """
    if _LOG.isEnabledFor(logging.DEBUG):
        yield lambda error: _first_line(str(error))
        return
    sys.stderr.flush()
    ours = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)

        def said(error: Exception) -> str:
            file.seek(0)
            lines = file.read().decode(errors="replace").splitlines()
            errors = [line for line in lines if "WARN" not in line and not line.startswith("\tat ")]
            return _first_line("\n".join(errors) or str(error))

        try:
            yield said
        finally:
            os.dup2(ours, 2)
            os.close(ours)


def _first_line(text: str) -> str:
    """The line of a Java exception that names the reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "Exception:" in line] or lines
    return telling[0] if telling else "no reason given"


def check_java() -> None:
    """Raises NoSpark, with the package to install, if there is no Java that Spark 4 can use."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if java is None:
        raise NoSpark(
            f"the audit needs Java {JAVA_NEEDED} or newer, and there is no Java: install it "
            f"(for instance: apt-get install openjdk-{JAVA_NEEDED}-jre-headless) or set JAVA_HOME"
        )
    text = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=30).stderr
    major = _major_version(text)
    if major is not None and major < JAVA_NEEDED:
        raise NoSpark(f"the audit needs Java {JAVA_NEEDED} or newer, and {java} is Java {major}: install a newer one")


def _major_version(text: str) -> int | None:
    """17 from 'openjdk version "17.0.15" 2025-04-15', 8 from '1.8.0_392'."""
    parts = text.partition('"')[2].partition('"')[0].split(".")
    if not parts[0].isdigit():
        return None
    return int(parts[1]) if parts[0] == "1" and len(parts) > 1 else int(parts[0])
