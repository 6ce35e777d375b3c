"""What a plan compares and expects: its tables beside the cohort, the evaluators and the policies."""

from typing import Annotated, Literal

from pydantic import Field

from leadwise.registry import Amount, Budget, Count, Part, Seed

OWN = "own"
"""The reference that belongs to the evaluator of a contrast."""
PARTS = ("removed", "remaining")
"""Quantities of hypotheses that are parts of an interaction."""
Names = Annotated[list[str], Field(min_length=1)]
Budgets = Annotated[list[Budget], Field(min_length=1)]
Metric = Literal["nll", "brier", "ece"]


class InteractionFamily(Part):
    """Interactions between two evaluators, each contrast against its own references or both against the same."""

    policies: Names
    evaluator: str
    baseline: str
    reference: str = OWN
    """Whose references: ``own``, or the evaluator that they were searched for."""


class PolicyPair(Part):
    """Two policies that are compared with each other."""

    policies: Annotated[list[str], Field(min_length=2, max_length=2)]
    evaluators: Names


class Bootstrap(Part):
    """The one resample of patients that all intervals share."""

    replicates: Count = 1000
    """For estimates that a publication has, too."""
    own_replicates: Count = 10_000
    """For what is said of variance, of choosing references, and of equivalence."""
    seed: Seed = 20270909


class Hypothesis(Part):
    """An expected result, frozen before anybody looks."""

    level: Literal["primary", "supporting", "secondary", "post hoc"]
    quantity: Literal["interaction", "contrast", "paired", "removed", "remaining"]
    """Of a decomposed interaction: what recalibration removes, and what remains."""
    policies: Names
    evaluator: str
    baseline: str | None = None
    """The other evaluator, of an interaction and its parts."""
    reference: str = OWN
    budgets: Budgets
    metrics: Annotated[list[Metric], Field(min_length=1)]
    expected: Literal["above zero", "below zero", "equivalent"]
    """Equivalent is a contrast within the margin of equivalence."""


class Transfer(Part):
    """The matrix of policies, each trained on some evaluator, read by evaluators."""

    policies: Names
    evaluators: Names


class Decomposition(Part):
    """Interactions of which the part is to be told that calibration makes up."""

    policies: Names
    evaluator: str
    baseline: str
    recalibrated_evaluator: str
    """What stands for the evaluator when its calibration is taken away."""
    recalibrated_baseline: str


class Variance(Part):
    """A source of variation: members of the plan, and others that stand in for them, replication by replication."""

    source: str
    """What varies, in words."""
    stand_ins: Annotated[dict[str, Names], Field(min_length=1)]
    """For an evaluator or a policy, those that take its place in the first replication, the second, and so on."""


class Equivalence(Part):
    """What counts as no difference."""

    margin: Annotated[Amount, Field(gt=0)] = 0.002
    """In NLL."""
