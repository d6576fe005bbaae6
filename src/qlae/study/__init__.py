"""Studies: plan → tune → select → rerun, over run directories and an index. Importing it does not load torch."""

from .driver import run_study
from .folder import StudyFolder, is_study
from .plan import Plan, plan_names, read_plan

__all__ = ["Plan", "StudyFolder", "is_study", "plan_names", "read_plan", "run_study"]
