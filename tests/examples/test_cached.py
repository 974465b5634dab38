"""The web service with a cache: two workers under uvloop; one computes, both have it, and one deletes it for both."""

from __future__ import annotations

import http.client
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.contrib.servers import Service
from tests.patience import patience


def ask(service: Service, method: str) -> Any:
    """The answer, None while no worker listens."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=patience(30))
    try:
        connection.request(method, "/report/2026")
        return json.loads(connection.getresponse().read())
    except OSError:
        return None
    finally:
        connection.close()


def shared(service: Service, other_than: Any = None) -> Any:
    """The report that both workers give, when they give the same one."""
    found: dict[int, Any] = {}
    end = time.monotonic() + patience(60)
    while len(found) < 2 or len({report["at"] for report in found.values()}) > 1 or other_than in found.values():
        assert time.monotonic() < end, service.log.read_text()
        if answer := ask(service, "GET"):
            found[answer["worker"]] = answer["report"]
        else:
            time.sleep(0.05)
    return found.popitem()[1]


@pytest.mark.slow
def test_a_report_is_computed_for_all_and_deleted_for_all(tmp_path: Path) -> None:
    with Service("examples.cached:app", tmp_path, 2, "--loop", "uvloop", CACHE=f"cache-{tmp_path.name}") as service:
        first = shared(service)
        ask(service, "DELETE")
        assert shared(service, first)["at"] > first["at"]
