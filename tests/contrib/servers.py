"""A web service of uvicorn workers at a port of this machine, for tests of what the workers share."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.patience import patience

ROOT = Path(__file__).parents[2]


class Service:
    """`with Service(app, folder)` runs `app` in workers; `folder` gets their log, and is theirs as SITE_FOLDER."""

    def __init__(self, app: str, folder: Path, workers: int = 3) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = folder / "log"
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = os.environ | {"PYTHONPATH": path, "SITE_FOLDER": str(folder)}
        command = [sys.executable, "-m", "uvicorn", app, "--workers", str(workers), "--port", str(self.port)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.process.terminate()
        try:
            self.process.wait(patience(30))
        finally:
            self.process.kill()
            self.process.wait()
        if error is not None:
            error.add_note(self.log.read_text())
