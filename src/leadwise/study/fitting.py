"""Work of each stage up to the freeze. Nothing here reads the audit or the evaluation role."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool

from leadwise.analysis.bootstrap import PatientBootstrap
from leadwise.analysis.controls import places_frame
from leadwise.analysis.headroom import headroom_frame
from leadwise.analysis.quality import quality_frame
from leadwise.analysis.readings import Readings
from leadwise.analysis.selection import choices_frame, reselect, selection_frame, selection_summary_frame
from leadwise.analysis.splits import split_frame
from leadwise.cohort.cohort import Cohort
from leadwise.cohort.identity import Identity
from leadwise.errors import InputError, PlanError, right_one
from leadwise.evaluators.contract import EVALUATORS, Evaluator, SavedEvaluator
from leadwise.evaluators.contract import Material as EvaluatorMaterial
from leadwise.evaluators.masked_resnet.evaluator import shipped_networks
from leadwise.evaluators.masks import CARDINALITIES
from leadwise.evaluators.table import TableEvaluator, as_read
from leadwise.leads import LEADS, LeadSet
from leadwise.policies.contract import POLICIES
from leadwise.policies.contract import Material as PolicyMaterial
from leadwise.policies.rollout import allocate_budgets, trained_on
from leadwise.references import References, search_references
from leadwise.registry import Settings
from leadwise.run.bundle import write_bundle
from leadwise.run.parts import Parts
from leadwise.run.plan import Plan
from leadwise.run.results import TABLES
from leadwise.run.stage import Work
from leadwise.run.stage_names import (
    CENSUS,
    DEVELOPMENT,
    evaluator_stage,
    masks_stage,
    places_stage,
    policy_stage,
    search_stage,
    selection_stage,
)
from leadwise.search_ledger import answers_of_search
from leadwise.store import read_tensors, write_tensors
from leadwise.study.graph import seeds

MASKS_FORMAT = "leadwise training allocations 1"
IDENTITY = "cohort.json"
ANSWERS = "answers.safetensors"
"""Answers of an evaluator to every lead set of a search, if it reads one after the other."""
_SELECTION = ("selection", "selection_summary", "selection_choices")
"""Tables about the choice of references."""
HISTORY = "history.jsonl"
"""Account of a training's epochs, if it leaves one in its scratch directory."""


@dataclass(frozen=True)
class Study:
    """A plan, the file it was read from, and the cohort that it is carried out on."""

    plan: Plan
    plan_path: Path
    cohort: Cohort


def describe_cohort(work: Work) -> None:
    """Records and patients by role, ``splits``, and the identity of the cohort."""
    study = work.study
    (work.out / IDENTITY).write_text(json.dumps(study.cohort.identity.facts, indent=1) + "\n")
    splits = split_frame(study.cohort.role(role) for role in study.plan.roles if role in study.cohort)
    splits.to_parquet(work.out / "splits.parquet", index=False)


def fit_evaluator(work: Work, name: str, seed: int | None = None) -> None:
    """An evaluator of the plan, or the candidate for it with this seed."""
    plan, cohort = work.study.plan, work.study.cohort
    entry, parts = plan.evaluators[name], _parts(work)
    settings = entry.settings if seed is None else entry.settings.model_copy(update={"seeds": [seed]})
    allocations: dict[str, np.ndarray] = {}
    if entry.settings.policies:
        tensors, _ = read_tensors(work.inputs[masks_stage(name)] / "masks.safetensors", MASKS_FORMAT)
        allocations = {policy: tensors[policy].astype(bool) for policy in entry.settings.policies}
    made_from = {other: parts.evaluator(other) for other in entry.settings.evaluators}
    candidate = None if entry.settings.candidate is None else _candidate(work, *entry.settings.candidate)
    roles = cohort["train"], cohort["validation"]
    material = EvaluatorMaterial(name, *roles, made_from, candidate, allocations, work.scratch)
    _make_evaluator(entry.kind, settings, material).save(_file(work.out, name))
    if (work.scratch / HISTORY).exists():
        rows = [json.loads(line) for line in (work.scratch / HISTORY).read_text().splitlines()]
        table = pd.DataFrame(rows).drop(columns="seconds")  # a clock's answer, which the artifact must not depend on
        table.to_csv(work.out / "history.csv", index=False)


