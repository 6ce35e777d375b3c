"""The plan of a study, read from TOML and validated before anything runs.

Names are the plan's: it calls its evaluators and policies what it likes, and says of each which kind it is. What else
it says of it are that kind's own settings.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, SerializeAsAny, ValidationError, field_validator, model_validator

from leadwise.cohort.contract import COHORTS
from leadwise.cohort.roles import PTBXL_ROLES, Roles
from leadwise.errors import LeadwiseError, PlanError, right_one
from leadwise.evaluators.contract import EVALUATORS
from leadwise.leads import LEADS
from leadwise.policies.contract import POLICIES
from leadwise.registry import Budget, Part, Registry, Settings
from leadwise.run.plan_parts import (
    OWN,
    PARTS,
    Bootstrap,
    Budgets,
    Decomposition,
    Equivalence,
    Hypothesis,
    InteractionFamily,
    PolicyPair,
    Transfer,
    Variance,
)
from leadwise.run.plan_problems import first_problem, short


class Entry(Part):
    """Something that a plan names: its kind, and that kind's settings, which in the file stand beside the kind."""

    registry: ClassVar[Registry[Any]]
    kind: str
    settings: SerializeAsAny[Settings]

    @classmethod
    def read(cls, said: Any, where: tuple[str, ...]) -> Any:
        """The entry with its kind's settings validated; what has no kind is left to pydantic."""
        if not isinstance(said, dict):
            return said
        if not isinstance(said.get("kind"), str):
            return {key: value for key, value in said.items() if key == "kind"}
        entry = {key: value for key, value in said.items() if key in cls.model_fields.keys() - {"settings"}}
        settings = {key: value for key, value in said.items() if key not in entry}
        try:
            model = cls.registry.find(said["kind"]).Settings
            return entry | {"settings": model.model_validate(settings)}
        except ValidationError as error:
            raise PlanError(first_problem(error, model, where, entry)) from None
        except LeadwiseError as error:
            raise PlanError(f"'{'.'.join(map(short, where))}': {error}") from None

    def as_said(self) -> dict[str, Any]:
        """All that decides it, as JSON can hold it."""
        return {"kind": self.kind, **self.settings.model_dump(mode="json")}


class CohortPlan(Entry):
    """Kind and settings of the cohort."""

    registry = COHORTS


class EvaluatorPlan(Entry):
    """Kind and settings of an evaluator."""

    registry = EVALUATORS
    references: list[Budget] = []
    """Budgets whose fixed sets are searched for it."""

    @field_validator("references")
    @classmethod
    def _in_order(cls, budgets: list[int]) -> list[int]:
        return sorted(set(budgets))


class PolicyPlan(Entry):
    """Kind and settings of a policy."""

    registry = POLICIES
    first_lead: str | None = None
    """Its first lead, or the evaluator whose best single lead it is; by default that of the plan."""


