"""Noise that columns share with their neighbours."""

import numpy as np


def autoregressive(noise, correlation):
    """Return independent noise of variance one made autoregressive along columns."""
    noise = noise.copy()
    for j in range(1, noise.shape[1]):
        noise[:, j] *= np.sqrt(1 - correlation**2)
        noise[:, j] += correlation * noise[:, j - 1]
    return noise
