"""The records that the members send: the bundled records, or the lines of the user's files."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Final

import msgspec

from pygroups.core.errors import UsageError
from pygroups.core.limits import Config

BUNDLED: Final = ("seattle-temps", "sf-temps", "airports", "seattle-weather")
OVERHEAD: Final = 400  # bytes for the feed's name and the line's number, which are sent with each text
Record = tuple[str, int, str]  # feed, line from 1, text

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)


class Feed(msgspec.Struct, frozen=True):
    """A file whose lines are records.  With `header` the first line has the names of the columns, and is no record."""

    name: str
    path: str
    header: bool

    def records(self) -> list[str]:
        """The texts of the lines, in order.  Raises UsageError if the file cannot be read, or is not text."""
        try:
            data = Path(self.path).read_bytes()
            text = (gzip.decompress(data) if self.path.endswith(".gz") else data).decode()
        except OSError as error:
            raise UsageError(f"the input {self.path} cannot be read: {error.strerror or error}") from error
        except (EOFError, UnicodeDecodeError) as error:
            raise UsageError(f"the input {self.path} is not text in UTF-8 ({error}): convert the file") from error
        lines = [line.removesuffix("\r") for line in text.split("\n")]
        if not lines[-1]:
            lines.pop()
        return lines[1:] if self.header else lines


def bundled_feeds() -> list[Feed]:
    """The four bundled feeds."""
    folder = resources.files("pygroups.cli") / "data"
    return [Feed(name, str(folder / f"{name}.csv.gz"), header=True) for name in BUNDLED]


def input_feeds(paths: Sequence[Path]) -> list[Feed]:
    """A feed for each file, named after the file.  Raises UsageError for files that cannot be sent."""
    feeds: dict[str, Feed] = {}
    for path in paths:
        feed = Feed(path.name.removesuffix(".gz").rpartition(".")[0] or path.name, str(path.resolve()), header=False)
        if feed.name in feeds:
            raise UsageError(f"two input files have the name {feed.name!r}, which identifies their records: rename one")
        _check(feed)
        feeds[feed.name] = feed
    return list(feeds.values())


def _check(feed: Feed) -> None:
    records, limit = feed.records(), Config().run_bytes - OVERHEAD
    if not records:
        raise UsageError(f"the input {feed.path} has no lines, so there is no record to send: give a file with lines")
    for line, text in enumerate(records, 1):
        if len(text.encode()) > limit:
            raise UsageError(
                f"line {line} of {feed.path} is over the limit of a message, {limit:,} bytes: split the line"
            )


def payload_of(feed: str, line: int, text: str) -> bytes:
    """The payload of a record."""
    return _encoder.encode((feed, line, text))


def record_in(payload: bytes) -> Record:
    """The record in `payload`."""
    return _decoder.decode(payload)
