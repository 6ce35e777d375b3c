"""Policies that were saved, of whatever kind."""

from collections.abc import Mapping
from pathlib import Path

from leadwise.evaluators.contract import Evaluator
from leadwise.policies.contract import POLICIES, Policy, SavedPolicy
from leadwise.store import read_facts


def load_policy(
    path: str | Path, evaluators: Mapping[str, Evaluator] | None = None, policies: Mapping[str, Policy] | None = None
) -> SavedPolicy:
    """Read any policy's file; the evaluators and policies that it was made from are looked up by name."""
    facts = read_facts(Path(path))
    kind = POLICIES.of_file(facts.get("kind"), facts.get("format"), path)
    return kind.load(Path(path), evaluators or {}, policies or {})
