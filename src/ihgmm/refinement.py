"""Old path, until imports elsewhere are rewritten."""
# ruff: noqa: F401
# mypy: implicit-reexport, allow-untyped-defs

from ihgmm.statistics.likelihood import Refinement, refine_labels
