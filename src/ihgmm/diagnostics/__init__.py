"""What to think of a clustering, in figures and in words."""

from ihgmm.diagnostics.diagnosis import diagnose
from ihgmm.diagnostics.verdict import Diagnosis, Verdict

__all__ = ["Diagnosis", "Verdict", "diagnose"]
