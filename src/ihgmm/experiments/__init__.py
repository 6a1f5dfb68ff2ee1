"""The paper's studies and one beyond it, as data and one runner; its table."""

from ihgmm.experiments.runner import Result, Run, run_experiment, summarize
from ihgmm.experiments.studies import (
    EXPERIMENTS,
    PHASE,
    STUDIES,
    Experiment,
    Map,
    Panel,
    Setting,
)
from ihgmm.experiments.table import PAPER_COUNTS, real_data_table

__all__ = [
    "EXPERIMENTS",
    "PAPER_COUNTS",
    "PHASE",
    "STUDIES",
    "Experiment",
    "Map",
    "Panel",
    "Result",
    "Run",
    "Setting",
    "real_data_table",
    "run_experiment",
    "summarize",
]
