"""Bugs that are made from a change: for each function that differs from a revision, small changes, one at a time.

    make mutants SINCE=HEAD~20      20 minutes; the survivors are listed, and what there was no time for is counted

A statement is removed, a condition is made constant, a term of an `and` or `or` is dropped, an operator is turned.
Each made bug is planted in a copy of the source.  Where the simulator plays its room, FEW schedules run first.  Then
the tests of its layer run, or the FILES of its room that speak most of its module and then the others, to the first
test that fails; then the other schedules, SEEDS in all.  A bug that none of them notices survives: the code that it
changed is not needed, or not tested.
No result is stored, and a survivor is no failure of the command.
"""

from __future__ import annotations

import ast
import copy
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple

from tests.mutants.gate import HOME, SOURCE, copy_source, environment
from tests.mutants.planting import blocks, scopes, spliced, with_expression
from tests.patience import patience

SEEDS: Final = 100
FEW: Final = 5  # schedules that take less time than the tests
FILES: Final = 4  # of tests, for one module
SIMULATED: Final = ("core", "layers", "wire")
PATIENCE: Final = (
    120.0  # seconds on an idle machine for the tests, or the schedules, of one bug: one that hangs is noticed
)
BEGIN: Final = 0.9  # the part of the time in which bugs begin: those that have begun end in the rest
_Function = ast.FunctionDef | ast.AsyncFunctionDef
TURNED: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}


class Made(NamedTuple):
    """A bug that was made: the file with its whole text, and what was changed."""

    file: Path  # under src/
    line: int
    what: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


# -- which functions changed


