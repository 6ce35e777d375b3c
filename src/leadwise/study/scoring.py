"""Every number of a study, from a frozen bundle and the records of one role. Nothing is fitted here.

What is compared with what follows from the plan alone.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from leadwise.analysis.alignment import alignment_frame, choice_frame, modal_sets, policies_alignment_frame
from leadwise.analysis.bootstrap import Estimate, PatientBootstrap
from leadwise.analysis.calibration import calibration_frame, reliability_frame
from leadwise.analysis.contrasts import OWN, Contrast, comparable, contrasts_frame, estimate_contrasts
from leadwise.analysis.controls import DERIVED, UNTRAINED, controls_frame
from leadwise.analysis.decomposition import decomposition_frame
from leadwise.analysis.equivalence import equivalence_rows
from leadwise.analysis.gaps import gaps_frame
from leadwise.analysis.interactions import Interaction, estimate_interactions, interactions_frame
from leadwise.analysis.paired import paired_frame
from leadwise.analysis.patients import PatientEffects, effects_frame, overlap_frame, patient_effects, patients_frame
from leadwise.analysis.quality import quality_frame
from leadwise.analysis.readings import Readings, readings_frame
from leadwise.analysis.selection import read_choices, with_selection_rows
from leadwise.analysis.splits import split_frame
from leadwise.analysis.subgroups import subgroups_frame
from leadwise.analysis.tidy import REFERENCE
from leadwise.analysis.transfer import estimate_areas, transfer_frame
from leadwise.analysis.variance import Cell, Replications, Row, cells_of
from leadwise.cohort.cohort import Records
from leadwise.leads import LEADS
from leadwise.policies.allocation import Allocation
from leadwise.policies.rollout import allocate_budgets, ranking_of
from leadwise.references import MATCHED_METRICS
from leadwise.run.bundle import Bundle
from leadwise.run.results import TABLES
from leadwise.run.stage import Work
from leadwise.store import write_csv


def score_role(work: Work, role: str) -> None:
    """Score a role with everything that was frozen. The receipt of this stage is the receipt of having looked."""
    bundle = Bundle(work.study.plan_path.parent / "bundle")
    cohort = bundle.open(work.study.cohort, role)
    write_frames(work.out, RoleResults(bundle, cohort.role(role), work.scratch).frames())


@dataclass
class RoleResults:
    """All results of one role, as frames by the name of their file."""

    bundle: Bundle
    records: Records
    memory: Path
    """Directory where readings are kept as they are made."""

    def __post_init__(self) -> None:
        plan = self.plan = self.bundle.plan
        self.bootstrap = PatientBootstrap(self.records, plan.bootstrap.replicates, plan.bootstrap.seed)
        members = [each for name, each in self.bundle.evaluators.items() if name not in plan.stand_ins]
        self.readings = Readings(self.records, members, self.bootstrap, self.memory)
        """Of evaluators that are more than stand-ins."""
        chosen: dict[tuple[str, int], Allocation] = {}
        for name, policy in self.bundle.policies.items():
            for allocation in allocate_budgets(policy, self.records, plan.budgets, self.readings.scorers):
                chosen[name, allocation.k] = allocation
        self.allocations = {key: each for key, each in chosen.items() if key[0] not in plan.stand_ins}
        """Of policies that are more than stand-ins."""
        self.pairs: dict[tuple[str, str], dict[str, None]] = {}
        """Policies that are compared with each other, with the evaluators under which they are."""
        for pair in plan.pairs:
            a, b = pair.policies
            self.pairs.setdefault((a, b), {}).update(dict.fromkeys(pair.evaluators))
        references = self.bundle.references.values()
        self.compared = {key: comparable(each, references) for key, each in chosen.items()}
        """The parts of all allocations that are compared: for records that have every reference's leads."""

    @cached_property
    def own_readings(self) -> Readings:
        """The same readings, of stand-ins too, with the replicates of the study's own claims."""
        own = PatientBootstrap(self.records, self.plan.bootstrap.own_replicates, self.plan.bootstrap.seed)
        return self.readings.resampled(own, self.bundle.evaluators.values())

    def frames(self) -> dict[str, pd.DataFrame]:
        """Every table, in an order in which what was read before serves what comes next."""
        contrasts = self._contrasts()
        interactions = self._interactions(contrasts)
        tables = {
            "splits": split_frame([self.records]),
            "resamples": self._resample(),
            "left_out": self._left_out(),
            "contrasts": contrasts_frame(contrasts),
            "interactions": interactions_frame(interactions),
            "transfer": self._transfer(contrasts),
            "decomposition": _joined(self._decompositions(contrasts)),
            "subgroups": self._subgroups(),
            "gap_closed": gaps_frame(contrasts, self.pairs),
            "paired": _joined(self._paired()),
            "controls": _joined(self._controls()),
            "evaluator_quality": quality_frame(self.readings, self.records),
            "calibration": _joined(self._calibration()),
            "reliability": _joined(self._reliability()),
            "alignment": _joined(self._alignment()),
            "modal_sets": _joined(modal_sets(allocation) for allocation in self.allocations.values()),
        }
        effects = self._effects()
        tables["patients"] = _joined(self._patients(effects))
        tables["patient_effects"] = _joined(effects_frame(each) for several in effects for each in several)
        tables["allocations"] = _joined(allocation_frame(each) for each in self.allocations.values())
        tables["replicates"] = _joined(_replicates(contrasts, interactions))
        tables["records"] = readings_frame(self.readings)  # lists what the others have used, before stand-ins are read
        replications = self._replications()
        variance = [*(replications.variance if replications else ()), *self._with_selection()]
        tables["variance"] = pd.DataFrame(variance)
        tables["replications"] = pd.DataFrame(replications.replications if replications else [])
        tables["equivalence"] = pd.DataFrame(self._equivalence())
        return {name: TABLES[name].frame(rows) for name, rows in tables.items()}

    def _resample(self) -> pd.DataFrame:
        """``resamples.csv``: which draws of patients all intervals of the role share."""
        plan, drawn = self.plan.bootstrap, self.bootstrap
        facts = {"role": self.records.role, "patients": len(drawn.patients), "replicates": plan.replicates}
        facts |= {"seed": plan.seed, "sha256": drawn.sha256, "own_replicates": plan.own_replicates}
        return pd.DataFrame([facts | {"own_sha256": self.own_readings.bootstrap.sha256}])

    def _left_out(self) -> pd.DataFrame:
        """``left_out.csv``: at each k, the records that no contrast with a reference is about."""
        rows = []
        for k, compared in {k: each.records for (_, k), each in self.compared.items()}.items():
            absent = self.records.select(~np.isin(self.records.rows, compared.rows))
            fewer = absent.lead_counts < k
            reason = np.where(fewer, f"fewer than {k} leads", "lacks a lead of a reference")
            rows.append(pd.DataFrame({"role": self.records.role, "k": k, "id": absent.ids, "reason": reason}))
        return _joined(rows)

    def _contrasts(self) -> list[Contrast]:
        """Own references for every evaluator that has some; for the families of interactions, those that they name."""
        found, policies = [], {name for name, _ in self.allocations}
        for evaluator in self.bundle.references:
            if evaluator in self.readings.evaluators:
                found += self._against(evaluator, OWN, evaluator, policies)
        made: set[tuple[str, str, str]] = set()
        for family in self.plan.interactions:
            for evaluator in (family.evaluator, family.baseline):
                if family.reference in (OWN, evaluator):
                    continue
                wanted = {(name, evaluator, family.reference) for name in family.policies} - made
                found += self._against(family.reference, family.reference, evaluator, {name for name, *_ in wanted})
                made |= wanted
        return found

    def _against(
        self,
        owner: str,
        reference: str,
        evaluator: str,
        policies: Container[str],
        readings: Readings | None = None,
        metrics: Sequence[str] = MATCHED_METRICS,
    ) -> list[Contrast]:
        """Contrasts with one evaluator's references, at the budgets that were searched for it."""
        references = self.bundle.references
        budgets = references[owner].budgets if owner in references else []
        allocations = [each for (name, k), each in self.compared.items() if name in policies and k in budgets]
        readings, several = readings or self.readings, references.values()
        return estimate_contrasts(readings, allocations, several, reference, metrics, evaluators=[evaluator])

    def _interactions(self, contrasts: Sequence[Contrast]) -> list[Interaction]:
        found = []
        for family in self.plan.interactions:
            of_family = [each for each in contrasts if each.allocation.policy in family.policies]
            found += estimate_interactions(of_family, family.evaluator, family.baseline, family.reference)
        return found

    def _replications(self) -> Replications | None:
        """The plan's first interactions, and again with everybody who stands in for others; None without any."""
        sources = {each.source: each.stand_ins for each in self.plan.variance}
        patients = len(self.bootstrap.patients)
        return Replications.make(self._replicate, sources, patients) if self.plan.interactions else None

    def _replicate(self, standing: Mapping[str, str]) -> dict[Cell, Estimate]:
        """The plan's first interactions and their contrasts, with members replaced by those who stand in for them."""
        family, cells = self.plan.interactions[0], dict[Cell, Estimate]()
        evaluator, baseline, *policies = (
            standing.get(name, name) for name in (family.evaluator, family.baseline, *family.policies)
        )
        found = [
            each
            for reader in (evaluator, baseline)
            for each in self._against(reader, OWN, reader, policies, self.own_readings)
        ]
        for name, policy in zip(family.policies, policies, strict=True):
            of_policy = [each for each in found if each.allocation.policy == policy]
            interactions = estimate_interactions(of_policy, evaluator, baseline)
            cells |= cells_of(interactions, name, family.evaluator, family.baseline)
        return cells

    def _with_selection(self) -> Iterator[Row]:
        """The plan's first interactions against references that each resample of the selection role chose."""
        frozen = self.bundle.tables.get("selection_choices")
        if frozen is None or not self.plan.interactions:
            return
        family, chosen = self.plan.interactions[0], read_choices(frozen)
        between = family.evaluator, family.baseline
        readings, policies = self.own_readings, family.policies
        found = [each for reader in between for each in self._against(reader, OWN, reader, policies, readings)]
        yield from with_selection_rows(readings, found, chosen, *between)

    def _controls(self) -> Iterator[pd.DataFrame]:
        """Each learned policy beside what knows nothing of the patient, under the readers and what it was trained on.

        A policy is learned if it has a target and is not made from another policy.
        """
        made_from = {name: self.plan.policies[name].settings.policies for name, _ in self.allocations}
        for (name, k), allocation in self.compared.items():
            if name not in made_from or made_from[name] or not allocation.trained_on:
                continue
            controls = [(DERIVED, self.compared[other, k]) for other in made_from if name in made_from[other]]
            others = [self.compared[other, k] for other in made_from if not made_from[other]]
            controls += [(UNTRAINED, each) for each in others if not each.trained_on]
            ranking = self.bundle.policies[name].first_lead
            first = None if ranking is None else LEADS[ranking_of(ranking)[0]]
            for evaluator in dict.fromkeys([*self.plan.readers, allocation.trained_on]):
                if evaluator in self.readings.evaluators:
                    references = self.bundle.references.get(evaluator)
                    yield controls_frame(self.readings, evaluator, allocation, controls, references, first)

    def _equivalence(self) -> Iterator[dict[str, str | int | float]]:
        """Every contrast in NLL against own references."""
        policies = {name for name, _ in self.allocations}
        for evaluator in self.readings.evaluators:
            found = self._against(evaluator, OWN, evaluator, policies, self.own_readings, ["nll"])
            yield from equivalence_rows(found, self.plan.equivalence.margin)

    def _transfer(self, contrasts: Iterable[Contrast]) -> pd.DataFrame:
        """The plan's matrix; what is compared in AUROC is read here, the rest are contrasts that are there already."""
        matrix, found = self.plan.transfer, list(contrasts)
        if matrix is None:
            return pd.DataFrame()
        for name in matrix.evaluators:
            budgets = self.bundle.references[name].budgets
            rows = [each for (policy, k), each in self.compared.items() if policy in matrix.policies and k in budgets]
            found += estimate_areas(self.readings, rows, self.bundle.references, name)
        return transfer_frame(found, matrix.policies, matrix.evaluators)

    def _decompositions(self, contrasts: Sequence[Contrast]) -> Iterator[pd.DataFrame]:
        for each in self.plan.decompositions:
            named = [one for one in contrasts if one.allocation.policy in each.policies]
            recalibrated = each.recalibrated_evaluator, each.recalibrated_baseline
            yield decomposition_frame(named, (each.evaluator, each.baseline), recalibrated)

    def _subgroups(self) -> pd.DataFrame:
        """Contrasts of the studied policies under the readers, and the plan's first interactions, in groups."""
        families = [(each.evaluator, each.baseline, each.reference) for each in self.plan.interactions]
        studied = [each for (name, _), each in self.compared.items() if name in self.plan.studied]
        family, references = next(iter(families), None), self.bundle.references
        return subgroups_frame(self.readings, studied, references, self.plan.readers, family)

    def _paired(self) -> Iterator[pd.DataFrame]:
        for (a, b), evaluators in self.pairs.items():
            yield paired_frame(self.readings, self._each_budget(a, b), evaluators=list(evaluators))

    def _each_budget(self, a: str, b: str) -> list[tuple[Allocation, Allocation]]:
        """The allocations of two policies at each budget."""
        return [(self.allocations[a, k], self.allocations[b, k]) for k in self.plan.budgets]

    def _cells(self) -> Iterator[tuple[str, int, list[Allocation]]]:
        """Each reader and budget that was searched for it, with what the studied policies chose there."""
        for evaluator in self.plan.readers:
            for k in self.plan.budgets:
                if k in self.bundle.references[evaluator].budgets:
                    yield evaluator, k, [self.compared[name, k] for name in self.plan.studied]

    def _calibration(self) -> Iterator[pd.DataFrame]:
        for evaluator, k, studied in self._cells():
            leads = self.bundle.references[evaluator].best("ece", k)
            yield calibration_frame(self.readings, evaluator, studied, leads)

    def _reliability(self) -> Iterator[pd.DataFrame]:
        for evaluator, k, studied in self._cells():
            leads, records = self.bundle.references[evaluator].best("ece", k), studied[0].records
            masks = [each.masks for each in studied] + [np.tile(leads.mask, (len(records), 1))]
            probabilities = self.readings.probabilities(evaluator, records, masks)
            arms = dict(zip((*self.plan.studied, REFERENCE), probabilities, strict=True))
            curves = reliability_frame(records.labels, arms, records.label_names)
            yield curves.assign(role=records.role, evaluator=evaluator, k=k)

    def _effects(self) -> list[list[PatientEffects]]:
        """Effects of each studied policy, for each reader and budget."""
        rankings = [each.first_lead for each in self.bundle.policies.values() if each.first_lead is not None]
        effects: list[list[PatientEffects]] = []
        for evaluator, k, studied in self._cells():
            leads = self.bundle.references[evaluator].best("nll", k)
            effects.append([])
            for name, allocation in zip(self.plan.studied, studied, strict=True):
                first = self.bundle.policies[name].first_lead or (rankings[0] if rankings else None)
                effects[-1].append(patient_effects(self.readings, evaluator, allocation, leads, first))
        return effects

    def _patients(self, effects: Iterable[list[PatientEffects]]) -> Iterator[pd.DataFrame]:
        for several in effects:
            yield from map(patients_frame, several)
            yield from (overlap_frame(*both) for both in combinations(several, 2))

    def _alignment(self) -> Iterator[pd.DataFrame]:
        for (_, k), allocation in self.allocations.items():
            yield choice_frame(self.bootstrap, allocation)
            for evaluator in self.plan.readers:
                references = self.bundle.references[evaluator]
                if k in references.budgets:
                    yield alignment_frame(self.bootstrap, allocation, references.best("nll", k), evaluator, "nll")
        for pair in self.pairs:
            for both in self._each_budget(*pair):
                yield policies_alignment_frame(self.bootstrap, *both)


