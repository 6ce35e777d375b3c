"""leadwise: which ECG leads are worth recording for this patient, and does that choice still pay elsewhere?

Everything public is reachable as ``leadwise.NAME`` and is imported when it is first used, so that ``import leadwise``
costs nothing: no torch, no matplotlib, no wfdb.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

# onnxruntime looks for this while it is imported: later, it has already looked up its maker's host
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

if TYPE_CHECKING:
    from leadwise.analysis.bootstrap import PatientBootstrap as PatientBootstrap
    from leadwise.analysis.contrasts import contrast as contrast
    from leadwise.analysis.contrasts import contrasts as contrasts
    from leadwise.analysis.contrasts import estimate_contrasts as estimate_contrasts
    from leadwise.analysis.interactions import estimate_interactions as estimate_interactions
    from leadwise.analysis.interactions import interaction as interaction
    from leadwise.analysis.interactions import interactions as interactions
    from leadwise.analysis.readings import Readings as Readings
    from leadwise.cohort.check import check as check
    from leadwise.cohort.cohort import Cohort as Cohort
    from leadwise.cohort.cohort import Records as Records
    from leadwise.cohort.fetch import fetch_ptbxl as fetch_ptbxl
    from leadwise.cohort.plots import plot_ecg as plot_ecg
    from leadwise.cohort.ptbxl import read_ptbxl as read_ptbxl
    from leadwise.cohort.synthetic import synthesize as synthesize
    from leadwise.cohort.synthetic import write_synthetic as write_synthetic
    from leadwise.errors import LeadwiseError as LeadwiseError
    from leadwise.evaluators.contract import Evaluator as Evaluator
    from leadwise.evaluators.contract import check_evaluator as check_evaluator
    from leadwise.evaluators.contract import list_evaluators as list_evaluators
    from leadwise.evaluators.contract import register_evaluator as register_evaluator
    from leadwise.evaluators.logistic import LogisticEvaluator as LogisticEvaluator
    from leadwise.evaluators.network import NetworkEvaluator as NetworkEvaluator
    from leadwise.evaluators.network import pretrained as pretrained
    from leadwise.evaluators.onnx import export_onnx as export_onnx
    from leadwise.evaluators.recipe import Recipe as Recipe
    from leadwise.evaluators.scoring import score as score
    from leadwise.evaluators.scoring import score_subsets as score_subsets
    from leadwise.evaluators.training import train_network as train_network
    from leadwise.leads import CLINICAL_SETS as CLINICAL_SETS
    from leadwise.leads import LEADS as LEADS
    from leadwise.leads import LeadSet as LeadSet
    from leadwise.leads import subsets as subsets
    from leadwise.metrics import METRICS as METRICS
    from leadwise.policies.allocation import Allocation as Allocation
    from leadwise.policies.ccga import CCGA as CCGA
    from leadwise.policies.contract import Policy as Policy
    from leadwise.policies.contract import check_policy as check_policy
    from leadwise.policies.contract import list_oracles as list_oracles
    from leadwise.policies.contract import list_policies as list_policies
    from leadwise.policies.contract import register_policy as register_policy
    from leadwise.policies.controls import CohortState as CohortState
    from leadwise.policies.controls import RandomSubset as RandomSubset
    from leadwise.policies.ecg_on_demand import ECGOnDemand as ECGOnDemand
    from leadwise.policies.mga import MGA as MGA
    from leadwise.policies.oracle import exhaustive_oracle as exhaustive_oracle
    from leadwise.policies.oracle import greedy_oracle as greedy_oracle
    from leadwise.policies.rollout import allocate as allocate
    from leadwise.references import References as References
    from leadwise.references import search_references as search_references
    from leadwise.run.bundle import Bundle as Bundle
    from leadwise.run.plan import read_plan as read_plan
    from leadwise.run.verify import verify as verify
    from leadwise.study.forecast import forecast as forecast
    from leadwise.study.run import evaluate_bundle as evaluate_bundle
    from leadwise.study.run import report_run as report_run
    from leadwise.study.run import run_study as run_study
    from leadwise.study.status import run_status as run_status

_HOME = {
    "Allocation": "policies.allocation",
    "Bundle": "run.bundle",
    "CCGA": "policies.ccga",
    "CLINICAL_SETS": "leads",
    "Cohort": "cohort.cohort",
    "CohortState": "policies.controls",
    "ECGOnDemand": "policies.ecg_on_demand",
    "Evaluator": "evaluators.contract",
    "LEADS": "leads",
    "LeadSet": "leads",
    "LeadwiseError": "errors",
    "LogisticEvaluator": "evaluators.logistic",
    "METRICS": "metrics",
    "MGA": "policies.mga",
    "NetworkEvaluator": "evaluators.network",
    "PatientBootstrap": "analysis.bootstrap",
    "Policy": "policies.contract",
    "RandomSubset": "policies.controls",
    "Readings": "analysis.readings",
    "Recipe": "evaluators.recipe",
    "Records": "cohort.cohort",
    "References": "references",
    "allocate": "policies.rollout",
    "check": "cohort.check",
    "check_evaluator": "evaluators.contract",
    "check_policy": "policies.contract",
    "contrast": "analysis.contrasts",
    "contrasts": "analysis.contrasts",
    "estimate_contrasts": "analysis.contrasts",
    "estimate_interactions": "analysis.interactions",
    "evaluate_bundle": "study.run",
    "exhaustive_oracle": "policies.oracle",
    "export_onnx": "evaluators.onnx",
    "fetch_ptbxl": "cohort.fetch",
    "forecast": "study.forecast",
    "greedy_oracle": "policies.oracle",
    "interaction": "analysis.interactions",
    "interactions": "analysis.interactions",
    "list_evaluators": "evaluators.contract",
    "list_oracles": "policies.contract",
    "list_policies": "policies.contract",
    "plot_ecg": "cohort.plots",
    "pretrained": "evaluators.network",
    "read_plan": "run.plan",
    "read_ptbxl": "cohort.ptbxl",
    "register_evaluator": "evaluators.contract",
    "register_policy": "policies.contract",
    "report_run": "study.run",
    "run_status": "study.status",
    "run_study": "study.run",
    "score": "evaluators.scoring",
    "score_subsets": "evaluators.scoring",
    "search_references": "references",
    "subsets": "leads",
    "synthesize": "cohort.synthetic",
    "train_network": "evaluators.training",
    "verify": "run.verify",
    "write_synthetic": "cohort.synthetic",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("leadwise")
    if name not in _HOME:
        raise AttributeError(f"module 'leadwise' has no attribute '{name}'")
    return getattr(import_module(f"leadwise.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