def functions(text: str) -> dict[str, _Function]:
    """Each function of a source by its dotted name."""
    return {
        name: scope
        for name, scope in scopes(ast.parse(text))
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def changed_functions(before: str, now: str) -> list[_Function]:
    """The functions of `now` that `before` has not, or has otherwise; docstrings and comments do not count."""
    old = {name: _bare(node) for name, node in functions(before).items()}
    return [node for name, node in functions(now).items() if _bare(node) != old.get(name)]


def _bare(node: _Function) -> str:
    bare = copy.deepcopy(node)
    if ast.get_docstring(bare) is not None:
        bare.body = bare.body[1:] or [ast.Pass()]
    return ast.dump(bare)


def files_since(revision: str) -> list[tuple[Path, str]]:
    """Each changed file under `src/`, and its text at `revision`."""
    listed = _git("diff", "--name-only", revision, "--", "src").split()
    known = set(_git("ls-tree", "-r", "--name-only", revision, "--", "src").split())
    return [
        (Path(name).relative_to("src"), _git("show", f"{revision}:{name}") if name in known else "")
        for name in listed
        if name.endswith(".py") and (HOME / name).exists()
    ]


def _git(*command: str) -> str:
    done = subprocess.run(["git", *command], cwd=HOME, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"git {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


# -- what is made of a function


def made_of(file: Path, text: str, function: _Function) -> Iterator[Made]:
    """Each bug that can be made of `function`, which stands in `text`."""
    for block in blocks(function):
        for statement in block:
            if _can_go(statement, function):
                new = spliced(text, [statement], [ast.Pass()])
                yield Made(file, statement.lineno, f"without `{_short(statement)}`", new)
    for node in ast.walk(function):
        yield from (Made(file, line, what, new) for line, what, new in _in_expressions(text, node))


def _can_go(statement: ast.stmt, function: _Function) -> bool:
    """Whether the removal of a statement leaves a program whose names are bound."""
    match statement:
        case ast.Expr(value=ast.Constant()):
            return False
        case ast.Assign(targets=targets):
            return all(isinstance(target, ast.Attribute | ast.Subscript) for target in targets)
        case ast.Return(value=value):
            return value is None or statement is not function.body[-1]
        case ast.Expr() | ast.AugAssign() | ast.Delete() | ast.Raise() | ast.Continue() | ast.Break():
            return True
    return False


def _in_expressions(text: str, node: ast.AST) -> Iterator[tuple[int, str, str]]:
    match node:
        case ast.If(test=test) | ast.IfExp(test=test):
            for value in ("True", "False"):
                yield test.lineno, f"`{_short(test)}` is {value}", with_expression(text, test, value)
        case ast.BoolOp(op=op, values=values):
            for one in values:
                rest = [value for value in values if value is not one]
                new = ast.unparse(rest[0] if len(rest) == 1 else ast.BoolOp(op, rest))
                yield node.lineno, f"`{_short(node)}` without `{_short(one)}`", with_expression(text, node, new)
        case ast.Compare(ops=[op]) | ast.BinOp(op=op) if type(op) in TURNED:
            turned = copy.deepcopy(node)
            operator = TURNED[type(op)]()
            if isinstance(turned, ast.Compare):
                turned.ops = [operator]  # type: ignore[list-item]
            else:
                turned.op = operator  # type: ignore[attr-defined]
            new = ast.unparse(turned)
            yield node.lineno, f"`{_short(node)}` becomes `{new[:60]}`", with_expression(text, node, new)  # type: ignore[arg-type]


def _short(node: ast.AST) -> str:
    lines = ast.unparse(node).splitlines()
    return lines[0][:60]


def made_since(revision: str) -> list[Made]:
    """All bugs of the change, one of each function first, then the second of each, and so on."""
    each: list[list[Made]] = []
    for file, before in files_since(revision):
        now = (SOURCE / file).read_text()
        for function in changed_functions(before, now):
            bugs = list(dict.fromkeys(made_of(file, now, function)))
            random.Random(f"{file} {function.name}").shuffle(bugs)
            each.append(bugs)
    return [bug for row in zip_longest(*each) for bug in row if bug is not None]


# -- the hunt


def tests_of(file: Path) -> list[str]:
    """The tests of the layer that `file` belongs to, or the FILES of its room that speak most of it; where none
    does, those of the modules that import it."""
    room, *rest = file.relative_to("pygroups").with_suffix("").parts
    folder = HOME / "tests" / room
    if room == "layers" and (found := _of_layer(folder, rest[0])):
        return [*map(_named, found), "tests/layers/test_text.py"]
    modules, seen = [file], {file}
    while modules:
        if most := _most(folder, modules):
            return most
        modules = [module for module in _importers(modules) if module not in seen]
        seen.update(modules)
    return [f"tests/{room}"] if folder.is_dir() else []


def others_of(file: Path) -> list[str]:
    """The tests of the room of `file` without those of `tests_of`; none for a layer."""
    room, near = file.parts[1], tests_of(file)
    others = sorted(map(_named, (HOME / "tests" / room).glob("test_*.py")))
    return [] if room == "layers" or near == [f"tests/{room}"] else [test for test in others if test not in near]


def _most(folder: Path, modules: Sequence[Path]) -> list[str]:
    """The FILES below `folder` that speak most of one of the modules."""
    defined = {module: _defined(SOURCE / module) for module in modules}
    spoken = {
        test: max(_spoken(test, module, names) for module, names in defined.items())
        for test in sorted(folder.glob("test_*.py"))
    }
    most = sorted((test for test in spoken if spoken[test] > (0, 0)), key=lambda test: spoken[test], reverse=True)
    return [*map(_named, most[:FILES])]


def _importers(modules: Sequence[Path]) -> list[Path]:
    """The modules of the same room that import one of these."""
    room = SOURCE.joinpath(*modules[0].parts[:2])
    imported = re.compile(rf"^ *from [.\w]*\b({'|'.join(module.stem for module in modules)}) import", re.MULTILINE)
    return [file.relative_to(SOURCE) for file in sorted(room.rglob("*.py")) if imported.search(file.read_text())]


def _of_layer(folder: Path, module: str) -> list[Path]:
    """The tests whose names share the most words with the module of a layer."""
    words = module.lstrip("_").split("_")
    each = (sorted(folder.glob(f"test_{'_'.join(words[:length])}*.py")) for length in range(len(words), 0, -1))
    return next(filter(None, each), [])


def _named(test: Path) -> str:
    return str(test.relative_to(HOME))


def _defined(file: Path) -> set[str]:
    """The public classes and functions of a module."""
    nodes = ast.parse(file.read_text()).body
    names = {node.name for node in nodes if isinstance(node, ast.ClassDef | _Function)}
    return {name for name in names if not name.startswith("_")}


def _spoken(test: Path, file: Path, names: set[str]) -> tuple[int, int]:
    """How much a test speaks of a module: whether by its name or an import, and how many of the names in it."""
    text = test.read_text()
    module = ".".join(file.with_suffix("").parts)
    by_name = test.stem == f"test_{file.stem.lstrip('_')}" or re.search(rf"\b{re.escape(module)}\b", text) is not None
    return int(by_name), len(names & set(re.findall(r"\w+", text)))


def noticed(bug: Made, source: Path) -> str | None:
    """The part that notices `bug`, planted in the copy at `source`: the tests or the simulator; None: it survives."""
    place = source / bug.file
    before = place.read_text()
    place.write_text(bug.text)
    try:
        return _noticed(bug, source)
    finally:
        place.write_text(before)


def _noticed(bug: Made, source: Path) -> str | None:
    simulated = bug.file.parts[1] in SIMULATED
    if simulated and _fails(_simulator(0, FEW), source):
        return "simulator"
    near, others = tests_of(bug.file), others_of(bug.file)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not long"]
    for tests in filter(None, (near, others)):
        if _fails([*command, "-o", f"pythonpath={source} {HOME}", *tests], source, passes=(0, 5)):
            return "tests"
    if simulated and _fails(_simulator(FEW, SEEDS), source):
        return "simulator"
    return None


def _simulator(low: int, high: int) -> list[str]:
    """The call that plays the schedules of the seeds [low, high)."""
    command = [sys.executable, "-m", "pygroups", "simulate", "--json", "--profile", "total", "--jobs", "1"]
    return [*command, "--seeds", f"{low}:{high}"]


def _fails(command: Sequence[str], source: Path, passes: Sequence[int] = (0,)) -> bool:
    try:
        done = subprocess.run(
            command, cwd=HOME, env=environment(source), capture_output=True, timeout=patience(PATIENCE), check=False
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode not in passes


def hunt_since(revision: str, minutes: float, jobs: int) -> int:
    """Hunts the bugs of the change since `revision` for so many minutes, and lists the survivors."""
    bugs = made_since(revision)
    until = time.monotonic() + 60 * minutes * BEGIN
    survivors: list[Made] = []
    tried = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            copy_source(Path(folder) / str(number))
            copies.put(Path(folder) / str(number))

        def hunt(bug: Made) -> str | None:
            if time.monotonic() > until:
                return "no time"
            source = copies.get()
            try:
                return noticed(bug, source)
            finally:
                copies.put(source)

        for bug, by in zip(bugs, pool.map(hunt, bugs), strict=True):
            tried += by != "no time"
            if by is None:
                survivors.append(bug)
            if by != "no time":
                outcome = "survives" if by is None else f"noticed by the {by}"
                print(f"{tried} of {len(bugs)}: {outcome}: {bug}", flush=True)
    print(f"{len(survivors)} of {tried} bugs survive; {len(bugs) - tried} of {len(bugs)} were not tried")
    for bug in survivors:
        print(f"  {bug}")
    return 0