class Plan(Part):
    """Everything that decides a study's results."""

    title: str = "Does adaptive lead choice survive a change of evaluator?"
    budgets: Budgets
    first_lead: str | None = None
    """First lead of policies, or the evaluator whose best single lead it is; by default the first evaluator."""
    cohort: CohortPlan
    roles: dict[str, list[int]] = {role: list(folds) for role, folds in PTBXL_ROLES.folds.items()}
    unsealed: bool = False
    """True opens the sealed fold of PTB-XL to a role that is not the evaluation role."""
    evaluators: Annotated[dict[str, EvaluatorPlan], Field(min_length=1)]
    policies: Annotated[dict[str, PolicyPlan], Field(min_length=1)]
    interactions: list[InteractionFamily] = []
    pairs: list[PolicyPair] = []
    transfer: Transfer | None = None
    decompositions: list[Decomposition] = []
    variance: list[Variance] = []
    equivalence: Equivalence = Equivalence()
    bootstrap: Bootstrap = Bootstrap()
    hypotheses: list[Hypothesis] = []

    @model_validator(mode="before")
    @classmethod
    def _kinds_know_their_settings(cls, said: Any) -> Any:
        if not isinstance(said, dict):
            return said
        read = {"cohort": CohortPlan.read(said["cohort"], ("cohort",))} if "cohort" in said else {}
        entries: dict[str, type[Entry]] = {"evaluators": EvaluatorPlan, "policies": PolicyPlan}
        for table, entry in entries.items():
            if isinstance(said.get(table), dict):
                every = _with_variants(table, said[table])
                read[table] = {name: entry.read(each, (table, name)) for name, each in every.items()}
        return said | read

    @property
    def readers(self) -> list[str]:
        """Evaluators that are looked at closely: baseline and evaluator of the first interactions, else the first two.

        Only such as have references.
        """
        searched = [name for name, each in self.evaluators.items() if each.references and name not in self.stand_ins]
        chosen = [self.interactions[0].baseline, self.interactions[0].evaluator] if self.interactions else searched[:2]
        return [name for name in chosen if name in searched]

    @property
    def studied(self) -> list[str]:
        """Policies that are looked at closely: those of the first interactions, else all but stand-ins."""
        everybody = [name for name in self.policies if name not in self.stand_ins]
        return list(self.interactions[0].policies if self.interactions else everybody)

    @property
    def stand_ins(self) -> set[str]:
        """Evaluators and policies that do nothing but stand in for others."""
        compared = [*self.interactions, *self.pairs, *self.decompositions, *self.hypotheses]
        named = {name for each in compared for name in _strings(each.model_dump())}
        named |= set(_strings(self.transfer.model_dump())) if self.transfer else set()
        named |= {member for source in self.variance for member in source.stand_ins}
        return {name for source in self.variance for names in source.stand_ins.values() for name in names} - named

    @property
    def first_lead_of(self) -> str | None:
        """The evaluator whose best single lead policies begin with; None where the plan names the lead."""
        return None if self.first_lead in LEADS else self.first_lead or next(iter(self.evaluators))

    def first_lead_for(self, policy: str) -> str | None:
        """The lead that a policy begins with, or the evaluator whose best single lead it begins with."""
        return self.policies[policy].first_lead or self.first_lead or self.first_lead_of

    @property
    def makes_cohort(self) -> bool:
        """True if its recordings are made, and not found in a directory."""
        return hasattr(COHORTS.find(self.cohort.kind), "write")

    def cohort_roles(self) -> Roles:
        return _as_roles(self.roles, self.unsealed)

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
        for table, entries in (("evaluators", self.evaluators), ("policies", self.policies)):
            for name in entries:
                _check_name(table, name)
        for table, named in (("evaluators", self.evaluators), ("policies", self.policies)):
            for name, entry in named.items():
                self._check_known(f"{table}.{name}", entry.settings.evaluators, entry.settings.policies)
        for name, each in self.evaluators.items():
            of = each.settings.candidate[0] if each.settings.candidate else None
            if of is not None and not hasattr(self.evaluators[of].settings, "seeds"):
                raise PlanError(f"'evaluators.{name}.of' is '{of}', which is not trained with seeds; name one that is.")
        self._check_circles()
        if self.first_lead_of is not None:
            begin = [name for name, each in self.policies.items() if each.settings.evaluators and not each.first_lead]
            self._check_first_lead("first_lead", self.first_lead_of, begin)
        for name, policy in self.policies.items():
            if policy.first_lead is not None and policy.first_lead not in LEADS:
                self._check_first_lead(f"policies.{name}.first_lead", policy.first_lead, [name])
        told = set[tuple[str, ...]]()
        for number, family in enumerate(self.interactions, 1):
            where = f"interactions.{number}"
            self._check_known(where, [family.evaluator, family.baseline], family.policies)
            _check_twice(f"{where}.policies", family.policies, "policy")
            rows = {(policy, family.evaluator, family.baseline, family.reference) for policy in family.policies}
            if rows & told:  # they would have one key
                raise PlanError(
                    f"'{where}' is about {min(rows & told)[0]} as one before it; leave it out of one of them."
                )
            told |= rows
            self._check_pair_of_evaluators(where, family.evaluator, family.baseline)
            self._check_reference(where, family.reference, [family.evaluator, family.baseline])
        for number, pair in enumerate(self.pairs, 1):
            self._check_known(f"pairs.{number}", pair.evaluators, pair.policies)
            _check_twice(f"pairs.{number}.policies", pair.policies, "policy")
        self._check_beyond_the_first_question()
        for number, hypothesis in enumerate(self.hypotheses, 1):
            self._check_hypothesis(f"hypotheses.{number}", hypothesis)
        return self

    def _check_beyond_the_first_question(self) -> None:
        """Raise where the matrix, a decomposition or a source of variance names what the plan does not have."""
        if self.transfer is not None:
            self._check_known("transfer", self.transfer.evaluators, self.transfer.policies)
            _check_twice("transfer.policies", self.transfer.policies, "policy")
            _check_twice("transfer.evaluators", self.transfer.evaluators, "evaluator")
            for name in self.transfer.evaluators:
                self._check_reference("transfer", OWN, [name])
        for number, each in enumerate(self.decompositions, 1):
            where, raw = f"decompositions.{number}", (each.evaluator, each.baseline)
            recalibrated = each.recalibrated_evaluator, each.recalibrated_baseline
            self._check_known(where, [*raw, *recalibrated], each.policies)
            self._check_pair_of_evaluators(where, *raw)
            self._check_reference(where, OWN, [*raw, *recalibrated])
        for number, source in enumerate(self.variance, 1):
            counts = {len(names) for names in source.stand_ins.values()}
            if len(counts) > 1 or min(counts) < 2:
                raise PlanError(
                    f"'variance.{number}.stand_ins' needs two names or more for each member, and as many for one as "
                    "for another."
                )
            for member, names in source.stand_ins.items():
                where = f"variance.{number}.stand_ins.{short(member)}"
                policies = member in self.policies
                if not policies and member not in self.evaluators:
                    known = [*self.evaluators, *self.policies]
                    raise PlanError(f"'{where}' is no evaluator or policy of the plan; {right_one(member, known)}")
                self._check_known(where, *(((), names) if policies else (names, ())))
                _check_twice(where, names, "policy" if policies else "evaluator")
            for family in self.interactions[:1]:
                of, baseline = (source.stand_ins.get(name) for name in (family.evaluator, family.baseline))
                pairs = zip(
                    of or [family.evaluator] * max(counts), baseline or [family.baseline] * max(counts), strict=True
                )
                same = [one for one, other in pairs if one == other]
                if same:
                    raise PlanError(
                        f"'variance.{number}.stand_ins' puts '{same[0]}' in the place of both evaluators of the first "
                        "interactions; name another one."
                    )

    def _check_known(self, where: str, evaluators: Iterable[str], policies: Iterable[str]) -> None:
        """Raise unless all that something names is in the plan."""
        for what, names, known in (("evaluator", evaluators, self.evaluators), ("policy", policies, self.policies)):
            for name in names:
                if name not in known:
                    raise PlanError(f"'{where}' names the {what} '{short(name)}'; {right_one(name, known)}")

    def _check_circles(self) -> None:
        """Raise where things are made from each other in a circle."""
        everything: dict[tuple[str, str], Entry] = {("evaluator", name): e for name, e in self.evaluators.items()}
        everything |= {("policy", name): each for name, each in self.policies.items()}
        needs = {
            key: [("evaluator", name) for name in each.settings.evaluators]
            + [("policy", name) for name in each.settings.policies]
            for key, each in everything.items()
        }
        for key in needs:
            seen, found = set[tuple[str, str]](), list(needs[key])
            while found:
                each = found.pop()
                if each == key:
                    raise PlanError(f"The {key[0]} '{key[1]}' is made from itself, over others; name another one.")
                if each not in seen:
                    seen.add(each)
                    found += needs[each]

    def _check_first_lead(self, where: str, name: str, policies: list[str]) -> None:
        """Raise unless the policies can begin with the best single lead of an evaluator."""
        if name not in self.evaluators:
            raise PlanError(
                f"'{where}' is '{short(name)}', which is neither a lead nor an evaluator of the plan; "
                f"{right_one(name, [*LEADS, *self.evaluators])}"
            )
        if policies and 1 not in self.evaluators[name].references:
            raise PlanError(
                f"Policies begin with the best single lead of the evaluator '{name}', which is not searched; add 1 to "
                f"'evaluators.{name}.references', or name a lead as '{where}'."
            )

    def _check_pair_of_evaluators(self, where: str, evaluator: str, baseline: str) -> None:
        if baseline == evaluator:
            raise PlanError(
                f"'{where}.baseline' is the evaluator itself, so the interaction is zero; name the evaluator to "
                "compare with."
            )

    def _check_reference(self, where: str, reference: str, evaluators: Iterable[str]) -> None:
        """Raise unless the references of a contrast are searched at some budget of the study."""
        for owner in evaluators if reference == OWN else [reference]:
            if owner not in self.evaluators:
                raise PlanError(f"'{where}.reference' is '{short(owner)}'; {right_one(owner, [OWN, *self.evaluators])}")
            if not set(self.budgets) & set(self.evaluators[owner].references):
                raise PlanError(
                    f"'{where}' needs references of the evaluator '{owner}', but 'evaluators.{owner}.references' has "
                    "none of the study's 'budgets'; add some."
                )

    def _check_hypothesis(self, where: str, hypothesis: Hypothesis) -> None:
        """Raise unless a hypothesis is about something that the study will have."""
        unknown = sorted(set(hypothesis.budgets) - set(self.budgets))
        if unknown:
            known = ", ".join(map(str, self.budgets))
            raise PlanError(
                f"'{where}.budgets' has {unknown[0]}, which is none of the study's 'budgets'; take {known}."
            )
        evaluators = [hypothesis.evaluator, *([hypothesis.baseline] if hypothesis.baseline else [])]
        self._check_known(where, evaluators, hypothesis.policies)
        if (hypothesis.quantity in ("interaction", *PARTS)) != (hypothesis.baseline is not None):
            do = "name the evaluator to compare with" if hypothesis.baseline is None else "leave it out"
            raise PlanError(f"'{where}.baseline' belongs to an interaction and its parts, to no other quantity; {do}.")
        if hypothesis.baseline is not None:
            self._check_pair_of_evaluators(where, hypothesis.evaluator, hypothesis.baseline)
        if hypothesis.quantity != "paired":
            self._check_reference(where, hypothesis.reference, evaluators)
        _check_twice(f"{where}.policies", hypothesis.policies, "policy")
        if hypothesis.quantity == "paired" and len(hypothesis.policies) != 2:
            raise PlanError(
                f"'{where}.policies' has {len(hypothesis.policies)}, but a paired comparison is of two; name two."
            )
        if hypothesis.quantity in PARTS:
            self._check_decomposed(where, hypothesis)
        margined = (hypothesis.quantity, hypothesis.reference, hypothesis.metrics) == ("contrast", OWN, ["nll"])
        if hypothesis.expected == "equivalent" and not margined:
            raise PlanError(
                f"'{where}.expected' is 'equivalent', but the margin is one of contrasts in nll against own "
                "references; expect 'above zero' or 'below zero'."
            )

    def _check_decomposed(self, where: str, hypothesis: Hypothesis) -> None:
        """Raise unless the plan decomposes the interactions of which a hypothesis names a part."""
        pair = hypothesis.evaluator, hypothesis.baseline
        decomposed = {
            name for each in self.decompositions if (each.evaluator, each.baseline) == pair for name in each.policies
        }
        lacking = sorted(set(hypothesis.policies) - decomposed)
        if lacking or hypothesis.reference != OWN:
            do = f"add {lacking[0]} there" if lacking else "leave 'reference' out"
            raise PlanError(
                f"'{where}' is about a part of an interaction, so 'decompositions' has to name its evaluator, its "
                f"baseline and its policies, and 'reference' is 'own'; {do}."
            )


