"""Frozen values: what their fields may hold, and how they become JSON and arrays.

A type such as ``Annotated[np.ndarray, Domain("pm")]`` says where a field is declared
what it may hold. Values of plain types, dataclasses, enums and arrays are written as
JSON with arrays beside it, and read back by their types: no other class is ever built.
"""

from __future__ import annotations

import inspect
import math
import reprlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from types import GenericAlias, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from ihgmm.matrix import to_host

LARGEST = sys.float_info.max
OPTIONAL = "only some fits have it"  # beside the type of an attribute


@dataclass(frozen=True)
class Domain:
    """The shape of an array and the range of its entries, or the range of a number.

    A shape has a letter for each axis: n rows of the fit, p features and k clusters of
    a model, other letters for lengths that agree within one value. 1 and 2 stand for
    themselves, and ``|`` is between shapes of which an array has one.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm._values import Domain
    >>> Domain("kp").fault(np.ones((2, 5)), {"p": 4})
    'has shape (2, 5), which does not fit the other arrays'
    >>> Domain("k", above=0).fault(np.zeros(2), {})
    'holds 0, which is out of range'
    """

    axes: str = ""
    least: float = -np.inf
    above: float = -np.inf
    # Of absolute values, infinity if they may be infinite. Entries of frozen values
    # belong to data in a unit near 1, unless they say otherwise, and are squared.
    most: float | None = None
    # Axes below whose length, the largest, entries stay, which are whole numbers.
    below: str = ""
    unknown: bool = False  # NaN may be among entries

    def fault(
        self, value: Any, sizes: dict[str, Any], in_value: bool = False
    ) -> str | None:
        """Return what is wrong with a value; ``sizes`` learn the lengths of axes."""
        extremes: tuple[Any, ...] = (value,)
        if self.axes:
            if not any(_has_shape(value, axes, sizes) for axes in self.axes.split("|")):
                return f"has shape {value.shape}, which does not fit the other arrays"
            if value.dtype.kind != ("i" if self.below else "f"):
                return f"holds {value.dtype} entries"
            known = value[~np.isnan(value)] if self.unknown else value
            extremes = (float(known.min()), float(known.max())) if known.size else ()
        most = (1e150 if in_value else LARGEST) if self.most is None else self.most
        if self.below:
            most = max(sizes.get(axis, 0) for axis in self.below) - 1
        for entry in extremes:
            within = self.least <= entry and self.above < entry
            if not (within and abs(entry) <= most):
                return f"holds {entry:g}, which is out of range"
        return None


def _has_shape(array: Any, axes: str, sizes: dict[str, Any]) -> bool:
    fixed = {"1": 1, "2": 2}
    return array.ndim == len(axes) and all(
        length == (fixed.get(axis) or sizes.setdefault(axis, length))
        for axis, length in zip(axes, array.shape, strict=True)
    )


Count = Annotated[int, Domain(least=0)]


def encode(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """Return a value as JSON, its arrays apart, by names that begin with its name.

    Examples
    --------
    >>> import numpy as np
    >>> from ihgmm._values import encode
    >>> arrays = {}
    >>> encode({"a": (1, np.ones(2))}, "x", arrays), list(arrays)
    ([['a', [1, {'array': 'x.a.1'}]]], ['x.a.1'])
    """

    def encode_parts(items: Iterable[tuple[Any, Any]]) -> list[list[Any]]:
        return [[key, encode(part, f"{name}.{key}", arrays)] for key, part in items]

    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return encode_parts(value.items())
    if isinstance(value, list | tuple):
        return [part for _, part in encode_parts(enumerate(value))]
    if isinstance(value, Enum):
        return {type(value).__name__: value.value}
    if is_dataclass(value):
        items = ((field.name, getattr(value, field.name)) for field in fields(value))
        return {type(value).__name__: dict(encode_parts(items))}
    array = to_host(value)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name}={value!r} cannot be saved.")
    arrays[name] = array
    return {"array": name}


class _OtherTypeError(ValueError):
    """What stands under a name is of another type, maybe of the next one of a union."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name} {message}.")
        self.name = name


def decode(
    node: Any,
    hint: Any,
    name: str,
    arrays: dict[str, np.ndarray],
    sizes: dict[str, Any],
    in_value: bool = False,
) -> Any:
    """Return the value of a type that JSON stands for; its arrays are taken out.

    ``sizes`` are the lengths of axes that are known. Those of rows, features and
    clusters hold for a whole model, others in one frozen value. A ValueError names the
    part that is wrong.

    Examples
    --------
    >>> from ihgmm._values import decode
    >>> decode([[1, "inf"]], dict[int, float], "x", {}, {})
    {1: inf}
    """
    origin, options = get_origin(hint), get_args(hint)
    kind, content = None, None
    if isinstance(node, dict) and len(node) == 1:
        ((kind, content),) = node.items()

    def decode_as(hint: Any, part: Any, key: Any = None) -> Any:
        where = name if key is None else f"{name}.{key}"
        return decode(part, hint, where, arrays, sizes, in_value)

    if origin is Annotated:
        value = decode_as(options[0], node)
        for domain in options[1:]:
            fault = isinstance(domain, Domain) and domain.fault(value, sizes, in_value)
            if fault:
                raise ValueError(f"{name} {fault}.")
        return value
    if origin in (Union, UnionType):
        for option in options:
            try:
                return decode_as(option, node)
            except _OtherTypeError as error:
                if error.name != name:  # a part of what is of this type
                    raise
    elif hint in (np.ndarray, Any) and kind == "array" and isinstance(content, str):
        if content not in arrays:
            raise ValueError(f"the array {content!r} is missing.")
        return arrays.pop(content)
    elif is_dataclass(hint) and kind == getattr(hint, "__name__", None):
        scope = sizes if in_value else {k: sizes[k] for k in "npk" if k in sizes}
        return _decode_fields(hint, content, name, arrays, scope)
    elif isinstance(hint, type) and issubclass(hint, Enum) and kind == hint.__name__:
        return hint(content)
    elif origin in (list, tuple, dict) and isinstance(node, list):
        if origin is dict:
            options = (GenericAlias(tuple, options),)
        alike = origin is not tuple or options[-1] is ...
        kinds = options[:1] * len(node) if alike else options
        if len(kinds) != len(node):
            raise ValueError(f"{name} has {len(node)} parts, not {len(kinds)}.")
        return origin(map(decode_as, kinds, node, range(len(node))))
    elif origin is Literal and isinstance(node, str) and node in options:
        return node
    elif hint is float and node in ("inf", "-inf", "nan"):
        return float(node)
    elif (
        (hint is float and type(node) is int and abs(node) <= 2**53)
        or type(node) is hint
        or (hint is Any and not isinstance(node, list | dict))
    ):
        return node
    wanted = inspect.formatannotation(hint)
    raise _OtherTypeError(name, f"is {reprlib.repr(node)}, where {wanted} is wanted")


def _decode_fields(
    kind: Any,
    content: Any,
    name: str,
    arrays: dict[str, np.ndarray],
    sizes: dict[str, Any],
) -> Any:
    """Return a value of a dataclass, given its fields as JSON."""
    hints, keys = get_type_hints(kind, include_extras=True), fields(kind)
    if not isinstance(content, dict) or set(content) != {key.name for key in keys}:
        raise ValueError(f"{name} has other parts than a {kind.__name__}.")
    parts = {
        key: decode(part, hints[key], f"{name}.{key}", arrays, sizes, True)
        for key, part in content.items()
    }
    try:
        return kind(**parts)  # which may have checks of its own
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from error
