"""With the published numbers the summary says what was published; with others it says something else."""

import re
import tomllib
from collections.abc import Callable
from importlib.resources import as_file, files
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findings.paper import DEMAND, ROLES, Paper
from leadwise.cohort.identity import Identity
from leadwise.findings.claims import claims_frame
from leadwise.report.names import spoken
from leadwise.report.numbers import number
from leadwise.report.prose.summary import Summary, summarise
from leadwise.run.bundle import Bundle
from leadwise.run.contents import RunContents
from leadwise.run.directory import RunDirectory
from leadwise.run.history import History
from leadwise.run.plan import Plan, read_plan

Results = dict[str, pd.DataFrame]

ESTIMATES = {"contrasts": "delta", "interactions": "interaction", "paired": "delta"}
BOUNDS = ("lo", "hi", "lo_simultaneous", "hi_simultaneous")


def gap_closed(results: Results) -> pd.DataFrame:
    """As a run computes it from the contrasts; the paper gives the share alone."""
    frame = results["contrasts"]
    at = frame[
        (frame["role"] == "evaluation") & (frame["evaluator"] == "strong") & (frame["reference_evaluator"] == "strong")
    ]
    at = at[(at["k"] == 4) & (at["metric"] == "nll")].set_index("policy")["delta"]
    before, after = at["mga"], at["strong-mga"]
    facts = {"role": "evaluation", "evaluator": "strong", "k": 4, "metric": "nll", "policy": "strong-mga"}
    share = (before - after) / before if before else np.nan
    return pd.DataFrame([facts | {"baseline_policy": "mga", "share": share, "lo": 0.3, "hi": 0.8}])


def published() -> Results:
    """The published results, and simultaneous intervals, which the paper does not have, half as wide again."""
    results = Paper().results
    frame = results["interactions"]
    wider = {
        f"{bound}_simultaneous": frame["interaction"] + 1.5 * (frame[bound] - frame["interaction"])
        for bound in ("lo", "hi")
    }
    results["interactions"] = frame.assign(**wider)
    return results | {"gap_closed": gap_closed(results)}


@pytest.fixture(scope="module")
def results() -> Results:
    return published()


@pytest.fixture(scope="module")
def plan() -> Plan:
    with as_file(files("leadwise") / "studies" / "ptbxl.toml") as path:
        plan = read_plan(path)
    return plan.model_copy(update={"hypotheses": plan.hypotheses[:9]})  # those that the publication answers


PTBXL = Identity("ptbxl", None, {})
SYNTHETIC = Identity("synthetic", "a model", {})


def summary_of(plan: Plan, results: Results, cohort: Identity = PTBXL) -> Summary:
    """Nothing but the plan, the tables and what the cohort is is looked at."""
    return summarise(
        RunContents(RunDirectory("nowhere"), plan, Bundle.__new__(Bundle), History([]), results, cohort, cohort)
    )


def text_of(plan: Plan, results: Results, cohort: Identity = PTBXL) -> str:
    summary = summary_of(plan, results, cohort)
    return "\n".join([summary.headline, *summary.paragraphs])


def everywhere(results: Results, change: Callable[[pd.DataFrame, str], pd.DataFrame]) -> Results:
    """The same results with other estimates and intervals."""
    altered = {name: change(results[name].copy(), column) for name, column in ESTIMATES.items()}
    altered = results | altered
    return altered | {"gap_closed": gap_closed(altered)}


