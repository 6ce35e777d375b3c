"""The report's tables, each a view of results, in the order in which a reader needs them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pandas as pd

from leadwise.report import comparisons, descriptions
from leadwise.report.comparisons import CONTROLLED, MASK_ROBUST, STRONG
from leadwise.report.paper_numbers import PAPER
from leadwise.report.views import Views
from leadwise.report.wording import listing
from leadwise.run.contents import RunContents

PRIMARY, SUPPORTING, SECONDARY = "primary", "supporting", "secondary"
EXPLORATORY, POST_HOC = "exploratory", "post hoc"
OTHER_CONTROLLED = ("controlled-unbalanced", "controlled-recalibrated")


@dataclass(frozen=True, eq=False)
class ReportTable:
    """A table as it is shown, with where its numbers come from."""

    name: str
    """Where it is on the page, and what its LaTeX file is called."""
    title: str
    caption: str
    source: str
    """The files of ``results`` that have its numbers."""
    frame: pd.DataFrame
    """Headings as people read them; cells are numbers or text."""
    status: str
    """Its place in the study's hierarchy: primary, supporting, secondary, exploratory, post hoc, or none."""


@dataclass(frozen=True)
class _Definition:
    name: str
    title: str
    source: str
    status: str
    make: Callable[[Views], pd.DataFrame]
    caption: str
    """``{roles}`` stands for the roles that were scored."""


_D = "D is the metric with the leads that a policy chose minus the metric with the best fixed set"
_NEGATIVE = "negative favours choosing for each patient"
_PLANNED = "Post hoc in the paper, planned here, on the {roles}"
_ABOVE = "I above zero means that choosing for each patient pays less under the strong evaluator"

