"""The plan of a study, read from TOML and validated before anything runs."""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from leadwise.cohort.roles import PTBXL_ROLES, Roles
from leadwise.errors import InputError, PlanError, one_line, right_one
from leadwise.evaluators.masked_resnet.recipe import LARGEST, Count, Recipe, Share
from leadwise.leads import LEADS
from leadwise.policies.learned import rounds_of

Budget = Annotated[int, Field(ge=1, le=12)]
Seed = Annotated[int, Field(ge=0, le=LARGEST)]
PolicyName = Literal[
    "ecg-on-demand", "mga", "ccga", "strong-mga", "strong-mga-controlled-state", "cohort-state", "random-subset"
]
EvaluatorName = Literal["controlled", "controlled-unbalanced", "controlled-recalibrated", "strong", "mask-robust"]
ReferenceName = Literal["own", "controlled", "controlled-unbalanced", "controlled-recalibrated", "strong"]
"""An evaluator that references are searched for, or whichever evaluator a contrast is under."""
MetricName = Literal["nll", "brier", "ece"]


class Part(BaseModel):
    """A part of a plan."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class CohortPlan(Part):
    """Who is studied: PTB-XL, read from the directory that the run is given, or a synthetic cohort made on the spot."""

    kind: Literal["ptbxl", "synthetic"] = "ptbxl"
    records: Count | None = None
    """Of a synthetic cohort."""
    seed: Seed = 1


class ControlledPlan(Part):
    """The controlled evaluator; see `leadwise.LogisticEvaluator`."""

    repeats: Count = 4
    strength: Annotated[float, Field(gt=0)] = 0.1
    clip: Annotated[float, Field(gt=0)] = 3.0
    seed: Seed = 20260901


class StrongPlan(Part):
    """The strong evaluator: one network for each seed, of which the selection role picks one."""

    seeds: Annotated[list[Seed], Field(min_length=1)] = [20060928]
    widths: Annotated[list[Count], Field(min_length=4, max_length=4)] = [64, 96, 160, 256]
    recipe: Recipe = Recipe()
    search: list[Budget] = [1, 2, 3, 4, 6, 8]
    """Budgets that its references are searched for; the longest part of a study."""

    @field_validator("seeds")
    @classmethod
    def _seeds_differ(cls, seeds: list[int]) -> list[int]:
        for seed in seeds:
            if seeds.count(seed) > 1:
                raise PlanError(f"'strong.seeds' names {seed} twice; give every network a seed of its own.")
        return seeds

    @field_validator("search")
    @classmethod
    def _search_in_order(cls, search: list[int]) -> list[int]:
        return sorted(set(search))


class MaskRobustPlan(Part):
    """The mask-robust evaluator: the strong one's network, trained on policies' allocations too."""

    seed: Seed = 20060928
    recipe: Recipe = Recipe()


class PoliciesPlan(Part):
    """What all policies are trained with; see `leadwise.policies.learned.LearnedPolicy`."""

    states: Count = 44_000
    own: Share = 0.5
    hidden: Count = 256
    epochs: Count = 20
    batch: Count = 1024
    neighbours: Count = 200
    seed: Seed = 0
    first_lead: str | None = None
    """Where every deployable policy begins; by default the controlled evaluator's best single lead."""

    @model_validator(mode="after")
    def _states_are_enough(self) -> "PoliciesPlan":
        try:
            rounds_of(self.states, self.own)
        except InputError as error:
            raise PlanError(f"'policies.states': {error}") from None
        return self


class BootstrapPlan(Part):
    """The one resample of patients that all intervals share."""

    replicates: Count = 1000
    seed: Seed = 20270909


class Hypothesis(Part):
    """What is expected, frozen before anybody looks."""

    level: Literal["primary", "supporting", "secondary", "post hoc"]
    quantity: Literal["interaction", "contrast", "paired"]
    policies: Annotated[list[PolicyName], Field(min_length=1)]
    evaluator: EvaluatorName
    baseline: EvaluatorName | None = None
    """Of an interaction."""
    reference: ReferenceName = "own"
    budgets: Annotated[list[Budget], Field(min_length=1)]
    metrics: Annotated[list[MetricName], Field(min_length=1)]
    expected: Literal["above zero", "below zero"]