def make_evaluator(plan: Plan, name: str, cohort: Cohort) -> SavedEvaluator:
    """An evaluator of a plan by itself, with its first seed; the network that ships, if it knows just these records."""
    if name not in plan.evaluators:
        raise PlanError(f"The plan has no evaluator '{name}'; {right_one(name, plan.evaluators)}")
    entry, train, validation = plan.evaluators[name], cohort["train"], cohort["validation"]
    for network in shipped_networks():
        known = (network.facts.get("train"), network.facts.get("validation"))
        if network.name == name and known == (train.labels_sha256, validation.labels_sha256):
            return network
    if entry.settings.policies:
        raise PlanError(f"The evaluator '{name}' is trained on what policies choose; a run makes it.")
    made_from = {other: make_evaluator(plan, other, cohort) for other in entry.settings.evaluators}
    return _make_evaluator(entry.kind, entry.settings, EvaluatorMaterial(name, train, validation, made_from))


def _make_evaluator(kind: str, settings: Settings, material: EvaluatorMaterial) -> SavedEvaluator:
    made = EVALUATORS.find(kind).make(settings, material)
    _check_made(kind, made, "name", "labels", "sha256", "save")
    return made


def _check_made(kind: str, made: object, *members: str) -> None:
    """Raise unless what a kind made has all that a run needs of it."""
    missing = [member for member in members if not hasattr(made, member)]
    if missing:
        lacking = " and ".join(f"'{member}'" for member in missing)
        raise InputError(
            f"The kind {kind} makes an object of type {type(made).__name__} without {lacking}, which a run needs; add "
            "what is missing to its class."
        )


def choose_seed(work: Work, name: str) -> None:
    """The candidate with the lowest random-mask NLL on the selection role, and ``seeds.csv``."""
    from leadwise.evaluators.masked_resnet.training import random_mask_nll

    plan, selection, rows = work.study.plan, work.study.cohort["selection"], []
    candidates: dict[int, SavedEvaluator] = {}
    for seed in seeds(plan, name):
        candidates[seed] = evaluator = _candidate(work, name, seed)
        facts: dict[str, Any] = getattr(evaluator, "facts", {})
        known = {"evaluator": name, "seed": seed, "epoch": facts.get("epoch", 0), "metric": "nll"}
        if "nll" in facts:
            rows.append(known | {"role": "validation", "value": facts["nll"]})
        rows.append(known | {"role": "selection", "value": random_mask_nll(evaluator, selection)})
    table = pd.DataFrame(rows)[["evaluator", "seed", "epoch", "role", "metric", "value"]]
    chosen = table[table["role"] == "selection"].sort_values("value", kind="stable")["seed"].iloc[0]
    table.assign(chosen=table["seed"] == chosen).to_csv(work.out / "seeds.csv", index=False)
    candidates[chosen].save(_file(work.out, name))


def _candidate(work: Work, name: str, seed: int) -> SavedEvaluator:
    """The candidate for an evaluator that was trained with this seed."""
    file = _file(work.inputs[evaluator_stage(name, seed)], name)
    return Parts(work.study.plan, _evaluator_files(work) | {name: file}, {}).evaluator(name)


def search(work: Work, name: str, k: int) -> None:
    """The fixed references of an evaluator at one budget; what it was asked about is kept if it takes its time."""
    evaluator, selection = reader_of_search(work, name, k), work.study.cohort["selection"]
    ledger, answers = work.scratch / "search.jsonl", work.scratch / "search.logits"
    search_references(evaluator, selection, [k], ledger, answers).save(work.out / f"{name}.csv")
    table = answers_of_search(evaluator, selection, ledger, answers)
    if table is not None:
        table.save(work.out / ANSWERS)


def reader_of_search(work: Work, name: str, k: int) -> Evaluator:
    """The evaluator, which answers from what searches at this budget have kept, as far as the stage needs them."""
    searches = [search_stage(each, k) for each in (name, *work.study.plan.evaluators[name].settings.evaluators)]
    tables = [work.inputs[stage] / ANSWERS for stage in searches if stage in work.inputs]
    return as_read(_parts(work).evaluator(name), [TableEvaluator.load(file) for file in tables if file.exists()])


