"""The rows that a page holds, as its script reads them."""

import base64
import json

import numpy as np


def unpacked(text):
    """Return what is in the JSON of a page, arrays unpacked."""
    data = json.loads(text)
    for name, value in data.items():
        if isinstance(value, dict):
            raw = base64.b64decode(value["data"])
            data[name] = np.frombuffer(raw, f"<{value['type']}")
    return data