def negated(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    frame[column] = -frame[column]
    for low, high in (BOUNDS[:2], BOUNDS[2:]):
        if low in frame:
            frame[low], frame[high] = -frame[high], -frame[low]
    return frame


def spanning(frame: pd.DataFrame, _column: str) -> pd.DataFrame:
    for bound in BOUNDS:
        if bound in frame:
            frame[bound] = -1.0 if bound.startswith("lo") else 1.0
    return frame


def put(results: Results, name: str, values: tuple[float, float, float], **facts: Any) -> Results:
    """Another estimate with its interval."""
    frame = results[name].copy()
    rows = np.logical_and.reduce([frame[column] == value for column, value in facts.items()])
    assert rows.any()
    frame.loc[rows, [ESTIMATES[name], "lo", "hi"]] = values
    return results | {name: frame}


AT = {"role": "evaluation", "policy": DEMAND, "k": 4, "metric": "nll"}


def primary(results: Results, before: tuple[float, float, float], after: tuple[float, float, float]) -> Results:
    """Other contrasts in the primary cell."""
    results = put(results, "contrasts", before, evaluator="controlled", reference_evaluator="controlled", **AT)
    return put(results, "contrasts", after, evaluator="strong", reference_evaluator="strong", **AT)


# what was published ---------------------------------------------------------------------------------------------------


def test_the_headline_is_the_published_finding(plan: Plan, results: Results) -> None:
    headline = summary_of(plan, results).headline
    assert headline.startswith("In the evaluation role (fold 8), at k = 4, ECG-on-Demand's advantage")
    assert "turns into a loss when the strong evaluator replaces the controlled one (an ordered reversal)" in headline
    assert "D in NLL is −0.0111 [−0.0187, −0.0029] under the controlled evaluator" in headline
    assert "0.0295 [0.0228, 0.0368] under the strong one" in headline
    assert "I = 0.0406 [0.0303, 0.0499] lies above zero: adaptation pays less under the strong evaluator" in headline
    assert headline.count(". ") == 0, "one sentence"


def test_the_paragraphs_say_what_the_paper_found(plan: Plan, results: Results) -> None:
    scope, primary_cell, across, robustness, aligned, quality, boundary = summary_of(plan, results).paragraphs
    assert "evaluation role (fold 8): 2,173 records of 1,881 patients" in scope
    assert "not scored" not in scope
    assert "is the plan's primary hypothesis" in primary_cell
    assert "In Brier, D goes from −0.0050 [−0.0078, −0.0022] to 0.0090 [0.0065, 0.0114]" in primary_cell
    assert "“holds” for 9 and “contradicted” for 0" in primary_cell
    assert "ECG-on-Demand and MGA at k = 2, 3, 4, 6 and 8 (secondary beyond the cell of the headline)" in across
    assert "In NLL and Brier, 20 of 20 contrasts change sign from below zero" in across
    assert "20 of them with both intervals off zero" in across
    assert "I in NLL and Brier lies above zero in all 20 cells" in across
    assert "4 of 10 contrasts (ECG-on-Demand in ECE at k = 6 and 8; MGA in ECE at k = 6 and 8) change sign" in across
    assert "Under the strong evaluator, D in ECE includes zero in all 10 cells" in across
    assert "I in ECE lies above zero in all 10 cells" in across
    assert robustness.count("the interaction survives") == 3
    for evaluator, found in (("controlled", "0.0208 [0.0101, 0.0314]"), ("strong", "0.0481 [0.0378, 0.0577]")):
        assert f"both against the references of the {evaluator} evaluator (post hoc), I is {found}" in robustness
    assert "the mask-robust evaluator in place of the controlled one" in robustness
    assert "I is 0.0376 [0.0269, 0.0471]" in robustness
    assert "Strong-MGA minus MGA (post hoc) is −0.0168 [−0.0260, −0.0084] in NLL (better)" in aligned
    assert "0.0021 [−0.0045, 0.0066] in ECE (the interval includes zero)" in aligned
    assert "0.0124 [0.0058, 0.0192], lies above zero: it stays behind them" in aligned
    assert "It closes 57.6% (interval from 30.0% to 80.0%) of MGA's gap of 0.0291" in aligned
    assert aligned.endswith("lies above zero at k = 2, 3, 4 and 6 and includes zero at k = 8.")
    assert (
        "the strong evaluator is, compared with the controlled one, better in NLL, Brier, ECE, AUROC and AUPRC"
        in quality
    )
    assert "in the audit role (fold 9)" in quality, "the paper gives it for this role only"
    for limit in ("margin of equivalence", "subgroups", "clinical threshold", "as given", "correlated", "electrodes"):
        assert limit in boundary
    for limit in ("one data set", "oracle", "exploratory", "post hoc", "does not show that two arms are equal"):
        assert limit in boundary


def test_simultaneous_intervals_are_told_apart(plan: Plan, results: Results) -> None:
    """Half as wide again, two of the ECE's and none of the others' include zero."""
    across = summary_of(plan, results).paragraphs[2]
    assert "The simultaneous interval of I lies above zero in all 20 cells" in across
    exceptions = "ECG-on-Demand in ECE at k = 2 and 3; MGA in ECE at k = 2"
    frame = results["interactions"].query("role == 'evaluation' and reference == 'own' and lo_simultaneous < 0")
    assert sorted(zip(frame["policy"], frame["k"], frame["metric"], strict=True)) == [
        (DEMAND, 2, "ece"),
        (DEMAND, 3, "ece"),
        ("mga", 2, "ece"),
    ]
    assert f"lies above zero in 7 of 10 cells and includes zero in 3 ({exceptions})" in across
    assert "simultaneous interval of I" not in text_of(plan, Paper().results)


def test_every_number_stands_in_the_results(plan: Plan, results: Results) -> None:
    """Four decimals are an estimate or a bound; nothing is computed on the way."""
    values = pd.concat([frame.select_dtypes("number").stack() for frame in results.values()]).astype(float)
    known = {number(value) for value in values} | {number(-value) for value in values}
    said = re.findall(r"−?\d+\.\d{4}", text_of(plan, results))
    assert len(said) > 50
    assert set(said) <= known


# other numbers --------------------------------------------------------------------------------------------------------


def test_with_flipped_signs_everything_is_the_other_way_round(plan: Plan, results: Results) -> None:
    flipped = everywhere(results, negated)
    headline = summary_of(plan, flipped).headline
    assert "loss against the best fixed leads turns into an advantage" in headline
    assert "(an ordered reversal the other way round)" in headline
    assert (
        "D in NLL is 0.0111 [0.0029, 0.0187] under the controlled evaluator and −0.0295 [−0.0368, −0.0228]" in headline
    )
    assert "lies below zero: adaptation pays more under the strong evaluator" in headline
    _, primary_cell, across, robustness, aligned, *_ = summary_of(plan, flipped).paragraphs
    assert "“holds” for 0 and “contradicted” for 9 (number 1, primary; number 2, primary; " in primary_cell
    assert "0 of 20 contrasts change sign from below zero" in across
    assert "20 change it the other way round, 20 with both intervals off zero" in across
    assert "I in NLL and Brier lies below zero in all 20 cells" in across
    assert "Under the controlled evaluator, D in ECE lies above zero in all 10 cells" in across
    assert robustness.count("the interaction survives") == 3, "it is as far from zero as before"
    assert robustness.count("lies below zero in all 30 cells") == 3
    assert "0.0168 [0.0084, 0.0260] in NLL (worse)" in aligned
    assert "lies below zero: it is ahead of them" in aligned
    assert "MGA shows no gap to them that could be closed" in aligned
    assert "%" not in aligned


def test_intervals_that_include_zero_show_nothing(plan: Plan, results: Results) -> None:
    vague = everywhere(results, spanning)
    text = text_of(plan, vague)
    headline = summary_of(plan, vague).headline
    assert "neither contrast of ECG-on-Demand with the best fixed leads can be told from zero, though" in headline
    assert "a difference between the evaluators is not shown" in headline
    assert "reversal" not in text
    assert not re.search(
        r"lies (above|below) zero|survives|pays (less|more) under the strong evaluator than.*\.$", headline
    )
    assert "lies above zero" not in text
    assert "lies below zero" not in text
    assert "survives" not in text
    assert "better)" not in text
    assert "20 of 20 contrasts change sign" in text, "their point estimates do"
    assert "0 of them with both intervals off zero" in text
    assert "which does not show that the two are equal" in text
    assert "MGA shows no gap to them that could be closed" in text
    for word in ("equivalent", "no difference", "the same as", "as good as"):
        assert word not in text


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ((-0.02, -0.03, -0.01), (0.02, -0.01, 0.05), "a reversal of means only: not both intervals exclude zero"),
        ((-0.02, -0.05, 0.01), (0.02, 0.01, 0.05), "a reversal of means only"),
        ((0.02, 0.01, 0.03), (-0.02, -0.05, 0.01), "a reversal the other way round of means only"),
        ((-0.02, -0.03, -0.01), (-0.01, -0.02, 0.01), "there is no reversal, ECG-on-Demand being ahead of"),
        ((0.02, 0.01, 0.03), (0.03, 0.02, 0.04), "there is no reversal, ECG-on-Demand being behind the best"),
        ((0.01, -0.01, 0.03), (0.02, -0.01, 0.04), "neither contrast of ECG-on-Demand with the best fixed leads can"),
        ((0.0, 0.0, 0.0), (0.02, 0.01, 0.04), "exactly zero under the controlled evaluator"),
        ((-0.02, -0.03, -0.01), (0.0, -0.01, 0.01), "exactly zero under the strong evaluator"),
        ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), "neither contrast of ECG-on-Demand with the best fixed leads can"),
        ((-0.02, np.nan, np.nan), (0.02, 0.01, 0.05), "a reversal of means only"),
    ],
)
def test_the_verdict_on_the_primary_cell(
    plan: Plan,
    results: Results,
    before: tuple[float, float, float],
    after: tuple[float, float, float],
    said: str,
) -> None:
    headline = summary_of(plan, primary(results, before, after)).headline
    assert said in headline
    assert "ordered" not in headline


