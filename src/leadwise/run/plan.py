"""The plan of a study, read from TOML and validated before anything runs."""

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from leadwise.cohort.roles import PTBXL_ROLES, Roles
from leadwise.errors import PlanError
from leadwise.evaluators.recipe import Count, Recipe

_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)


class StrongPlan(BaseModel):
    """The strong evaluator: one network for each seed, of which the selection role picks one."""

    model_config = _STRICT

    seeds: Annotated[list[int], Field(min_length=1)] = [20060928]
    widths: Annotated[list[Count], Field(min_length=4, max_length=4)] = [64, 96, 160, 256]
    recipe: Recipe = Recipe()


class Plan(BaseModel):
    """Everything that decides a study's results. Without a file it is the published protocol on PTB-XL."""

    model_config = _STRICT

    roles: dict[str, list[int]] = {role: list(folds) for role, folds in PTBXL_ROLES.folds.items()}
    strong: StrongPlan = StrongPlan()

    @field_validator("roles")
    @classmethod
    def _roles_are_sound(cls, roles: dict[str, list[int]]) -> dict[str, list[int]]:
        _as_roles(roles)
        return roles

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
