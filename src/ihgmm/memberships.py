"""Old path, until imports elsewhere are rewritten."""
# ruff: noqa: F401
# mypy: implicit-reexport, allow-untyped-defs

from ihgmm.statistics.likelihood import NOISES, Directions, Noise, indicators, project

CLOSEST = 1e-12
