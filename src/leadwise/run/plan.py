"""The plan of a study, read from TOML and validated before anything runs."""

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from leadwise.cohort.roles import PTBXL_ROLES, Roles
from leadwise.errors import PlanError
from leadwise.evaluators.recipe import Count, Recipe, Share
from leadwise.leads import LEADS

Budget = Annotated[int, Field(ge=1, le=12)]


class Part(BaseModel):
    """A part of a plan."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class CohortPlan(Part):
    """Who is studied: PTB-XL, read from the directory that the run is given, or a synthetic cohort made on the spot."""

    kind: Literal["ptbxl", "synthetic"] = "ptbxl"
    records: Count | None = None
    """Of a synthetic cohort."""
    seed: int = 1


class ControlledPlan(Part):
    """The controlled evaluator; see `leadwise.LogisticEvaluator`."""

    repeats: Count = 4
    strength: Annotated[float, Field(gt=0)] = 0.1
    clip: Annotated[float, Field(gt=0)] = 3.0
    seed: int = 20260901


class StrongPlan(Part):
    """The strong evaluator: one network for each seed, of which the selection role picks one."""

    seeds: Annotated[list[int], Field(min_length=1)] = [20060928]
    widths: Annotated[list[Count], Field(min_length=4, max_length=4)] = [64, 96, 160, 256]
    recipe: Recipe = Recipe()
    search: list[Budget] = [1, 2, 3, 4, 6, 8]
    """Budgets that its references are searched for; the longest part of a study."""


class MaskRobustPlan(Part):
    """The mask-robust evaluator: the strong one's network, trained on policies' allocations too."""

    seed: int = 20060928
    recipe: Recipe = Recipe()


class PoliciesPlan(Part):
    """What all policies are trained with; see `leadwise.policies.learned.LearnedPolicy`."""

    states: Count = 44_000
    own: Share = 0.5
    hidden: Count = 256
    epochs: Count = 20
    batch: Count = 1024
    neighbours: Count = 200
    seed: int = 0
    first_lead: str | None = None
    """Where every deployable policy begins; by default the controlled evaluator's best single lead."""


class BootstrapPlan(Part):
    """The one resample of patients that all intervals share."""

    replicates: Count = 1000
    seed: int = 20270909


class Hypothesis(Part):
    """What is expected, frozen before anybody looks."""

    level: Literal["primary", "supporting", "secondary", "post hoc"]
    quantity: Literal["interaction", "contrast", "paired"]
    policies: list[str]
    evaluator: str
    baseline: str | None = None
    reference: str = "own"
    budgets: list[Budget]
    metrics: list[str]
    expected: Literal["above zero", "below zero"]


class Plan(Part):
    """Everything that decides a study's results. Its defaults are the published protocol on PTB-XL."""

    title: str = "Does adaptive lead choice survive a change of evaluator?"
    cohort: CohortPlan = CohortPlan()
    roles: dict[str, list[int]] = {role: list(folds) for role, folds in PTBXL_ROLES.folds.items()}
    budgets: Annotated[list[Budget], Field(min_length=1)] = [2, 3, 4, 6, 8]
    controlled: ControlledPlan = ControlledPlan()
    strong: StrongPlan = StrongPlan()
    mask_robust: MaskRobustPlan = MaskRobustPlan()
    policies: PoliciesPlan = PoliciesPlan()
    bootstrap: BootstrapPlan = BootstrapPlan()
    hypotheses: list[Hypothesis] = []

    @field_validator("roles")
    @classmethod
    def _roles_are_sound(cls, roles: dict[str, list[int]]) -> dict[str, list[int]]:
        _as_roles(roles)
        return roles

    @field_validator("budgets")
    @classmethod
    def _budgets_in_order(cls, budgets: list[int]) -> list[int]:
        return sorted(set(budgets))

    @model_validator(mode="after")
    def _parts_fit_together(self) -> "Plan":
        if self.cohort.kind == "synthetic" and self.cohort.records is None:
            raise PlanError("A synthetic cohort needs 'cohort.records'; say how many.")
        if not set(self.budgets) & set(self.strong.search):
            raise PlanError(
                "'strong.search' has none of the study's 'budgets', so nothing could be compared; add some."
            )
        first = self.policies.first_lead
        if first is not None and first not in LEADS:
            raise PlanError(f"'policies.first_lead' is '{first}', which is no lead; there are {', '.join(LEADS)}.")
        return self

    def cohort_roles(self) -> Roles:
        return _as_roles(self.roles)


def _as_roles(roles: dict[str, list[int]]) -> Roles:
    return Roles({role: tuple(folds) for role, folds in roles.items()})


def read_plan(path: str | Path) -> Plan:
    """Read a plan; a wrong key or value is named, with the nearest right one."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise PlanError(f"The plan {path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PlanError(f"The plan {path} is not valid TOML: {error}.") from None
    try:
        return Plan.model_validate(content)
    except PlanError as error:
        raise PlanError(f"{path}: {error}") from None
    except ValidationError as error:
        raise PlanError(f"{path}: {_first_problem(error)}") from None


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    *path, last = map(str, problem["loc"])
    where = ".".join([*path, last])
    if problem["type"] == "extra_forbidden":
        part: Any = Plan
        for name in path:
            part = part.model_fields[name].annotation
        near = get_close_matches(last, part.model_fields, n=1)
        whole = f"'{'.'.join(path)}'" if path else "a plan"
        known = f"did you mean '{near[0]}'?" if near else f"{whole} has {', '.join(part.model_fields)}."
        return f"'{where}' is not part of a plan; {known}"
    return f"'{where}' is {problem['input']!r}: {problem['msg'][0].lower()}{problem['msg'][1:]}."
