"""The types of options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter, Token


def _whole(_: Any, tokens: Sequence[Token]) -> int:
    text = tokens[0].value
    if not re.fullmatch(r"[+-]?\d{1,18}", text.strip(), re.ASCII):
        raise ValueError(f"{text[:60]!r} is not a whole number.")
    return int(text)


Whole = Annotated[int, Parameter(converter=_whole)]
"""A whole number.  Another number is refused, and not rounded."""
Flag = Annotated[bool, Parameter(negative=(), show_default=False)]
"""An option without a value and without a --no- form."""
