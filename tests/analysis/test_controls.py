"""Controls and places, against metrics of the records themselves."""

from itertools import combinations

import numpy as np
import pytest

from analysis.arms import READERS, REPLICATES, by_hand, fixed_masks, read, some_allocation
from analysis.coverage import Reader, records_of, varied_records
from leadwise.analysis.bootstrap import PatientBootstrap
from leadwise.analysis.controls import ANCHORED, DERIVED, UNTRAINED, anchored_set, controls_frame, places_frame
from leadwise.analysis.readings import Readings
from leadwise.cohort.cohort import Records
from leadwise.leads import LEADS, LeadSet
from leadwise.metrics import METRICS
from leadwise.policies.allocation import Allocation
from leadwise.references import References, search_references

MATCHED = ("nll", "brier", "ece")


def test_controls(readings: Readings, records: Records, references: dict[str, References]) -> None:
    policy, other, random = (
        some_allocation(records, name, 3, seed) for seed, name in enumerate(("p", "made", "drawn"))
    )
    controls = [(DERIVED, other), (UNTRAINED, random)]
    frame = controls_frame(readings, "second", policy, controls, references["second"], "V2")
    assert not frame.duplicated(["policy", "evaluator", "k", "metric", "versus"]).any()
    assert frame["kind"].value_counts().to_dict() == {DERIVED: 3, UNTRAINED: 3, ANCHORED: 3}
    assert set(frame["policy"]) == {"p"}
    candidates = references["second"].candidates.query("k == 3")
    for row in frame.itertuples():
        if row.kind == ANCHORED:
            # the best of all sets with V2, which is the best of all only by chance
            having = [("V2" in LeadSet(bits)) for bits in candidates["bits"]]
            leads = LeadSet(int(candidates[having].sort_values(row.metric)["bits"].iloc[0]))
            assert (row.versus, row.leads) == (ANCHORED, str(leads))
            masks = fixed_masks(records, leads)
        else:
            assert (row.versus, row.leads) == (("made" if row.kind == DERIVED else "drawn"), "")
            masks = (other if row.kind == DERIVED else random).masks
        arms = read("second", records, policy.masks), read("second", records, masks)
        value, replicates = by_hand(row.metric, records, records, *arms, REPLICATES)
        expected = [value, *np.percentile(replicates, [2.5, 97.5])]
        np.testing.assert_allclose([row.value, row.lo, row.hi], expected, rtol=0, atol=1e-12)


def test_without_references_or_a_first_lead_no_set_is_anchored(
    readings: Readings, records: Records, references: dict[str, References]
) -> None:
    policy, random = some_allocation(records, "p", 2, 0), some_allocation(records, "drawn", 2, 1)
    of_four = some_allocation(records, "p", 4, 0)
    cases: list[tuple[Allocation, References | None, str | None]] = [
        (policy, None, "V2"),
        (policy, references["first"], None),
        (of_four, references["first"], "V2"),
    ]
    for allocation, searched, first in cases:
        assert controls_frame(readings, "first", allocation, [], searched, first).empty
    frame = controls_frame(readings, "first", policy, [(UNTRAINED, random)], None, "V2")
    assert set(frame["kind"]) == {UNTRAINED}


def test_the_anchored_set_is_the_best_that_contains_the_lead(references: dict[str, References]) -> None:
    found = references["third"]
    for metric, lead in ((metric, lead) for metric in MATCHED for lead in LEADS):
        leads = anchored_set(found, metric, 2, lead)
        assert leads is not None
        assert lead in leads
        values = {LeadSet(int(row.bits)): getattr(row, metric) for row in found.candidates.itertuples() if row.k == 2}
        assert values[leads] == min(values[LeadSet.of([lead, other])] for other in LEADS if other != lead)
    best = found.best("nll", 2)
    assert all(anchored_set(found, "nll", 2, lead) == best for lead in best)
    without = References("third", found.candidates[(found.candidates["bits"] & 1) == 0], {})
    assert anchored_set(without, "nll", 2, "I") is None


def gapped(records: Records, lead: int, rows: slice) -> Records:
    """The same records, some of which lack a lead."""
    missing = np.zeros((len(records), 12), dtype=int)
    missing[rows, lead] = records.length
    return records_of(records.patients, records.labels, records.signals[:], missing)


def test_records_that_lack_a_lead_of_the_anchored_set_are_left_out(references: dict[str, References]) -> None:
    leads = anchored_set(references["first"], "nll", 2, "I")
    assert leads is not None
    lead = max(leads.indices)
    records = gapped(varied_records(patients=20, seed=9), lead, slice(0, 5))
    readings = Readings(records, READERS.values(), PatientBootstrap(records, REPLICATES))
    others = [each for each in range(12) if each != lead][:2]
    policy = Allocation(records, "p", "first", np.tile(others, (len(records), 1)))
    frame = controls_frame(readings, "first", policy, [], references["first"], "I")
    (row,) = frame[frame["metric"] == "nll"].itertuples()
    part = records.select(slice(5, None))
    arms = (read("first", part, fixed_masks(part, each)) for each in (LeadSet.of(others), leads))
    a, b = (METRICS["nll"](part.labels, each, None) for each in arms)
    assert row.value == pytest.approx(a - b, abs=1e-12)


def test_places() -> None:
    records = gapped(varied_records(patients=20, seed=9), 3, slice(None, None, 4))
    references = search_references(Reader("first"), records, [2])
    readings = Readings(records, READERS.values(), PatientBootstrap(records, REPLICATES))
    order = np.random.default_rng(1).random((len(records), 12)) + 2 * ~records.available
    policy = Allocation(records, "p", "first", order.argsort(axis=1)[:, :2])
    frame = places_frame(readings, "first", policy, references)
    assert frame["metric"].tolist() == list(MATCHED)
    shared = [lead for lead in range(12) if records.available[:, lead].all()]
    sets = [LeadSet.of(leads) for leads in combinations(shared, 2)]
    answers = [read("first", records, fixed_masks(records, leads)) for leads in sets]
    chosen = read("first", records, policy.masks)
    for row in frame.itertuples():
        value = METRICS[row.metric](records.labels, chosen, None)
        values = [METRICS[row.metric](records.labels, each, None) for each in answers]
        assert row.value == pytest.approx(value, abs=1e-12)
        assert row.rank == 1 + sum(each < value for each in values)
        assert row.candidates == len(sets) == 55
    assert set(frame["rank"]) != {1}


def test_a_fixed_set_has_its_own_rank() -> None:
    records = varied_records(patients=20, seed=9)
    references = search_references(Reader("second"), records, [3])
    readings = Readings(records, READERS.values(), PatientBootstrap(records, REPLICATES))
    for place in (0, 7, 219):
        for number, metric in enumerate(MATCHED):
            leads = LeadSet(int(references.ranking(metric, 3)["bits"].iloc[place]))
            policy = Allocation(records, "p", "", np.tile(leads.indices, (len(records), 1)))
            assert places_frame(readings, "second", policy, references)["rank"].iloc[number] == place + 1
