"""What a cohort is, told from its content."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadwise.cohort.identity import _FINGERPRINTS, _SIZES, Identity
from leadwise.cohort.ptbxl import MARK, read_identity, read_ptbxl
from leadwise.errors import CohortError

MODEL = "leadwise's dipole model 1, 120 records, seed 3"


def test_a_synthetic_cohort_says_so_whoever_reads_it(tree: Path) -> None:
    identity = read_ptbxl(tree).identity
    assert (identity.kind, identity.generator) == ("synthetic", MODEL)
    (tree / MARK).unlink()
    identity = read_ptbxl(tree).identity
    assert (identity.kind, identity.generator) == ("other", None)


@pytest.mark.parametrize("content", ["", "[]", "{}", '"text"'])
def test_a_mark_that_says_nothing_is_named(tree: Path, content: str) -> None:
    (tree / MARK).write_text(content)
    with pytest.raises(CohortError, match=f"{MARK} does not say what made these recordings"):
        read_ptbxl(tree)


@given(st.sets(st.sampled_from(sorted(_SIZES)), min_size=1), st.booleans(), st.data())
def test_only_the_published_content_is_ptbxl(folds: set[int], marked: bool, data: st.DataObject) -> None:
    sizes = {fold: _SIZES[fold] for fold in folds}
    prints = {fold: _FINGERPRINTS.get(fold, "anything") for fold in folds}
    generator = MODEL if marked else None
    assert Identity.of(sizes, prints, generator).kind == "ptbxl"
    wrong = data.draw(st.sampled_from(sorted(folds)))
    other = "synthetic" if marked else "other"
    assert Identity.of(sizes | {wrong: (1, 1)}, prints, generator).kind == other
    if wrong in _FINGERPRINTS:
        assert Identity.of(sizes, prints | {wrong: "0" * 64}, generator).kind == other


def test_an_identity_comes_back_from_json(tree: Path) -> None:
    identity = read_ptbxl(tree).identity
    assert Identity.read(json.loads(json.dumps(identity.facts))) == identity


def test_an_identity_is_read_from_the_records_and_not_from_the_cache(tree: Path, tmp_path: Path) -> None:
    """A recording that is changed in place leaves no trace in the key of the cache."""
    identity = read_identity(tree)
    assert not (tmp_path / "cache").exists(), "nothing is kept"
    assert read_ptbxl(tree).identity == identity
    file = next((tree / "records100").rglob("*.hea"))
    words = file.read_text().split()
    samples = np.fromfile(file.with_suffix(".dat"), "<i2").reshape(-1, 12)
    samples[7, 3] += 1
    samples.tofile(file.with_suffix(".dat"))
    with pytest.raises(CohortError, match=r"checksum or first value of lead AVR differs"):
        read_identity(tree)
    checksum = words[4 + 9 * 3 + 6]
    file.write_text(file.read_text().replace(f" {checksum} ", f" {int(checksum) + 1} ", 1))
    assert read_ptbxl(tree).identity == identity
    assert read_identity(tree).differs_from(identity)


def test_two_cohorts_differ_where_kind_or_a_common_fold_does(tree: Path) -> None:
    cohort = read_ptbxl(tree)
    whole = cohort.identity
    part = replace(whole, folds={fold: each for fold, each in whole.folds.items() if fold != "3"})
    assert not whole.differs_from(part)
    assert not part.differs_from(replace(whole, folds={"3": whole.folds["3"]}))
    assert whole.differs_from(replace(part, folds=part.folds | {"4": "0" * 64}))
    assert whole.differs_from(replace(whole, kind="ptbxl", generator=None))
    labels = np.array(cohort._labels)
    labels[5] ^= True
    assert whole.differs_from(replace(cohort, _labels=labels, as_read=None).identity)


@pytest.mark.parametrize("name", ["signals.npy", "table.npz"])
def test_a_cache_that_was_changed_is_not_taken_for_the_tree(tree: Path, tmp_path: Path, name: str) -> None:
    fingerprint = read_ptbxl(tree).identity.sha256
    (file,) = (tmp_path / "cache").glob(f"*/*/{name}")
    if name == "signals.npy":
        with file.open("r+b") as stream:
            stream.seek(-1, os.SEEK_END)
            stream.write(b"\x55")
    else:
        table = dict(np.load(file))
        table["labels"] = ~table["labels"]
        np.savez(file, **table)
    with pytest.raises(CohortError, match=r"The cache .* was changed after .* was read \(fold .*leadwise data check"):
        _ = read_ptbxl(tree).identity
    assert read_ptbxl(tree, anew=True).identity.sha256 == fingerprint