def choose_masks(work: Work, name: str) -> None:
    """Choices of policies for an evaluator's training records, at every budget of random masks that some have."""
    parts, train, tensors = _parts(work), work.study.cohort["train"], {}
    budgets = [k for k in CARDINALITIES if k <= train.available.sum(axis=1).max()]
    for policy in work.study.plan.evaluators[name].settings.policies:
        chosen = []
        for allocation in allocate_budgets(parts.policy(policy), train, budgets):
            masks = train.available.copy()  # a record with fewer leads than the budget is read with all it has
            masks[np.isin(train.rows, allocation.records.rows)] = allocation.masks
            chosen.append(masks)
        tensors[policy] = np.stack(chosen).astype(np.uint8)
    write_tensors(work.out / "masks.safetensors", tensors, MASKS_FORMAT, {"budgets": budgets})


def fit_policy(work: Work, name: str) -> None:
    """A policy of the plan. Readings are kept for others, and a kill costs no more than what comes after them."""
    plan, cohort, parts = work.study.plan, work.study.cohort, _parts(work)
    entry = plan.policies[name]
    work.readings.mkdir(exist_ok=True)
    material = PolicyMaterial(
        name=name,
        train=cohort["train"],
        validation=cohort["validation"],
        budgets=plan.budgets,
        ranking=_first_lead_ranking(work, name),
        evaluators={other: parts.evaluator(other) for other in entry.settings.evaluators},
        policies={other: parts.policy(other) for other in entry.settings.policies},
        patterns=_patterns(cohort) if CENSUS in work.inputs else None,
        directory=work.readings,
    )
    made = POLICIES.find(entry.kind).make(entry.settings, material)
    _check_made(entry.kind, made, "name", "save")
    made.save(_file(work.out, name))


def _patterns(cohort: Cohort) -> Bool[np.ndarray, "p 12"]:
    """The leads that records have, whatever their role; these are counts, which the seal leaves open."""
    roles = [cohort.role(role).available for role in cohort.roles.folds if role in cohort]
    return np.unique(np.vstack(roles), axis=0)


def _first_lead_ranking(work: Work, policy: str) -> list[str]:
    """Leads in the order in which a policy would begin with them."""
    first = work.study.plan.first_lead_for(policy)
    if first in LEADS:
        return [first, *(lead for lead in LEADS if lead != first)]
    place = work.inputs.get(search_stage(first, 1))
    if place is None:
        return list(LEADS)  # for a policy that is made from no evaluator
    searched = References.load(place / f"{first}.csv")
    ranking = [LeadSet(int(bits)).names[0] for bits in searched.ranking("nll", 1)["bits"]]
    return ranking + [lead for lead in LEADS if lead not in ranking]  # those that some record lacks come last


def develop(work: Work) -> None:
    """Tables about the roles that were used for fitting and choosing: quality, and the gain of an oracle."""
    plan, cohort, evaluators = work.study.plan, work.study.cohort, _parts(work).evaluators
    validation = cohort["validation"]
    bootstrap = PatientBootstrap(validation, plan.bootstrap.replicates, plan.bootstrap.seed)
    members = [each for name, each in evaluators.items() if name not in plan.stand_ins]
    readings = Readings(validation, members, bootstrap, work.scratch)
    for name, references in _references(work).items():
        budgets = [k for k in plan.budgets if k in references.budgets]
        headroom = headroom_frame(evaluators[name], cohort["selection"], references, budgets)
        headroom.to_parquet(work.out / "headroom.parquet", index=False)
    quality_frame(readings, validation).to_parquet(work.out / "evaluator_quality.parquet", index=False)


def choose_anew(work: Work, name: str) -> None:
    """``selection``, ``selection_summary`` and ``selection_choices`` of an evaluator, at all of its budgets."""
    plan, selection, found = work.study.plan, work.study.cohort["selection"], []
    references = _references(work)[name]
    for k in references.budgets:
        draws = plan.bootstrap.own_replicates, plan.bootstrap.seed + 1  # independent of those of a scored role
        found += reselect(reader_of_search(work, name, k), references, k, selection, *draws)
    for table, frame in zip(_SELECTION, (selection_frame, selection_summary_frame, choices_frame), strict=True):
        frame(found).to_parquet(work.out / f"{table}.parquet", index=False)


