"""Published numbers that stand in no table, found among ours by the form of their name."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from leadwise.analysis.tidy import REFERENCE
from leadwise.findings.estimates import MISSING, Findings, Found

ON_DEMAND, MGA = "ecg-on-demand", "mga"
"""The policies of numbers whose names leave them out."""


class _At(NamedTuple):
    """Where a number is asked for, and what its name says apart from fold and budget."""

    find: Findings
    role: str | None
    k: int | None
    words: tuple[str, ...]


class _Form(NamedTuple):
    """A form of name, where to look for such a number, and whether its sign says something."""

    pattern: str
    find: Callable[[_At], Found]
    signed: bool = False


def scalar(findings: Findings, name: str, facts: Mapping[str, float]) -> tuple[str, Found, bool]:
    """The quantity that a published name means, our number for it, and whether its sign says something."""
    fold, k = _part("fold", name), _part("k", name)
    stem = re.sub(r" (fold|k)\d+", "", name)
    parts = [stem, "" if k is None else f"k={k}", "" if fold is None else f"fold {fold}"]
    quantity = ", ".join(part for part in parts if part)
    if name in facts:
        return quantity, Found(facts[name]), False
    for form in _FORMS:
        if match := re.fullmatch(form.pattern, stem):
            return quantity, form.find(_At(findings, findings.role(fold), k, match.groups())), form.signed
    return quantity, MISSING, False


def _part(key: str, name: str) -> int | None:
    found = re.search(rf" {key}(\d+)", name)
    return int(found[1]) if found else None


def _contrast(at: _At) -> Found:
    evaluator, metric, policy = at.words
    return at.find.contrast(at.role, policy, evaluator, at.k, metric)


def _level(at: _At) -> Found:
    """An arm of a contrast: a policy, or the fixed set of the policy that the paper is about."""
    evaluator, arm, metric = at.words
    if arm == "fixed":
        return at.find.contrast(at.role, ON_DEMAND, evaluator, at.k, metric, column="fixed")
    return at.find.contrast(at.role, arm, evaluator, at.k, metric, column="adaptive")


def _reference_level(at: _At) -> Found:
    """What an evaluator makes of another's reference: the same for every policy."""
    evaluator, metric, owner = at.words
    return at.find.contrast(at.role, ON_DEMAND, evaluator, at.k, metric, owner, column="fixed")


def _bins(at: _At) -> Found:
    bins, policy = at.words
    return at.find.contrast(at.role, policy, "controlled", at.k, "ece" if bins == "10" else f"ece{bins}")


def _dispersion(statistic: str) -> Callable[[_At], Found]:
    def find(at: _At) -> Found:
        arm = REFERENCE if at.words[0] == "ece-matched fixed" else at.words[0]
        return at.find.calibration(at.role, arm, "controlled", at.k, statistic)

    return find


def _versus_reference(statistic: str) -> Callable[[_At], Found]:
    """A calibration statistic of ECG-on-Demand versus the ECE-matched set, of a label if the name has one."""

    def find(at: _At) -> Found:
        label = at.words[0] if at.words else ""
        return at.find.calibration(at.role, ON_DEMAND, "controlled", at.k, statistic, label, REFERENCE)

    return find


def _patients(statistic: str, label: str = "", policy: str = "") -> Callable[[_At], Found]:
    """A patient statistic; ``{}`` in it, or the policy, is what the name says."""

    def find(at: _At) -> Found:
        words = at.words if policy else at.words[:-1]
        named = policy or at.words[-1]
        return at.find.patients(at.role, named, "controlled", at.k, statistic.format(*words), label.format(*words))

    return find


def _patient_count(at: _At) -> Found:
    return at.find.patient_count(at.role, ON_DEMAND, "controlled", at.k, at.words[0])


def _overlap(statistic: str) -> Callable[[_At], Found]:
    return lambda at: at.find.overlap(at.role, ON_DEMAND, MGA, "controlled", at.k, statistic)


def _extreme_jaccard(at: _At) -> Found:
    which, policy, owner = at.words
    label = {"smallest": "min", "largest": "max"}[which]
    return at.find.reference_alignment(at.role, policy, owner, at.k, "jaccard range", label)


def _shared_leads(at: _At) -> Found:
    number = {"one": "1", "two": "2", "three": "3"}[at.words[0]]
    return at.find.reference_alignment(at.role, ON_DEMAND, at.words[1], at.k, "shared leads", number)


def _gap_closed(at: _At) -> Found:
    """(D of MGA − D of Strong-MGA) / D of MGA, under the strong evaluator with its own reference."""
    metric = at.words[0]
    mga, strong_mga = (at.find.contrast(at.role, policy, "strong", at.k, metric) for policy in (MGA, "strong-mga"))
    return MISSING if mga.missing or not mga.value else Found((mga.value - strong_mga.value) / mga.value)


def _chosen(at: _At) -> Found:
    return at.find.find("seeds", at.words[1], evaluator=at.words[0], chosen=True)


