"""The web service of the examples: three workers under uvicorn, one of them killed."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.patience import patience

ROOT = Path(__file__).parents[2]


class Service:
    """The service at a port of this machine."""

    def __init__(self, log: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, "-m", "uvicorn", "examples.shop:app", "--workers", "3", "--port", str(self.port)]
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        folder = str(log.parent / "journal")
        environment = os.environ | {"PYTHONPATH": path, "SHOP": f"shop-{self.port}", "SHOP_JOURNAL": folder}
        self.log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=file, stderr=file)

    def ask(self, method: str, path: str) -> Any:
        """The answer, or None if the worker that got the request has ended."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=patience(30))
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return json.loads(answer.read()) if answer.status == 200 else {"status": answer.status}
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def workers(self, number: int) -> dict[int, dict[str, int]]:
        """The stock as each of `number` workers has it."""
        found: dict[int, dict[str, int]] = {}
        end = time.monotonic() + patience(60)
        while len(found) < number:
            assert time.monotonic() < end, f"{len(found)} workers answer:\n{self.log.read_text()}"
            if answer := self.ask("GET", "/stock"):
                found[answer["worker"]] = answer["stock"]
            else:
                time.sleep(0.05)
        return found


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(tmp_path / "log")
    yield service
    service.process.terminate()
    try:
        service.process.wait(patience(30))
    finally:
        service.process.kill()


@pytest.mark.slow
def test_a_killed_worker_loses_no_sale_and_repeats_none(service: Service) -> None:
    workers = service.workers(3)
    service.ask("PUT", "/stock/apples/100")
    with ThreadPoolExecutor(8) as pool:
        before = [*pool.map(lambda _: service.ask("POST", "/sell/apples"), range(20))]
        sales = [pool.submit(service.ask, "POST", "/sell/apples") for _ in range(40)]
        os.kill(min(workers), signal.SIGKILL)
        after = [sale.result() for sale in sales]
    sold = [answer for answer in [*before, *after] if answer and "left" in answer]
    lost = len([answer for answer in after if answer is None])  # the worker ended: sold or not
    left = [answer["left"] for answer in sold]
    tokens = [answer["token"] for answer in sold]
    assert len(set(left)) == len(left), "an apple was sold twice"
    assert [number for _, number in sorted(zip(tokens, left, strict=True))] == sorted(left, reverse=True)
    stocks = [stock for worker, stock in service.workers(3).items() if worker != min(workers)]
    assert all(stock == stocks[0] for stock in stocks)
    assert len(sold) <= 100 - stocks[0]["apples"] <= len(sold) + lost


@pytest.mark.slow
def test_workers_go_on_when_most_of_them_were_killed(service: Service) -> None:
    """The new workers take the names of the killed ones, and answer for them: the majority is back."""
    killed = sorted(service.workers(3))[:2]
    service.ask("PUT", "/stock/apples/100")
    for worker in killed:
        os.kill(worker, signal.SIGKILL)
    end = time.monotonic() + patience(60)
    while (workers := service.workers(3)).keys() & {*killed}:
        assert time.monotonic() < end, service.log.read_text()
    sale = service.ask("POST", "/sell/apples")
    assert sale and sale["left"] == 99, service.log.read_text()
    assert set(map(str, workers.values())) <= {"{'apples': 100}"}
