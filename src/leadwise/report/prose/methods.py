"""Methods of a study, in prose written from its plan and its run."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pandas as pd

from leadwise.analysis.bootstrap import LEVEL
from leadwise.cohort.roles import SCORED
from leadwise.findings.estimates import Findings
from leadwise.report.names import evaluator_title, the_evaluator
from leadwise.report.numbers import estimate, listing, number, several
from leadwise.report.prose.kinds import evaluator_texts, policy_texts
from leadwise.report.prose.words import at_budgets, folds_in_words
from leadwise.run.contents import RunContents
from leadwise.run.stage_names import scored_role

PUBLISHED_FIRST_LEAD = "aVR"


def describe_methods(contents: RunContents) -> list[tuple[str, str]]:
    """Headings with a paragraph each; what a run does not tell is left out."""
    methods = _Methods(contents)
    parts = {
        "Cohort": methods.cohort(),
        **methods.evaluators(),
        "Fixed references": methods.references(),
        "Policies": methods.policies(),
        "Metrics, contrasts and interactions": methods.metrics(),
        "Inference": methods.inference(),
        "Calibration and patients": methods.further(),
        "What was frozen, and when": methods.freeze(),
        "Where the publication is silent": methods.choices(),
    }
    paragraphs = {heading: " ".join(" ".join(sentences).split()) for heading, sentences in parts.items()}
    return [(heading, paragraph) for heading, paragraph in paragraphs.items() if paragraph]


class _Methods:
    """The sentences of each section."""

    def __init__(self, contents: RunContents) -> None:
        self.contents, self.plan, self.results = contents, contents.plan, contents.results
        self.find = Findings(contents.results, contents.plan.roles)

    def _rows(self, name: str) -> list[Any]:
        return list(self.results[name].itertuples()) if name in self.results else []

    def cohort(self) -> Iterator[str]:
        contents, cohort = self.contents, self.contents.cohort
        if contents.synthetic:
            yield f"""The cohort is synthetic: a program made the recordings up ({cohort.generator}). They show that the
                program works, and say nothing about patients."""
        else:
            yield f"The cohort is {cohort.title}{', twelve leads, ten seconds, read at 100 Hz' * contents.about_paper}."
        yield f"Its recordings, tables and labels have the fingerprint {cohort.sha256}."
        if contents.foreign:
            yield f"""Everything that was frozen was made on another cohort, {contents.made_on.title}; the numbers of
                roles that were not scored here are of that one."""
        if self.plan.unsealed:
            yield """The plan opens the fold of PTB-XL that is otherwise sealed to a role that is used before the
                freeze."""
        counts = []
        for role, folds in self.plan.roles.items():
            records, patients = (self.find.find("splits", name, role=role) for name in ("records", "patients"))
            if not (records.missing or patients.missing):
                many = f"{several(int(records.value), 'record')} of {several(int(patients.value), 'patient')}"
                counts.append(f"{role} ({folds_in_words(folds)}) {many}")
        yield f"Its folds have roles: {'; '.join(counts)}." if counts else ""
        splits = self.results.get("splits", pd.DataFrame())
        labels = [str(name).removeprefix("prevalence_") for name in splits if str(name).startswith("prevalence_")]
        if labels:
            yield f"A record has any number of the labels {listing(labels)}, or none, and stays in any case."
        yield """Models learn on the train role; the validation role ends trainings and decides on settings; the
            selection role chooses the fixed references and, of several seeds, the network; the audit and the evaluation
            role are scored after the freeze."""

    def evaluators(self) -> dict[str, Iterator[str]]:
        """A section for each evaluator of the plan, by its heading."""
        titles = {name: evaluator_title(name) for name in self.plan.evaluators}
        return {
            f"{titles[name][0].upper()}{titles[name][1:]}": self._evaluator(name, text)
            for name, text in evaluator_texts(self.plan)
        }

    def _evaluator(self, name: str, text: str) -> Iterator[str]:
        """The text of its kind, its number of parameters, and the seed and epoch that were chosen."""
        yield text
        for row in self._rows("evaluators"):
            if row.evaluator == name and not pd.isna(row.parameters):
                yield f"It has {number(int(row.parameters))} parameters."
        for row in self._rows("seeds"):
            if row.evaluator == name and row.chosen and row.role == "selection":
                yield f"""On the selection role, the network of seed {row.seed}, after epoch {row.epoch}, has an NLL of
                    {estimate(row.value)} under random masks."""
                if self.contents.history.trained_elsewhere(name, row.seed):
                    yield """It was not trained in this run: the weights that ship with leadwise were made by just
                        this recipe on just these records."""

    def references(self) -> Iterator[str]:
        yield """For every evaluator that has references, every metric (NLL, Brier score, ECE) and every budget k, all
            sets of k leads are tried on the selection role; the best is the reference. Ties, after rounding to 1e-12,
            are broken by the metric, then by NLL, then by the order of the leads. Candidates are made of
            the leads that all records have; a record with fewer than k leads, or without a lead of a reference, is
            left out of both arms at that k."""
        left_out = Counter((row.role, row.k) for row in self._rows("left_out"))
        parts = [f"{number(count)} of the {role} role at k = {k}" for (role, k), count in left_out.items()]
        yield f"Left out were {listing(parts)}." if parts else ""
        sizes = {row.k: int(row.candidates) for row in self._rows("references") if not pd.isna(row.candidates)}
        yield f"Tried were {listing(f'{number(sizes[k])} sets at k = {k}' for k in sorted(sizes))}." if sizes else ""
        unsearched = dict[tuple[int, ...], list[str]]()
        for name, each in self.plan.evaluators.items():
            left = tuple(k for k in self.plan.budgets if k not in each.references)
            unsearched.setdefault(left, []).append(the_evaluator(name))
        for left, names in unsearched.items():
            if left:
                yield f"""References of {listing(names)} were not searched at {at_budgets(left)}, so that nothing is
                    compared with them there."""

    def policies(self) -> Iterator[str]:
        yield f"""A policy acquires leads one at a time, to exactly k = {listing(self.plan.budgets, "or")}. It is
            given the statistics of the leads that it has acquired, the mask, and the probabilities of an evaluator
            that reads them, and nothing of the others. {self._first_lead()}"""
        yield from (text for _, text in policy_texts(self.plan))
        if "headroom" in self.results:
            yield """Oracles, which look at the labels of the selection role, show how much there would be to gain;
                they cannot be deployed."""

    def _first_lead(self) -> str:
        owner = self.plan.first_lead_of
        lead, why = self.plan.first_lead or "", "as the plan has it"
        if owner is not None:
            best = self.find.find("references", "leads", evaluator=owner, metric="nll", k=1)
            lead = "" if best.missing else str(best.value)
            why = f"the best single lead of {the_evaluator(owner)} on the selection role by NLL"
        differs = lead not in ("", PUBLISHED_FIRST_LEAD) and self.contents.about_paper
        published = f" (the publication's was {PUBLISHED_FIRST_LEAD})" if differs else ""
        return f"""Policies that have a common first lead begin with {f"{lead}, " if lead else ""}{why}{published},
            which counts towards k."""

    def metrics(self) -> Iterator[str]:
        yield """NLL and Brier score are means over records and labels; probabilities are clipped at 1e-12 in the NLL
            only. ECE is taken label by label in ten bins of equal width, then averaged (in 5, 15 and 20 bins for
            comparison). AUROC and AUPRC, averaged over labels, describe discrimination. All records weigh equally. A
            contrast D is the metric with a policy's leads minus that with the reference for the same metric, under
            one evaluator: below zero, adaptation pays. An interaction I is D under one evaluator minus D under another
            that reads the same leads, each against its own reference, or both against a common one."""

    def inference(self) -> Iterator[str]:
        plan = self.plan.bootstrap
        yield f"""Whole patients are drawn with replacement, with all their records, {number(plan.replicates)} times.
            The draw is made once for a role (patients in the order of their ids, NumPy's default generator, seed
            {plan.seed}) and shared by every policy, evaluator, reference and metric, so that all differences are
            paired. An interval reaches from the {LEVEL[0]:g}th to the {LEVEL[1]:g}th percentile of the replicates and
            is pointwise. Simultaneous intervals hold for a family together: one pair of evaluators and one kind of
            reference, with all policies, budgets and metrics. They are the estimate plus or minus as many bootstrap
            deviations as the largest studentised deviation in the family has for its 95th percentile (max-t). All are
            conditional on the trained models and the frozen references."""
        for row in self._rows("resamples"):
            yield f"""Draw of the {row.role} role, {number(int(row.patients))} patients: SHA-256 {row.sha256}."""

    def further(self) -> Iterator[str]:
        yield """Calibration compares the policies with the set that is best for ECE, in all its rows: ECE by label
            and in several binnings, calibration in the large, slope, variance of the probabilities over records and
            labels, and mean binary entropy in nats. A patient's effect is the difference in NLL, averaged over their
            records; all patients weigh equally in means, medians, trimmed and winsorised means, shares of helped
            and harmed, Spearman's correlation with the uncertainty under the first lead alone, quartiles of that
            uncertainty, and groups by label."""

    def freeze(self) -> Iterator[str]:
        chronology, history = self.contents.chronology, self.contents.history
        yield f"""Evaluators, policies, references and the plan, with
            {several(len(self.plan.hypotheses), "hypothesis")}, are frozen in a bundle (SHA-256
            {self.contents.bundle.sha256})."""
        yield f"It was {chronology.freeze_in_words}." if chronology.frozen else ""
        for begin in chronology.scorings:
            yield f"Scoring of the {scored_role(begin.stage)} role began at {begin.when}."
        for role in SCORED:
            before = chronology.times_earlier(role)
            yield f"Earlier bundles had scored the {role} role {several(before, 'time')}." if before else ""
        yield f"""The ledger has {several(len(history), "receipt")} before that of this report; the hash of the last
            one is {history.head}."""
        for used in history.software:
            commit = f" (commit {used.commit[:12]})" if used.commit else ""
            yield f"""Computed with leadwise {used.leadwise}{commit}, Python {used.python}, NumPy {used.numpy} and
                PyTorch {used.torch} on a processor with {used.cpu}, {several(used.threads, "thread")}."""

    def choices(self) -> Iterator[str]:
        if not self.contents.about_paper:
            return
        yield """Decided here were: whether a statement of low likelihood makes a label (it does); which ten
            statistics describe a lead, and that they are clipped; strides and training recipe of the network; the
            draw of masks on which epochs and seeds are compared; that ECG-on-Demand looks to the end of the budget,
            with a temperature of one; that CCGA's conditional means are over neighbours; how many states policies
            learn from, and how many of them are of their own making; that Strong-MGA's state holds the strong
            evaluator's probabilities; mask-robust interactions against the references of either evaluator; the order
            in which ties are broken; quartile edges of patients that are those of the sample in every replicate; and
            simultaneous intervals, which were not published."""
