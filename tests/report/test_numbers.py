"""Numbers in words: they can be read back, what is missing is blank, and signs are never lost."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadwise.report.numbers import Estimate, Named, cell, estimate, interval, listing, number, percent, sorted_by

REAL = st.floats(-1e6, 1e6)
DIGITS = st.integers(0, 8)
MISSING = [None, np.nan, pd.NA, np.float64("nan"), pd.NaT]


def read(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


@given(REAL, DIGITS)
def test_a_number_can_be_read_back_to_half_a_digit(value: float, digits: int) -> None:
    text = number(value, digits)
    assert abs(read(text) - value) <= 0.5 * 10**-digits * (1 + 1e-9) + 1e-15 * abs(value)  # both are rounded
    assert "-" not in text
    assert text.startswith("−") == (value < 0)
    assert len(re.sub(r".*\.|^[^.]*$", "", text)) == digits


@given(st.integers(-(10**9), 10**9))
def test_a_count_has_no_decimals_and_its_thousands_apart(value: int) -> None:
    for kind in (int, np.int64):
        text = number(kind(value))
        assert read(text) == value
        assert re.fullmatch(r"−?\d{1,3}(,\d{3})*", text)


def test_zero_has_no_sign() -> None:
    assert number(-0.0) == number(0.0) == "0.0000"


@given(REAL, REAL, DIGITS)
def test_an_interval_has_both_bounds_and_an_estimate_all_three(low: float, high: float, digits: int) -> None:
    bounds = f"[{number(low, digits)}, {number(high, digits)}]"
    assert interval(low, high, digits) == bounds
    assert estimate(0.5, low, high, digits) == f"{number(0.5, digits)} {bounds}"


@pytest.mark.parametrize("missing", MISSING)
def test_what_is_missing_is_blank(missing: object) -> None:
    assert number(missing) == percent(missing) == cell(missing) == ""
    assert interval(missing, 1.0) == interval(1.0, missing) == ""
    assert estimate(0.5, missing, missing) == "0.5000"
    assert estimate(missing) == ""


def test_shares_are_percentages() -> None:
    assert percent(0.5834) == "58.3%"
    assert percent(1) == "100.0%"
    assert percent(-0.0467, 2) == "−4.67%"


def test_lists_read_as_in_a_sentence() -> None:
    assert listing([]) == ""
    assert listing(["x"]) == "x"
    assert listing("abc", "or") == "a, b or c"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a_b", "a_b"),
        ("", ""),
        (True, "yes"),
        (np.bool_(False), "no"),
        (13069, "13,069"),
        (np.float32(0.5), "0.5000"),
        (pd.Series([4], dtype="Int64")[0], "4"),
    ],
)
def test_cells_say_what_they_hold(value: object, expected: str) -> None:
    assert cell(value) == expected


@given(REAL, REAL, REAL)
def test_a_number_with_its_interval_is_one_cell_that_is_sorted_by_its_number(
    value: float, low: float, high: float
) -> None:
    assert cell(Estimate(value, low, high)) == estimate(value, low, high)
    assert sorted_by(Estimate(value, low, high)) == value
    assert cell(Estimate(lo=low, hi=high)) == interval(low, high)
    assert sorted_by(Estimate(lo=low, hi=high)) == low
    assert sorted_by(Named((("", Estimate(value)), ("A", Estimate(low))))) == value


def test_named_numbers_stand_in_a_row() -> None:
    assert cell(Named((("", Estimate(0.5, 0.1, 0.9)), ("records", Estimate(2000))))) == (
        "0.5000 [0.1000, 0.9000]; records 2,000"
    )
    assert cell(Named()) == ""
    assert cell(Estimate("aVR V1")) == "aVR V1"


@pytest.mark.parametrize("value", [*MISSING, "4.2", "", True, Named(), Named((("A", Estimate(1.0)),)), Estimate("aVR")])
def test_words_are_not_sorted_by_numbers(value: object) -> None:
    assert sorted_by(value) is None
