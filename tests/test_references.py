"""The exhaustive search against a plain loop over all lead sets, its ties, its gaps and its ledger."""

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from leadwise import metrics
from leadwise.cohort.cohort import Cohort, Records
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.cohort.synthetic import write_synthetic
from leadwise.errors import InputError, LeadwiseError, SealedRole
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.evaluators.scoring import score
from leadwise.leads import CLINICAL_SETS, LEADS, LeadSet
from leadwise.references import (
    BUDGETS,
    MATCHED_METRICS,
    References,
    quick_metrics,
    search_references,
    subset_metrics,
)

Found = dict[tuple[int, ...], tuple[float, float, float]]


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    home = tmp_path_factory.mktemp("references")
    write_synthetic(home / "cohort", records=240, seed=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEADWISE_CACHE", str(home / "cache"))
        return read_ptbxl(home / "cohort")


@pytest.fixture(scope="module")
def controlled(cohort: Cohort) -> LogisticEvaluator:
    return LogisticEvaluator().fit(cohort["train"])


@pytest.fixture(scope="module")
def brute(cohort: Cohort, controlled: LogisticEvaluator) -> Found:
    return brute_force(controlled, cohort["selection"], (1, 2, 3))


@pytest.fixture(scope="module")
def searched(cohort: Cohort, controlled: LogisticEvaluator) -> References:
    return search_references(controlled, cohort["selection"], (1, 2, 3))


class Plain:
    """A logistic evaluator without its shortcuts, that counts how many records it was asked for, and may give up."""

    def __init__(self, evaluator: LogisticEvaluator, name: str = "plain", fail_after: int | None = None) -> None:
        self.name, self.labels, self.sampling_rate = name, evaluator.labels, evaluator.sampling_rate
        self.evaluator, self.asked, self.fail_after = evaluator, 0, fail_after

    def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
        if self.fail_after is not None and self.asked + len(masks) > self.fail_after:
            raise KeyboardInterrupt
        self.asked += len(masks)
        return self.evaluator.probabilities(signals, masks)


def brute_force(evaluator: Any, records: Records, budgets: Iterable[int], among: Iterable[int] = range(12)) -> Found:
    """NLL, Brier and ECE of every lead set, by the metrics themselves, one set after the other."""
    among, found = tuple(among), {}
    for k in budgets:
        for leads in combinations(among, k):
            mask = np.isin(np.arange(12), leads)
            p = score(evaluator, records, np.tile(mask, (len(records), 1)))
            y = records.labels
            found[leads] = (metrics.nll(y, p), metrics.brier(y, p), metrics.ece(y, p))
    return found


def order_of(found: Found, metric: str, k: int) -> list[tuple[int, ...]]:
    """Lead sets of size k, best first: by metric, then NLL, then indices."""
    column = MATCHED_METRICS.index(metric)
    return sorted(
        (leads for leads in found if len(leads) == k),
        key=lambda leads: (round(found[leads][column], 12), round(found[leads][0], 12), leads),
    )


def assert_same(references: References, found: Found) -> None:
    candidates = references.candidates
    sets = [LeadSet(int(bits)).indices for bits in candidates["bits"]]
    assert sets == sorted(found, key=lambda leads: (len(leads), leads)), "each set once, in lexicographic order"
    assert [len(leads) for leads in sets] == candidates["k"].to_list()
    expected = np.array([found[leads] for leads in sets])
    np.testing.assert_allclose(candidates[list(MATCHED_METRICS)].to_numpy(), expected, rtol=0, atol=1e-12)
    for k in {len(leads) for leads in found}:
        for metric in MATCHED_METRICS:
            order = order_of(found, metric, k)
            assert references.best(metric, k).indices == order[0]


def values(references: References) -> np.ndarray:
    return references.candidates.to_numpy(dtype=np.float64)


# the search ----------------------------------------------------------------------------------------------------------


def test_equals_brute_force(searched: References, brute: Found) -> None:
    assert_same(searched, brute)
    assert searched.evaluator == "controlled"
    assert searched.left_out == {1: 0, 2: 0, 3: 0}


def test_equals_brute_force_without_a_shortcut(cohort: Cohort, controlled: LogisticEvaluator, brute: Found) -> None:
    plain = Plain(controlled)
    selection = cohort["selection"]
    references = search_references(plain, selection, (1, 2))
    assert_same(references, {leads: found for leads, found in brute.items() if len(leads) <= 2})
    assert plain.asked == (12 + 66) * len(selection), "each set once"


def test_few_at_a_time_is_the_same(
    cohort: Cohort, controlled: LogisticEvaluator, searched: References, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadwise.references._BYTES_AT_ONCE", 7 * 8 * cohort["selection"].labels.size)
    again = search_references(controlled, cohort["selection"], (1, 2, 3))
    np.testing.assert_allclose(values(again), values(searched), rtol=0, atol=1e-14)


def test_all_sets_there_are(cohort: Cohort, controlled: LogisticEvaluator) -> None:
    selection = cohort["selection"]
    references = search_references(controlled, selection, range(1, 13))
    candidates = references.candidates
    assert len(candidates) == 4095 == candidates["bits"].nunique()
    assert candidates.groupby("k").size().to_dict() == {k: comb(12, k) for k in range(1, 13)}
    for row in np.random.default_rng(0).choice(4095, 60, replace=False):
        k, bits, *found = candidates.iloc[row]
        assert int(bits).bit_count() == k
        p = score(controlled, selection, np.tile(LeadSet(int(bits)).mask, (len(selection), 1)))
        expected = [metrics.METRICS[name](selection.labels, p, None) for name in MATCHED_METRICS]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert len(references.frame) == 36
    assert references.best("nll", 12) == LeadSet(4095)
    assert set(references.clinical()["name"]) == set(CLINICAL_SETS)


def test_budgets_in_any_order_and_twice(cohort: Cohort, controlled: LogisticEvaluator, searched: References) -> None:
    again = search_references(controlled, cohort["selection"], [3, 1, 2, 1])
    np.testing.assert_array_equal(values(again), values(searched))


def test_budgets_of_the_study() -> None:
    assert BUDGETS == (1, 2, 3, 4, 6, 8)
    assert sum(comb(12, k) for k in BUDGETS) == 2212


@pytest.mark.parametrize("k", [0, 13, -1])
def test_impossible_budgets(cohort: Cohort, controlled: LogisticEvaluator, tmp_path: Path, k: int) -> None:
    with pytest.raises(LeadwiseError, match=rf"^A budget of {k} leads is impossible; k lies between 1 and 12\.$"):
        search_references(controlled, cohort["selection"], [1, k], tmp_path / "ledger")
    assert not (tmp_path / "ledger").exists()


def test_no_records(cohort: Cohort, controlled: LogisticEvaluator) -> None:
    with pytest.raises(InputError, match=r"^No record of a selection of the selection role has 1 leads"):
        search_references(controlled, cohort["selection"].select(slice(0, 0)), [1])


def test_sealed_records(cohort: Cohort, controlled: LogisticEvaluator, tmp_path: Path) -> None:
    for evaluator in (controlled, Plain(controlled)):
        for ledger in (None, tmp_path / "ledger"):
            with pytest.raises(SealedRole):
                search_references(evaluator, cohort["evaluation"], [1], ledger)


# its arithmetic ------------------------------------------------------------------------------------------------------


@st.composite
def probabilities(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    sets, n, n_labels = draw(st.integers(1, 4)), draw(st.integers(1, 17)), draw(st.integers(1, 5))
    extreme = st.sampled_from([0.0, 1.0, 1e-13, 1e-12, 3e-12, 1e-9, 1 - 1e-9, 1 - 1e-12, 0.5])
    p = draw(arrays(np.float64, (sets, n, n_labels), elements=st.one_of(st.floats(0, 1), extreme)))
    return draw(arrays(np.bool_, (n, n_labels))), p


@settings(max_examples=60)
@given(probabilities())
def test_metrics_of_many_sets_are_the_metrics(case: tuple[np.ndarray, np.ndarray]) -> None:
    """To the last bits, also where probabilities are next to nothing and had to be clipped."""
    labels, p = case
    before = p.copy()
    ours = subset_metrics(labels, p)
    theirs = [[metrics.nll(labels, q), metrics.brier(labels, q), metrics.ece(labels, q)] for q in p]
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(p, before)


def test_certainty_that_is_always_wrong_does_not_underflow() -> None:
    labels = np.random.default_rng(0).random((97, 5)) < 0.5
    (found,) = subset_metrics(labels, (~labels).astype(float)[None])
    np.testing.assert_allclose(found, [-np.log(metrics.CLIP), 1, 1], rtol=1e-5)


# ties ----------------------------------------------------------------------------------------------------------------


class Constant:
    """Knows the prevalence, reads nothing: all lead sets are equally good."""

    labels = ("CD", "HYP", "MI", "NORM", "STTC")

    def probabilities(self, signals: np.ndarray, _masks: np.ndarray) -> np.ndarray:
        return np.full((len(signals), 5), 0.3)


def test_equal_sets_come_in_lexicographic_order(cohort: Cohort) -> None:
    references = search_references(Constant(), cohort["selection"], (1, 2, 3))
    for k, first, last in ((1, "I", "V6"), (2, "I II", "V5 V6"), (3, "I II III", "V4 V5 V6")):
        for metric in MATCHED_METRICS:
            assert str(references.best(metric, k)) == first
            ranked = references.ranking(metric, k)
            assert str(LeadSet(int(ranked["bits"].iloc[-1]))) == last
            sets = [LeadSet(int(bits)).indices for bits in ranked["bits"]]
            assert sets == sorted(sets)
            assert (ranked["margin"] == 0).all()


def two_kinds(n: int) -> Cohort:
    """Half of the records at +1 mV with every label, half at −1 mV without."""
    ill = np.arange(n) < n // 2
    return Cohort(
        source="two kinds",
        ids=np.arange(n),
        patients=np.arange(n),
        folds=np.full(n, 10),
        age=np.full(n, 50.0),
        sex=np.zeros(n, dtype=np.int64),
        quality=np.zeros((n, 6), dtype=bool),
        missing=np.zeros((n, 12), dtype=np.int64),
        label_names=("ILL",),
        sampling_rate=100,
        _signals=np.where(ill, 1000, -1000)[:, None, None].repeat(12, 1).repeat(5, 2).astype(np.int16),
        _labels=ill[:, None],
    )


class ByLead:
    """Is wrong by so much on the ill and on the healthy, depending on the first lead that it was given."""

    labels = ("ILL",)

    def __init__(self, errors: dict[str, tuple[float, float]], otherwise: tuple[float, float]) -> None:
        self.errors = np.array([errors.get(lead, otherwise) for lead in LEADS])

    def probabilities(self, signals: np.ndarray, masks: np.ndarray) -> np.ndarray:
        ill = signals.sum(axis=(1, 2)) > 0
        wrong = self.errors[masks.argmax(axis=1)]
        return np.where(ill, 1 - wrong[:, 0], wrong[:, 1])[:, None]


def test_equal_metric_is_decided_by_nll() -> None:
    # 0.3² + 0.4² = 0² + 0.5², but not in floating point, and the logarithms differ
    evaluator = ByLead({"II": (0.3, 0.4), "aVL": (0.0, 0.5), "V1": (0.5, 0.0)}, otherwise=(0.5, 0.6))
    references = search_references(evaluator, two_kinds(20).records, [1])
    ranked = references.ranking("brier", 1)
    assert ranked["brier"].iloc[:3].round(12).nunique() == 1
    assert [str(LeadSet(int(bits))) for bits in ranked["bits"][:3]] == ["aVL", "V1", "II"]
    assert str(references.best("brier", 1)) == "aVL"
    first, second, third = ranked["nll"].iloc[:3].round(12)
    assert first == second < third


def frame(*rows: tuple[int, int, float, float, float]) -> References:
    return References("mine", pd.DataFrame(rows, columns=["k", "bits", "nll", "brier", "ece"]), {1: 0})


def test_ties_are_of_what_is_rounded() -> None:
    almost = frame((1, 1, 0.5, 0.2, 0.1), (1, 2, 0.4, 0.2 + 2e-13, 0.1 + 2e-12), (1, 4, 0.4 - 2e-13, 0.2, 0.3))
    assert almost.best("brier", 1) == LeadSet(2), "Brier and NLL are the same after rounding; II comes before III"
    assert almost.best("ece", 1) == LeadSet(1), "2e-12 is a difference"
    assert almost.best("nll", 1) == LeadSet(2)


# what comes of it ----------------------------------------------------------------------------------------------------


def test_ranking(searched: References, brute: Found) -> None:
    for metric in MATCHED_METRICS:
        for k in (1, 2, 3):
            ranked = searched.ranking(metric, k)
            assert [LeadSet(int(bits)).indices for bits in ranked["bits"]] == order_of(brute, metric, k)
            np.testing.assert_array_equal(ranked["margin"], ranked[metric] - ranked[metric].min())
            assert (ranked["margin"] >= 0).all()
            assert list(ranked.index) == list(range(comb(12, k)))


def test_frame(searched: References, brute: Found) -> None:
    table = searched.frame
    assert list(table.columns) == ["evaluator", "metric", "k", "leads", "value", "candidates"]
    assert len(table) == 9
    for row in table.itertuples():
        best = order_of(brute, row.metric, row.k)[0]
        assert row.evaluator == "controlled"
        assert row.leads == str(LeadSet.of(best))
        assert row.value == pytest.approx(brute[best][MATCHED_METRICS.index(row.metric)], abs=1e-12)
        assert row.candidates == comb(12, row.k)


def test_clinical_sets(searched: References, brute: Found) -> None:
    table = searched.clinical().set_index("name")
    assert set(table.index) == {"2-lead", "3-lead"}
    for name, row in table.iterrows():
        leads = CLINICAL_SETS[str(name)]
        assert (row["leads"], row["k"]) == (str(leads), len(leads))
        for metric in MATCHED_METRICS:
            assert row[f"{metric}_rank"] == 1 + order_of(brute, metric, len(leads)).index(leads.indices)
            assert row[metric] == pytest.approx(brute[leads.indices][MATCHED_METRICS.index(metric)], abs=1e-12)


def test_questions_without_an_answer(searched: References) -> None:
    with pytest.raises(InputError, match=r"^References are matched to nll, brier, ece; 'auroc' is none of them\.$"):
        searched.best("auroc", 2)
    with pytest.raises(
        InputError, match=r"^The search for controlled has no sets of 4 leads; search that budget too\.$"
    ):
        searched.ranking("nll", 4)


@settings(max_examples=30)
@given(st.data())
def test_ties_are_broken_alike_however_the_shards_came(data: st.DataObject) -> None:
    """Metrics that agree to 1e-12 are ties; then NLL decides, then the order of the leads."""
    close = st.sampled_from([0.1, 0.1 + 3e-13, 0.1 - 3e-13, 0.2])
    sets = [leads for k in (1, 2) for leads in combinations(range(12), k)]
    found = {leads: tuple(data.draw(close) for _ in MATCHED_METRICS) for leads in sets}
    rows = [(len(leads), LeadSet.of(leads).bits, *found[leads]) for leads in data.draw(st.permutations(sets))]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    bounds = list(zip([0, *cuts], [*cuts, len(rows)], strict=True))
    shared = data.draw(st.integers(0, 5))  # shards may have lead sets in common
    shards = [
        References("x", pd.DataFrame(rows[a : b + shared], columns=["k", "bits", *MATCHED_METRICS]), {1: 0, 2: 0})
        for a, b in bounds
    ]
    merged = References.merged(shards)
    assert [LeadSet(bits).indices for bits in merged.candidates["bits"]] == sets
    for metric in MATCHED_METRICS:
        for k in (1, 2):
            ranking = [LeadSet(bits).indices for bits in merged.ranking(metric, k)["bits"]]
            assert ranking == order_of(found, metric, k)


def test_what_cannot_be_merged(searched: References) -> None:
    other = replace(searched, candidates=searched.candidates.assign(nll=searched.candidates["nll"] + 1e-9))
    for searches, sentence in (
        ([], r"Searches of one evaluator can be merged; these are of none\."),
        ([searched, replace(searched, evaluator="b")], r"Searches .* can be merged; these are of b, controlled\."),
        ([searched, replace(searched, left_out={2: 5})], r"Searches of controlled .*: at k = 2 one left out 0 records"),
        ([searched, other], r"Searches of controlled cannot be merged: they differ in 'I', so they are of different"),
    ):
        with pytest.raises(InputError, match=f"^{sentence}"):
            References.merged(searches)
    twice = pd.concat([searched.candidates, other.candidates.tail(1)])
    with pytest.raises(InputError, match=r"^The lead set 'V4 V5 V6' is twice among the candidates of controlled\.$"):
        replace(searched, candidates=twice)


def test_what_is_printed_has_leads_by_name(searched: References) -> None:
    best = "; ".join(f"{k}: {searched.best('nll', k)}" for k in (1, 2, 3))
    assert repr(searched) == f"<References of controlled, best by NLL for each k: {best}>"
    ranking = searched.ranking("brier", 3)
    assert list(ranking) == ["leads", "nll", "brier", "ece", "margin", "k", "bits"]
    assert ranking["leads"].to_list() == [str(LeadSet(bits)) for bits in ranking["bits"]]


# missing leads -------------------------------------------------------------------------------------------------------


def without(cohort: Cohort, gaps: dict[int, str]) -> Records:
    """The selection role, in which some records (by position) lack some leads altogether."""
    missing = cohort.missing.copy()
    for position, leads in gaps.items():
        missing[cohort["selection"].rows[position], list(LeadSet.parse(leads).indices)] = 1000
    return replace(cohort, missing=missing)["selection"]


@pytest.mark.parametrize("shortcut", [True, False])
def test_records_that_lack_leads(cohort: Cohort, controlled: LogisticEvaluator, shortcut: bool) -> None:
    records = without(cohort, {0: "I", 3: "I V6", 7: "I III aVR aVL aVF V1 V3 V4 V5 V6", 9: "12-lead"})
    evaluator = controlled if shortcut else Plain(controlled)
    references = search_references(evaluator, records, (1, 2, 3))
    assert references.left_out == {1: 1, 2: 1, 3: 2}
    # position 7 has II and V2 only, so up to k = 2 they are all that everybody has; position 9 has nothing at all
    for k, left_out, common in ((1, {9}, (1, 7)), (2, {9}, (1, 7)), (3, {7, 9}, tuple(range(1, 11)))):
        kept = records.select(np.array([i for i in range(len(records)) if i not in left_out]))
        found = brute_force(evaluator, kept, (k,), common)
        of_size = replace(references, candidates=references.candidates[references.candidates["k"] == k])
        assert_same(of_size, found)
    assert references.frame.query("metric == 'nll'")["candidates"].to_list() == [2, 1, comb(10, 3)]


def test_a_partly_missing_lead_is_there(cohort: Cohort, controlled: LogisticEvaluator, searched: References) -> None:
    missing = cohort.missing.copy()
    missing[:, 3] = 999
    again = search_references(controlled, replace(cohort, missing=missing)["selection"], (1, 2, 3))
    np.testing.assert_array_equal(values(again), values(searched))


def test_clinical_sets_that_were_no_candidates(cohort: Cohort, controlled: LogisticEvaluator) -> None:
    references = search_references(controlled, without(cohort, {2: "V2"}), (2, 3, 4))
    assert list(references.clinical()["name"]) == ["2-lead"]
    nothing = search_references(controlled, without(cohort, {2: "I V2"}), (2, 3))
    assert nothing.clinical().empty


def test_too_few_leads_in_common(cohort: Cohort, controlled: LogisticEvaluator) -> None:
    halves = without(cohort, {0: "I II III aVR aVL aVF V1", 1: "V2 V3 V4 V5 V6"})
    with pytest.raises(
        InputError, match=r"^The records of the selection role share fewer than 1 leads; search smaller"
    ):
        search_references(controlled, halves, [1])
    short = without(cohort, dict.fromkeys(range(len(cohort["selection"])), "V4 V5 V6"))
    with pytest.raises(InputError, match=r"^No record of the selection role has 10 leads; take a smaller budget\.$"):
        search_references(controlled, short, [9, 10])
    assert len(search_references(controlled, short, [9]).candidates) == 1


# the ledger ----------------------------------------------------------------------------------------------------------


def lines(ledger: Path) -> list[Any]:
    return [json.loads(line) for line in ledger.read_text().splitlines()]


@pytest.mark.parametrize("finished", [0, 1, 30, 77])
def test_an_interrupted_search_goes_on(
    cohort: Cohort, controlled: LogisticEvaluator, tmp_path: Path, finished: int
) -> None:
    selection, ledger = cohort["selection"].select(slice(0, 9)), tmp_path / "there" / "ledger.jsonl"
    whole = search_references(Plain(controlled), selection, (1, 2))
    with pytest.raises(KeyboardInterrupt):
        search_references(Plain(controlled, fail_after=finished * 9), selection, (1, 2), ledger)
    assert len(lines(ledger)) == 1 + finished, "no finished set is lost"
    again = Plain(controlled)
    resumed = search_references(again, selection, (1, 2), ledger)
    assert again.asked == (78 - finished) * 9, "and none is scored again"
    pd.testing.assert_frame_equal(resumed.candidates, whole.candidates, check_exact=True)
    assert len(lines(ledger)) == 79
    idle = Plain(controlled)
    pd.testing.assert_frame_equal(search_references(idle, selection, (1, 2), ledger).candidates, whole.candidates)
    assert idle.asked == 0


def test_a_ledger_may_be_named_by_text(cohort: Cohort, controlled: LogisticEvaluator, tmp_path: Path) -> None:
    search_references(controlled, cohort["selection"], [1], str(tmp_path / "ledger.jsonl"))
    assert len(lines(tmp_path / "ledger.jsonl")) == 13


def test_a_finished_search_can_be_widened(cohort: Cohort, controlled: LogisticEvaluator, tmp_path: Path) -> None:
    selection, ledger = cohort["selection"].select(slice(0, 9)), tmp_path / "ledger.jsonl"
    search_references(Plain(controlled), selection, [2], ledger)
    more = Plain(controlled)
    search_references(more, selection, (1, 2), ledger)
    assert more.asked == 12 * 9


@pytest.mark.parametrize("torn", ["[9", "[9, 0.5, 0.25, 0.", '{"', "\x00\x00\x00"])
def test_a_torn_last_line_is_dropped(cohort: Cohort, controlled: LogisticEvaluator, tmp_path: Path, torn: str) -> None:
    selection, ledger = cohort["selection"].select(slice(0, 9)), tmp_path / "ledger.jsonl"
    whole = search_references(Plain(controlled), selection, [1], ledger)
    kept = ledger.read_text().splitlines(keepends=True)[:8]
    ledger.write_text("".join(kept) + torn)
    again = Plain(controlled)
    resumed = search_references(again, selection, [1], ledger)
    assert again.asked == (12 - 7) * 9
    pd.testing.assert_frame_equal(resumed.candidates, whole.candidates, check_exact=True)
    assert ledger.read_text().splitlines(keepends=True)[:8] == kept
    assert len(lines(ledger)) == 13


def test_a_last_line_without_its_end_is_scored_again(
    cohort: Cohort, controlled: LogisticEvaluator, tmp_path: Path
) -> None:
    """It may have been cut inside a number, which nobody could see."""
    selection, ledger = cohort["selection"].select(slice(0, 9)), tmp_path / "ledger.jsonl"
    search_references(Plain(controlled), selection, [1], ledger)
    ledger.write_text(ledger.read_text()[:-1])
    again = Plain(controlled)
    search_references(again, selection, [1], ledger)
    assert again.asked == 9
    assert len(lines(ledger)) == 13


def test_finished_sets_are_taken_from_the_ledger(cohort: Cohort, controlled: LogisticEvaluator, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    first = search_references(controlled, cohort["selection"], (1, 2), ledger)
    pd.testing.assert_frame_equal(
        first.candidates, search_references(controlled, cohort["selection"], (1, 2)).candidates, check_exact=True
    )
    head, *rows = lines(ledger)
    rows[5][1] = 0.0001
    ledger.write_text("".join(json.dumps(row) + "\n" for row in [head, *rows]))
    assert search_references(controlled, cohort["selection"], [1], ledger).best("nll", 1) == LeadSet(rows[5][0])


def test_a_ledger_of_something_else_is_refused(cohort: Cohort, controlled: LogisticEvaluator, tmp_path: Path) -> None:
    selection, ledger = cohort["selection"], tmp_path / "ledger.jsonl"
    search_references(controlled, selection, [1], ledger)
    before = ledger.read_bytes()
    other_weights = LogisticEvaluator(repeats=1, seed=1).fit(cohort["train"])
    other_labels = replace(cohort, _labels=~cohort._labels, cache=None)["selection"]
    cases: list[tuple[Any, Records]] = [
        (Plain(controlled, name="another"), selection),
        (other_weights, selection),
        (controlled.with_lines("controlled", np.zeros(5), np.full(5, 1.1)), selection),
        (controlled, cohort["validation"]),
        (controlled, selection.select(slice(0, 5))),
        (controlled, selection.select(np.arange(len(selection))[::-1])),
        (controlled, other_labels),
        (controlled, without(cohort, {0: "V1"})),
    ]
    for evaluator, records in cases:
        with pytest.raises(
            InputError, match=rf"^{ledger} belongs to the search of another evaluator or other records; n"
        ):
            search_references(evaluator, records, [1], ledger)
        assert ledger.read_bytes() == before, "and left as it was"


@pytest.mark.parametrize("content", ["", "Dear diary", "Dear diary\n", "[1, 2]\n7\n", "\n\n"])
def test_a_file_that_is_no_ledger_is_left_alone(
    cohort: Cohort, controlled: LogisticEvaluator, tmp_path: Path, content: str
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(content)
    with pytest.raises(InputError, match=rf"^{path} is not the ledger of a search; remove it, or name an"):
        search_references(controlled, cohort["selection"], [1], path)
    assert path.read_text() == content


def test_quick_metrics_are_those_of_a_search(cohort: Cohort, controlled: LogisticEvaluator) -> None:
    for records in (cohort["selection"], without(cohort, {0: "I", 3: "12-lead", 7: "V1 V2 V3 V4 V5 V6 aVF"})):
        found = search_references(controlled, records, [3]).candidates.set_index("bits")
        for leads in map(LeadSet.parse, ("II aVL aVR", "I II V2", "V4 V5 V6")):
            metrics = quick_metrics(controlled, records, leads)
            assert bool(metrics) == (leads.bits in found.index)
            for metric, value in metrics.items():
                assert value == pytest.approx(found.loc[leads.bits, metric], abs=1e-12)
    assert quick_metrics(Plain(controlled), cohort["selection"], LeadSet.parse("I II V2")) == {}


# files ---------------------------------------------------------------------------------------------------------------


def test_a_file_keeps_everything_to_the_bit(searched: References, tmp_path: Path) -> None:
    searched.save(tmp_path / "references.csv")
    loaded = References.load(tmp_path / "references.csv")
    assert loaded.evaluator == searched.evaluator
    assert loaded.left_out == searched.left_out
    assert loaded.budgets == searched.budgets
    pd.testing.assert_frame_equal(loaded.candidates, searched.candidates, check_exact=True)
    pd.testing.assert_frame_equal(loaded.frame, searched.frame, check_exact=True)
    loaded.save(str(tmp_path / "again.csv"))
    assert repr(References.load(str(tmp_path / "again.csv"))) == repr(searched)
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "references.csv").read_bytes()


@settings(max_examples=30)
@given(
    arrays(np.float64, (12, 3), elements=st.floats(0, 28)), st.integers(0, 5), st.sampled_from(["NA", "=cmd", "'-x"])
)
def test_any_numbers_and_names_survive_a_file(
    tmp_path_factory: pytest.TempPathFactory, found: np.ndarray, left: int, name: str
) -> None:
    candidates = pd.DataFrame({"k": 1, "bits": 1 << np.arange(12)}).assign(nll=found[:, 0], brier=found[:, 1])
    references = References(name, candidates.assign(ece=found[:, 2]), {1: left})
    path = tmp_path_factory.getbasetemp() / "any.csv"
    references.save(path)
    loaded = References.load(path)
    assert (loaded.evaluator, loaded.left_out) == (name, {1: left})
    assert not re.search("^=", path.read_text(), re.MULTILINE)
    pd.testing.assert_frame_equal(loaded.candidates, references.candidates, check_exact=True)


def test_missing_leads_survive_a_file(cohort: Cohort, controlled: LogisticEvaluator, tmp_path: Path) -> None:
    references = search_references(controlled, without(cohort, {2: "I V2", 3: "12-lead"}), (1, 2))
    references.save(tmp_path / "references.csv")
    loaded = References.load(tmp_path / "references.csv")
    assert loaded.left_out == references.left_out == {1: 1, 2: 1}
    pd.testing.assert_frame_equal(loaded.candidates, references.candidates, check_exact=True)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "a,b\n1,2\n",
        "\0" * 200_000,
        "evaluator,k,left_out,leads,nll,brier,ece\n",
        "evaluator,k,left_out,leads,nll,brier,ece\na,1,0,X,1,1,1\n",
        *(
            f"evaluator,k,left_out,leads,nll,brier,ece\na,1,0,I,0.5,0.5,0.5\n{row}\n"
            for row in (
                "a,1,0,II,nan,0.5,0.5",
                "a,1,0,II,0.5,inf,0.5",
                "a,1,0,II,0.5,0.5,-inf",
                "a,1,0,II,0.5,0.5,-0.1",
                "a,1,0,I,0.5,0.5,0.5",
                "a,2,0,II,0.5,0.5,0.5",
                "a,1,3,II,0.5,0.5,0.5",
                "b,1,0,II,0.5,0.5,0.5",
                "a,1,0,II,0.5,0.5",
            )
        ),
    ],
)
def test_files_that_are_no_references(tmp_path: Path, content: str) -> None:
    path = tmp_path / "references.csv"
    path.write_text(content)
    for each in (path, tmp_path / "none.csv"):
        with pytest.raises(InputError, match=r"is not a table of references \(.*\); search them again"):
            References.load(each)
