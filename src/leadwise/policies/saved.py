"""Policies that were saved, of whatever kind."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leadwise.errors import InputError
from leadwise.policies.ccga import CCGA
from leadwise.policies.controls import CohortState, RandomSubset
from leadwise.policies.ecg_on_demand import ECGOnDemand
from leadwise.policies.learned import FORMAT
from leadwise.policies.mga import MGA
from leadwise.store import read_tensors, whole_file

_TRAINED = {policy.kind: policy for policy in (MGA, ECGOnDemand, CCGA)}


def load_policy(path: Path, evaluators: Mapping[str, Any], policies: Mapping[str, Any]) -> Any:
    """Read any policy's file; its evaluators, and for cohort-state its policy, are looked up by name."""
    _, facts = read_tensors(path, FORMAT)
    with whole_file(path, "policy"):
        kind = facts.get("kind")
        if kind == RandomSubset.kind:
            return RandomSubset.load(path)
        if kind == CohortState.kind:
            return CohortState.load(path, _named(policies, facts.get("policy"), path))
        if kind not in _TRAINED:
            raise InputError(f"{path} holds a policy of kind '{kind}', which this version does not know.")
        target, state = (_named(evaluators, facts[side]["name"], path) for side in ("target", "state_evaluator"))
        return _TRAINED[kind].load(path, state_evaluator=state, target=target)


def _named(known: Mapping[str, Any], name: Any, path: Path) -> Any:
    if name not in known:
        raise InputError(f"{path} needs '{name}', which is not here; there are {', '.join(known) or 'none'}.")
    return known[name]
