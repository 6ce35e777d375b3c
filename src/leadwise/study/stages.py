"""Everything that a study fits and chooses, up to the freeze. Nothing here reads the audit or the evaluation role."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from leadwise.analysis.bootstrap import PatientBootstrap
from leadwise.analysis.quality import quality_frame
from leadwise.analysis.readings import Readings
from leadwise.analysis.splits import split_frame
from leadwise.cohort.cohort import Cohort
from leadwise.cohort.identity import Identity
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.evaluators.masks import CARDINALITIES
from leadwise.evaluators.network import NetworkEvaluator, pretrained
from leadwise.evaluators.recipe import Recipe
from leadwise.evaluators.saved import load_evaluator
from leadwise.evaluators.statistics import VERSION as STATISTICS_VERSION
from leadwise.evaluators.statistics import lead_statistics
from leadwise.leads import LEADS, LeadSet
from leadwise.policies.ccga import CCGA
from leadwise.policies.controls import CohortState, RandomSubset
from leadwise.policies.ecg_on_demand import ECGOnDemand
from leadwise.policies.mga import MGA
from leadwise.policies.network import StateNetwork
from leadwise.policies.oracle import headroom_frame
from leadwise.policies.rollout import allocate_budgets
from leadwise.policies.saved import load_policy
from leadwise.references import References, search_references
from leadwise.run.bundle import write_bundle
from leadwise.run.plan import Plan, PoliciesPlan
from leadwise.run.stage import Stage, Work
from leadwise.store import read_tensors, write_tensors

if TYPE_CHECKING:
    from leadwise.evaluators.training import Training

CONTROLLED = "controlled"
LOGISTIC = {CONTROLLED: "balanced", "controlled-unbalanced": None}
RECALIBRATED = "controlled-recalibrated"
STRONG, MASK_ROBUST = "strong", "mask-robust"
EVALUATORS = (*LOGISTIC, RECALIBRATED, STRONG, MASK_ROBUST)
ROBUST_TO = ("ecg-on-demand", "mga")
"""Policies whose allocations the mask-robust evaluator is trained on."""
STRONG_MGA = {
    "strong-mga": ("mga", STRONG, STRONG),
    "strong-mga-controlled-state": ("mga", STRONG, CONTROLLED),
}
"""Trained on the strong evaluator; the variant sees the controlled one's probabilities."""
POLICIES = ("ecg-on-demand", "mga", "ccga", *STRONG_MGA, "cohort-state", "random-subset")
TABLES = {
    "splits": ("role", "folds", "records", "patients"),
    "seeds": ("evaluator", "seed", "epoch", "role", "metric", "value", "chosen"),
    "boundary": ("evaluator", "role", "metric", "value"),
    "evaluator_quality": ("role", "evaluator", "leads", "metric", "value", "lo", "hi"),
    "headroom": ("role", "evaluator", "statistic", "k", "label", "value"),
}
"""Tables of a bundle, and columns that each has."""
ALLOCATIONS_FORMAT = "leadwise training allocations 1"
FIT = ("role:train", "role:validation")
IDENTITY = "cohort.json"


@dataclass(frozen=True)
class Study:
    """A plan, the file it was read from, and the cohort that it is carried out on."""

    plan: Plan
    plan_path: Path
    cohort: Cohort


