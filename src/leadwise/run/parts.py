"""Evaluators and policies of a plan, loaded from their files when asked for, each with what it was made from."""

from collections.abc import Mapping
from pathlib import Path

from leadwise.evaluators.contract import EVALUATORS, SavedEvaluator
from leadwise.policies.contract import POLICIES, SavedPolicy
from leadwise.run.plan import Plan


class Parts:
    """Evaluators and policies of a plan by name, from their files."""

    def __init__(self, plan: Plan, evaluators: Mapping[str, Path], policies: Mapping[str, Path]) -> None:
        self.plan, self._evaluator_files, self._policy_files = plan, evaluators, policies
        self._evaluators: dict[str, SavedEvaluator] = {}
        self._policies: dict[str, SavedPolicy] = {}

    def evaluator(self, name: str) -> SavedEvaluator:
        """The evaluator of this name."""
        if name not in self._evaluators:
            entry = self.plan.evaluators[name]
            made_from = {other: self.evaluator(other) for other in entry.settings.evaluators}
            kind = EVALUATORS.find(entry.kind)
            self._evaluators[name] = kind.load(self._evaluator_files[name], made_from)
        return self._evaluators[name]

    def policy(self, name: str) -> SavedPolicy:
        """The policy of this name."""
        if name not in self._policies:
            entry = self.plan.policies[name]
            evaluators = {other: self.evaluator(other) for other in entry.settings.evaluators}
            policies = {other: self.policy(other) for other in entry.settings.policies}
            self._policies[name] = POLICIES.find(entry.kind).load(self._policy_files[name], evaluators, policies)
        return self._policies[name]

    @property
    def evaluators(self) -> dict[str, SavedEvaluator]:
        """All that have a file, in the order of the plan."""
        return {name: self.evaluator(name) for name in self.plan.evaluators if name in self._evaluator_files}

    @property
    def policies(self) -> dict[str, SavedPolicy]:
        """All that have a file, in the order of the plan."""
        return {name: self.policy(name) for name in self.plan.policies if name in self._policy_files}
