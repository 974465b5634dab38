"""The rules of the house, as functions from a tree of files to a list of offences, one sentence each.

They read the source and import nothing of it, so that a module that cannot be imported is judged too.
"""

from __future__ import annotations

import ast
import fnmatch
import functools
import graphlib
import re
from collections.abc import Iterator
from pathlib import Path

FILE_LINES = 600
FUNCTION_LINES = 50

ANYTHING = ("",)
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "core": (),
    "journal": (),
    "layers": ("core",),
    "wire": ("core",),
    "sim": ("core", "layers", "wire", "journal"),
    "sim.promises": ("core",),
    "sim.schedules": ("core", "layers", "sim.promises"),
    "sim.world": ("core", "layers", "wire", "journal", "sim.promises", "sim.schedules"),
    "sim.batches": ("core", "layers", "sim.promises", "sim.schedules", "sim.world"),
    "sim.scenarios": ("core", "layers", "wire", "sim.promises", "sim.schedules", "sim.world"),
    "drivers": ("core", "layers", "wire", "journal.ending", "journal.errors", "journal.schema", "journal.writer"),
    "pipeline": ("journal",),
    "pipeline.remote": ("core.errors", "journal", "pipeline", "_version"),
    "pipeline.sweep": ("core", "journal", "pipeline", "sim", "_version"),
    "channel": ("core", "layers", "wire", "drivers", "journal", "_version"),
    "blocks": ("core", "channel"),
    "sync": ("core", "channel", "blocks"),
    "contrib": ("core", "channel", "blocks", "sync"),
    "testing": ("core", "journal", "sim", "drivers", "channel", "_version"),
    "cli": ANYTHING,
    "": ("core", "channel", "_version"),
    "__main__": ("cli",),
    "_version": (),
    "pyspark_pygroups": ("contrib", "pipeline"),
    "pytest_pygroups": ("testing",),
}
"""What a room may import, besides itself and the rooms in it; "" is `pygroups/__init__.py`.  The longest name that fits
a module counts: a room in another one (`sim.world`) has a row of its own."""

WORLD = ("time", "random", "asyncio", "socket", "threading", "os", "logging")
WORLD_BY_OTHER_NAMES = (
    "_thread",
    "concurrent",
    "datetime",
    "importlib",
    "multiprocessing",
    "secrets",
    "subprocess",
    "uuid",
)
"""What `core` and `layers` may not import: clock, chance and the outside come in as arguments."""
UNSAFE_MODULES = ("pickle", "cPickle", "_pickle", "cloudpickle", "dill", "shelve", "marshal", "yaml")
UNSAFE_CALLS = ("eval", "exec", "__import__")
OF_TESTS = ("duckdb", "hypothesis", "pytest_timeout")
"""What tests and benchmarks alone may import: the product does not ask for it."""

REGISTRY = re.compile(
    r"--(?:extra-)?index[-]url|--find[-]links|--trusted[-]host|\S @ (?:file|git|https?):/"
    r"|https?://[^/\s\"']*(?:artifactory|devpi|index|mirror|nexus|npm|proxy|pypi|registry|wheel)[^/\s\"']*",
    re.IGNORECASE,
)
BUILD_PATH = re.compile(r"(?<![\w.])/(?:builds|farm|home|opt|root|Users|work)/[\w.]")


def modules(root: Path) -> Iterator[tuple[str, Path, ast.Module]]:
    """Every module under `root/src`: its dotted name, its file (as under `root`) and its syntax tree."""
    for file in sorted((root / "src").rglob("*.py")):
        parts = file.relative_to(root / "src").with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield name, file.relative_to(root), parsed(file.read_text())


@functools.cache
def parsed(text: str) -> ast.Module:
    """The syntax tree of a source.  Each rule reads all sources, and a source is parsed once."""
    return ast.parse(text)


@functools.cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """All nodes of a tree."""
    return tuple(ast.walk(tree))


