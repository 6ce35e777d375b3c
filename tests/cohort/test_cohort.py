"""Views on a cohort, and the seal."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jaxtyping
import numpy as np
import pytest

from leadwise.cohort.cohort import ARRAYS, Cohort, Records
from leadwise.cohort.plots import plot_ecg
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.cohort.roles import Roles, Token
from leadwise.errors import CohortError, InputError, LeadwiseWarning, PlanError, SealedRole


@pytest.fixture
def cohort(pristine_tree: Path) -> Cohort:
    return read_ptbxl(pristine_tree)


def test_roles_are_views(cohort: Cohort) -> None:
    train = cohort["train"]
    assert set(train.folds) == {1, 2, 3, 4, 5, 6}
    assert train.signals.shape == (len(train), 12, 1000)
    assert train.labels.shape == (len(train), 5)
    assert train.available.all()
    rows = np.flatnonzero(np.isin(cohort.folds, range(1, 7)))
    np.testing.assert_array_equal(train.signals[3:9], cohort._signals[rows[3:9]])
    np.testing.assert_array_equal(train.select(slice(3, 9)).signals[:], cohort._signals[rows[3:9]])
    np.testing.assert_array_equal(train.select(train.sex == 1).ids, train.ids[train.sex == 1])
    np.testing.assert_array_equal(train[5].ids, [train.ids[5]])
    np.testing.assert_array_equal([record.ids[0] for record in train], train.ids)


def test_chunks_cover_everything_once(cohort: Cohort) -> None:
    signals = cohort["train"].signals
    parts = list(signals.chunks(7))
    np.testing.assert_array_equal(np.concatenate([chunk for _, chunk in parts]), signals[:])
    assert [part.start for part, _ in parts] == list(range(0, len(signals), 7))


def test_millivolts(cohort: Cohort) -> None:
    signals = cohort["train"].signals
    assert signals.millivolts(slice(2)).dtype == np.float32
    assert repr(signals) == f"<Signals in µV: {len(signals)} × 12 × 1000>"
    np.testing.assert_allclose(signals.millivolts(slice(2)) * 1000, signals[:2], rtol=1e-6)


def sealed_position(records: Records) -> int:
    return int(np.flatnonzero(records.folds == 8)[0])


PATHS: dict[str, Callable[[Cohort], Records]] = {
    "role": lambda cohort: cohort["evaluation"],
    "fold": lambda cohort: cohort.fold(8),
    "whole cohort": lambda cohort: cohort.records,
    "slice": lambda cohort: cohort.records.select(slice(None)),
    "mask": lambda cohort: cohort.records.select(cohort.records.folds == 8),
    "positions": lambda cohort: cohort.records.select(np.array([0, sealed_position(cohort.records)])),
    "single record": lambda cohort: cohort.records[sealed_position(cohort.records)],
    "by id": lambda cohort: cohort.records.with_id(int(cohort["evaluation"].ids[0])),
    "iteration": lambda cohort: next(record for record in cohort.records if record.folds[0] == 8),
    "record of the role": lambda cohort: cohort["evaluation"][0],
    "built by hand": lambda cohort: Records(cohort, np.flatnonzero(cohort.folds == 8), "mine"),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("what", ["signals", "labels"])
def test_the_seal_holds_on_every_path(cohort: Cohort, path: str, what: str) -> None:
    view = PATHS[path](cohort)
    assert len(view.ids) == len(view.patients) == len(view.age) == len(view), "counts are allowed"
    with pytest.raises(SealedRole, match=r"sealed until a bundle is frozen"):
        getattr(view, what)


def test_no_public_attribute_holds_sealed_signals_or_labels(cohort: Cohort) -> None:
    for owner in (cohort, cohort["evaluation"], cohort.records):
        for name in dir(owner):
            if name.startswith("_"):
                continue
            try:
                value = getattr(owner, name)
            except SealedRole:
                continue
            if isinstance(value, np.ndarray):
                assert value.ndim < 3, name
                assert value.shape[1:] != cohort._labels.shape[1:], name


def test_plotting_a_sealed_record_is_refused(cohort: Cohort) -> None:
    with pytest.raises(SealedRole):
        plot_ecg(cohort["evaluation"][0])


def test_unsealed_records_of_a_sealed_cohort_are_open(cohort: Cohort) -> None:
    assert len(cohort.records.select(cohort.folds != 8).labels) == (cohort.folds != 8).sum()


def test_the_seal_cannot_be_moved(cohort: Cohort) -> None:
    with pytest.raises(AttributeError):
        cohort.roles.folds.pop("evaluation")  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="read-only"):
        cohort.folds[:] = 1
    train, sealed = cohort["train"], cohort["evaluation"].rows
    signals, before = train.signals, train.signals[:3]
    with pytest.raises(ValueError, match="read-only"):
        train.rows[:3] = sealed[:3]
    mine = np.array(train.rows)
    view = Records(cohort, mine, "mine")
    opened = view.signals
    mine[:3] = sealed[:3]
    np.testing.assert_array_equal(opened[:3], before)
    np.testing.assert_array_equal(signals[:3], before)


def test_odd_indices_are_refused(cohort: Cohort) -> None:
    train = cohort["train"]
    with pytest.raises(TypeError):
        train[0:3]  # type: ignore[index]
    with pytest.raises(IndexError):
        train[len(train)]
    with pytest.raises(IndexError):
        train.select(np.ones(len(train) + 1, dtype=bool))
    assert train[-1].ids[0] == train.ids[-1]
    assert len(train.select(np.zeros(len(train), dtype=bool))) == 0


@pytest.mark.parametrize("number", [0, 11, -8])
def test_unknown_folds(cohort: Cohort, number: int) -> None:
    with pytest.raises(PlanError, match=f"no fold {number}; folds are numbered 1 to 10"):
        cohort.fold(number)


def test_unknown_role_and_record(cohort: Cohort) -> None:
    with pytest.raises(PlanError, match="no role 'test'"):
        cohort["test"]
    with pytest.raises(CohortError, match="no record 999999"):
        cohort.records.with_id(999_999)


# what a token opens, and what a fingerprint is of ---------------------------------------------------------------------


def token(cohort: Cohort) -> Token:
    return Token("bundle", "plan", cohort.table_sha256)


def test_a_token_opens_only_the_cohort_that_it_was_issued_for(cohort: Cohort, small_cohort: Cohort) -> None:
    with pytest.raises(SealedRole, match="issued for another cohort"):
        replace(cohort, token=token(small_cohort))


@pytest.mark.parametrize("name", ["ids", "patients", "folds"])
def test_no_record_of_a_tree_moves_to_another_fold(cohort: Cohort, name: str) -> None:
    for changed in (cohort, replace(cohort, token=token(cohort))):
        array = np.array(getattr(cohort, name))
        array[array == 8] = 7
        array[0] += 1
        with pytest.raises(InputError, match="are not those of"):
            replace(changed, **{name: array})


def test_frozen_arrays_cannot_be_made_writeable(cohort: Cohort) -> None:
    for array in (cohort.folds, cohort.ids, cohort.patients, cohort._labels, cohort["train"].rows, cohort.sealed):
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


def ptbxl_like(cohort: Cohort, roles: Roles) -> Cohort:
    """Two folds with as many records and patients as PTB-XL's fold 8 has, and a few more."""
    records, patients = 2173, 1881
    folds = np.concatenate([np.full(records, 8), np.full(20, 1)])
    facts = {name: np.zeros((len(folds), *getattr(cohort, name).shape[1:]), int) for name in ("sex", "missing")}
    facts |= {"age": np.zeros(len(folds)), "quality": np.zeros((len(folds), 6), bool)}
    facts |= {"patients": np.minimum(np.arange(len(folds)), patients - 1), "ids": np.arange(len(folds))}
    facts["patients"][records:] = 5000 + np.arange(20)
    facts |= {"_signals": np.zeros((len(folds), 12, 8), np.int16), "_labels": np.ones((len(folds), 5), bool)}
    return replace(cohort, folds=folds, roles=roles, as_read=None, table_as_read=None, cache=None, **facts)


