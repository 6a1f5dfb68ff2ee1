"""What a fit will take: passes, memory, traffic and time, before there are data."""

from ihgmm.planning.estimates import Estimate, size
from ihgmm.planning.machines import Machines
from ihgmm.planning.overview import Plan, plan

__all__ = ["Estimate", "Machines", "Plan", "plan", "size"]