def test_the_verdict_follows_from_signs_and_sides(plan: Plan, results: Results) -> None:
    ends = st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0])
    estimates = st.tuples(ends, ends, ends).map(sorted).map(lambda three: (three[1], three[0], three[2]))

    @settings(max_examples=30)
    @given(estimates, estimates)
    def check(before: tuple[float, float, float], after: tuple[float, float, float]) -> None:
        headline = summary_of(plan, primary(results, before, after)).headline
        signs = np.sign(before[0]) * np.sign(after[0])
        sides = {"above" if low > 0 else "below" if high < 0 else "" for _, low, high in (before, after)}
        assert ("ordered reversal" in headline) == (sides == {"above", "below"})
        assert ("other way round" in headline) == (signs < 0 and before[0] > 0 and sides != {""})
        assert ("neither contrast" in headline) == (sides == {""})
        assert ("no reversal" in headline) == (signs >= 0 and sides != {""})

    check()


def test_one_exception_is_named(plan: Plan, results: Results) -> None:
    place = {
        "role": "evaluation",
        "policy": "mga",
        "evaluator": "strong",
        "reference": "own",
        "k": 6,
        "metric": "brier",
    }
    contrast = {"role": "evaluation", "policy": "mga", "evaluator": "strong", "k": 6, "metric": "brier"}
    changed = put(results, "interactions", (0.001, -0.01, 0.02), **place)
    changed = put(changed, "contrasts", (-0.002, -0.01, 0.01), **contrast)
    across = summary_of(plan, changed).paragraphs[2]
    assert "19 of 20 contrasts (all but MGA in Brier at k = 6) change sign" in across
    assert (
        "I in NLL and Brier lies above zero in 19 of 20 cells and includes zero in 1 (MGA in Brier at k = 6)" in across
    )
    assert (
        "D in NLL and Brier lies above zero in 19 of 20 cells and includes zero in 1 (MGA in Brier at k = 6)" in across
    )
    assert "“inconclusive” for 1 (number 5, secondary)" in summary_of(plan, changed).paragraphs[1]


