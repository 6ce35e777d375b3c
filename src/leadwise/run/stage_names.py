"""Names of stages: the one place that makes or reads them."""

from leadwise.cohort.roles import SCORED

CENSUS = "cohort"
"""The stage that counts the cohort, for which it is given every role."""
DEVELOPMENT = "development"
"""The stage that describes the roles which were used for fitting and choosing."""
FREEZE = "freeze"
"""The stage that makes the bundle."""


def evaluator_stage(name: str, seed: int | None = None) -> str:
    """The stage that makes an evaluator of the plan, or the candidate for it with this seed."""
    return f"evaluator/{name}" if seed is None else f"evaluator/{name}/seed-{seed}"


def policy_stage(name: str) -> str:
    """The stage that makes a policy of the plan."""
    return f"policy/{name}"


def masks_stage(name: str) -> str:
    """The stage that lets policies choose leads for the records that an evaluator is trained on."""
    return f"masks/{name}"


def search_stage(name: str, k: int) -> str:
    """The stage that searches an evaluator's references at one budget, so that another budget redoes no hours."""
    return f"references/{name}/{k}"


def is_search(stage: str) -> bool:
    """True for a stage that searches references."""
    return stage.startswith("references/")


def selection_stage(name: str) -> str:
    """The stage that chooses an evaluator's references anew in resamples of the selection role."""
    return f"selection/{name}"


def places_stage(name: str) -> str:
    """The stage that gives a policy its places among all fixed sets of the selection role."""
    return f"places/{name}"


def scoring_stage(role: str) -> str:
    """The stage that scores a role with what is frozen; its receipt is the receipt of having looked."""
    return f"score/{role}"


def scored_role(stage: str) -> str | None:
    """The role that a stage scores; None for every other stage. Ledgers from before call such a stage by its role."""
    return next((role for role in SCORED if stage in (scoring_stage(role), role)), None)
