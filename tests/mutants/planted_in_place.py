"""Plants a bug in the functions of this process, for a while: no copy of the source, and no new process."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from inspect import getattr_static
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from tests.mutants.planting import Change, changed


@contextmanager
def planted_in_place(wanted: Sequence[Change]) -> Iterator[None]:
    """The functions that `wanted` changes have the bug inside of the block.  Misfit if a change does not fit.

    Each change lies in a function or a method, not in one that is nested in another.
    """
    texts: dict[ModuleType, str] = {}
    for change in wanted:
        module = _module_of(change)
        texts[module] = changed(texts.get(module) or Path(module.__file__ or "").read_text(), change)
    codes = {module: compile(text, module.__file__ or "", "exec") for module, text in texts.items()}
    with ExitStack() as stack:
        for change in wanted:
            name = change.at.partition(":")[2]
            function = _function(_module_of(change), name)
            stack.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = _code(codes[_module_of(change)], name)
        yield


def _module_of(change: Change) -> ModuleType:
    return importlib.import_module(change.file.removesuffix(".py").replace("/", "."))


def _function(module: ModuleType, name: str) -> FunctionType:
    found: object = module
    for part in name.split("."):
        found = getattr_static(found, part)
    found = getattr(found, "fget", None) or getattr(found, "__func__", found)
    assert isinstance(found, FunctionType), f"{name} is no function of {module.__name__}"
    return found


def _code(code: CodeType, name: str) -> CodeType:
    """The code of the first function of this dotted name in the module `code`."""
    for part in name.split("."):
        code = next(one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == part)
    return code