class Plan(Part):
    """Everything that decides a study's results. Its defaults are the published protocol on PTB-XL."""

    title: str = "Does adaptive lead choice survive a change of evaluator?"
    cohort: CohortPlan = CohortPlan()
    roles: dict[str, list[int]] = {role: list(folds) for role, folds in PTBXL_ROLES.folds.items()}
    unsealed: bool = False
    """Whether the sealed fold of PTB-XL may be used for a role that is not the evaluation role."""
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
        if max(budgets) < 2:
            raise PlanError("'budgets' has none of two leads or more, so no policy would have a choice; add some.")
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
            raise PlanError(f"'policies.first_lead' is '{_short(first)}', which is no lead; {right_one(first, LEADS)}")
        for number, hypothesis in enumerate(self.hypotheses, start=1):
            self._check_hypothesis(f"hypotheses.{number}", hypothesis)
        return self

    def _check_hypothesis(self, where: str, hypothesis: Hypothesis) -> None:
        """Raise unless a hypothesis is about something that the study will have."""
        unknown = sorted(set(hypothesis.budgets) - set(self.budgets))
        if unknown:
            known = ", ".join(map(str, self.budgets))
            raise PlanError(
                f"'{where}.budgets' has {unknown[0]}, which is none of the study's 'budgets'; take {known}."
            )
        if (hypothesis.quantity == "interaction") != (hypothesis.baseline is not None):
            do = "name the evaluator to compare with" if hypothesis.baseline is None else "leave it out"
            raise PlanError(f"'{where}.baseline' belongs to an interaction, to no other quantity; {do}.")
        if hypothesis.baseline == hypothesis.evaluator:
            raise PlanError(
                f"'{where}.baseline' is the evaluator itself, so the interaction is zero; name the evaluator to "
                "compare with."
            )
        if len(set(hypothesis.policies)) < len(hypothesis.policies):
            raise PlanError(f"'{where}.policies' names a policy twice; name each once.")
        if hypothesis.quantity == "paired" and len(hypothesis.policies) != 2:
            raise PlanError(
                f"'{where}.policies' has {len(hypothesis.policies)}, but a paired comparison is of two; name two."
            )

    def cohort_roles(self) -> Roles:
        return _as_roles(self.roles, self.unsealed)


def _as_roles(roles: dict[str, list[int]], unsealed: bool = False) -> Roles:
    return Roles({role: tuple(folds) for role, folds in roles.items()}, unsealed)


def read_plan(path: str | Path) -> Plan:
    """Read a plan; a wrong key or value is named, with the nearest right one."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
        str(content)  # a hexadecimal number of any length is read, but not shown
    except OSError as error:
        raise PlanError(f"The plan {path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PlanError(f"The plan {path} is not valid TOML: {error}.") from None
    except RecursionError:
        raise PlanError(f"The plan {path} has lists or tables nested too deeply; a plan needs three levels.") from None
    except ValueError:
        raise PlanError(
            f"The plan {path} has a number of thousands of digits; write one that a plan can mean."
        ) from None
    try:
        return Plan.model_validate(content)
    except PlanError as error:
        raise PlanError(f"{path}: {' '.join(str(error).split())}") from None  # a key of the plan may have line breaks
    except ValidationError as error:
        raise PlanError(f"{path}: {_first_problem(error)}") from None


_KINDS = {
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
}
"""What a value should have been, by pydantic's name for the mistake."""


def _first_problem(error: ValidationError) -> str:
    # a key that is misspelt is also missing; the misspelling says more
    problem = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    kind, value, path = problem["type"], problem["input"], problem["loc"]
    where = ".".join(_short(step + 1 if isinstance(step, int) else step) for step in path)  # people count from one
    if kind == "extra_forbidden":
        return f"'{where}' is not part of a plan; {right_one(path[-1], _part(path[:-1]).model_fields)}"
    if kind == "missing":
        return f"'{where}' is missing; add it."
    words: dict[type, str] = {dict: "a table", list: "a list", str: f"'{_short(value)}'"}
    shown = _short(words.get(type(value), str(value).lower()))  # as TOML has it
    if kind == "literal_error":
        possible = re.findall("'([^']*)'", problem["ctx"]["expected"])
        return f"'{where}' is {shown}; {right_one(value, possible)}"
    if kind in _KINDS:
        return f"'{where}' is {shown}; it should be {_KINDS[kind]}."
    said = problem["msg"].replace("Input", "it").replace(" after validation", "")
    return f"'{where}' is {shown}: {said[0].lower()}{said[1:]}."


def _short(value: object) -> str:
    """A value as a sentence can hold it."""
    text = one_line(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _part(path: tuple[int | str, ...]) -> type[BaseModel]:
    """The part of a plan that a path of keys and positions leads to."""
    part: Any = Plan
    for step in path:
        part = get_args(part)[0] if isinstance(step, int) else part.model_fields[step].annotation
    return part