def stages(plan: Plan, roles: list[str]) -> list[Stage]:
    """The stages up to the freeze; ``roles`` are those that the cohort has."""
    controlled, strong, policies = plan.controlled.model_dump(), plan.strong.model_dump(), plan.policies.model_dump()
    policies["budgets"] = plan.budgets
    network = {"widths": strong["widths"], "recipe": strong["recipe"]}
    seeds = {seed: f"strong-seed-{seed}" for seed in plan.strong.seeds}
    robust = plan.mask_robust.model_dump() | {"widths": strong["widths"]}
    searched = searched_budgets(plan)
    first = search_stage(CONTROLLED, 1)
    settings = {"roles": plan.roles, "cohort": plan.cohort.model_dump()}
    made = [
        Stage("cohort", _cohort, tuple(f"role:{role}" for role in roles), settings, version=3),
        Stage("statistics", _statistics, FIT, {"version": STATISTICS_VERSION}),
        *(Stage(name, _logistic(name, weight), FIT, controlled) for name, weight in LOGISTIC.items()),
        Stage(RECALIBRATED, _recalibrated, (*FIT, CONTROLLED)),
        *(Stage(name, _network(seed), FIT, network | {"seed": seed}) for seed, name in seeds.items()),
        Stage(STRONG, _choose_seed, ("role:selection", *seeds.values())),
        *(
            Stage(search_stage(name, k), _search(name, k), ("role:selection", name), {"k": k})
            for name, budgets in searched.items()
            for k in budgets
        ),
        *(
            Stage(name, _policies({name: (name, CONTROLLED, CONTROLLED)}), (*FIT, CONTROLLED, first), policies)
            for name in ("ecg-on-demand", "mga", "ccga")
        ),
        Stage("strong-mga", _policies(STRONG_MGA), (*FIT, STRONG, CONTROLLED, first), policies),
        Stage("cohort-state", _cohort_state, ("role:train", CONTROLLED, "ecg-on-demand")),
        Stage("random-subset", _random_subset, (), {"seed": plan.policies.seed}),
        Stage("training-allocations", _training_allocations, ("role:train", CONTROLLED, *ROBUST_TO)),
        Stage(MASK_ROBUST, _mask_robust, (*FIT, "role:selection", "training-allocations"), robust),
    ]
    oracle = tuple(search_stage(CONTROLLED, k) for k in searched[CONTROLLED])
    described = {"bootstrap": plan.bootstrap.model_dump(), "budgets": plan.budgets}
    made.append(
        Stage("development", _development, ("role:validation", "role:selection", *EVALUATORS, *oracle), described)
    )
    frozen = [stage.name for stage in made if stage.name not in ("statistics", *seeds.values())]
    return [*made, Stage("freeze", _freeze, tuple(frozen), plan.model_dump(), version=3)]


def searched_budgets(plan: Plan) -> dict[str, list[int]]:
    """By evaluator, the budgets whose fixed sets a plan searches."""
    return {name: sorted({1, *plan.budgets}) for name in (*LOGISTIC, RECALIBRATED)} | {STRONG: plan.strong.search}


def _cohort(work: Work) -> None:
    """Who is studied: ``splits.csv``, and what the cohort is."""
    study = work.study
    (work.out / IDENTITY).write_text(json.dumps(study.cohort.identity.facts, indent=1) + "\n")
    splits = split_frame(study.cohort.role(role) for role in study.plan.roles if role in study.cohort)
    splits.to_parquet(work.out / "splits.parquet", index=False)


def _statistics(work: Work) -> None:
    """Ten statistics a lead, kept in the cohort's cache; the artifact says of what they were taken."""
    cohort = work.study.cohort
    shapes = {role: list(lead_statistics(cohort[role]).shape) for role in ("train", "validation")}
    (work.out / "statistics.json").write_text(json.dumps(shapes) + "\n")


def _logistic(name: str, class_weight: str | None) -> Callable[[Work], None]:
    def make(work: Work) -> None:
        settings = work.study.plan.controlled.model_dump()
        evaluator = LogisticEvaluator(name, class_weight=class_weight, **settings)
        evaluator.fit(work.study.cohort["train"]).save(work.out / f"{name}.safetensors")

    return make


def _recalibrated(work: Work) -> None:
    controlled = _evaluator(work, CONTROLLED)
    validation = work.study.cohort["validation"]
    controlled.recalibrated(validation, RECALIBRATED).save(work.out / f"{RECALIBRATED}.safetensors")


def _network(seed: int) -> Callable[[Work], None]:
    def make(work: Work) -> None:
        plan = work.study.plan.strong
        _trained(work, STRONG, seed, plan.recipe, {}).save(work.out / f"{STRONG}.safetensors")

    return make


def _training(
    plan: Plan,
    cohort: Cohort,
    name: str,
    seed: int,
    recipe: Recipe,
    allocations: dict[str, np.ndarray],
    directory: Path | None,
) -> "Training":
    from leadwise.evaluators.training import Training

    return Training(
        cohort["train"],
        cohort["validation"],
        name=name,
        seed=seed,
        recipe=recipe,
        widths=tuple(plan.strong.widths),
        allocations=allocations,
        directory=directory,
    )


def shipped(
    plan: Plan, cohort: Cohort, name: str, seed: int, recipe: Recipe, allocations: dict[str, np.ndarray] | None = None
) -> NetworkEvaluator | None:
    """The network that ships under a name, if it was trained just as the plan says, on just these records."""
    ready = pretrained(name)
    return ready if _training(plan, cohort, name, seed, recipe, allocations or {}, None).made(ready) else None