def allocation_frame(allocation: Allocation) -> pd.DataFrame:
    """``allocations.parquet``: the leads of each record, in the order in which they were chosen."""
    names = np.array(LEADS)
    return pd.DataFrame(
        {
            "role": allocation.records.role,
            "policy": allocation.policy,
            "trained_on": allocation.trained_on,
            "k": allocation.k,
            "id": allocation.records.ids,
            "leads": [" ".join(row) for row in names[allocation.order]],
        }
    )


def _replicates(contrasts: Iterable[Contrast], interactions: Iterable[Interaction]) -> Iterator[pd.DataFrame]:
    """``replicates.parquet``: the bootstrap values of every contrast, then of every interaction."""
    named = [(each.key._asdict(), "delta", each.delta) for each in contrasts]
    named += [(each.facts, "interaction", each.estimate) for each in interactions]
    for facts, quantity, estimate in named:
        values = estimate.replicates
        yield pd.DataFrame({"replicate": np.arange(len(values)), quantity: values}).assign(**facts)


def _joined(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """All rows, one after the other; there may be none."""
    several = list(frames)
    return pd.concat(several, ignore_index=True) if several else pd.DataFrame()


def write_frames(directory: Path, frames: Mapping[str, pd.DataFrame]) -> None:
    """Tables as CSV and Parquet; what has a row for every record as Parquet only."""
    for name, frame in frames.items():
        frame.to_parquet(directory / f"{name}.parquet", index=False)
        if name not in TABLES or not TABLES[name].large:
            write_csv(frame, directory / f"{name}.csv")
