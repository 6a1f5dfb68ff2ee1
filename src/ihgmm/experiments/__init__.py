"""The paper's simulation studies and its table of real data, as data and one runner."""

from ihgmm.experiments.grids import EXPERIMENTS, Experiment, Panel, Setting
from ihgmm.experiments.runner import Result, Run, run_experiment, summarize
from ihgmm.experiments.table import PAPER_COUNTS, real_data_table

__all__ = [
    "EXPERIMENTS",
    "PAPER_COUNTS",
    "Experiment",
    "Panel",
    "Result",
    "Run",
    "Setting",
    "real_data_table",
    "run_experiment",
    "summarize",
]
