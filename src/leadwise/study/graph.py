"""The stages of a plan, from the cohort to the scoring of a role: what each needs, what decides it, what it costs.

Nothing is computed here, and nothing that computes is imported, so that a run's status is told at once.
"""

from collections.abc import Iterable, Mapping
from math import comb

from leadwise.errors import InputError
from leadwise.leads import LEADS
from leadwise.run.plan import EvaluatorPlan, Plan, PolicyPlan
from leadwise.run.stage import Later, Stage
from leadwise.run.stage_names import (
    CENSUS,
    DEVELOPMENT,
    FREEZE,
    evaluator_stage,
    masks_stage,
    places_stage,
    policy_stage,
    scoring_stage,
    search_stage,
    selection_stage,
)

FIT = ("role:train", "role:validation")
SELECTION = "role:selection"
_FITTING, _SCORING = "leadwise.study.fitting", "leadwise.study.scoring"


def scored(role: str, bundle: str, needs: tuple[str, ...] = ()) -> Stage:
    """The scoring of a role with the frozen bundle of this hash, which lies in the run."""
    work = Later(_SCORING, "score_role", (role,))
    return Stage(scoring_stage(role), work, (f"role:{role}", *needs), {"bundle": bundle}, version=2)


def stages(plan: Plan, roles: Iterable[str], sizes: Mapping[str, int] | None = None) -> list[Stage]:
    """All stages up to the freeze; ``roles`` are those that the cohort has, ``sizes``, for costs, their records."""
    sizes = sizes or dict.fromkeys(("train", "validation", "selection"), 0)
    who = {"roles": plan.roles, "cohort": plan.cohort.as_said()}
    made = [
        Stage(CENSUS, _fitting("describe_cohort"), tuple(f"role:{role}" for role in roles), who),
        *(stage for name in plan.evaluators for stage in _evaluator(plan, name, sizes)),
        *(_policy(plan, name, sizes) for name in plan.policies),
        *(_reselection(plan, name) for name, each in plan.evaluators.items() if each.references),
        *(_places(plan, name, sizes) for name in plan.policies if name not in plan.stand_ins),
        _development(plan, sizes),
    ]
    candidates = {evaluator_stage(name, seed) for name in plan.evaluators for seed in trained_seeds(plan, name)}
    needs = tuple(stage.name for stage in made if stage.name not in candidates and not stage.name.startswith("masks/"))
    return [*made, Stage(FREEZE, _fitting("freeze"), needs, plan.model_dump(mode="json"))]


def seeds(plan: Plan, name: str) -> list[int]:
    """Seeds of which the selection role picks one; none where an evaluator has no such setting."""
    return list(getattr(plan.evaluators[name].settings, "seeds", []))


def trained_seeds(plan: Plan, name: str) -> list[int]:
    """All seeds that an evaluator is trained with: those to choose from, and those that others of the plan are."""
    others = [each.settings.candidate for each in plan.evaluators.values()]
    return list(dict.fromkeys([*seeds(plan, name), *(seed for of, seed in filter(None, others) if of == name)]))


def _fitting(what: str, *arguments: object) -> Later:
    return Later(_FITTING, what, arguments)


def _version(entry: EvaluatorPlan | PolicyPlan) -> int:
    """The version of an entry's kind, which its class may declare."""
    version = getattr(entry.registry.find(entry.kind), "version", 1)
    if type(version) is not int:
        raise InputError(f"The kind {entry.kind} has the version {version!r}, where a whole number is due.")
    return version


def _evaluator(plan: Plan, name: str, sizes: Mapping[str, int]) -> list[Stage]:
    """Stages of an evaluator: candidates of several seeds and the choice among them, and its references."""
    entry, final = plan.evaluators[name], evaluator_stage(name)
    needs, made = (*FIT, *_parts(plan, entry.settings.evaluators)), []
    if entry.settings.policies:
        chosen_by = _parts(plan, policies=entry.settings.policies)
        made.append(Stage(masks_stage(name), _fitting("choose_masks", name), ("role:train", *chosen_by)))
        needs = (*needs, masks_stage(name))
    version, cost = _version(entry), entry.settings.cost(sizes)
    for seed in trained_seeds(plan, name):
        said = entry.as_said() | {"seeds": [seed]}
        make = _fitting("fit_evaluator", name, seed)
        made.append(Stage(evaluator_stage(name, seed), make, needs, said, version, cost))
    if seeds(plan, name):
        candidates = [evaluator_stage(name, seed) for seed in seeds(plan, name)]
        # whatever a candidate is loaded with
        others = [need for need in needs if need.startswith("evaluator/")]
        needs, cost = (SELECTION, *candidates, *others), {f"read {name}": sizes["selection"] * len(candidates)}
    if entry.settings.candidate is not None:
        of, seed = entry.settings.candidate
        needs = (evaluator_stage(of, seed), *_parts(plan, [of]))
    make = _fitting("choose_seed" if seeds(plan, name) else "fit_evaluator", name)
    made.append(Stage(final, make, needs, entry.as_said(), version, cost))
    for k in entry.references:
        cost = {f"read {name}": comb(len(LEADS), k) * sizes["selection"]}
        # what was read in the search of an evaluator that this one follows from, or may equal, is not read again
        others = [search_stage(of, k) for of in _searched(plan, name, k)]
        needs = (SELECTION, *_parts(plan, [name]), *others)
        made.append(Stage(search_stage(name, k), _fitting("search", name, k), needs, {"k": k}, cost=cost))
    return made


