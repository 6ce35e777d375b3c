"""Any policy's file is read by what it holds, and chooses as before."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.coverage import Reader
from damage import damaged_files, with_facts
from leadwise.cohort.cohort import Cohort
from leadwise.errors import InputError
from leadwise.evaluators.logistic import LogisticEvaluator
from leadwise.policies.ccga import CCGA
from leadwise.policies.cohort_state import CohortState
from leadwise.policies.ecg_on_demand import ECGOnDemand
from leadwise.policies.learned import FORMAT
from leadwise.policies.mga import MGA
from leadwise.policies.random_subset import RandomSubset
from leadwise.policies.rollout import allocate
from leadwise.policies.saved import load_policy
from leadwise.policies.state_network import StateNetwork
from leadwise.store import read_tensors, write_tensors

BUDGETS = (2, 3, 5)


@pytest.fixture(scope="module")
def policies(small_cohort: Cohort, controlled: LogisticEvaluator) -> dict[str, Any]:
    """One of each kind."""
    made: dict[str, Any] = {}
    for kind in (MGA, ECGOnDemand, CCGA):
        settings: dict[str, Any] = {"states": 300, "budgets": BUDGETS}
        settings |= {"neighbours": 10} if kind is CCGA else {"network": StateNetwork(hidden=8, epochs=2)}
        policy = kind(controlled, ["V3"], **settings)
        made[kind.kind] = policy.fit(small_cohort["train"], small_cohort["validation"])
    made["cohort-state"] = CohortState(made["ecg-on-demand"]).fit(small_cohort["train"])
    return made | {"random-subset": RandomSubset(7)}


KINDS = ("mga", "ecg-on-demand", "ccga", "cohort-state", "random-subset")


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_chooses_the_same_after_loading(
    policies: dict[str, Any], small_cohort: Cohort, controlled: LogisticEvaluator, tmp_path: Path, kind: str
) -> None:
    path, audit = tmp_path / "any-name.safetensors", small_cohort["audit"]
    policies[kind].save(path)
    loaded = load_policy(path, {"controlled": controlled, "other": None}, policies)
    assert type(loaded) is type(policies[kind])
    assert loaded.name == kind
    for k in range(1, 13):
        ours, theirs = allocate(loaded, audit, k), allocate(policies[kind], audit, k)
        np.testing.assert_array_equal(ours.order, theirs.order)
        assert ours.trained_on == theirs.trained_on
    loaded.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


def test_a_name_and_a_seed_are_kept(tmp_path: Path, small_cohort: Cohort) -> None:
    RandomSubset(11, "mine").save(tmp_path / "mine.safetensors")
    loaded = load_policy(tmp_path / "mine.safetensors", {}, {})
    assert (loaded.seed, loaded.name) == (11, "mine")
    order = allocate(loaded, small_cohort["audit"], 4).order
    np.testing.assert_array_equal(order, allocate(RandomSubset(11), small_cohort["audit"], 4).order)
    assert (order != allocate(RandomSubset(12), small_cohort["audit"], 4).order).any()


def test_saving_a_control_does_not_change_it(policies: dict[str, Any], small_cohort: Cohort, tmp_path: Path) -> None:
    fresh = CohortState(policies["ecg-on-demand"]).fit(small_cohort["train"])
    fresh.save(tmp_path / "first.safetensors")
    before = allocate(fresh, small_cohort["audit"], 5).order
    fresh.save(tmp_path / "second.safetensors")
    np.testing.assert_array_equal(allocate(policies["cohort-state"], small_cohort["audit"], 5).order, before)


@pytest.mark.parametrize("kind", ["mga", "ecg-on-demand", "ccga"])
def test_the_evaluator_must_be_there_and_be_the_one(
    policies: dict[str, Any], small_cohort: Cohort, controlled: LogisticEvaluator, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "policy.safetensors"
    policies[kind].save(path)
    with pytest.raises(InputError, match=r"needs 'controlled', which is not here; there are none\.$"):
        load_policy(path, {}, {})
    with pytest.raises(InputError, match=r"needs 'controlled', which is not here; there are strong, other\.$"):
        load_policy(path, {"strong": controlled, "other": controlled}, {})
    other = LogisticEvaluator(seed=5).fit(small_cohort["train"])
    with pytest.raises(InputError, match=r"was trained with the target controlled \("):
        load_policy(path, {"controlled": other}, {})


def test_cohort_state_needs_its_policy(policies: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "policy.safetensors"
    policies["cohort-state"].save(path)
    with pytest.raises(InputError, match=r"needs 'ecg-on-demand', which is not here; there are mga\.$"):
        load_policy(path, {}, {"mga": policies["mga"]})


def test_kinds_that_are_not_known(tmp_path: Path) -> None:
    path = tmp_path / "policy.safetensors"
    write_tensors(path, {}, FORMAT, {"kind": "mgaa"})
    with pytest.raises(InputError, match=rf"^{path}: 'mgaa' is no kind of policy; did you mean 'mga'\?$"):
        load_policy(path, {}, {})
    for kind in (None, 3, ["mga"]):
        write_tensors(path, {}, FORMAT, {"kind": kind})
        with pytest.raises(InputError, match=rf"^{path} is no policy of leadwise; it holds 'leadwise policy 1'\.$"):
            load_policy(path, {}, {})
    write_tensors(path, {}, "something else", {"kind": "mga"})
    with pytest.raises(InputError, match=r"holds 'something else', not 'leadwise policy 1'"):
        load_policy(path, {}, {})


@pytest.mark.parametrize("kind", KINDS)
def test_every_tensor_is_checked_when_it_is_loaded(
    policies: dict[str, Any], controlled: LogisticEvaluator, tmp_path: Path, kind: str
) -> None:
    policies[kind].save(tmp_path / "whole.safetensors")
    files = list(damaged_files(tmp_path / "whole.safetensors", FORMAT, undefined=("gains",)))
    assert len(files) > (0 if kind == "random-subset" else 12)
    for path, name in files:
        with pytest.raises(InputError) as refusal:
            load_policy(path, {"controlled": controlled}, policies)
        said = str(refusal.value)
        assert said.startswith(f"{path} is not a whole policy ("), said
        assert f"tensor '{name}' " in said or "is due" in said, "of two lengths that differ, either may be wrong"
        assert said.endswith("; save it again.")


def test_memory_of_ccga_that_holds_nothing(
    policies: dict[str, Any], controlled: LogisticEvaluator, tmp_path: Path
) -> None:
    path = tmp_path / "policy.safetensors"
    policies["ccga"].save(path)
    tensors, facts = read_tensors(path, FORMAT)
    del facts["format"], facts["known_gains"]  # as files were before it was kept: records have all leads
    write_tensors(path, tensors, FORMAT, facts)
    load_policy(path, {"controlled": controlled}, {})
    emptied = {
        "no states": {name: tensor[:0] for name, tensor in tensors.items()},
        "nothing known": tensors | {"gains": np.full_like(tensors["gains"], np.nan)},
        "everything known": tensors | {"gains": np.zeros_like(tensors["gains"])},
        "no leads": tensors | {"sizes": np.zeros_like(tensors["sizes"])},
        "too many leads": tensors | {"sizes": tensors["sizes"] + 11},
    }
    for other in emptied.values():
        write_tensors(path, other, FORMAT, facts)
        with pytest.raises(InputError, match=r"policy.safetensors is not a whole policy \(tensor '(sizes|gains)' "):
            load_policy(path, {"controlled": controlled}, {})


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        ("mga", {"unit": 0}),
        ("mga", {"unit": "1"}),
        ("mga", {"settings": []}),
        ("mga", {"settings": {"first_lead": ["aVX"], "network": {}}}),
        ("mga", {"settings": {"first_lead": ["aVR"], "budgets": [99], "network": {}}}),
        ("mga", {"settings": {"first_lead": ["aVR"], "network": {"hidden": 10**12}}}),
        ("mga", {"target": "controlled"}),
        ("mga", {"target": None}),
        ("mga", {"kind": ["mga"]}),
        ("ccga", {"settings": {"first_lead": ["aVR"], "neighbours": 0}}),
        ("ccga", {"known_gains": 0}),
        ("random-subset", {"settings": {"seed": 2**64}}),
        ("random-subset", {"settings": {"seed": 0.5}}),
        ("cohort-state", {"settings": 3}),
        ("cohort-state", {"policy": []}),
    ],
)
def test_facts_are_checked_too(
    policies: dict[str, Any], controlled: LogisticEvaluator, tmp_path: Path, kind: str, facts: dict[str, Any]
) -> None:
    policies[kind].save(tmp_path / "whole.safetensors")
    with pytest.raises(InputError, match=r"facts\.safetensors\b"):
        load_policy(with_facts(tmp_path / "whole.safetensors", FORMAT, **facts), {"controlled": controlled}, policies)


def test_policies_print_on_one_line(policies: dict[str, Any]) -> None:
    assert [repr(policy) for policy in policies.values()] == [
        "<MGA mga: trained on controlled, begins with V3>",
        "<ECGOnDemand ecg-on-demand: trained on controlled, begins with V3>",
        "<CCGA ccga: trained on controlled, begins with V3>",
        "<CohortState cohort-state: one set a budget, from "
        "<ECGOnDemand ecg-on-demand: trained on controlled, begins with V3>>",
        "<RandomSubset random-subset: seed 7>",
    ]
    mixed = MGA(Reader("first"), "aVR V1", state_evaluator=Reader("second"), name="mixed")
    assert repr(mixed) == "<MGA mixed: trained on first, sees second, begins with aVR>"
