"""Studies: experiments of many runs, from a plan through tuning, selection and reruns to a report.

Importing this package does not import torch. ``qlae.study.report`` writes the tables and the page.
"""

from .collect import collect
from .driver import run_study
from .folder import StudyFolder, is_study
from .plan import Plan, plan_names, read_plan

__all__ = ["Plan", "StudyFolder", "collect", "is_study", "plan_names", "read_plan", "run_study"]