def find_places(work: Work, name: str) -> None:
    """``places`` of a policy under the readers and under the evaluator that it was trained on."""
    plan, selection, references = work.study.plan, work.study.cohort["selection"], _references(work)
    parts = _parts(work)
    policy = parts.policy(name)
    readers = [each for each in dict.fromkeys([*plan.readers, trained_on(policy)]) if each in references]
    readings = Readings(selection, [parts.evaluator(each) for each in readers], memory=work.scratch)
    frames = [
        places_frame(readings, reader, allocation, references[reader])
        for allocation in allocate_budgets(policy, selection, plan.budgets, readings.scorers)
        for reader in readers
        if allocation.k in references[reader].budgets
    ]
    TABLES["places"].frame(pd.concat(frames) if frames else ()).to_parquet(work.out / "places.parquet", index=False)


def freeze(work: Work) -> None:
    """Put everything into the bundle."""
    plan, places = work.study.plan, [work.inputs[CENSUS], work.inputs[DEVELOPMENT]]
    parts: dict[str, dict[str, Path]] = {"evaluators": _evaluator_files(work), "policies": _policy_files(work)}
    parts["references"] = {}
    for name, found in _references(work).items():
        parts["references"][name] = work.scratch / f"{name}.csv"
        found.save(parts["references"][name])
    parts["tables"] = {file.stem: file for place in places for file in sorted(place.glob("*.parquet"))}
    for table, frame in _joined_tables(work):
        parts["tables"][table] = work.scratch / f"{table}.parquet"
        frame.to_parquet(parts["tables"][table], index=False)
    chosen = [work.inputs[evaluator_stage(name)] / "seeds.csv" for name in plan.evaluators if seeds(plan, name)]
    if chosen:
        parts["tables"]["seeds"] = work.scratch / "seeds.csv"
        pd.concat([pd.read_csv(file) for file in chosen]).to_csv(parts["tables"]["seeds"], index=False)
    identity = Identity.read(json.loads((work.inputs[CENSUS] / IDENTITY).read_text()))
    write_bundle(work.out, work.study.plan_path, identity, parts)


def _joined_tables(work: Work) -> Iterator[tuple[str, pd.DataFrame]]:
    """Tables of which every evaluator or policy has made a part.

    Of the choices of every resample only those are frozen that scoring needs.
    """
    plan = work.study.plan
    places = {table: [selection_stage(name) for name in plan.evaluators] for table in _SELECTION}
    places["places"] = [places_stage(name) for name in plan.policies]
    for table, stages in places.items():
        files = [work.inputs[stage] / f"{table}.parquet" for stage in stages if stage in work.inputs]
        frames = [pd.read_parquet(file) for file in files]
        joined = TABLES[table].frame(pd.concat(frames) if frames else ())
        if table == _SELECTION[-1]:
            joined = joined[joined["evaluator"].isin(plan.readers) & joined["k"].isin(plan.budgets)]
        yield table, joined


def _references(work: Work) -> dict[str, References]:
    """By evaluator, all budgets together, of the searches that the stage needs."""
    merged = {}
    for name, entry in work.study.plan.evaluators.items():
        places = [work.inputs.get(search_stage(name, k)) for k in entry.references]
        found = [References.load(place / f"{name}.csv") for place in places if place]
        if found:
            merged[name] = References.merged(found)
    return merged


def _parts(work: Work) -> Parts:
    """The evaluators and policies that the stage needs."""
    return Parts(work.study.plan, _evaluator_files(work), _policy_files(work))


def _evaluator_files(work: Work) -> dict[str, Path]:
    return _files(work, {name: evaluator_stage(name) for name in work.study.plan.evaluators})


def _policy_files(work: Work) -> dict[str, Path]:
    return _files(work, {name: policy_stage(name) for name in work.study.plan.policies})


def _files(work: Work, stages: Mapping[str, str]) -> dict[str, Path]:
    """Files of those parts of the plan whose stages are among the stage's inputs."""
    return {name: _file(work.inputs[stage], name) for name, stage in stages.items() if stage in work.inputs}


def _file(place: Path, name: str) -> Path:
    return place / f"{name}.safetensors"