def test_ties_are_named_and_no_reversal(plan: Plan, results: Results) -> None:
    tied = primary(results, (0.0, 0.0, 0.0), (0.02, 0.01, 0.03))
    across = summary_of(plan, tied).paragraphs[2]
    assert "19 of 20 contrasts" in across
    assert "in 1 a contrast is exactly zero (ECG-on-Demand in NLL at k = 4)" in across


def test_what_does_not_survive_is_said_not_to(plan: Plan, results: Results) -> None:
    common = {
        "role": "evaluation",
        "evaluator": "strong",
        "policy": DEMAND,
        "reference": "controlled",
        "k": 4,
        "metric": "nll",
    }
    vague = summary_of(plan, put(results, "interactions", (0.02, -0.01, 0.05), **common)).paragraphs[3]
    assert (
        "I is 0.0200 [−0.0100, 0.0500] in the cell of the headline: the interaction does not survive, it includes"
        in vague
    )
    assert "I lies above zero in 29 of 30 cells and includes zero in 1 (ECG-on-Demand in NLL at k = 4)" in vague
    turned = summary_of(plan, put(results, "interactions", (-0.02, -0.05, -0.01), **common)).paragraphs[3]
    assert "the interaction does not survive, it lies below zero" in turned


@pytest.mark.parametrize(
    ("strong_mga", "said"),
    [
        (-0.01, "It closes 134.3%"),
        (0.04, "MGA's gap of 0.0291 [0.0223, 0.0361] is not closed but wider on average"),
        (0.029139, "It closes 0.0%"),
    ],
)
def test_the_share_of_the_gap(plan: Plan, results: Results, strong_mga: float, said: str) -> None:
    place = {"role": "evaluation", "policy": "strong-mga", "evaluator": "strong", "k": 4, "metric": "nll"}
    changed = put(results, "contrasts", (strong_mga, strong_mga - 0.005, strong_mga + 0.005), **place)
    changed |= {"gap_closed": gap_closed(changed)}
    aligned = summary_of(plan, put(changed, "contrasts", (0.029139, 0.0223, 0.0361), **place | {"policy": "mga"}))
    assert said in aligned.paragraphs[4]
    assert (": a part of it" in aligned.paragraphs[4]) == (said == "It closes 0.0%")


