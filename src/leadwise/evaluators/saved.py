"""Evaluators that were saved, of whatever kind."""

from collections.abc import Mapping
from pathlib import Path

from leadwise.evaluators.contract import EVALUATORS, Evaluator, SavedEvaluator
from leadwise.store import read_facts

_BEFORE = {"leadwise logistic evaluator 1": "logistic", "leadwise network evaluator 1": "masked-resnet"}
"""Kinds of files that do not say their kind."""


def load_evaluator(path: str | Path, evaluators: Mapping[str, Evaluator] | None = None) -> SavedEvaluator:
    """Read any evaluator's file; ``evaluators`` are those that it is made from, if there are such."""
    facts = read_facts(Path(path))
    said = facts.get("kind") or _BEFORE.get(str(facts.get("format")))
    return EVALUATORS.of_file(said, facts.get("format"), path).load(Path(path), evaluators or {})