def _trained(work: Work, name: str, seed: int, recipe: Recipe, allocations: dict[str, np.ndarray]) -> NetworkEvaluator:
    """A network trained as the plan says; the shipped one if it was trained just so, on just these records."""
    ready = shipped(work.study.plan, work.study.cohort, name, seed, recipe, allocations)
    if ready is not None:
        return ready
    evaluator = _training(work.study.plan, work.study.cohort, name, seed, recipe, allocations, work.scratch).run()
    history = work.scratch / "history.jsonl"
    rows = [json.loads(line) for line in history.read_text().splitlines()]
    table = pd.DataFrame(rows).drop(columns="seconds")  # a clock's answer, where the artifact must not depend on it
    table.to_csv(work.out / "history.csv", index=False)
    return evaluator


def _choose_seed(work: Work) -> None:
    """The seed with the lowest random-mask NLL on the selection role: its weights, and ``seeds.csv``."""
    from leadwise.evaluators.training import random_mask_nll

    selection, rows = work.study.cohort["selection"], []
    candidates = {name: load_evaluator(path / f"{STRONG}.safetensors") for name, path in work.inputs.items()}
    for evaluator in candidates.values():
        facts = {"evaluator": STRONG, "seed": evaluator.facts["seed"], "epoch": evaluator.facts["epoch"]}
        rows.append(facts | {"role": "validation", "metric": "nll", "value": evaluator.facts["nll"]})
        rows.append(facts | {"role": "selection", "metric": "nll", "value": random_mask_nll(evaluator, selection)})
    table = pd.DataFrame(rows)
    chosen = table[table["role"] == "selection"].sort_values("value", kind="stable")["seed"].iloc[0]
    table.assign(chosen=table["seed"] == chosen).to_csv(work.out / "seeds.csv", index=False)
    candidates[f"strong-seed-{chosen}"].save(work.out / f"{STRONG}.safetensors")


def search_stage(name: str, k: int) -> str:
    """Every budget is searched in a stage of its own, so that another budget does not redo the hours of the others."""
    return f"references-{name}-{k}"


def _search(name: str, k: int) -> Callable[[Work], None]:
    def make(work: Work) -> None:
        ledger = work.scratch / "search.jsonl"
        found = search_references(_evaluator(work, name), work.study.cohort["selection"], [k], ledger)
        found.save(work.out / f"{name}.csv")

    return make


def _policies(wanted: dict[str, tuple[str, str, str]]) -> Callable[[Work], None]:
    """Train policies, each a kind with a target and a state evaluator; what is read for one serves the next.

    Readings are kept as they are made, so that a kill costs no more than the training of the small network.
    """
    kinds: dict[str, type] = {"ecg-on-demand": ECGOnDemand, "mga": MGA, "ccga": CCGA}

    def make(work: Work) -> None:
        plan, cohort = work.study.plan.policies, work.study.cohort
        evaluators = {name: _evaluator(work, name) for name in {each for pair in wanted.values() for each in pair[1:]}}
        for name, (kind, target, state) in wanted.items():
            settings: dict[str, Any] = {"states": plan.states, "seed": plan.seed, "budgets": work.study.plan.budgets}
            if kind == "ccga":
                settings["neighbours"] = plan.neighbours
            else:
                settings |= {"own": plan.own, "network": StateNetwork(plan.hidden, plan.epochs, plan.batch)}
            ranking = first_lead_ranking(work, plan)
            settings |= {"state_evaluator": evaluators[state], "name": name}
            policy = kinds[kind](evaluators[target], ranking, **settings)
            policy.fit(cohort["train"], cohort["validation"], work.scratch).save(work.out / f"{name}.safetensors")

    return make


def first_lead_ranking(work: Work, plan: PoliciesPlan) -> list[str]:
    """All leads, best single lead of the controlled evaluator first, or the one that the plan names."""
    references = References.load(work.inputs[search_stage(CONTROLLED, 1)] / f"{CONTROLLED}.csv")
    ranking = [LeadSet(int(bits)).names[0] for bits in references.ranking("nll", 1)["bits"]]
    ranking += [lead for lead in LEADS if lead not in ranking]  # leads that some record of the role lacks come last
    if plan.first_lead is not None:
        ranking.sort(key=lambda lead: lead != plan.first_lead)
    return ranking


def _cohort_state(work: Work) -> None:
    policy = load_policy(
        work.inputs["ecg-on-demand"] / "ecg-on-demand.safetensors", {CONTROLLED: _evaluator(work, CONTROLLED)}, {}
    )
    CohortState(policy).fit(work.study.cohort["train"]).save(work.out / "cohort-state.safetensors")


