"""Names as people write them, in the order of the plan, and looks that can be told apart."""

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadwise.report.names import evaluator_title, in_order, spoken, styles, the_evaluator, the_other
from leadwise.run.plan import read_plan


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("strong-mga", "Strong-MGA"),
        ("nll", "NLL"),
        ("ece", "ECE"),
        ("ece5", "ECE, 5 bins"),
        ("controlled", "controlled"),
        ("strong-mga-controlled-state", "Strong-MGA, controlled state"),
        ("somebody's own", "somebody's own"),
        ("ece5x", "ece5x"),
    ],
)
def test_names_are_as_people_write_them(name: str, expected: str) -> None:
    assert spoken(name) == expected


def test_evaluators_of_others_read_as_names() -> None:
    assert (the_evaluator("strong"), the_other("strong"), evaluator_title("strong")) == (
        "the strong evaluator",
        "the strong one",
        "strong evaluator",
    )
    assert the_evaluator("b") == the_other("b") == evaluator_title("b") == "evaluator b"


def test_the_order_is_that_of_the_plan() -> None:
    plan = read_plan(Path(str(files("leadwise") / "studies" / "ptbxl.toml")))
    order = in_order(plan)
    for names in (plan.roles, plan.evaluators, plan.policies, ("nll", "brier", "ece")):
        places = [order.index(name) for name in names]
        assert places == sorted(places)


@given(st.lists(st.sampled_from(["mga", "ccga", "reference", *"abcdefgh"]), unique=True))
def test_looks_can_be_told_apart_and_known_ones_stay(names: list[str]) -> None:
    looks = styles(names)
    assert len(set(looks.values())) == len(names)
    assert all(looks[name] == styles([name])[name] for name in names if name in ("mga", "ccga", "reference"))


def test_names_need_nothing_that_draws() -> None:
    code = "import sys, leadwise.report.names, leadwise.report.numbers; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
