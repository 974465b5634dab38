"""The plain language of texts, as far as a program can judge it: CONTRIBUTING.md, "Language".

A clause that begins with "what" or "who" hides the noun that a reader needs.  As the subject at the start of
a sentence such a clause is an offence, and "whoever" is one everywhere.  So are private words, such as "is told" for
"gets" or "learns".  Questions, code and quoted words are allowed.

Messages are short, and are read without their neighbors, so they name each noun.  Messages are errors, log lines, the
reasons of counters and of dropped runs, the failures of promises, and the descriptions of the planted bugs.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from .rules import nodes, parsed

DOCUMENTS = ("*.md", "docs/*.md", "docs/guides/*.md", "docs/layers/*.md")
OTHERS = ("CHANGELOG.md",)  # a history, and not read as a whole
ROOMS = ("channel", "cli", "core", "drivers", "journal", "layers", "pipeline", "sim", "testing", "wire")
PACKAGES = ("pytest_pygroups", "pyspark_pygroups")

_NOT_PROSE = re.compile(r"```.*?```|<!-- from .*?<!-- end -->|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”", re.DOTALL)
_START = r"(?:^|[.:;!?]\s+|\|\s|[-*]\s|\*\*\s?)"
_HIDDEN_SUBJECT = re.compile(rf"{_START}(What|Who|Whom|Whatever)\s[a-z][^.?!|]*(?:[.!|]|$)", re.MULTILINE)
_WHOEVER = re.compile(r"\b(who(?:m)?ever)\b", re.IGNORECASE)
_PRIVATE = re.compile(
    r"\b(somebody|anybody|everybody|(?:is|are|was|were|be|been)\s+(?:told|said)|comes?\s+to\s+rest)\b", re.IGNORECASE
)
"""Words that a reader would not search for: a member gets or learns a thing."""

_LOGS = ("debug", "info", "warning", "error", "exception")
MESSAGE_CALLS = ("broken", "count", "drop", *_LOGS)
"""The functions that get a message, besides `raise`."""
_IN_A_MESSAGE = re.compile(
    r"\b(what|who|whom|who(?:m)?ever|nobody|somebody|anybody|everybody|told|said|in\s+vain|li(?:fe|ves)|falls)\b",
    re.IGNORECASE,
)
"""Words that hide a noun in a message, or that only this project understands."""


def plain_language(root: Path) -> list[str]:
    """Sentences of documents and docstrings whose subject is a clause and not a noun."""
    return [
        f"{file.relative_to(root)}:{line}: {word!r} hides a noun or a usual term: name the member, event or process"
        for file, first, text in _texts(root)
        for line, word in _offences(text, first)
    ]


def plain_messages(root: Path) -> list[str]:
    """Messages, and descriptions of planted bugs, that hide a noun or use a private word."""
    return [
        f"{file.relative_to(root)}:{line}: {found[1]!r} in the message {text!r} hides a noun or a usual term"
        for file, line, text in [*_messages(root), *_bugs(root)]
        for found in [_IN_A_MESSAGE.search(_NOT_PROSE.sub("", text))]
        if found is not None
    ]


def _messages(root: Path) -> Iterator[tuple[Path, int, str]]:
    """Each text of more than one word in a `raise` and in a call that gets a message."""
    for file in sorted((root / "src").rglob("*.py")):
        for node in nodes(parsed(file.read_text())):
            if isinstance(node, ast.Raise) and node.exc is not None:
                roots: list[ast.expr] = [node.exc]
            elif isinstance(node, ast.Call) and _called(node) in MESSAGE_CALLS:
                roots = [*node.args, *(keyword.value for keyword in node.keywords)]
            else:
                continue
            for line, text in dict.fromkeys(one for root_of in roots for one in _literals(root_of)):
                if " " in text.strip():
                    yield file, line, text


def _called(call: ast.Call) -> str:
    """The name of the called function, without the object that has it."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _literals(tree: ast.expr) -> Iterator[tuple[int, str]]:
    """The texts in an expression.  A value in an f-string counts as a quoted word."""
    if isinstance(tree, ast.JoinedStr):
        parts = [str(part.value) if isinstance(part, ast.Constant) else "`x`" for part in tree.values]
        yield tree.lineno, "".join(parts)
    elif isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        yield tree.lineno, tree.value
    for child in ast.iter_child_nodes(tree) if not isinstance(tree, ast.JoinedStr) else ():
        if isinstance(child, ast.expr):
            yield from _literals(child)


def _bugs(root: Path) -> Iterator[tuple[Path, int, str]]:
    """The description of each planted bug, with its line."""
    for file in sorted((root / "tests" / "mutants").glob("*.toml")):
        text = file.read_text()
        bug = tomllib.loads(text).get("bug")
        if isinstance(bug, str):
            yield file, 1 + text.count("\n", 0, text.index("bug =")), bug


def _texts(root: Path) -> Iterator[tuple[Path, int, str]]:
    """Each document and each docstring, with its file and its first line."""
    for pattern in DOCUMENTS:
        for file in sorted(root.glob(pattern)):
            if file.name not in OTHERS:
                yield file, 1, file.read_text()
    for folder in (*(f"pygroups/{room}" for room in ROOMS), *PACKAGES):
        for file in sorted((root / "src" / folder).rglob("*.py")):
            for node in nodes(parsed(file.read_text())):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    text = ast.get_docstring(node, clean=False)
                    if text is not None:
                        yield file, node.body[0].lineno, text


def _offences(text: str, first: int) -> Iterator[tuple[int, str]]:
    prose = _NOT_PROSE.sub(lambda found: re.sub(r"[^\n]", "x", found[0]), text)
    for pattern in (_HIDDEN_SUBJECT, _WHOEVER, _PRIVATE):
        for found in pattern.finditer(prose):
            yield first + prose.count("\n", 0, found.start(1)), found[1]