_DEFINITIONS = (
    _Definition(
        "hypotheses",
        "Hypotheses",
        "hypotheses.csv",
        "",
        comparisons.hypotheses,
        "What the plan expected before anybody looked at the {roles}, and what came of it.",
    ),
    _Definition(
        "splits",
        "Records and patients by role",
        "splits.csv",
        "",
        descriptions.splits,
        "Which folds serve which purpose, how many records and patients they have, and how common each diagnostic "
        "label is. Records without any label stay in; of a role that nobody has looked at only the counts are "
        "known.",
    ),
    _Definition(
        "evaluator-quality",
        "Evaluator quality",
        "evaluator_quality.csv",
        "",
        descriptions.evaluator_quality,
        "How well each evaluator reads all twelve leads, and a frozen draw of random lead sets, one for each "
        "record. Lower is better for NLL, Brier and ECE, higher for AUROC and AUPRC, which have no interval.",
    ),
    _Definition(
        "references",
        "Fixed references and the size of their search",
        "references.csv",
        "",
        descriptions.references,
        "The best fixed set of k leads for each evaluator and metric, out of all candidates, found on the selection "
        "role: what policies have to beat. The value is the metric on the selection role.",
    ),
    _Definition(
        "contrasts-controlled",
        "Contrasts under the controlled evaluator",
        "contrasts.csv",
        SUPPORTING,
        partial(comparisons.contrasts, evaluator=CONTROLLED),
        f"{_D} of the controlled evaluator for that metric, both read by the controlled evaluator, on the {{roles}}: "
        f"{_NEGATIVE}. Cohort-state and Random-subset are controls, which do not look at the patient.",
    ),
    _Definition(
        "contrasts-strong",
        "Contrasts under the strong evaluator",
        "contrasts.csv",
        SUPPORTING,
        partial(comparisons.contrasts, evaluator=STRONG),
        f"{_D} of the strong evaluator for that metric, both read by the strong evaluator, on the {{roles}}: "
        f"{_NEGATIVE}. The policies and the leads that they chose are the same as under the controlled evaluator.",
    ),
    _Definition(
        "pairs",
        "Policies compared with each other",
        "paired.csv, alignment.csv",
        SECONDARY,
        comparisons.pairs,
        "The metric with the leads of policy A minus the metric with those of policy B, on the {roles}: negative "
        "favours policy A. Beside it, in what share of the records both choose the same set, and how alike their "
        "sets are on average (Jaccard similarity; 1 is the same set).",
    ),
    _Definition(
        "calibration-structure",
        "Calibration and dispersion",
        "calibration.csv",
        SECONDARY,
        descriptions.calibration_structure,
        "The studied policies beside the fixed set that is best for ECE, the reference in all rows, on the "
        "{roles}. Intercepts (with the slope fixed at one) and distances of slopes from one are means of absolute "
        "values over labels; variance and entropy (in nats) say how far apart and how undecided the probabilities "
        "are.",
    ),
    _Definition(
        "calibration-differences",
        "Calibration by number of bins, and variance retained",
        "calibration.csv",
        SECONDARY,
        descriptions.calibration_differences,
        "Each policy minus the fixed set that is best for ten-bin ECE, also for other numbers of bins, on the "
        "{roles}: negative differences favour choosing for each patient. Variance retention is the policy's "
        "variance of probabilities divided by the fixed set's; above one, they did not collapse.",
    ),
    _Definition(
        "calibration-labels",
        "Calibration by label",
        "calibration.csv",
        SECONDARY,
        descriptions.label_calibration,
        "ECE of each label with the leads that a policy chose minus ECE with the fixed set that is best for ECE, on "
        f"the {{roles}}: {_NEGATIVE}.",
    ),
    _Definition(
        "patient-effects",
        "Effects on patients",
        "patients.csv",
        SECONDARY,
        descriptions.patient_effects,
        "A patient's effect is the mean NLL with chosen leads minus that with the fixed set that is best for NLL, "
        "on the {roles}; each patient counts once, and negative means that choosing helped. Improved, worsened "
        "and unchanged are shares of patients.",
    ),
    _Definition(
        "patient-benefit",
        "Who benefits",
        "patients.csv",
        EXPLORATORY,
        descriptions.patient_benefit,
        "Exploratory, on the {roles}: mean effect on NLL (negative means that choosing helped) and share of "
        "patients helped, by quartile of the uncertainty that the first lead leaves, Q1 the least, and the rank "
        "correlation of that uncertainty with benefit. For two policies, in what share of patients both, one or "
        "neither helps.",
    ),
    _Definition(
        "patient-groups",
        "Effects in groups of patients",
        "patients.csv",
        EXPLORATORY,
        descriptions.patient_groups,
        "Exploratory, on the {roles}: mean effect on NLL against the fixed set that is best for NLL (negative "
        "means that choosing helped), for patients by their diagnoses. Groups describe, and are known only once the "
        "diagnosis is; they are no rule for whom to choose.",
    ),
    _Definition(
        "alignment",
        "Likeness of chosen sets to the references",
        "alignment.csv",
        EXPLORATORY,
        descriptions.alignment,
        "How much the sets that a policy chooses on the {roles} resemble the fixed set that is best for NLL under "
        "an evaluator: Jaccard similarity (1 is the same set), share of records with the very same set, and share "
        "of records whose set has 0, 1, 2 or more leads in common with it. Exploratory.",
    ),
    _Definition(
        "lead-frequencies",
        "How often each lead is chosen",
        "alignment.csv",
        EXPLORATORY,
        descriptions.lead_frequencies,
        "Share of the records of the {roles} for which a policy acquires each lead, the mean number of electrodes "
        "that this takes, and the share of acquired limb leads that already followed from two others. Exploratory.",
    ),
    _Definition(
        "interactions",
        "Change of evaluator: the primary analysis",
        "interactions.csv",
        PRIMARY,
        partial(comparisons.interactions, evaluator=STRONG),
        "I is D under the strong evaluator minus D under the controlled one, each against that evaluator's own best "
        f"fixed set, on the {{roles}}: {_ABOVE}, and negative D favours choosing. Simultaneous intervals cover all "
        "cells of a role at once.",
    ),
    _Definition(
        "interactions-common",
        "Change of evaluator with common references",
        "interactions.csv",
        POST_HOC,
        partial(comparisons.interactions, evaluator=STRONG, references=(CONTROLLED, STRONG)),
        f"{_PLANNED}: I is D under the strong evaluator minus D under the controlled one, both against the fixed "
        f"sets of the same evaluator, so that only what reads the leads changes. {_ABOVE}, and negative D favours "
        "choosing.",
    ),
    _Definition(
        "interactions-mask-robust",
        "Change to an evaluator that knows the policies' lead sets",
        "interactions.csv",
        POST_HOC,
        partial(comparisons.interactions, evaluator=MASK_ROBUST, references=(CONTROLLED, STRONG)),
        f"{_PLANNED}: I is D under the mask-robust evaluator, which was also trained on lead sets that the policies "
        "choose, minus D under the controlled one, both against the fixed sets of the same evaluator. I above zero "
        "means that choosing for each patient pays less under the mask-robust evaluator.",
    ),
    _Definition(
        "strong-mga",
        "Policies trained on the strong evaluator",
        "contrasts.csv",
        POST_HOC,
        comparisons.aligned_contrasts,
        f"{_PLANNED}: {_D} of the strong evaluator, both read by the strong evaluator; {_NEGATIVE}. Strong-MGA is "
        "MGA trained on the strong evaluator, and its variant sees the controlled evaluator's probabilities instead "
        "of the strong one's.",
    ),
    _Definition(
        "strong-mga-gap",
        "How much of the gap training on the strong evaluator closes",
        "paired.csv, gap_closed.csv",
        POST_HOC,
        comparisons.gap_closed,
        f"{_PLANNED}: the policy's metric minus that of MGA, which was trained on the controlled evaluator, both "
        "read by the strong evaluator; negative favours the policy. The share of the gap closed, (D of MGA − D of "
        "the policy) / D of MGA, means something only where D of MGA is above zero.",
    ),
    _Definition(
        "interactions-sensitivity",
        "Change of evaluator from other controlled evaluators",
        "interactions.csv",
        EXPLORATORY,
        partial(comparisons.interactions, evaluator=STRONG, baselines=OTHER_CONTROLLED),
        "Exploratory, on the {roles}: I is D under the strong evaluator minus D under a controlled evaluator that "
        "was trained without balanced classes, or recalibrated on the validation role, each against its own best "
        f"fixed set. {_ABOVE}.",
    ),
    _Definition(
        "seeds",
        "Networks that were trained",
        "seeds.csv, boundary.csv",
        "",
        descriptions.seeds,
        "NLL of every network under the frozen draw of random lead sets: the strong evaluator is the seed with the "
        "lowest on the selection role. The mask-robust evaluator was scored there once, which chose nothing.",
    ),
    _Definition(
        "modal-sets",
        "Sets that are chosen most often",
        "modal_sets.csv",
        EXPLORATORY,
        descriptions.modal_sets,
        "The three lead sets that each policy chooses most often on the {roles}, with the share of records that "
        "get them. Exploratory.",
    ),
    _Definition(
        "headroom",
        "What an oracle would gain",
        "headroom.csv",
        EXPLORATORY,
        descriptions.headroom,
        "Exploratory: NLL on the selection role with the best fixed set and with the leads that an oracle would "
        "choose for each record, and for what share of records it would begin with each lead. An oracle sees the "
        "labels, so it can never be deployed: it only says how much there would be to gain.",
    ),
    _Definition(
        "claims",
        "The paper's claims",
        "claims.csv",
        "",
        descriptions.claims,
        "What the paper says in words, and what this run says to it; a claim is put to the fold that it is about. "
        "Where that fold was not scored, the cells of the audit role stand beside it for orientation: they are of "
        "other patients and decide nothing.",
    ),
    _Definition(
        "claim-cells",
        "Cells that decide the claims",
        "claim_cells.csv",
        "",
        descriptions.claim_cells,
        "The estimates behind the verdicts, and those of the audit role that stand there for orientation only; rows "
        "with the same claim, role and cell belong together. Negative contrasts favour choosing for each patient, "
        "negative differences the policy that is named first.",
    ),
    _Definition(
        "published",
        "Every number of the paper beside ours",
        "published.csv",
        "",
        descriptions.published,
        "Every number that the paper gives, by its name and place there, ours of the same fold, and, where that was "
        "not scored, the audit role's for orientation. Where both are of the same patients their errors are shared, so "
        "the difference has no test; where they are of other patients, z is the difference over its standard error.",
    ),
)

