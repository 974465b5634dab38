"""The errors of the library name Python arguments.  This module replaces them by the flags of the command line."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Final

from pygroups.core.errors import Refused, UsageError

_NAMES: Final = (
    "name|profile|bind|advertise|transport|discovery|insecure|journal_payloads|journal|min_members|expect|rejoin"
)
_SECRET: Final = re.compile(r"\bsecret=")  # the command line has no option for the secret itself
_ARGUMENT: Final = re.compile(rf"\b({_NAMES})=(?:True\b|(?=[\s,;:])|$)")  # `insecure=True`, `journal= a folder`
_WITH_VALUE: Final = re.compile(rf"\b({_NAMES})=|^({_NAMES}) (?=')")  # `journal=DIR`, and `bind '0.0.0.0:1' can ...`


def as_flags(text: str) -> str:
    """`text` with `bind=` and `insecure=True` written as `--bind` and `--insecure`."""
    text = _SECRET.sub("--secret-file", text)
    text = _ARGUMENT.sub(lambda found: _flag(found[1]), text)
    return _WITH_VALUE.sub(lambda found: f"{_flag(found[1] or found[2])} ", text)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@contextlib.contextmanager
def naming_flags() -> Iterator[None]:
    """Within this context the errors of the library name the flags of the command line."""
    try:
        yield
    except (UsageError, Refused) as error:
        raise type(error)(as_flags(str(error))) from error