def with_controls(results: Results, **sides: str) -> Results:
    """As if ECG-on-Demand were compared with controls: for each budget < ahead, = not told apart, > behind."""
    bounds = {"<": (-0.02, -0.03, -0.01), "=": (0.001, -0.01, 0.012), ">": (0.02, 0.01, 0.03)}
    facts = {"role": "evaluation", "policy": DEMAND, "evaluator": "strong", "metric": "nll", "leads": ""}
    rows = [
        facts | {"versus": name.replace("_", "-"), "k": k} | dict(zip(("value", "lo", "hi"), bounds[each], strict=True))
        for name, said in sides.items()
        for k, each in zip((2, 3, 4, 6, 8), said, strict=True)
    ]
    anchored = facts | {"versus": "anchored", "leads": "II aVR", "k": 4, "value": 0.5, "lo": 0.4, "hi": 0.6}
    return results | {"controls": pd.DataFrame([*rows, anchored])}


def test_a_policy_that_does_not_beat_its_controls_is_said_not_to(plan: Plan, results: Results) -> None:
    beside = with_controls(results, random_subset="=====", cohort_state="<==>>")
    text = dict(summary_of(plan, beside).findings)["Beside controls"]
    assert "in NLL, ECG-on-Demand cannot be told from the control Random-subset at k = 2, 3, 4, 6 and 8; it is" in text
    assert (
        "is ahead of the control Cohort-state at k = 2, cannot be told from it at k = 3 and 4 and is behind it at "
        "k = 6 and 8." in text
    )
    assert text.count("Under the strong evaluator, in NLL") == 1, "MGA has no controls here, nor the other evaluator"
    assert (
        "What reverses in the headline is the comparison with the best fixed leads: under the "
        "strong evaluator, at k = 4, ECG-on-Demand is not shown to be better than Random-subset (0.0010 [−0.0100, "
        "0.0120]) and Cohort-state (0.0010 [−0.0100, 0.0120]) either." in text
    )
    assert "0.5000" not in text, "an anchored set is no control policy"
    frame = beside["references"]
    of_strong = frame["evaluator"].eq("strong") & frame["metric"].eq("nll") & frame["k"].eq(4)
    tried = beside | {"references": frame.assign(candidates=frame["candidates"].mask(of_strong, 495))}
    assert "the best fixed leads, the best of 495 sets: under" in text_of(plan, tried)
    half = dict(summary_of(plan, with_controls(results, dice="=====", cohort_state="<<<<<")).findings)
    assert "better than dice (0.0010" in half["Beside controls"], "whatever it is called"
    assert "Cohort-state (" not in half["Beside controls"]


def test_a_policy_that_beats_its_controls_reverses_for_good(plan: Plan, results: Results) -> None:
    text = dict(summary_of(plan, with_controls(results, random_subset="<<<<<")).findings)["Beside controls"]
    assert text.endswith("ECG-on-Demand is ahead of the control Random-subset at k = 2, 3, 4, 6 and 8.")
    unbeaten = with_controls(everywhere(results, negated), random_subset="=====")
    text = dict(summary_of(plan, unbeaten).findings)["Beside controls"]
    assert "What reverses" not in text, "the headline's advantage does not turn into a loss"
    assert "Beside controls" not in dict(summary_of(plan, results).findings)