@pytest.mark.parametrize("owner", ["train", "audit", None])
def test_the_held_out_fold_of_ptbxl_is_sealed_whatever_its_role(cohort: Cohort, owner: str | None) -> None:
    folds = {"train": (1,), "validation": (7,)}
    folds |= {owner: (8, *folds.get(owner, ()))} if owner else {}
    for view in (lambda each: each.fold(8), lambda each: each.records):
        with pytest.raises(SealedRole, match="in fold 8, which stays sealed until a bundle is frozen"):
            _ = view(ptbxl_like(cohort, Roles(folds))).labels
        if owner:
            assert view(ptbxl_like(cohort, Roles(folds, unsealed=True))).labels.all()
    assert ptbxl_like(cohort, Roles(folds)).fold(1).labels.all()


def test_unsealing_the_held_out_fold_does_not_open_the_evaluation_role(cohort: Cohort) -> None:
    roles = Roles({"train": (1,), "evaluation": (8,)}, unsealed=True)
    with pytest.raises(SealedRole):
        _ = ptbxl_like(cohort, roles).fold(8).labels


def test_looking_at_the_audit_role_of_ptbxl_says_what_it_means(cohort: Cohort) -> None:
    roles = Roles({"train": (1,), "audit": (8,)}, unsealed=True)
    whole = ptbxl_like(cohort, roles)
    recognised = whole.records.select(whole.folds == 8).rows
    arrays = ("ids", "patients", "folds", "age", "sex", "quality", "missing", "_signals", "_labels")
    audit = replace(whole, **{name: getattr(whole, name)[recognised] for name in arrays})
    with pytest.warns(LeadwiseWarning, match="unseen for as long as nobody chooses anything by it"):
        _ = audit["audit"]
    _ = replace(audit, token=token(audit))["audit"]  # a run, which leaves a receipt
    _ = cohort["audit"]  # nobody's audit role: any warning would be an error here