def _random_subset(work: Work) -> None:
    RandomSubset(work.study.plan.policies.seed).save(work.out / "random-subset.safetensors")


def _training_allocations(work: Work) -> None:
    """What the policies choose for the training records, at every budget of random masks that some record has."""
    evaluators = {CONTROLLED: _evaluator(work, CONTROLLED)}
    tensors, train = {}, work.study.cohort["train"]
    budgets = [k for k in CARDINALITIES if k <= train.available.sum(axis=1).max()]
    for name in ROBUST_TO:
        policy = load_policy(work.inputs[name] / f"{name}.safetensors", evaluators, {})
        chosen = []
        for allocation in allocate_budgets(policy, train, budgets):
            masks = train.available.copy()  # a record with fewer leads than the budget is read with all it has
            masks[np.isin(train.rows, allocation.records.rows)] = allocation.masks
            chosen.append(masks)
        tensors[name] = np.stack(chosen).astype(np.uint8)
    write_tensors(work.out / "allocations.safetensors", tensors, ALLOCATIONS_FORMAT, {"budgets": budgets})


def _mask_robust(work: Work) -> None:
    """The mask-robust evaluator, and its boundary check: scored once on the selection role, choosing nothing."""
    from leadwise.evaluators.training import random_mask_nll

    tensors, _ = read_tensors(work.inputs["training-allocations"] / "allocations.safetensors", ALLOCATIONS_FORMAT)
    allocations = {name: tensors[name].astype(bool) for name in ROBUST_TO}
    plan = work.study.plan.mask_robust
    evaluator = _trained(work, MASK_ROBUST, plan.seed, plan.recipe, allocations)
    evaluator.save(work.out / f"{MASK_ROBUST}.safetensors")
    value = random_mask_nll(evaluator, work.study.cohort["selection"])
    row = {"evaluator": MASK_ROBUST, "role": "selection", "metric": "nll", "value": value}
    pd.DataFrame([row]).to_csv(work.out / "boundary.csv", index=False)


def _development(work: Work) -> None:
    """What is said about the roles that were used for fitting and choosing: quality, and what an oracle would gain."""
    plan, cohort = work.study.plan, work.study.cohort
    validation = cohort["validation"]
    evaluators = {name: _evaluator(work, name) for name in EVALUATORS}
    bootstrap = PatientBootstrap(validation, plan.bootstrap.replicates, plan.bootstrap.seed)
    readings = Readings(validation, evaluators.values(), bootstrap, work.scratch)
    references = _references(work)[CONTROLLED]
    headroom = headroom_frame(evaluators[CONTROLLED], cohort["selection"], references, plan.budgets)
    headroom.to_parquet(work.out / "headroom.parquet", index=False)
    quality_frame(readings, validation).to_parquet(work.out / "evaluator_quality.parquet", index=False)


def _freeze(work: Work) -> None:
    """Put everything into the bundle."""
    parts: dict[str, dict[str, Path]] = {"evaluators": {}, "policies": {}, "references": {}}
    parts["tables"] = {
        "splits": work.inputs["cohort"] / "splits.parquet",
        "seeds": work.inputs[STRONG] / "seeds.csv",
        "boundary": work.inputs[MASK_ROBUST] / "boundary.csv",
        "evaluator_quality": work.inputs["development"] / "evaluator_quality.parquet",
        "headroom": work.inputs["development"] / "headroom.parquet",
    }
    for name, path in work.inputs.items():
        if name in EVALUATORS:
            parts["evaluators"][name] = path / f"{name}.safetensors"
        elif name != "training-allocations":
            parts["policies"] |= {file.stem: file for file in path.glob("*.safetensors")}
    for evaluator, found in _references(work).items():
        parts["references"][evaluator] = work.scratch / f"{evaluator}.csv"
        found.save(parts["references"][evaluator])
    identity = Identity.read(json.loads((work.inputs["cohort"] / IDENTITY).read_text()))
    write_bundle(work.out, work.study.plan_path, identity, parts)


def _references(work: Work) -> dict[str, References]:
    """By evaluator, all budgets together."""
    searched: dict[str, list[References]] = {}
    for name, path in work.inputs.items():
        if name.startswith("references-"):
            (file,) = path.glob("*.csv")
            searched.setdefault(file.stem, []).append(References.load(file))
    return {evaluator: References.merged(found) for evaluator, found in searched.items()}


def _evaluator(work: Work, name: str) -> Any:
    return load_evaluator(work.inputs[name] / f"{name}.safetensors")
