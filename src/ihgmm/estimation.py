"""Old path, until imports elsewhere are rewritten."""
# ruff: noqa: F401
# mypy: implicit-reexport, allow-untyped-defs

from ihgmm.statistics.contrasts import TellingFeatures, telling_features
from ihgmm.statistics.estimation import Estimates, estimate_parameters