@pytest.mark.parametrize("evaluator", ["strong", "controlled"])
def test_which_evaluator_is_better_is_read_off(plan: Plan, results: Results, evaluator: str) -> None:
    frame = results["evaluator_quality"].copy()
    worse = frame["metric"].isin(["nll", "auroc"]) & (frame["evaluator"] == evaluator)
    frame.loc[worse, "value"] = np.where(frame.loc[worse, "metric"] == "nll", 2.0, 0.1)
    quality = summary_of(plan, results | {"evaluator_quality": frame}).paragraphs[5]
    if evaluator == "strong":
        assert "worse in NLL and AUROC and better in Brier, ECE and AUPRC" in quality
    else:
        assert "better in NLL, Brier, ECE, AUROC and AUPRC (" in quality


def with_baseline(results: Results, name: str, contrast: tuple[float, float, float]) -> Results:
    """The interactions from another baseline, whose contrasts are all like this one."""
    frames = {}
    for frame, column in (("contrasts", "evaluator"), ("interactions", "baseline_evaluator")):
        rows = results[frame][(results[frame][column] == "controlled") & (results[frame]["role"] == "evaluation")]
        if frame == "contrasts":
            rows = rows[rows["reference_evaluator"] == "controlled"]
            rows = rows.assign(evaluator=name, reference_evaluator=name)
            rows[["delta", "lo", "hi"]] = contrast
        else:
            rows = rows[(rows["evaluator"] == "strong") & (rows["reference"] == "own")].assign(baseline_evaluator=name)
        frames[frame] = pd.concat([results[frame], rows], ignore_index=True)
    return results | frames


@pytest.mark.parametrize(
    ("contrast", "said"),
    [
        ((0.004, -0.0014, 0.0096), "0.0040 [−0.0014, 0.0096], includes zero: the advantage is not shown there."),
        ((0.004, 0.0014, 0.0096), "0.0040 [0.0014, 0.0096], lies above zero: the advantage is not shown there."),
        ((-0.004, -0.0096, -0.0014), "−0.0040 [−0.0096, −0.0014], lies below zero: the advantage is there too."),
    ],
)
def test_a_recalibrated_baseline_is_spoken_of(
    plan: Plan, results: Results, contrast: tuple[float, float, float], said: str
) -> None:
    summary = summary_of(plan, with_baseline(results, "controlled-recalibrated", contrast))
    text = dict(summary.findings)["Other evaluators in the place of the baseline"]
    start = "Under the recalibrated controlled evaluator, against its own references (exploratory), "
    assert text.startswith(f"{start}D in the cell of the headline, {said}")
    assert "I from it to the strong evaluator is 0.0406 [0.0303, 0.0499]; in all, it lies above zero in all 30" in text
    assert "recalibrated" not in summary.headline
    assert "recalibrated" not in text_of(plan, results)


def test_policies_trained_on_another_baseline_are_spoken_of_as_such(plan: Plan, results: Results) -> None:
    """Their interactions have the same evaluators as those of the headline's policy, and are told apart."""
    both = with_baseline(results, "controlled-recalibrated", (0.004, -0.0014, 0.0096))
    for name, column in (("contrasts", "evaluator"), ("interactions", "baseline_evaluator")):
        own = both[name][(both[name][column] == "controlled-recalibrated") & (both[name]["policy"] == "mga")]
        both[name] = pd.concat([both[name], own.assign(policy="mga-recalibrated")], ignore_index=True)
    trained = (both["contrasts"]["policy"] == "mga-recalibrated").to_numpy()
    both["contrasts"].loc[trained, ["delta", "lo", "hi"]] = (-0.02, -0.03, -0.01)
    text = dict(summary_of(plan, both).findings)["Other evaluators in the place of the baseline"]
    assert "D in the cell of the headline, 0.0040 [−0.0014, 0.0096], includes zero" in text
    assert "in all, it lies above zero in all 30 cells." in text, "its own alone"
    own = text.split("in all 30 cells. ")[1]
    assert own.startswith(
        "Under the recalibrated controlled evaluator, against its own references (exploratory), D of "
    )
    assert f"D of {spoken('mga-recalibrated')} lies below zero in all 15 cells; I from it to the strong eval" in own
    assert own.endswith("lies above zero in all 15 cells.")


