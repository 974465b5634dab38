"""Spark Connect: the client has no access to the files, so whatever reads and writes files is asked of the server.

A question is a function of a module of pygroups.  It runs in one task of Spark, on a machine that has the files, and
returns bytes under names.  So that machine needs pygroups too, in the same version.  An error that a user can correct
comes back as itself.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from pygroups._version import __version__
from pygroups.core.errors import UsageError
from pygroups.journal.reader import LeftOut, NotAJournal
from pygroups.pipeline.ingest import Compacted, IngestResult, NotATable, NotTheSame, Table, compact, ingest
from pygroups.pipeline.ingest.layout import is_table
from pygroups.pipeline.ingest.table import journals_only
from pygroups.pipeline.recorded import Facts, NamesCollide, facts_of
from pygroups.pipeline.session import NoSpark, is_remote
from pygroups.pipeline.verdict import Quarantined

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Answer = dict[str, bytes]
Question = Callable[..., Answer]
_ERROR: Final = "error"
_SENTENCES: Final = {
    one.__name__: one for one in (NotAJournal, NotATable, NotTheSame, NamesCollide, NoSpark, UsageError)
}
_COLUMNS: Final = pa.schema([("name", pa.string()), ("content", pa.binary())])


def answer_of(session: "SparkSession", question: Question, *arguments: Any) -> Answer:
    """The answer of this process; with a server of Spark Connect, that of a machine of the server (`ask`)."""
    return ask(session, question, *arguments) if is_remote(session) else question(*arguments)


def ask(session: "SparkSession", question: Question, *arguments: Any) -> Answer:
    """What `question(*arguments)` answers where Spark's tasks run.

    Raises NotAJournal, NotATable, NotTheSame, NamesCollide and OSError as the question raises them, and NoSpark if the
    machine has no pygroups, or another version.
    """
    from pyspark.errors import PySparkException

    task = partial(_answered, __version__, question, arguments)
    frame = session.range(0, 1, 1, 1).mapInArrow(task, "name string, content binary")
    try:
        answer = {row["name"]: bytes(row["content"]) for row in frame.collect()}
    except PySparkException as error:
        raise NoSpark(_no_answer(str(error))) from error
    if _ERROR in answer:
        raise _error_of(json.loads(answer[_ERROR]))
    return answer


def _no_answer(text: str) -> str:
    """A sentence for the failure of a task that asked for nothing but pygroups."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "ModuleNotFoundError" in line or "PYTHON_VERSION_MISMATCH" in line] or lines
    return (
        f"the Python of Spark's tasks cannot run pygroups ({telling[0] if telling else 'no reason given'}): install "
        f"pygroups[spark] {__version__} on the machines of the server"
    )


def _answered(version: str, question: Question, arguments: Sequence[Any], batches: Iterator[Any]) -> Iterator[Any]:
    """The task of a question."""
    for _ in batches:
        try:
            if version != __version__:
                raise NoSpark(
                    f"the server's machines have pygroups {__version__}, and this one {version}: install one version"
                )
            answer = question(*arguments)
        except tuple(_SENTENCES.values()) as error:
            answer = {_ERROR: json.dumps([type(error).__name__, str(error)]).encode()}
        except OSError as error:
            if error.filename is None:
                raise
            answer = {_ERROR: json.dumps([error.errno, error.strerror, str(error.filename)]).encode()}
        rows = [{"name": name, "content": content} for name, content in answer.items()]
        yield pa.RecordBatch.from_pylist(rows, schema=_COLUMNS)


def _error_of(told: list[Any]) -> Exception:
    return OSError(*told) if isinstance(told[0], int) else _SENTENCES[told[0]](told[1])


def ingested_there(session: "SparkSession", journals: Sequence[str], out: str, jobs: int | None) -> IngestResult:
    """`ingest` where Spark's tasks run, with its errors."""
    return _result_of(ask(session, _ingested, list(journals), out, jobs)["result"])


def _ingested(journals: list[str], out: str, jobs: int | None) -> Answer:
    return {"result": _packed_result(ingest(journals, Path(out), jobs=jobs))}


def compacted_there(session: "SparkSession", out: str) -> Compacted:
    """`compact` where Spark's tasks run, with its errors."""
    return Compacted(**json.loads(ask(session, _compacted, out)["result"]))


def _compacted(out: str) -> Answer:
    return {"result": json.dumps(asdict(compact(Path(out)))).encode()}


def history_there(session: "SparkSession", paths: Sequence[str], kept: str) -> tuple[Facts, IngestResult]:
    """The table in `paths`, or the table `kept` with the journals in `paths`, where Spark's tasks run."""
    answer = ask(session, _history, list(paths), kept)
    return _facts_of(answer), _result_of(answer["result"])


def _history(paths: list[str], kept: str) -> Answer:
    folders = [Path(path) for path in paths]
    if len(folders) == 1 and is_table(folders[0]):
        table, done = Table(folders[0]), IngestResult()
    else:
        done = ingest(journals_only(folders), Path(kept))
        table = Table(Path(kept))
    return _packed_facts(facts_of(table)) | {"result": _packed_result(done)}


def _packed_result(result: IngestResult) -> bytes:
    return json.dumps(asdict(result)).encode()


def _result_of(packed: bytes) -> IngestResult:
    told = json.loads(packed)
    told["damaged"] = [Quarantined(**one) for one in told["damaged"]]
    told["left_out"] = [LeftOut(**one) for one in told["left_out"]]
    return IngestResult(**told)


def _packed_facts(facts: Facts) -> Answer:
    """Tables as Arrow streams, all else as JSON."""
    values = {field.name: getattr(facts, field.name) for field in fields(facts)}
    tables = {name: value for name, value in values.items() if isinstance(value, pa.Table)}
    rest = {name: sorted(value) if isinstance(value, frozenset) else value for name, value in values.items()}
    rest = {name: value for name, value in rest.items() if name not in tables}
    return {"rest": json.dumps(rest).encode()} | {name: _stream_of(rows) for name, rows in tables.items()}


def _stream_of(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def _facts_of(answer: Answer) -> Facts:
    rest = json.loads(answer["rest"])
    rest["kinds"] = frozenset(rest["kinds"])
    tables = {name: pa.ipc.open_stream(answer[name]).read_all() for name in ("manifest", "names", "lives")}
    return Facts(**rest, **tables)
