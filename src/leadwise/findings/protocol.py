"""Protocol checks: what must hold of a run for its results to mean what they say, computed from its files."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from leadwise.cohort.roles import SCORED
from leadwise.errors import LeadwiseError, one_line
from leadwise.findings.recompute import recomputed_cell
from leadwise.leads import LEADS
from leadwise.run.contents import RunContents
from leadwise.run.history import History
from leadwise.run.ledger import Begin, Software
from leadwise.run.manifest import read_manifest
from leadwise.run.stage_names import CENSUS, scored_role
from leadwise.run.verify import seal_problems
from leadwise.store import changed_files, file_sha256

State = Literal["passed", "failed", "not applicable"]
Answer = tuple[State, str]

BITS = ("numpy", "torch", "cpu", "threads")
"""Software and machine that decide the last bits of a result."""


@dataclass(frozen=True)
class Check:
    """A condition of the protocol, and whether a run meets it."""

    number: int
    title: str
    explanation: str
    state: State
    detail: str


def protocol_checks(contents: RunContents) -> list[Check]:
    """All checks of a run, in their order."""
    run = _Run(contents)
    return [
        Check(place, title, explanation, *_answered(check, run))
        for place, (title, explanation, check) in enumerate(_CHECKS, 1)
    ]


class _Run:
    """A run as the checks look at it."""

    def __init__(self, contents: RunContents) -> None:
        self.contents, self.plan, self.bundle = contents, contents.plan, contents.bundle
        self.directory, self.results, self.history = contents.directory, contents.results, contents.history
        self.chronology = contents.chronology

    def columns(self, name: str, *columns: str) -> pd.DataFrame:
        """Some columns of a table that is too large to be read whole."""
        return pd.read_parquet(self.directory.results / f"{name}.parquet", columns=list(columns))


def _answered(check: Callable[[_Run], Answer], run: _Run) -> Answer:
    try:
        return check(run)
    except LeadwiseError as error:
        return "failed", str(error)
    except (ValueError, KeyError, OSError) as error:  # a file that cannot be read, or lacks what it should have
        return "failed", f"This could not be checked: {one_line(error)}."


def _judged(problems: Iterable[str], fine: str) -> Answer:
    """Failed with all problems, or passed."""
    found = list(problems)
    return ("failed", " ".join(found)) if found else ("passed", fine)


def _patients(run: _Run) -> Answer:
    splits = run.results["splits"]
    if "shared_patients" not in splits or splits["shared_patients"].isna().any():
        return "not applicable", "The results do not tell how many patients the roles share."
    shared = dict(zip(splits["role"], splits["shared_patients"].astype(int), strict=True))
    problems = [
        f"The {role} role shares {_several(count, 'patient')} with others." for role, count in shared.items() if count
    ]
    seen = run.columns("records", "role", "patient").drop_duplicates()
    twice = int(seen["patient"].duplicated().sum())
    problems += [f"Scored in two roles: {_several(twice, 'patient')}."] * bool(twice)
    patients = f"{int(splits['patients'].sum()):,}"
    return _judged(problems, f"{patients} patients in {len(shared)} roles ({', '.join(shared)}), none in two.")


def _ledger(run: _Run) -> Answer:
    history = History.read(run.directory.ledger)
    changed = history.before_report.receipts != run.history.receipts
    problems = ["The ledger has changed since the results were read."] * changed
    if run.directory.manifest.exists():  # of an earlier report: the one of this report is written after it
        known = read_manifest(run.directory)
        if len(history) < known.receipts:
            problems.append(f"It has {len(history)} receipts, but the manifest knows {known.receipts}.")
        elif history.first(known.receipts).head != known.head:
            problems.append(f"Receipt {known.receipts} is not the one that the manifest names as head.")
    return _judged(problems, f"{len(run.history):,} receipts before that of this report, head {run.history.head}.")


def _seal(run: _Run) -> Answer:
    chronology = run.chronology
    problems = seal_problems(run.directory, run.history)
    if chronology.frozen is None:
        problems.append("No receipt tells of the freeze of this bundle.")
    if run.plan.unsealed:
        problems.append("The plan opens the sealed fold of PTB-XL to a role that is used before the freeze.")
    looked = {role: chronology.times_earlier(role) for role in SCORED}
    if looked["evaluation"] and chronology.frozen is not None:
        times = _several(looked["evaluation"], "time")
        problems.append(f"The evaluation role had been scored {times} with other bundles when this one was frozen.")
    detail = f"Scored after the freeze: {_told(chronology.scorings) or 'nothing'}."
    if looked["audit"]:
        detail += f" The audit role had been scored {_several(looked['audit'], 'time')} with earlier bundles."
    return _judged(problems, detail)


def _selection(run: _Run) -> Answer:
    searches = run.history.searches
    if not searches:
        return _nothing_fitted(run, "no search for references")
    problems = [
        f"{each.stage} (receipt {each.number}) read {', '.join(sorted(each.roles)) or 'no role'}."
        for each in searches
        if set(each.roles) != {"selection"}
    ]
    return _judged(problems, f"Searches for references: {len(searches):,}, all on the selection role alone.")


def _nothing_after(run: _Run) -> Answer:
    chronology = run.chronology
    if chronology.frozen is None:
        return "failed", "No receipt tells of the freeze of this bundle."
    problems = [
        f"{each.stage} was begun after the freeze (receipt {each.number})."
        for each in chronology.between
        if not scored_role(each.stage)
    ]
    since = f"receipt {chronology.frozen.number}"
    return _judged(problems, f"Since the freeze ({since}) there was scoring only: {_told(chronology.scorings)}.")


def _cardinality(run: _Run) -> Answer:
    frame = run.results["allocations"]
    leads = frame["leads"].str.split()
    wrong = frame[[len(set(row) & set(LEADS)) != k or len(row) != k for row, k in zip(leads, frame["k"], strict=True)]]
    problems = [
        f"{row.policy} has '{row.leads}' for record {row.id} of the {row.role} role at k = {row.k}."
        for row in wrong.head(3).itertuples()
    ]
    if len(wrong) > 3:
        problems.append(f"And {len(wrong) - 3:,} more.")
    repeated = int(frame.duplicated(["role", "policy", "k", "id"]).sum())
    problems += [f"{repeated:,} records have two allocations of a policy at the same k."] * bool(repeated)
    return _judged(problems, f"All {len(frame):,} allocations have exactly k different leads.")


def _first_lead(run: _Run) -> Answer:
    frame = run.results["allocations"]
    unanchored = [name for name, policy in run.bundle.policies.items() if policy.first_lead is None]
    frame = frame[~frame["policy"].isin(unanchored)]
    first = frame.assign(first=frame["leads"].str.split().str[0])
    different = int((first.groupby(["role", "id"])["first"].nunique() > 1).sum())
    problems = [f"Policies begin with different leads for {_several(different, 'record')}."] * bool(different)
    policies, leads = (", ".join(sorted(names.unique())) for names in (frame["policy"], first["first"]))
    return _judged(problems, f"{policies} begin alike: {leads}.")


def _resample(run: _Run) -> Answer:
    plan, problems, told = run.plan.bootstrap, list[str](), list[str]()
    replicates = run.columns("replicates", "role", "replicate")
    for role in run.contents.scored:
        cells = sum(int((run.results[name]["role"] == role).sum()) for name in ("contrasts", "interactions"))
        counts = replicates[replicates["role"] == role]["replicate"].value_counts()
        if sorted(counts.index) != list(range(plan.replicates)) or set(counts) != {cells}:
            every = f"Not every contrast and interaction of the {role} role"
            problems.append(f"{every} has {plan.replicates:,} replicates.")
    patients = dict(zip(run.results["splits"]["role"], run.results["splits"]["patients"], strict=True))
    drawn = {row.role: row for row in run.results["resamples"].itertuples()} if "resamples" in run.results else {}
    for role in run.contents.scored if drawn else []:
        row: Any = drawn.get(role)
        if row is None or (row.replicates, row.seed, row.patients) != (plan.replicates, plan.seed, patients[role]):
            problems.append(f"The draw of patients of the {role} role is not the one that the plan asks for.")
        else:
            told.append(f"{role} {row.sha256}")
    said = f" SHA-256 of the multiplicities: {', '.join(told)}." if told else ""
    fine = f"{plan.replicates:,} replicates of every contrast and interaction, {', '.join(run.contents.scored)}"
    return _judged(problems, f"{fine}, seed {plan.seed}.{said}")


def _recomputed(run: _Run) -> Answer:
    found = recomputed_cell(run.contents)
    if found is None:
        return "not applicable", "The primary cell is not among the results."
    place, problems = found
    numbers = "both D, I and their intervals" if run.plan.interactions else "D and its interval"
    return _judged(problems, f"{place}: {numbers} come out again.")


def _bundle(run: _Run) -> Answer:
    return _judged(run.bundle.problems(), f"{len(run.bundle.files)} files, bundle {run.bundle.sha256}.")


def _results(run: _Run) -> Answer:
    receipt = run.contents.gathered
    problems = changed_files(run.directory.results, receipt.files)
    if receipt.bundle != run.bundle.sha256:
        problems.append("The receipt about the results names another bundle.")
    return _judged(problems, f"{len(receipt.files)} files, as receipt {receipt.number} says.")


def _machine(run: _Run) -> Answer:
    used, names = run.history.software, sorted(Software.model_fields)
    several = {name: sorted({str(getattr(each, name)) for each in used}) for name in names}
    problems = [
        f"Receipts tell of several: {name} {', '.join(several[name])}." for name in BITS if len(several[name]) > 1
    ]
    said = ", ".join(f"{name} {' or '.join(values)}" for name, values in several.items() if any(values))
    return _judged(problems, f"{said[0].upper()}{said[1:]}.")


def _hypotheses(run: _Run) -> Answer:
    count, frozen = len(run.plan.hypotheses), run.chronology.frozen
    if not count:
        return "not applicable", "The plan has no hypotheses; everything that was found is exploratory."
    problems = []
    if frozen is None or not run.chronology.scorings:
        problems.append("The receipts do not show a freeze of this plan before the scoring.")
    if not run.directory.plan.exists() or file_sha256(run.directory.plan) != run.bundle.files.get("plan.toml"):
        problems.append("plan.toml is not the plan that was frozen.")
    first = run.chronology.scorings[0] if run.chronology.scorings else None
    told = f"{run.chronology.freeze_in_words}; scoring began at {first.when}" if first else ""
    return _judged(problems, f"The bundle with the plan's {_several(count, 'hypothesis')} was {told}.")


def _training_roles(run: _Run) -> Answer:
    fitting = run.history.fitted
    if not fitting:
        return _nothing_fitted(run, "no training")
    problems = [
        f"{each.stage} (receipt {each.number}) was given the {', '.join(sorted(each.roles.keys() & set(SCORED)))} role."
        for each in fitting
        if each.stage != CENSUS and each.roles.keys() & set(SCORED)
    ]
    return _judged(problems, f"{len(fitting):,} stages before the scoring, none of them given a scored role.")


def _nothing_fitted(run: _Run, what: str) -> Answer:
    """Nothing to check in a run that scores a bundle from elsewhere; in any other it should have been there."""
    if run.chronology.elsewhere:
        return "not applicable", "This run fitted nothing: it scored a bundle that was frozen in another run."
    return "failed", f"The ledger tells of {what}."


def _told(receipts: Sequence[Begin]) -> str:
    return ", ".join(f"{scored_role(each.stage)} (receipt {each.number})" for each in receipts)


def _several(count: int, thing: str) -> str:
    """Number of things, in the plural where it is due."""
    plural = {"hypothesis": "hypotheses"}.get(thing, f"{thing}s")
    return f"{count:,} {thing if count == 1 else plural}"


_CHECKS: tuple[tuple[str, str, Callable[[_Run], Answer]], ...] = (
    (
        "No patient is in two roles",
        "Records of one patient are alike; a patient in two roles would carry what was learned into what is scored. In "
        "a run that scores a bundle from elsewhere, the roles that its own cohort has are compared.",
        _patients,
    ),
    (
        "The ledger is unbroken",
        "Every receipt holds the hash of the one before, so the head, the hash of the last, stands for all of them. "
        "Whoever holds the files could write them all anew; that shows only beside a head that was kept elsewhere.",
        _ledger,
    ),
    (
        "Nothing was scored before the freeze",
        "Whoever looks at the audit or the evaluation role first could fit to what was seen. The audit may be scored "
        "again with a later bundle, and is then counted; the evaluation role may not.",
        _seal,
    ),
    (
        "References were chosen on the selection role",
        "A fixed set that had been chosen on scored records would be compared on records that favour it.",
        _selection,
    ),
    (
        "Nothing was fitted after the freeze",
        "Between the freeze of the bundle and its last scoring, the ledger may tell of scoring only.",
        _nothing_after,
    ),
    (
        "Every allocation has exactly k leads",
        "A policy that took more leads than the fixed set would win by that alone.",
        _cardinality,
    ),
    (
        "All deployable policies begin with the same lead",
        "Nothing is known of a record before its first lead, so that lead must not depend on the policy. Policies "
        "that have none, such as a control that draws subsets, begin anywhere.",
        _first_lead,
    ),
    (
        "One resample for everything",
        "Differences are paired only if the same patients were drawn for all of their terms.",
        _resample,
    ),
    (
        "The primary cell can be recomputed",
        "Contrasts follow from the readings and allocations in the results, intervals from the replicates; the primary "
        "cell is computed again from these.",
        _recomputed,
    ),
    (
        "The bundle is what was frozen",
        "Every evaluator, policy, reference and table of the bundle has the hash that was written down at the freeze.",
        _bundle,
    ),
    (
        "The results are what their receipt says",
        "Every table has the hash that the run wrote down when it was made.",
        _results,
    ),
    (
        "One machine, one set of libraries",
        "NumPy, PyTorch, the processor's capability and the number of threads decide the last bits of a result. Where "
        "they changed on the way, results agree within a tolerance only.",
        _machine,
    ),
    (
        "Hypotheses were frozen before the scoring",
        "What was expected is part of the plan, and the plan is part of the bundle.",
        _hypotheses,
    ),
    (
        "Nothing was trained or chosen on a scored role",
        "No stage before the scoring is given the audit or the evaluation role, but for the one that counts "
        "the cohort, which takes numbers of records and patients, and of the audit role how frequent the labels are.",
        _training_roles,
    ),
)
"""Title, explanation and function of each check."""
