"""Data inside the page: compact, and never anything but data."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import numpy as np

__all__ = ["inline_json", "packed", "quantised"]

UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def inline_json(value: Any) -> str:
    """Return JSON that may stand inside a script element.

    No text in it can end the element, begin a comment or be taken for markup; half
    characters that UTF-8 cannot hold are written as escapes.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def packed(values: np.ndarray) -> dict[str, str]:
    """Return an array as its type and its little-endian bytes in base64."""
    plain = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    text = base64.b64encode(plain.tobytes()).decode("ascii")
    return {"type": f"{plain.dtype.kind}{plain.dtype.itemsize}", "data": text}


def quantised(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return values between two ends as 16-bit whole numbers."""
    span = high - low if high > low else 1.0
    return np.round((values - low) / span * 65535).clip(0, 65535).astype(np.uint16)
