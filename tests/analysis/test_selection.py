"""References chosen anew, against resampled rows of patients, the metrics, and the rule of a search."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from analysis.arms import READERS, REPLICATES, by_hand, check, fixed_masks, read
from analysis.coverage import Reader, records_of, varied_records
from leadwise.analysis import selection
from leadwise.analysis.bootstrap import PatientBootstrap
from leadwise.analysis.contrasts import estimate_contrasts
from leadwise.analysis.interactions import estimate_interactions
from leadwise.analysis.readings import Readings
from leadwise.analysis.selection import (
    KEPT,
    Reselection,
    choices_frame,
    read_choices,
    reselect,
    reselected,
    selection_frame,
    selection_summary_frame,
    with_selection_rows,
)
from leadwise.cohort.cohort import Records
from leadwise.evaluators.contract import Evaluator
from leadwise.evaluators.scoring import score_subsets
from leadwise.leads import LeadSet, mask_bits, subsets
from leadwise.metrics import METRICS
from leadwise.policies.allocation import Allocation
from leadwise.references import References, search_references

SETS = subsets(2)


class Told:
    """An evaluator that answers so about every pair of leads, whatever the recordings are."""

    name = "told"

    def __init__(self, records: Records, answers: np.ndarray) -> None:
        self.labels, self.answers = records.label_names, answers
        self.row = {int(bits): row for row, bits in enumerate(mask_bits(SETS))}

    def prepare(self, _records: Records) -> "Told":
        return self

    def probabilities(self, positions: np.ndarray, masks: np.ndarray) -> np.ndarray:
        return self.answers[[self.row[int(bits)] for bits in mask_bits(masks)], positions]


def alike(records: Records) -> Told:
    """Sets of which three each tie in ECE: one differs in NLL, and two in nothing else.

    Records of one patient are a little above and below one answer, in turn, which leaves the patient's sums alone.
    """
    offset = np.zeros(len(records))
    for patient in set(records.patients.tolist()):
        rows = np.flatnonzero(records.patients == patient)
        even = rows[: len(rows) // 2 * 2]
        offset[even] = np.tile([0.02, -0.02], len(even) // 2)
    rng, number = np.random.default_rng(4), np.arange(len(SETS))
    patients, patient = np.unique(records.patients, return_inverse=True)
    middle = np.array([0.25, 0.45, 0.55])[rng.integers(0, 3, (22, len(patients), len(records.label_names)))][:, patient]
    return Told(records, middle[number // 3] + (number % 3 - 1)[:, None, None] * offset[:, None])


def resampled(records: Records, draw: np.ndarray) -> np.ndarray:
    """Rows of the records, each as often as its patient was drawn."""
    patients = sorted(set(records.patients.tolist()))
    return np.concatenate(
        [np.flatnonzero(records.patients == p).repeat(m) for p, m in zip(patients, draw, strict=True)]
    )


def draws(records: Records, replicates: int) -> np.ndarray:
    count = len(set(records.patients.tolist()))
    return np.random.default_rng(20270909).multinomial(count, [1 / count] * count, size=replicates)


def searched_again(labels: np.ndarray, probabilities: np.ndarray, bits: np.ndarray) -> References:
    """What a search would find on these rows."""
    values = {m: [METRICS[m](labels, each, None) for each in probabilities] for m in ("nll", "brier", "ece")}
    return References("again", pd.DataFrame({"k": 2, "bits": bits, **values}), {2: 0})


def kept_of(found: Reselection, share: float) -> set[int]:
    """The sets that at least this share of the resamples chooses, and the reference."""
    best = found.references.best(found.metric, found.k).bits
    return {best} | {bits for bits in found.chosen.tolist() if (found.chosen == bits).mean() >= share}


def lacking(records: Records) -> Records:
    """The same records, but some lack leads: one has a single one, and nobody else lacks all but one."""
    missing = np.zeros((len(records), 12), dtype=int)
    missing[0, 1:] = records.length
    missing[::3, 7] = records.length
    return records_of(records.patients, records.labels, records.signals[:], missing)


CASES: dict[str, Callable[[Records], tuple[Evaluator, Records]]] = {
    "reader": lambda records: (Reader("first"), records),
    "ties": lambda records: (alike(records), records),
    "gaps": lambda records: (Reader("second"), lacking(records)),
}


@pytest.mark.parametrize("case", CASES)
def test_choices_are_those_of_a_search_on_resampled_rows(case: str) -> None:
    evaluator, records = CASES[case](varied_records(patients=22, seed=6))
    references = search_references(evaluator, records, [2])
    found = {each.metric: each for each in reselect(evaluator, references, 2, records, 50)}
    kept = records.with_leads(2)
    bits = references.candidates["bits"].to_numpy()
    probabilities = score_subsets(evaluator, kept, [LeadSet(int(b)) for b in bits])
    outside: dict[str, list[float]] = {metric: [] for metric in found}
    ties = 0
    for b, draw in enumerate(draws(kept, 50)):
        rows, held = resampled(kept, draw), set(kept.patients[resampled(kept, draw)].tolist())
        again = searched_again(kept.labels[rows], probabilities[:, rows], bits)
        left = ~np.isin(kept.patients, list(held))
        for metric, each in found.items():
            ranked = again.ranking(metric, 2)
            ties += metric == "ece" and int(np.sum(ranked["margin"] < 1e-12) > 2)
            assert each.chosen[b] == again.best(metric, 2).bits, (metric, b)
            often = kept_of(each, KEPT)
            assert each.kept[b] == next(s for s in ranked["bits"].tolist() if s in often)
            if left.any():
                answers = probabilities[bits.tolist().index(each.chosen[b]), left]
                outside[metric].append(METRICS[metric](kept.labels[left], answers, None))
    assert (ties == 50) == (case == "ties")
    for metric, each in found.items():
        assert len(set(each.chosen.tolist())) > 1
        assert each.corrected == pytest.approx(np.mean(outside[metric]), abs=1e-12)
        values = references.candidates.set_index("bits")[metric]
        assert each.regret == pytest.approx((values.loc[each.chosen] - values.min()).mean(), abs=1e-12)


def test_rarely_chosen_sets_are_stood_for_by_the_best_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "KEPT", 0.1)
    records = varied_records(patients=22, seed=6)
    references = search_references(Reader("first"), records, [2])
    probabilities = score_subsets(Reader("first"), records, SETS)
    bits = references.candidates["bits"].to_numpy()
    for each in reselect(Reader("first"), references, 2, records, 50):
        often = kept_of(each, 0.1)
        assert set(each.kept.tolist()) <= often < set(each.chosen.tolist())
        for b, draw in enumerate(draws(records, 50)):
            rows = resampled(records, draw)
            ranked = searched_again(records.labels[rows], probabilities[:, rows], bits).ranking(each.metric, 2)
            assert each.kept[b] == next(s for s in ranked["bits"].tolist() if s in often)
        summary = selection_summary_frame([each]).iloc[0]
        assert summary["share"] == pytest.approx(np.isin(each.chosen, list(often)).mean())
        assert summary["kept"] == len(set(each.kept.tolist())) < summary["sets"] == len(set(each.chosen.tolist()))


def test_a_set_that_is_always_best_is_always_chosen() -> None:
    records = varied_records(patients=15, seed=3)
    answers = np.where(records.labels, 0.3, 0.7) + np.random.default_rng(0).normal(size=(len(SETS), 1, 1)) * 0.05
    answers[17] = np.where(records.labels, 0.99, 0.01)
    evaluator = Told(records, answers)
    references = search_references(evaluator, records, [2])
    for each in reselect(evaluator, references, 2, records, 50):
        assert set(each.chosen.tolist()) == set(each.kept.tolist()) == {LeadSet.from_mask(SETS[17]).bits}
        assert each.regret == 0
        assert each.ranking["probability"].tolist() == [1.0] + [0.0] * (len(SETS) - 1)
        # every record has the same loss, so the value is the same wherever it is taken
        assert each.corrected == pytest.approx(references.ranking(each.metric, 2)[each.metric].iloc[0], rel=1e-6)
    frame = selection_frame(reselect(evaluator, references, 2, records, 50))
    assert frame["leads"].tolist() == [str(LeadSet.from_mask(SETS[17]))] * 3
    assert (frame["probability"] == 1).all()


@pytest.fixture(scope="module")
def found() -> list[Reselection]:
    records = varied_records(patients=22, seed=6)
    references = search_references(Reader("first"), records, [2, 3])
    return [each for k in (2, 3) for each in reselect(Reader("first"), references, k, records, 200)]


def test_tables(found: list[Reselection]) -> None:
    frame, summary = selection_frame(found), selection_summary_frame(found)
    assert not frame.duplicated(["evaluator", "metric", "k", "leads"]).any()
    for each, row in zip(found, summary.itertuples(), strict=True):
        rows = frame[(frame["metric"] == each.metric) & (frame["k"] == each.k)]
        ranked = each.references.ranking(each.metric, each.k)
        assert rows["rank"].iloc[0] == 1
        assert rows["leads"].iloc[0] == str(each.references.best(each.metric, each.k))
        assert (rows["probability"].iloc[1:] >= 0.005).all()
        names = ranked["leads"].tolist()
        for listed in rows.itertuples():
            assert names[listed.rank - 1] == listed.leads
            assert listed.value == ranked[each.metric].iloc[listed.rank - 1]
            assert listed.probability == np.mean([str(LeadSet(int(bits))) == listed.leads for bits in each.chosen])
        assert rows["probability"].sum() == pytest.approx(1, abs=0.005 * row.sets)
        assert (row.probability, row.value) == (rows["probability"].iloc[0], rows["value"].iloc[0])
        assert (row.replicates, row.role) == (200, "audit")
    chosen = read_choices(choices_frame(found).sample(frac=1, random_state=0))
    assert len(chosen) == 6
    for each in found:
        np.testing.assert_array_equal(chosen["first", each.metric, each.k], each.kept)


# intervals that include the choice ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chosen(references: dict[str, References]) -> dict[tuple[str, str, int], np.ndarray]:
    """A choice for each replicate out of thin air, of the best sets of each search."""
    rng = np.random.default_rng(8)
    return {
        (name, metric, k): each.ranking(metric, k)["bits"].to_numpy()[rng.integers(0, 4, REPLICATES)]
        for name, each in references.items()
        for metric in ("nll", "brier", "ece")
        for k in (2, 3)
    }


def test_each_replicate_has_the_set_that_was_chosen_there(
    readings: Readings,
    allocations: list[Allocation],
    references: dict[str, References],
    chosen: dict[tuple[str, str, int], np.ndarray],
) -> None:
    contrasts = estimate_contrasts(readings, allocations, references)
    pairs = list(reselected(readings, contrasts, chosen))
    assert len(pairs) == len(contrasts)
    for each, (whole, alone) in zip(contrasts, pairs, strict=True):
        assert whole.key == alone.key == each.key
        records = each.allocation.records
        adaptive = read(each.evaluator, records, each.allocation.masks)
        sets = chosen[each.evaluator, each.metric, each.allocation.k]
        distinct = {
            int(bits): by_hand(
                each.metric,
                records,
                records,
                adaptive,
                read(each.evaluator, records, fixed_masks(records, LeadSet(int(bits)))),
                REPLICATES,
            )
            for bits in set(sets.tolist())
        }
        best = references[each.evaluator].best(each.metric, each.allocation.k).bits
        expected = np.array([distinct[int(bits)][1][b] for b, bits in enumerate(sets)])
        assert whole.delta.value == alone.delta.value == each.delta.value
        if best in distinct:
            assert each.delta.value == pytest.approx(distinct[best][0], abs=1e-12)
        check(whole.delta, each.delta.value, expected)
        check(alone.delta, each.delta.value, np.array([distinct[int(bits)][0] for bits in sets]))


def test_with_the_frozen_reference_throughout_nothing_changes(
    readings: Readings, allocations: list[Allocation], references: dict[str, References]
) -> None:
    contrasts = estimate_contrasts(readings, allocations, references)
    always = {
        (name, metric, k): np.full(REPLICATES, each.best(metric, k).bits)
        for name, each in references.items()
        for metric in ("nll", "brier", "ece")
        for k in (2, 3)
    }
    for each, (whole, alone) in zip(contrasts, reselected(readings, contrasts, always), strict=True):
        np.testing.assert_allclose(whole.delta.replicates, each.delta.replicates, rtol=0, atol=1e-15)
        assert alone.delta.replicates.std() < 1e-15
    del always["first", "nll", 2]
    left = {each.key for each, _ in reselected(readings, contrasts, always)}
    gone = {each.key for each in contrasts} - left
    assert {(key.evaluator, key.metric, key.k) for key in gone} == {("first", "nll", 2)}


def test_a_set_that_some_record_lacks_is_not_compared(references: dict[str, References]) -> None:
    records = lacking(varied_records(patients=20, seed=2)).select(slice(1, None))  # some lack lead 7
    readings = Readings(records, READERS.values(), PatientBootstrap(records, REPLICATES))
    best = references["first"].best("nll", 2)
    assert 7 not in best.indices
    order = np.tile([0, 1], (len(records), 1))
    allocation = Allocation(records, "mga", "first", order)
    contrasts = estimate_contrasts(readings, [allocation], references["first"], evaluators=["first"])
    (nll,) = (each for each in contrasts if each.metric == "nll")
    unreadable = LeadSet.of([7, 8]).bits
    sets = np.where(np.arange(REPLICATES) % 2, unreadable, best.bits)
    ((whole, _),) = reselected(readings, [nll], {("first", "nll", 2): sets})
    np.testing.assert_allclose(whole.delta.replicates, nll.delta.replicates, rtol=0, atol=1e-15)


def test_rows_of_variance(
    readings: Readings,
    allocations: list[Allocation],
    references: dict[str, References],
    chosen: dict[tuple[str, str, int], np.ndarray],
) -> None:
    contrasts = estimate_contrasts(readings, allocations, references)
    rows = pd.DataFrame(with_selection_rows(readings, contrasts, chosen, "second", "first"))
    assert len(rows) == 2 * 2 * 3 * 3  # policies, budgets, metrics; I and both D
    assert set(rows["interval_kind"]) == {"with_selection"}
    assert set(rows["source"]) == {"references"}
    assert (rows["replications"] == REPLICATES).all()
    pairs = list(reselected(readings, contrasts, chosen))
    whole = estimate_interactions([each for each, _ in pairs], "second", "first")
    for each in whole:
        for quantity, evaluator, baseline, estimate in (
            ("interaction", "second", "first", each.estimate),
            ("contrast", "second", "", each.read.delta),
            ("contrast", "first", "", each.base.delta),
        ):
            facts = (rows["quantity"] == quantity) & (rows["evaluator"] == evaluator)
            facts &= (rows["baseline_evaluator"] == baseline) & (rows["policy"] == each.key.policy)
            (row,) = rows[facts & (rows["k"] == each.key.k) & (rows["metric"] == each.key.metric)].itertuples()
            assert (row.value, row.lo, row.hi) == (estimate.value, *estimate.interval)
            assert row.sd == pytest.approx(estimate.replicates.std(ddof=1))
    # what varies is the fixed arm, for the records as they are
    first = rows[(rows["quantity"] == "contrast") & (rows["evaluator"] == "first")].set_index(["policy", "k", "metric"])
    role = readings.records
    for (_, k, metric), row in first.iterrows():
        answers = [read("first", role, fixed_masks(role, LeadSet(int(bits)))) for bits in chosen["first", metric, k]]
        values = [METRICS[metric](role.labels, each, None) for each in answers]
        assert row["sd_source"] == pytest.approx(np.std(values, ddof=1), abs=1e-12)
