"""A study whose records lack leads comes to its end; what a frozen control was not made for is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leadwise.cohort import synthetic
from leadwise.cohort.ptbxl import read_ptbxl
from leadwise.errors import InputError
from leadwise.leads import lead_index
from leadwise.run.plan import read_plan
from leadwise.run.verify import verify
from leadwise.study.execute import evaluate_bundle, run_study
from runs import PLAN

KEPT = ("[evaluators.controlled]", "[policies.ecg-on-demand]", "[policies.cohort-state]")
TABLES = [part for part in PLAN.split("\n\n") if not part.startswith("[") or part.startswith(KEPT)]
PAIR = '[[pairs]]\npolicies = ["ecg-on-demand", "cohort-state"]\nevaluators = ["controlled"]\n'


def lacking(monkeypatch: pytest.MonkeyPatch, every: str, some: str, of: int) -> None:
    """Let all recordings that are made lack some leads, and one of so many some others."""
    write = synthetic._write_record

    def with_gaps(root: Path, ecg_id: int, signal: np.ndarray) -> None:
        for lead in [*every.split(), *(some.split() if ecg_id % of == 0 else [])]:
            signal[lead_index(lead)] = -32768
        write(root, ecg_id, signal)

    monkeypatch.setattr(synthetic, "_write_record", with_gaps)


def test_a_study_of_records_that_lack_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All lack aVR, some chest leads too; the control has a set for each pattern, and others are refused at once."""
    lacking(monkeypatch, "aVR", "V2 V3 V4", of=5)
    (tmp_path / "plan.toml").write_text("\n\n".join([*TABLES, PAIR]))
    run = run_study(tmp_path / "plan.toml", tmp_path / "run").path
    assert verify(run) == []
    allocations = pd.read_parquet(run / "results" / "allocations.parquet")
    cohort = read_ptbxl(run / "cohort-160-3", read_plan(run / "plan.toml").cohort_roles())
    fewer = set(cohort.ids[(cohort.missing == cohort.records.length).sum(axis=1) > 1])
    control = allocations[(allocations["policy"] == "cohort-state") & (allocations["k"] == 4)]
    chosen = control.groupby(control["id"].isin(fewer))["leads"].unique()
    assert [len(sets) for sets in chosen] == [1, 1]

    lacking(monkeypatch, "", "I II III aVR aVL aVF V1", of=3)
    synthetic.write_synthetic(tmp_path / "other", records=160, seed=4)
    with pytest.raises(InputError, match="cohort-state was saved without the averages for V"):
        evaluate_bundle(run, tmp_path / "other", tmp_path / "out", "audit")
    assert not (tmp_path / "out").exists()