def _with_variants(table: str, entries: dict[str, Any]) -> dict[str, Any]:
    """All entries of a table, each followed by its variants, which say only what differs from it."""
    every: dict[str, Any] = {}
    for name, entry in entries.items():
        variants = entry.get("variants", {}) if isinstance(entry, dict) else {}
        if not isinstance(variants, dict) or not all(isinstance(each, dict) for each in variants.values()):
            raise PlanError(
                f"'{table}.{short(name)}.variants' should be tables by name; write NAME = {{ KEY = VALUE }}."
            )
        alone = {key: value for key, value in entry.items() if key != "variants"} if variants else entry
        for each, said in {
            name: alone,
            **{variant: {**alone, **differs} for variant, differs in variants.items()},
        }.items():
            if each in every or (each != name and each in entries):
                raise PlanError(f"'{table}' names '{short(each)}' twice; give the variant a name of its own.")
            every[each] = said
    return every


def _strings(part: Any) -> Iterator[str]:
    """All texts in a part of a plan."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, list | dict):
        for each in part.values() if isinstance(part, dict) else part:
            yield from _strings(each)


def _check_name(table: str, name: str) -> None:
    """Raise unless a name can stand in a file's name and in a sentence."""
    if name in (OWN, "reference") or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}", name):
        raise PlanError(
            f"'{table}.{short(name)}' is no name: take up to 80 letters, digits, '-', '_' and '.', and neither 'own' "
            "nor 'reference'."
        )


def _check_twice(where: str, names: list[str], what: str) -> None:
    if len(set(names)) < len(names):
        raise PlanError(f"'{where}' names a {what} twice; name each once.")


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
        raise PlanError(f"{path}: {first_problem(error, Plan)}") from None