TABLES = tuple(each.name for each in _DEFINITIONS)
"""The names of all tables, in their order."""

_ELSEWHERE = " The paper is about PTB-XL and models that were made on it, and this is something else, so"
_ABOUT_OTHERS = {
    "claims": f"{_ELSEWHERE} no verdict says anything about it.",
    "claim-cells": f"{_ELSEWHERE} no cell says anything about it.",
    "published": f"{_ELSEWHERE} there is nothing to compare.",
}
_ABOUT_PAPER = {
    "interactions-mask-robust": " The paper names the controlled evaluator's fixed sets; its numbers stand beside both."
}


def report_tables(contents: RunContents) -> list[ReportTable]:
    """Every table of a report; one that has no rows in this run is there, and empty."""
    view = Views(contents)
    roles = f"{listing(contents.scored)} role{'s' if len(contents.scored) > 1 else ''}"
    return [_made(each, view, roles) for each in _DEFINITIONS]


def _made(table: _Definition, view: Views, roles: str) -> ReportTable:
    frame = table.make(view)
    about = _ABOUT_PAPER if view.about_paper else _ABOUT_OTHERS
    caption = table.caption.format(roles=roles) + about.get(table.name, "")
    beside = any(str(heading).startswith(PAPER) for heading in frame) and table.name != "published"
    source = f"{table.source}, published.csv" if beside else table.source
    return ReportTable(table.name, table.title, caption, source, frame, table.status)
