"""Plants a bug in a copy of the source: by function and statement, whatever the layout of the file is.

A change says where (`layers/sequencer.py:Sequencer.receive`, a class or nothing for what stands outside of functions),
the statements that it looks for there, and those that it puts in their place.  Both are Python.  They are compared as
syntax trees, so neither line breaks nor comments matter.  `...` as a body stands for the body that is there:

    find = "if self.blocked and run.mine: ..."
    planted = "if self.blocked: ..."

A single expression that is no statement of its own is looked for inside of statements.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

PACKAGE = Path("pygroups")
BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
_Scope = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Misfit(Exception):
    """The statements that a change looks for are not in the source, or not just once."""


class Change(NamedTuple):
    """One place of a bug: the file with the function, what is looked for in it, what is put in its place."""

    at: str
    find: str
    planted: str

    @property
    def file(self) -> str:
        """The file under `src/`."""
        return str(PACKAGE / self.at.partition(":")[0])


def changes(entry: dict[str, Any]) -> list[Change]:
    """The changes of an entry of a file of bugs; one change stands in the entry itself."""
    return [Change(*(change[field] for field in Change._fields)) for change in entry.get("change", [entry])]


def plant(name: str, wanted: Sequence[Change], source: Path) -> None:
    """Change the copy of the source at `source`; Misfit if a change does not fit."""
    for change in wanted:
        file = source / change.file
        try:
            file.write_text(changed(file.read_text(), change))
        except Misfit as misfit:
            raise Misfit(f"{name}: {misfit}") from None


def changed(text: str, change: Change) -> str:
    """The source `text` with `change` in it; Misfit if it does not fit."""
    scope = _scope(ast.parse(text), change.at.partition(":")[2])
    find, planted = ast.parse(change.find).body, ast.parse(change.planted).body
    found = [] if scope is None else list(_statements(scope, find))
    if not found and scope is not None and len(find) == 1 and isinstance(find[0], ast.Expr):
        return _in_an_expression(text, scope, find[0].value, change)
    if len(found) != 1:
        raise Misfit(f"{change.find!r} is found {len(found)} times in {change.at}")
    old = found[0]
    return spliced(text, old, [_with_bodies(one, old) for one in planted])


def spliced(text: str, old: Sequence[ast.stmt], new: Sequence[ast.stmt]) -> str:
    """The source `text` with the statements `new` in place of the neighbors `old`."""
    lines = text.splitlines(keepends=True)
    first = min([old[0].lineno, *(one.lineno for one in getattr(old[0], "decorator_list", ()))])
    last, indent = old[-1].end_lineno or first, " " * old[0].col_offset
    code = "\n".join(ast.unparse(ast.fix_missing_locations(one)) for one in new) or "pass"
    return "".join([*lines[: first - 1], *(f"{indent}{line}\n" for line in code.split("\n")), *lines[last:]])


def _in_an_expression(text: str, scope: _Scope, find: ast.expr, change: Change) -> str:
    dump = ast.dump(find)
    found = [node for node in ast.walk(scope) if isinstance(node, ast.expr) and ast.dump(node) == dump]
    if len(found) != 1:
        raise Misfit(f"{change.find!r} is found {len(found)} times in {change.at}")
    return with_expression(text, found[0], change.planted)


def with_expression(text: str, old: ast.expr, new: str) -> str:
    """The source `text` with `new` in place of the expression `old`."""
    lines = text.encode().splitlines(keepends=True)
    starts = [sum(map(len, lines[:row])) for row in (old.lineno - 1, (old.end_lineno or 1) - 1)]
    code = text.encode()
    begin, end = starts[0] + old.col_offset, starts[1] + (old.end_col_offset or 0)
    return (code[:begin] + f"({new})".encode() + code[end:]).decode()


# -- looking for statements


def scopes(tree: ast.Module) -> Iterator[tuple[str, _Scope]]:
    """The module, and each class and function in it with its dotted name."""
    waiting: list[tuple[str, _Scope]] = [("", tree)]
    for name, scope in waiting:
        yield name, scope
        for node in ast.iter_child_nodes(scope):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                waiting.append((f"{name}.{node.name}".lstrip("."), node))


def _scope(tree: ast.Module, name: str) -> _Scope | None:
    """The class or function of this dotted name; of a property with a setter the first."""
    return next((scope for one, scope in scopes(tree) if one == name), None)


def blocks(node: ast.AST) -> Iterator[list[Any]]:
    """Each list of statements in `node`."""
    for one in ast.walk(node):
        for field in BODIES:
            block = getattr(one, field, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _statements(scope: _Scope, find: Sequence[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Each place with the statements `find`."""
    for block in blocks(scope):
        for first in range(len(block) - len(find) + 1):
            there = block[first : first + len(find)]
            if all(_fits(one, pattern) for one, pattern in zip(there, find, strict=True)):
                yield there


def _is_open(block: object) -> bool:
    """Whether a body is `...`, which stands for any."""
    return isinstance(block, list) and len(block) == 1 and ast.dump(block[0]) == "Expr(value=Constant(value=Ellipsis))"


def _fits(there: ast.stmt, pattern: ast.stmt) -> bool:
    if type(there) is not type(pattern) or not _is_open(getattr(pattern, "body", None)):
        return ast.dump(there) == ast.dump(pattern)
    return header(there) == header(pattern)


def header(node: ast.stmt) -> dict[str, str]:
    """What a compound statement says besides its bodies."""
    return {
        name: ast.dump(value)
        if isinstance(value, ast.AST)
        else str([_dump(one) for one in value])
        if isinstance(value, list)
        else repr(value)
        for name, value in ast.iter_fields(node)
        if name not in BODIES
    }


def _dump(node: object) -> str:
    return ast.dump(node) if isinstance(node, ast.AST) else repr(node)


def _with_bodies(new: ast.stmt, old: Sequence[ast.stmt]) -> ast.stmt:
    """`new` with the bodies of the one compound statement of `old` where it has `...`."""
    donors = [one for one in old if hasattr(one, "body")]
    for node in ast.walk(new):
        if _is_open(getattr(node, "body", None)) and len(donors) == 1:
            for field in BODIES:
                if getattr(donors[0], field, None) and (field == "body" or not getattr(node, field, None)):
                    setattr(node, field, getattr(donors[0], field))
            break
    return new