def claimed(results: Results) -> Results:
    return results | {"claims": claims_frame(results, ROLES)}


def test_claims_that_are_contradicted_are_named(plan: Plan, results: Results) -> None:
    text = dict(summary_of(plan, claimed(results)).findings)["What the paper claims"]
    assert text.startswith("Of the paper's 37 claims, the verdict is “holds” for 30, “contradicted” for 0 and “incon")
    turned = put(results, "paired", (0.1, 0.05, 0.15), role="audit", policy_b="mga", k=4, metric="nll")
    text = dict(summary_of(plan, claimed(turned)).findings)["What the paper claims"]
    assert "“contradicted” for 1 (“ECG-on-Demand and MGA cannot be told apart at k=4”)" in text
    assert "orientation" not in text


def test_claims_about_a_role_that_was_not_scored_are_only_oriented(plan: Plan, results: Results) -> None:
    audit = put(without(results, role="evaluation"), "contrasts", (0.1, 0.05, 0.15), evaluator="strong", metric="ece")
    text = dict(summary_of(plan, claimed(audit)).findings)["What the paper claims"]
    assert "“contradicted” for 0" in text
    assert "“not answerable” for 21." in text
    assert "For orientation, the audit role would contradict “strong ECE stays negative at small budgets” (6 of" in text
    assert text.endswith("the claims are about other patients, so that this decides nothing.")


def test_beside_synthetic_recordings_nothing_is_said_of_claims(plan: Plan, results: Results) -> None:
    assert "claims" not in text_of(plan, claimed(results), SYNTHETIC)


# what is missing ------------------------------------------------------------------------------------------------------


def without(results: Results, **facts: Any) -> Results:
    """No rows of this kind in any table of estimates."""
    return results | {
        name: frame[~np.logical_and.reduce([frame[column] == value for column, value in facts.items()])]
        for name, frame in results.items()
        if set(facts) <= set(frame.columns) and name not in ("splits", "seeds")
    }


def test_missing_budgets_are_said_to_be_missing(plan: Plan, results: Results) -> None:
    fewer = without(without(results, k=3), k=8)
    across = summary_of(plan, fewer).paragraphs[2]
    assert "ECG-on-Demand and MGA at k = 2, 4 and 6" in across
    assert "There is no interaction at k = 3 and 8" in across
    assert "12 of 12 contrasts change sign" in across
    assert "“not answerable” for 4" in summary_of(plan, fewer).paragraphs[1]
    headline = summary_of(plan, without(results, k=4)).headline
    assert (
        "nothing can be said about ECG-on-Demand in NLL at k = 4: there is no contrast under the controlled" in headline
    )
    assert "and the strong evaluator" in headline


def test_without_the_strong_evaluator_nothing_is_said_about_it(plan: Plan, results: Results) -> None:
    alone = without(results, evaluator="strong")
    alone["interactions"] = alone["interactions"].iloc[:0]
    summary = summary_of(plan, alone)
    assert summary.headline.endswith(
        "nothing can be said about ECG-on-Demand in NLL at k = 4: there is no contrast under the strong evaluator."
    )
    text = " ".join(summary.paragraphs)
    assert "The results hold no interaction between the strong evaluator and the controlled evaluator." in text
    assert "Under the controlled evaluator, D in NLL, Brier and ECE lies below zero in" in text
    assert "Under the strong evaluator" not in text
    assert "Strong-MGA" not in text
    assert "survives" not in text
    bare = {"contrasts": alone["contrasts"]}
    assert summary_of(plan, bare).headline == summary.headline


def test_without_interactions_the_contrasts_still_speak(plan: Plan, results: Results) -> None:
    headline = summary_of(plan, without(results, reference="own")).headline
    assert "an ordered reversal" in headline
    assert headline.endswith("the interaction I is not among the results.")


