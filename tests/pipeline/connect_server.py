"""Spark's own daemons from the pip package, each a process: a standalone cluster of one worker, a server of Connect."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from tests.patience import patience
from tests.pipeline.spark_session import SHORT_LIVED

SPARK = Path(pyspark.__file__).parent
ROOT = Path(__file__).parents[2]


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """A master with one worker of two cores; gives its address."""
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    with ExitStack() as stack:
        of_master = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        stack.enter_context(_daemon(folder, "master", ["spark-class", f"{deploy}.master.Master", *of_master], port))
        of_worker = ["--host", "127.0.0.1", "--cores", "2", "--memory", "2g", "--webui-port", "0", master]
        of_worker += ["--work-dir", str(folder / "work")]
        stack.enter_context(_daemon(folder, "worker", ["spark-class", f"{deploy}.worker.Worker", *of_worker], None))
        yield master


@contextmanager
def connect_server(folder: Path, master: str = "local[2]") -> Iterator[str]:
    """A server of Spark Connect on `master`; gives the value of `--remote`."""
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.port": port,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.cores.max": 1,  # of a standalone cluster: another core is left for another application
        "spark.driver.host": "127.0.0.1",
    }
    of_server = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    entry = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    with _daemon(folder, "connect", ["spark-submit", "--master", master, *of_server, *entry], port):
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def _daemon(folder: Path, name: str, command: Sequence[str], port: int | None) -> Iterator[None]:
    """A process that listens on `port`; it ends with the block."""
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {
        **os.environ,
        **SHORT_LIVED,
        "PYTHONPATH": path,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(SPARK),
    }
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        program = [str(SPARK / "bin" / command[0]), *command[1:]]
        process = subprocess.Popen(program, stdout=output, stderr=output, env=environment, cwd=folder)
    try:
        if port is not None:
            _await(process, port, log)
        yield
    finally:
        process.terminate()
        process.wait(60)


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + patience(120)
    while True:
        with socket.socket() as asking:
            if asking.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None and time.monotonic() < end, log.read_text()[-4000:]
        time.sleep(0.1)
