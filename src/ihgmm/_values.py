"""Names that annotations in ``numerics`` still use; nothing reads them."""

import sys
from typing import Any

LARGEST = sys.float_info.max
Count = int


def Domain(*axes: Any, **bounds: Any) -> None:  # noqa: N802
    """Say for readers what an array may hold."""