def imported(name: str, file: Path, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and dotted target of each import of a module, wherever in the file; of `from a import b` it is `a.b`."""
    package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def within(name: str, room: str) -> bool:
    """Whether dotted `name` is `room` or inside of it."""
    return room == "" or name == room or name.startswith(f"{room}.")


def place(module: str, root: Path) -> str:
    """`module` without the package's name: `core.run`; "" for what the package's `__init__` itself offers."""
    first, _, rest = module.partition(".")
    if first != "pygroups":
        return first
    room = rest.split(".")[0]
    package = root / "src" / "pygroups"
    return rest if (package / room).is_dir() or (package / f"{room}.py").is_file() else ""


def room_of(where: str) -> str | None:
    """The room of the table that a place belongs to, or None."""
    if where == "":
        return ""
    return max((room for room in MAY_IMPORT if room and within(where, room)), key=len, default=None)


def our_imports(root: Path) -> Iterator[tuple[str, Path, int, str]]:
    """Every import of ours by ours: the place of the importer, its file and line, the place of what is imported."""
    for name, file, tree in modules(root):
        for line, target in imported(name, file, tree):
            if target.split(".")[0] in ("pygroups", "pyspark_pygroups", "pytest_pygroups"):
                yield place(name, root), file, line, place(target, root)


def import_directions(root: Path) -> list[str]:
    """Modules that stand in no room, and imports that `MAY_IMPORT` does not allow."""
    offences = [
        f"{file}: {name} stands in no room of MAY_IMPORT"
        for name, file, _ in modules(root)
        if room_of(place(name, root)) is None
    ]
    for where, file, line, target in our_imports(root):
        room = room_of(where)
        if room is None or MAY_IMPORT[room] == ANYTHING:
            continue
        own = room or "__init__"
        if not any(within(target, one) for one in (own, *MAY_IMPORT[room])):
            offences.append(f"{file}:{line}: {room or 'pygroups'} may not import {target or 'pygroups itself'}")
    return offences


def cycles(root: Path) -> list[str]:
    """Rooms that import each other, directly or round about."""
    above: dict[str, set[str]] = {}
    for where, _, _, target in our_imports(root):
        importer, wanted = where.split(".")[0], target.split(".")[0]
        if importer != wanted:
            above.setdefault(importer, set()).add(wanted)
    try:
        graphlib.TopologicalSorter({room: sorted(above[room]) for room in sorted(above)}).prepare()
    except graphlib.CycleError as error:
        return ["rooms import each other: " + " <- ".join(room or "pygroups" for room in error.args[1])]
    return []


def circles(root: Path) -> list[str]:
    """Files that import each other, directly or round about.

    Every import statement counts, also in a function or under TYPE_CHECKING: somebody who reads one of these files has
    to read them all.  That importing a module runs its package's `__init__` does not count.
    """
    return ["files import each other in a circle: " + " -> ".join([*one, one[0]]) for one in _circles(root)]


def _circles(root: Path) -> Iterator[list[str]]:
    """The shortest circles: the files of one are in no other."""
    wanted = _wanted(root)
    taken: set[str] = set()
    for module in wanted:
        if module not in taken and (circle := _way_back(module, wanted, taken)):
            taken.update(circle)
            yield circle


def _way_back(start: str, wanted: dict[str, list[str]], without: set[str]) -> list[str]:
    """The shortest way from a module over its imports back to itself; empty if there is none."""
    ways, reached = [[start]], set(without)
    for way in ways:
        for module in wanted[way[-1]]:
            if module == start:
                return way
            if module not in reached:
                reached.add(module)
                ways.append([*way, module])
    return []


def _wanted(root: Path) -> dict[str, list[str]]:
    """The modules that each module imports."""
    found = {name: (file, tree) for name, file, tree in modules(root)}
    wanted: dict[str, list[str]] = {}
    for name, (file, tree) in found.items():
        targets = [target for _, target in imported(name, file, tree)]
        targets = [target if target in found else target.rpartition(".")[0] for target in targets]
        wanted[name] = sorted({target for target in targets if target in found and target != name})
    return wanted


QUESTION = re.compile(r"_*(?:is|has|have|was|may|can|must)_|(?!_*(?:give_up|until))\w+_(?:is|are|has|have|may)_")
"""The names of questions, whatever they return; and, if they return a bool:"""
BOOL_QUESTION = re.compile(
    r"_*(?:counts|ended|ends|fails|fits|follows|gave|holds|knows|lacks|lingers|needs|owes|takes|told|waits)(?:_|$)"
)
SENDS = ("record", "tell", "tell_decided", "tell_others", "wake_at")


def acting_questions(root: Path) -> list[str]:
    """Functions that are named as questions, and that send, set a timer or change `self` or another argument."""
    return [
        f"{file}:{node.lineno}: {node.name} is named as a question, and acts: {ast.unparse(deed)}"
        for _, file, tree in modules(root)
        for node in nodes(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (QUESTION.match(node.name) or (BOOL_QUESTION.match(node.name) and _returns_bool(node)))
        for deed in [*_deeds(node)][:1]
    ]


def _returns_bool(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return isinstance(function.returns, ast.Name) and function.returns.id == "bool"


def _deeds(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """Changes of the arguments, and calls of their methods whose result is not used; a count of drops is none.  A name
    for a part of an argument is the argument."""
    arguments = {one.arg for one in (*function.args.args, *function.args.kwonlyargs)}
    arguments |= {name for name, value in _named(function) if _owner(value) in arguments}
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            if _owner(node) in arguments:
                yield node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SENDS:
            yield node
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _owner(node.value) in arguments:
            counts = isinstance(node.value.func, ast.Attribute) and node.value.func.attr in ("count", "drop")
            yield from () if counts else (node,)


def _named(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.Attribute]]:
    """The names that a function gives to attributes: `a` and `b.c` of `a = b.c`, also in a tuple."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = [*zip(target.elts, value.elts, strict=True)]
            for name, part in pairs:
                if isinstance(name, ast.Name) and isinstance(part, ast.Attribute):
                    yield name.id, part


def _owner(node: ast.AST) -> str:
    """`a` of `a.b[c].d()`."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


OF_PARTS = ("layers.discovery", "layers.failure", "layers.gms", "layers.state_transfer")
"""The rooms whose parts own their state: no function changes a field of another object."""
OUTPUT = ("above", "below")  # of a layer: its parts append to them
CHANGES = ("add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update")


def foreign_writes(root: Path) -> list[str]:
    """Changes of a field from outside of the object that has it.  A class of the room sets it in itself."""
    offences = []
    for room in OF_PARTS:
        files = [(file, tree) for name, file, tree in modules(root) if within(place(name, root), room)]
        changes = [(file, path, node) for file, tree in files for node in nodes(tree) for path in _changed(node)]
        fields = {path[-1] for _, path, _ in changes if path[0] == "self" and len(path) == 2} - {*OUTPUT}
        offences += [
            f"{file}:{node.lineno}: {'.'.join(path)} is changed outside of its object"
            for file, path, node in changes
            if path[-1] in fields and (path[0] != "self" or len(path) > 2)
        ]
    return offences


def _changed(node: ast.AST) -> Iterator[tuple[str, ...]]:
    """The path of a field that a statement sets or deletes, or of a container that a call changes."""
    if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        changed: ast.AST = node
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
        changed = node.func.value
    else:
        return
    path: list[str] = []
    while isinstance(changed, ast.Attribute | ast.Subscript):
        path = [changed.attr, *path] if isinstance(changed, ast.Attribute) else path
        changed = changed.value
    if path:
        yield (changed.id if isinstance(changed, ast.Name) else "", *path)


MAPS = ("ARCHITECTURE.md",)
_ROW = re.compile(r"^\| `([\w/]+)/` \|", re.MULTILINE)
_IMPORTS = re.compile(r"^\| `(\w+)/` \|[^|\n]+\|([^|\n]+)\|$", re.MULTILINE)


def maps(root: Path) -> list[str]:
    """Rooms that a map lists and that are not there, rooms that are there and that a map leaves out, and a column "may
    import" that differs from `MAY_IMPORT`.  A map that lists one room inside of another (`sim/world/`) lists all of
    them."""
    package = root / "src" / "pygroups"
    drawn = {file: set(_ROW.findall((root / file).read_text())) for file in MAPS if (root / file).is_file()}
    offences = []
    for file, rooms in sorted(drawn.items()):
        outer = {"", *(room.rpartition("/")[0] for room in rooms)}
        inits = (init for room in outer for init in (package / room).glob("*/__init__.py"))
        there = {str(init.parent.relative_to(package)) for init in inits}
        offences += [f"{file}: there is no room {room}" for room in sorted(rooms - there)]
        offences += [f"{file}: the room {room} is missing" for room in sorted(there - rooms)]
        offences += [
            f"{file}: the rules let {room} import {_in_words(room)}"
            for room, cell in _IMPORTS.findall((root / file).read_text())
            if room in MAY_IMPORT
            and (", ".join(sorted(re.findall(r"`(\w+)`", cell))) or cell.strip()) != _in_words(room)
        ]
    for room in MAY_IMPORT:
        path = room.replace(".", "/")
        places = (package / path, package / f"{path}.py", root / "src" / path, root / "src" / f"{path}.py")
        if not any(place.exists() for place in places):
            offences.append(f"MAY_IMPORT: there is no room {room}")
    return offences


def _in_words(room: str) -> str:
    """The imports of a room, as a map has them: the other rooms by name."""
    allowed = MAY_IMPORT[room]
    if allowed == ANYTHING:
        return "anything"
    return (
        ", ".join(sorted({one.split(".")[0] for one in allowed if not one.startswith("_")}))
        or "no other package of pygroups"
    )


def the_world(root: Path) -> list[str]:
    """Clock, chance and the outside in `core` and `layers`."""
    return [
        f"{file}:{line}: {target.split('.')[0]} has no place in core and layers"
        for name, file, tree in modules(root)
        if within(name, "pygroups.core") or within(name, "pygroups.layers")
        for line, target in imported(name, file, tree)
        if target.split(".")[0] in WORLD + WORLD_BY_OTHER_NAMES
    ]


def unsafe(root: Path) -> list[str]:
    """What turns bytes from outside into running code."""
    offences = []
    for name, file, tree in modules(root):
        for line, target in imported(name, file, tree):
            if target.split(".")[0] in UNSAFE_MODULES:
                offences.append(f"{file}:{line}: {target.split('.')[0]} runs what it reads")
        for node in nodes(tree):
            if isinstance(node, ast.Name) and node.id in UNSAFE_CALLS:
                offences.append(f"{file}:{node.lineno}: {node.id} runs what it reads")
    return offences


def for_tests(root: Path) -> list[str]:
    """What only a developer has installed: the second judge of the promises stays out of the product."""
    return [
        f"{file}:{line}: {target.split('.')[0]} is for tests and benchmarks alone"
        for name, file, tree in modules(root)
        for line, target in imported(name, file, tree)
        if target.split(".")[0] in OF_TESTS
    ]


def sizes(root: Path) -> list[str]:
    """Files and functions that no longer fit the eye."""
    offences = []
    for _, file, tree in modules(root):
        lines = len((root / file).read_text().splitlines())
        if lines > FILE_LINES:
            offences.append(f"{file}: {lines} lines, over {FILE_LINES}")
        for node in nodes(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > FUNCTION_LINES:
                    offences.append(f"{file}:{node.lineno}: {node.name} has {length} lines, over {FUNCTION_LINES}")
    return offences


def layer_places(root: Path) -> list[str]:
    """Layers whose name does not lead to a note and a test of the same name."""
    offences = []
    for name in layer_names(root):
        if not (root / "docs" / "layers" / f"{name}.md").is_file():
            offences.append(f"layer {name}: there is no note docs/layers/{name}.md")
        tests = root / "tests" / "layers"
        patterns = (f"text/{name}/*.txt", f"test_{name}.py", f"test_{name}_*.py", f"{name}/test_*.py")
        if not any(found for pattern in patterns for found in tests.glob(pattern)):
            offences.append(f"layer {name}: there is no test tests/layers/text/{name}/*.txt or test_{name}.py")
    return offences


def layer_names(root: Path) -> list[str]:
    """The layers of the tree; `profiles` and names that begin with an underscore are none."""
    entries = sorted((root / "src" / "pygroups" / "layers").glob("*"))
    names = [e.stem for e in entries if e.suffix == ".py" or (e / "__init__.py").is_file()]
    return [name for name in names if not name.startswith("_") and name != "profiles"]


def machine_traces(root: Path) -> list[str]:
    """Where a package was fetched from, or where the product was built, in any text file of the tree."""
    offences = []
    for file in texts(root):
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            for what, pattern in (
                ("says where packages come from", REGISTRY),
                ("is a path of one machine", BUILD_PATH),
            ):
                if found := pattern.search(line):
                    offences.append(f"{file.relative_to(root)}:{number}: {found.group()!r} {what}")
    return offences


def texts(root: Path) -> Iterator[Path]:
    """The text files of the tree, without what `.gitignore` names; git itself need not be there."""
    lines = (root / ".gitignore").read_text().splitlines()
    ignored = [".git", *(line.strip() for line in lines if line.strip() and not line.startswith("#"))]
    for entry in sorted(root.iterdir()):
        yield from _texts_under(entry, ignored)


def _texts_under(entry: Path, ignored: list[str]) -> Iterator[Path]:
    if any(fnmatch.fnmatch(entry.name, pattern) for pattern in ignored) or entry.is_symlink():
        return
    if entry.is_dir():
        for inner in sorted(entry.iterdir()):
            yield from _texts_under(inner, ignored)
    elif b"\0" not in entry.read_bytes()[:4096]:
        yield entry
