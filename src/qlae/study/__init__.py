"""Studies: experiments of many runs, from a plan through tuning, selection and reruns to a report.

``qlae.study.report`` writes the tables and the page.
"""

from .folder import StudyFolder, collect, is_study
from .plan import Plan, plan_names, read_plan
from .run import run_study

__all__ = ["Plan", "StudyFolder", "collect", "is_study", "plan_names", "read_plan", "run_study"]