def test_the_audit_alone_is_called_so(plan: Plan, results: Results) -> None:
    audit = without(results, role="evaluation")
    summary = summary_of(plan, audit)
    assert summary.headline.startswith("In the audit role (fold 9), at k = 4, ")
    assert "D in NLL is −0.0166 [−0.0241, −0.0073]" in summary.headline
    assert "These are results of the audit role (fold 9): 2,183 records of 1,942 patients." in summary.paragraphs[0]
    said = "The evaluation role (fold 8) was not scored: this is the development audit, not the evaluation."
    assert said in summary.paragraphs[0]
    assert said not in text_of(plan, results)


def test_a_synthetic_cohort_says_so_first(plan: Plan, results: Results) -> None:
    summary = summary_of(plan, results, SYNTHETIC)
    assert summary.headline.startswith("On synthetic recordings, which say nothing about patients, in the evaluation")
    assert summary.paragraphs[0].startswith("The recordings are synthetic")
    assert summary.paragraphs[-1].endswith("they say nothing about patients.")
    assert "synthetic" not in text_of(plan, results)


# what the plan calls things -------------------------------------------------------------------------------------------


def test_a_plan_without_hypotheses_makes_all_exploratory(plan: Plan, results: Results) -> None:
    bare = plan.model_copy(update={"hypotheses": []})
    text = text_of(bare, results)
    assert "is exploratory, as the plan has no primary one" in text
    assert "k = 2, 3, 4, 6 and 8 (exploratory)." in text
    assert "Strong-MGA minus MGA (exploratory)" in text
    assert "post hoc" not in text
    assert "verdict" not in text
    assert summary_of(bare, results).headline == summary_of(plan, results).headline, "k = 4 is nearest 4"
    nearest = summary_of(bare, without(results, k=4)).headline
    assert "at k = 3, " in nearest


def renamed(new: dict[str, str]) -> Plan:
    """The published plan with other names of evaluators."""

    def walk(said: Any) -> Any:
        if isinstance(said, dict):
            return {new.get(key, key): walk(value) for key, value in said.items()}
        if isinstance(said, list):
            return [walk(each) for each in said]
        return new.get(said, said) if isinstance(said, str) else said

    text = (files("leadwise") / "studies" / "ptbxl.toml").read_text(encoding="utf-8")
    return Plan.model_validate(walk(tomllib.loads(text)))


def test_evaluators_are_those_of_the_plan(plan: Plan, results: Results) -> None:
    new = {"strong": "b", "controlled": "a"}
    columns = ("evaluator", "baseline_evaluator", "reference", "reference_evaluator")
    theirs = {
        name: frame.replace(dict.fromkeys(set(frame.columns) & set(columns), new)) for name, frame in results.items()
    }
    expected = text_of(plan, results)
    for old, name in new.items():
        expected = re.sub(rf"the {old} (evaluator|one)\b", f"evaluator {name}", expected)
    theirs_planned = renamed(new)
    first = theirs_planned.model_copy(update={"hypotheses": theirs_planned.hypotheses[: len(plan.hypotheses)]})
    assert text_of(first, theirs) == expected


def test_one_evaluator_and_one_policy_are_told_without_interactions(results: Results) -> None:
    said = tomllib.loads((files("leadwise") / "studies" / "ptbxl.toml").read_text(encoding="utf-8"))
    alone = {key: value for key, value in said.items() if key in ("budgets", "cohort", "roles")}
    first = {"evaluators": "controlled", "policies": "mga"}
    for table, name in first.items():
        alone[table] = {name: {key: value for key, value in said[table][name].items() if key != "variants"}}
    summary = summary_of(Plan.model_validate(alone), results)
    assert "at k = 4, MGA is ahead of the best fixed leads: D in NLL is " in summary.headline
    assert summary.headline.endswith("so whether that would be so under another is not known.")
    text = " ".join(summary.paragraphs)
    assert "Under the controlled evaluator, D in NLL and Brier lies below zero in all 10 cells." in text
    assert "The plan has no second evaluator, interactions, pairs of policies or hypotheses." in summary.boundary
    assert "nan" not in text
    other = {"contrasts": results["contrasts"][results["contrasts"]["evaluator"] == "strong"]}
    assert "nothing can be said about MGA in NLL" in summary_of(Plan.model_validate(alone), other).headline