def _searched(plan: Plan, name: str, k: int) -> list[str]:
    """Those that an evaluator is made from and that are searched at a budget, too."""
    return [of for of in plan.evaluators[name].settings.evaluators if k in plan.evaluators[of].references]


def _policy(plan: Plan, name: str, sizes: Mapping[str, int]) -> Stage:
    entry = plan.policies[name]
    needs = (*FIT, *_parts(plan, entry.settings.evaluators, entry.settings.policies))
    first = plan.first_lead_for(name)
    settings = entry.as_said() | {"budgets": plan.budgets, "first_lead": first}
    if entry.settings.needs_patterns:
        needs = (*needs, CENSUS)
    if entry.settings.evaluators and first in plan.evaluators:
        needs = (*needs, search_stage(first, 1))
    cost = entry.settings.cost(sizes)
    return Stage(policy_stage(name), _fitting("fit_policy", name), needs, settings, _version(entry), cost)


def _reselection(plan: Plan, name: str) -> Stage:
    """The stage that chooses an evaluator's references anew. It reads what searches have left, and little else."""
    entry = plan.evaluators[name]
    searches = [search_stage(each, k) for k in entry.references for each in (name, *_searched(plan, name, k))]
    needs = (SELECTION, *_parts(plan, [name]), *searches)
    settings = {"replicates": plan.bootstrap.own_replicates, "seed": plan.bootstrap.seed}
    cost = {"reselection": len(entry.references)}
    return Stage(selection_stage(name), _fitting("choose_anew", name), needs, settings, cost=cost)


def _places(plan: Plan, name: str, sizes: Mapping[str, int]) -> Stage:
    """The stage that gives a policy its places: under the readers, and under what it was trained on."""
    states = _evaluators_of(plan, name)
    readers = [each for each in dict.fromkeys([*plan.readers, *states]) if each not in plan.stand_ins]
    searches = [search_stage(each, k) for each in readers for k in plan.evaluators[each].references]
    needs = (SELECTION, *_parts(plan, readers, [name]), *searches)
    cost = {f"read {each}": len(plan.budgets) * sizes["selection"] for each in readers}
    for each in states:
        cost[f"read {each}"] = cost.get(f"read {each}", 0) + max(plan.budgets) * sizes["selection"]
    settings = {"budgets": plan.budgets, "evaluators": readers}
    return Stage(places_stage(name), _fitting("find_places", name), needs, settings, cost=cost)


def _evaluators_of(plan: Plan, policy: str) -> list[str]:
    """Evaluators that a policy, or one that it is made from, is made from."""
    settings = plan.policies[policy].settings
    inner = [name for other in settings.policies for name in _evaluators_of(plan, other)]
    return list(dict.fromkeys([*settings.evaluators, *inner]))


def _development(plan: Plan, sizes: Mapping[str, int]) -> Stage:
    """The stage of the tables about the roles that were used for fitting and choosing."""
    oracle = [search_stage(name, k) for name in plan.readers[:1] for k in plan.evaluators[name].references]
    members = [name for name in plan.evaluators if name not in plan.stand_ins]
    needs = ("role:validation", SELECTION, *_parts(plan, members), *oracle)
    settings = {"bootstrap": plan.bootstrap.model_dump(), "budgets": plan.budgets, "readers": plan.readers}
    settings |= {"evaluators": members}
    cost = {f"read {name}": 2 * sizes["validation"] for name in members}
    return Stage(DEVELOPMENT, _fitting("develop"), needs, settings, cost=cost)


def _parts(plan: Plan, evaluators: Iterable[str] = (), policies: Iterable[str] = ()) -> tuple[str, ...]:
    """The stages of these evaluators and policies, and of all that they are loaded with."""
    found: list[str] = []
    for name in evaluators:
        found += [*_parts(plan, plan.evaluators[name].settings.evaluators), evaluator_stage(name)]
    for name in policies:
        settings = plan.policies[name].settings
        found += [*_parts(plan, settings.evaluators, settings.policies), policy_stage(name)]
    return tuple(dict.fromkeys(found))
