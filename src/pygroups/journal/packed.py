"""Decodes msgpack by columns: one value of many records at once, with numpy. This module belongs to the extra `spark`.

A *cursor* is the start of a value in a buffer. Behind its last byte a buffer has PADDING more bytes. A cursor that is
wrong, because the bytes have another shape, therefore stays inside the buffer until the error is noticed.
"""

from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Cursors = NDArray[np.int64]
Mask = NDArray[np.bool_]

PADDING: Final = 1 << 14
NIL: Final = 0xC0
PAIR: Final = 0x92
_STR8: Final = 0xD9
_UINT64: Final = 0xCF


def _table(values: dict[range | int, int], dtype: type) -> NDArray[Any]:
    table: NDArray[Any] = np.zeros(256, dtype)
    for where, value in values.items():
        table[list(where) if isinstance(where, range) else where] = value
    return table


_FIXED: Final[dict[range | int, int]] = {range(0x80): 1, range(0xE0, 256): 1, NIL: 1, 0xC2: 1, 0xC3: 1}
_NUMBERS: Final[dict[range | int, int]] = {0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9, 0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9}
_STRINGS: Final[dict[range | int, int]] = {0xA0 + size: 1 + size for size in range(32)}
_SIZE: Final = _table({**_FIXED, **_NUMBERS, **_STRINGS, 0xCA: 5, 0xCB: 9, _STR8: 2}, np.int64)
"""Bytes that a scalar takes by its first byte; 0 for what is no scalar that is read here."""
_IS_STRING: Final = _table({range(0xA0, 0xC0): 1, _STR8: 1}, np.bool_)
_IS_INT: Final = _table({range(0x80): 1, range(0xE0, 256): 1, NIL: 1, **dict.fromkeys(_NUMBERS, 1)}, np.bool_)
_BEHIND: Final = _table(dict.fromkeys(_NUMBERS, 1), np.int64)
"""Whether an integer's bytes stand behind the first one, or are the first one itself."""
_SHIFT: Final = _table(
    {range(0x80): 56, range(0xE0, 256): 56, **{kind: 8 * (9 - size) for kind, size in _NUMBERS.items()}}, np.int64
)
_KEPT: Final = _table(
    {
        range(0x80): 0x7F,
        range(0xE0, 256): -1,
        0xCC: 0xFF,
        0xCD: 0xFFFF,
        0xCE: 0xFFFFFFFF,
        _UINT64: -1,
        **dict.fromkeys(range(0xD0, 0xD4), -1),
    },
    np.int64,
)


def windows(data: Bytes) -> NDArray[np.uint64]:
    """The 8 bytes at each place of `data`, as big-endian numbers. The result is a view, without a copy."""
    return np.ndarray((len(data) - 7,), ">u8", buffer=data, strides=(1,))


def skip(data: Bytes, cursors: Cursors, wrong: Mask) -> Cursors:
    """The ends of the scalars at `cursors`. Marks in `wrong` the cursors without a scalar."""
    first = data.take(cursors)
    sizes = _SIZE[first]
    wrong |= sizes == 0
    long = first == _STR8
    if long.any():
        sizes += np.where(long, data.take(cursors + 1), 0)
    sizes += cursors
    return sizes


def are_strings(data: Bytes, cursors: Cursors) -> Mask:
    """Whether the value at each cursor is a string of less than 256 bytes."""
    strings: Mask = _IS_STRING[data.take(cursors)]
    return strings


def array_sizes(data: Bytes, cursors: Cursors, wrong: Mask) -> tuple[NDArray[np.int64], Cursors]:
    """The sizes of the arrays at `cursors`, and the starts of their first values. Marks large arrays in `wrong`."""
    first = data.take(cursors).astype(np.int64)
    wide = first == 0xDC
    wrong |= ((first & 0xF0) != 0x90) & ~wide
    if not wide.any():
        return first & 15, cursors + 1
    size = (data.take(cursors + 1).astype(np.int64) << 8) | data.take(cursors + 2)
    return np.where(wide, size, first & 15), cursors + np.where(wide, 3, 1)


def map_sizes(data: Bytes, cursors: Cursors, wrong: Mask) -> tuple[NDArray[np.int64], Cursors]:
    """The sizes of the maps at `cursors`, and the starts of their first keys. Nil has the size -1."""
    first = data.take(cursors).astype(np.int64)
    wide, nil = first == 0xDE, first == NIL
    wrong |= ((first & 0xF0) != 0x80) & ~wide & ~nil
    size = (data.take(cursors + 1).astype(np.int64) << 8) | data.take(cursors + 2)
    return np.where(nil, -1, np.where(wide, size, first & 15)), cursors + np.where(wide, 3, 1)


def integers(data: Bytes, at: NDArray[np.uint64], cursors: Cursors, wrong: Mask) -> tuple[NDArray[np.int64], Mask]:
    """The integers at `cursors`, and the places of nil. Marks in `wrong` all other values, and integers over 64 bits
    signed."""
    if not len(cursors):
        return np.zeros(0, np.int64), np.zeros(0, np.bool_)
    first = data.take(cursors)
    if (first == first[0]).all():
        return _alike(int(first[0]), at, cursors, wrong)
    wrong |= ~_IS_INT[first]
    values = at[cursors + _BEHIND[first]].astype(np.int64)
    values >>= _SHIFT[first]
    values &= _KEPT[first]
    wrong |= (first == _UINT64) & (values < 0)
    return values, first == NIL


def _alike(first: int, at: NDArray[np.uint64], cursors: Cursors, wrong: Mask) -> tuple[NDArray[np.int64], Mask]:
    """The integers of cursors whose values all begin with the same byte."""
    if first < 0x80 or first >= 0xE0 or first == NIL or not _IS_INT[first]:
        wrong |= not _IS_INT[first]
        value = 0 if first == NIL else first - 256 * (first >= 0xE0)
        return np.full(len(cursors), value, np.int64), np.full(len(cursors), first == NIL)
    values = at[cursors + 1].astype(np.int64)
    values >>= _SHIFT[first]
    values &= _KEPT[first]
    if first == _UINT64:
        wrong |= values < 0
    return values, np.zeros(len(cursors), np.bool_)


def distinct(data: Bytes, begin: Cursors, end: Cursors, count: int) -> tuple[NDArray[np.int32], list[list[Any] | None]]:
    """The values in parts of a buffer, each with `count` values. Each distinct part is decoded once.

    The parts must be in ascending order. Returns for each part the index of its values in the list. None in the list
    stands for bytes that are not msgpack.
    """
    if not len(begin):
        return np.zeros(0, np.int32), []
    places = np.empty(2 * len(begin) + 1, np.int32)  # every second value stands between two values of this column: null
    places[0:-1:2] = begin
    places[1::2] = end
    places[-1] = end[-1]
    ours = np.full((2 * len(begin) + 7) // 8, 0b01010101, np.uint8)
    buffers = [pa.py_buffer(ours), pa.py_buffer(places), pa.py_buffer(data)]
    coded = pa.Array.from_buffers(pa.binary(), 2 * len(begin), buffers).dictionary_encode()
    codes = np.frombuffer(coded.indices.buffers()[1], np.int32)[: 2 * len(begin) : 2]
    return codes, [_unpacked(span, count) for span in coded.dictionary.to_pylist()]


def _unpacked(span: bytes, count: int) -> list[Any] | None:
    try:
        values: list[Any] = _decode_array(bytes([0x90 + count]) + span)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return values


_decode_array: Final = msgspec.msgpack.Decoder(list[Any]).decode