_FORMS = (
    _Form(r"prevalence (\w+)", lambda at: at.find.find("splits", f"prevalence_{at.words[0]}", role=at.role)),
    _Form(
        r"identical final sets (\S+) vs (\S+) \(share\)",
        lambda at: at.find.policies_alignment(at.role, at.words[0], at.words[1], at.k, "identical"),
    ),
    _Form(
        r"mean Jaccard (\S+) vs (\S+) reference",
        lambda at: at.find.reference_alignment(at.role, at.words[0], at.words[1], at.k, "jaccard"),
    ),
    _Form(
        r"mean Jaccard (\S+) vs (\S+)",
        lambda at: at.find.policies_alignment(at.role, at.words[0], at.words[1], at.k, "jaccard"),
    ),
    _Form(r"(smallest|largest) Jaccard (\S+) vs (\S+) reference", _extreme_jaccard),
    _Form(r"lead share (\S+) (\S+)", lambda at: at.find.lead_frequency(at.role, at.words[1], at.k, at.words[0])),
    _Form(r"overlap of (one|two|three) leads? with the (\S+) reference \(share\)", _shared_leads),
    _Form(
        r"sets identical to the (\S+) reference (\S+) \(share\)",
        lambda at: at.find.reference_alignment(at.role, at.words[1], at.words[0], at.k, "identical"),
    ),
    _Form(r"(\S+) (\S+) of the (\S+) reference \(derived\)", _reference_level),
    _Form(r"ece contrast (\d+) bins (\S+)", _bins, signed=True),
    _Form(r"probability variance (.+)", _dispersion("variance")),
    _Form(r"predictive entropy (.+)", _dispersion("entropy")),
    _Form(r"variance retention ratio", _versus_reference("variance retention")),
    _Form(r"label-wise ece difference (\w+)", _versus_reference("ece difference"), signed=True),
    _Form(r"patients (improved|worsened|unchanged) \(count.*\)", _patient_count),
    _Form(r"smallest patient delta nll", _patients("range", "min", ON_DEMAND), signed=True),
    _Form(r"largest patient delta nll", _patients("range", "max", ON_DEMAND), signed=True),
    _Form(r"Spearman uncertainty vs benefit (\S+)", _patients("spearman"), signed=True),
    _Form(r"quartile (\d) mean delta nll (\S+)", _patients("Q{0} mean"), signed=True),
    _Form(r"quartile (\d) benefit rate (\S+)", _patients("Q{0} benefit rate")),
    _Form(r"benefited sets Jaccard ecg-on-demand vs mga", _overlap("benefit jaccard")),
    _Form(r"benefit under both policies \(share\)", _overlap("benefit under both")),
    _Form(r"benefit under ecg-on-demand only \(share\)", _overlap("benefit under the first only")),
    _Form(r"benefit under mga only \(share\)", _overlap("benefit under the second only")),
    _Form(r"benefit under neither \(share\)", _overlap("benefit under neither")),
    _Form(r"mean delta nll patients with one superclass", _patients("mean", "one label", ON_DEMAND), signed=True),
    _Form(
        r"mean delta nll patients with two or more superclasses",
        _patients("mean", "several labels", ON_DEMAND),
        signed=True,
    ),
    _Form(r"mean delta nll (\w+)-(positive|negative) patients", _patients("mean", "{0} {1}", ON_DEMAND), signed=True),
    _Form(
        r"(\S+) random-mask (\S+)(?: at the chosen epoch)?",
        lambda at: at.find.random_mask_quality(at.role, at.words[0], at.words[1]),
    ),
    _Form(r"(\S+) full-12 (\S+)", lambda at: at.find.quality(at.role, at.words[0], at.words[1])),
    _Form(r"(controlled|strong) contrast (\S+) (\S+)(?: \(derived\))?", _contrast, signed=True),
    _Form(
        r"strong-mga contrast (\S+)",
        lambda at: at.find.contrast(at.role, "strong-mga", "strong", at.k, at.words[0]),
        signed=True,
    ),
    _Form(
        r"(strong-\S+) minus (\S+) (\S+)",
        lambda at: at.find.paired(at.role, at.words[0], at.words[1], "strong", at.k, at.words[2]),
        signed=True,
    ),
    _Form(r"share of mga's (\S+) gap closed by strong-mga", _gap_closed),
    _Form(
        r"(\S+) interaction (\S+) (\S+)",
        lambda at: at.find.interaction(
            at.role, at.words[2], at.words[0], "controlled", "controlled", at.k, at.words[1]
        ),
        signed=True,
    ),
    _Form(r"(\S+) chosen (epoch|seed)", _chosen),
    _Form(r"candidates", lambda at: at.find.find("references", "candidates", metric="nll", k=at.k)),
    _Form(r"(controlled|strong) (\S+) (\S+)", _level),  # last: the others are longer or begin with other words
)
