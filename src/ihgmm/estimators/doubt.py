"""How sure memberships may be, by the doubt of fits to halves of the rows."""

from dataclasses import dataclass

import numpy as np

from ihgmm.numerics.rules import LinearRule
from ihgmm.policy import Doubt
from ihgmm.statistics.calibration import expected_error, membership_temperature
from ihgmm.statistics.refits import label_doubt


@dataclass(frozen=True)
class Judgement:
    """What fits to halves of the rows say of a rule."""

    doubt: float  # a bound of the share of a guess's errors that labels may make
    temperature: float  # by which log-odds are divided, to be as sure as labels are


def judge_rule(rows: np.ndarray, rule: LinearRule, k: int) -> Judgement:
    """Judge the rule of k clusters by rows of the embedding that it was learnt from.

    Memberships of these rows at the temperature leave, on average, the expected error
    to other clusters. Few rows do not know the doubt: the temperature is 1 then.
    """
    doubt, doubt_bound = label_doubt(rows, rule, k)
    sample = rows[: Doubt.ROWS]
    temperature = 1.0
    if len(sample) >= Doubt.ROWS_A_CLUSTER * k:
        error = expected_error(doubt * (1 - 1 / k), len(sample), k)
        temperature = membership_temperature(sample, rule, error)
    return Judgement(doubt=doubt_bound, temperature=temperature)