def test_a_token_opens_the_seal(cohort: Cohort) -> None:
    opened = replace(cohort, token=token(cohort))
    rows = cohort["evaluation"].rows
    for path in PATHS.values():
        view = path(opened)
        np.testing.assert_array_equal(view.labels, cohort._labels[view.rows])
        np.testing.assert_array_equal(view.signals[:], cohort._signals[view.rows])
    assert len(opened["evaluation"].labels) == len(rows)
    with pytest.raises(SealedRole):
        _ = cohort["evaluation"].labels


def test_what_is_no_token_opens_nothing(cohort: Cohort, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(SealedRole, match=r"^'x' is no token; let a frozen bundle open "):
        replace(cohort, token="x")


def test_a_fingerprint_may_be_taken_of_a_sealed_role_and_is_the_same_opened(cohort: Cohort) -> None:
    opened = replace(cohort, token=token(cohort))
    assert cohort["evaluation"].fingerprint() == opened["evaluation"].fingerprint()
    prints = {role: cohort[role].fingerprint() for role in cohort.roles.folds}
    assert len(set(prints.values())) == len(prints)
    assert prints == {role: cohort[role].fingerprint() for role in cohort.roles.folds}


@pytest.mark.parametrize("what", ["_signals", "_labels", "ids", "patients", "missing"])
@pytest.mark.parametrize("where", [0, -1])
def test_a_fingerprint_changes_with_anything_of_its_records_and_nothing_else(
    cohort: Cohort, what: str, where: int
) -> None:
    audit = cohort["audit"]
    array = np.array(getattr(cohort, what))
    at = (audit.rows[where], *(where,) * (array.ndim - 1))
    array[at] = ~array[at] if array.dtype == bool else array[at] ^ 1 if what != "patients" else 10**6
    other = replace(cohort, **{what: array}, table_as_read=None)
    assert other["audit"].fingerprint() != audit.fingerprint()
    for role in ("train", "validation", "selection", "evaluation"):
        assert other[role].fingerprint() == cohort[role].fingerprint()


def test_a_fingerprint_is_of_labels_names_order_and_number(cohort: Cohort) -> None:
    audit = cohort["audit"]
    renamed = replace(cohort, label_names=("A", *cohort.label_names[1:]))
    views = [renamed["audit"], audit.select(slice(1, None)), audit.select(slice(None, None, -1))]
    assert len({view.fingerprint() for view in [audit, *views]}) == 4


# without labels -------------------------------------------------------------------------------------------------------


def test_records_without_labels_are_otherwise_the_same(cohort: Cohort) -> None:
    records = cohort["train"].select(slice(3, 9))
    bare = records.unlabelled
    for name in ("ids", "patients", "available", "rows"):
        np.testing.assert_array_equal(getattr(bare, name), getattr(records, name))
    np.testing.assert_array_equal(bare.signals[:], records.signals[:])
    assert (bare.name, bare.role, bare.label_names) == (records.name, "train", records.label_names)
    for view in (bare, bare[0], bare.select(slice(0, 2)), next(iter(bare)), bare.cohort["train"], bare.unlabelled):
        with pytest.raises(InputError, match=r"^The labels of .* were asked for where records are handed over without"):
            _ = view.labels
    assert records.labels.any(), "and the records themselves keep theirs"
    with pytest.raises(SealedRole):
        _ = cohort["evaluation"].unlabelled.signals


# made by hand ---------------------------------------------------------------------------------------------------------


def test_signals_are_microvolts(cohort: Cohort, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    signals, n = cohort._signals, len(cohort)
    for wrong in (signals * np.float32(1e-3), signals[:, 0], signals[:, :8], signals[: n - 1]):
        with pytest.raises(InputError) as refusal:
            replace(cohort, _signals=wrong)
        assert str(refusal.value) == (
            f"The signals of {cohort.source} are {wrong.dtype} of shape {wrong.shape}; give int16 microvolts of shape "
            f"({n}, 12, samples): millivolts × 1000, rounded."
        )
    for samples in (0, 1):
        with pytest.raises(
            CohortError, match=rf"have leads of length {samples}; take some with two samples or more\.$"
        ):
            replace(cohort, _signals=cohort._signals[:, :, :samples])
    for name in ARRAYS:
        with pytest.raises(InputError, match=rf"^The {name.strip('_')} of .* are a list; give an array\.$"):
            replace(cohort, **{name: getattr(cohort, name)[:2].tolist()})
    for name in ("patients", "folds", "missing", "_labels"):
        with pytest.raises(InputError, match=rf"has {n} ids but {n - 1} {name.strip('_')}; give one a record\.$"):
            replace(cohort, **{name: getattr(cohort, name)[1:]})


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_copies_are_the_same_with_arrays_frozen_and_the_seal_as_it_was(cohort: Cohort, copied: Callable) -> None:
    again = copied(cohort)
    assert again.records.fingerprint() == cohort.records.fingerprint()
    assert (again.roles, again.identity) == (cohort.roles, cohort.identity)
    for array in (again.folds, again.ids, again._labels, again["train"].rows, copied(cohort["train"]).rows):
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            array.flags.writeable = True
    assert not again._signals.flags.writeable
    for records in (again["evaluation"], copied(cohort["evaluation"])):
        with pytest.raises(SealedRole):
            _ = records.labels
    opened = replace(cohort, token=Token("bundle", "plan", cohort.table_sha256))
    assert copied(opened)["evaluation"].labels.shape == copied(opened["evaluation"]).labels.shape
    np.testing.assert_array_equal(copied(cohort["train"]).signals[:3], cohort["train"].signals[:3])
