"""Figures show the numbers of their frames, and a sentence where there are none."""

import tomllib
from collections.abc import Callable
from importlib.resources import files
from itertools import pairwise, product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.figure import Figure

from leadwise.findings.paper import published_numbers
from leadwise.leads import LEADS
from leadwise.report import figures
from leadwise.report.figures import compositions, draw_figures
from leadwise.report.figures.choices import plot_first_lead, plot_headroom, plot_modal_sets
from leadwise.report.figures.composition import Shown
from leadwise.report.figures.contrasts import plot_paired_contrasts, plot_policy_contrasts
from leadwise.report.figures.diagrams import plot_acquisition_loop, plot_transfer
from leadwise.report.figures.drawing import SMALL
from leadwise.report.figures.interactions import plot_interaction_rows
from leadwise.report.figures.patients import plot_cumulative_benefit, plot_effect_quartiles, plot_sorted_effects
from leadwise.report.figures.reliability import plot_reliability, plot_reliability_labels
from leadwise.report.figures.transfer_matrix import plot_transfer_matrix
from leadwise.report.figures.variance import plot_variance
from leadwise.run.plan import Plan, read_plan
from leadwise.run.plan_parts import PolicyPair, Transfer

BUDGETS = (2, 3, 4, 6, 8)
CELL = ["policy", "k", "metric"]


def cells(table: str, column: str, **facts: str) -> pd.DataFrame:
    """Published numbers of fold 8, one a cell, with their intervals where there are some."""
    rows = published_numbers().query("fold == 8")
    for name, value in {"table": table, **facts}.items():
        rows = rows[rows[name] == value]
    rows = rows[rows["policy"].isin(["ecg-on-demand", "mga"]) & (rows["column"] == column)]
    rows = rows.sort_values("published_lo").drop_duplicates(CELL).sort_index()
    names = {"published": column, "published_lo": "lo", "published_hi": "hi"}
    return rows.rename(columns=names)[[*CELL, column, "lo", "hi"]]


def published(evaluator: str = "strong", reference: str = "own") -> pd.DataFrame:
    """The published interactions with both of their contrasts."""
    frame = cells("interactions", "interaction", evaluator=evaluator, reference=reference)
    for name in ("controlled", "strong"):
        own = cells("contrasts", "delta", evaluator=name, reference_evaluator=name)
        frame = frame.merge(own.rename(columns={"delta": f"d_{name}"}).drop(columns=["lo", "hi"]), on=CELL)
    return frame


def make_contrasts() -> pd.DataFrame:
    """The published contrasts, with plausible intervals, a made-up Strong-MGA, and rows that are no own contrasts."""
    rows = []
    for each in published().itertuples():
        arms = [("controlled", each.policy, each.d_controlled), ("strong", each.policy, each.d_strong)]
        arms += [("strong", "strong-mga", 0.4 * each.d_strong)] if each.policy == "mga" else []
        for evaluator, policy, delta in arms:
            own = {"role": "evaluation", "policy": policy, "trained_on": "controlled", "evaluator": evaluator}
            own |= {"reference_evaluator": evaluator, "reference_metric": each.metric, "k": each.k}
            own |= {"metric": each.metric, "adaptive": 0.3 + delta, "fixed": 0.3, "delta": delta}
            rows.append(own | {"lo": delta - 0.004, "hi": delta + 0.003})
            rows.append(rows[-1] | {"reference_evaluator": "mask-robust", "delta": 9.0})
            rows.append(rows[-2] | {"reference_metric": "ece5", "delta": 9.0})
            rows.append(rows[-3] | {"role": "audit", "delta": 9.0})
    return pd.DataFrame(rows)


def make_interactions() -> pd.DataFrame:
    frame = published().rename(columns={"d_controlled": "d_baseline", "d_strong": "d_evaluator"})
    facts = {"role": "evaluation", "trained_on": "controlled", "baseline_evaluator": "controlled"}
    own = frame.assign(**facts, evaluator="strong", reference="own")
    kinds = [own, own.assign(reference="controlled", interaction=0.5 * own["interaction"])]
    kinds.append(own.assign(reference="strong", interaction=-own["interaction"]))
    robust = published("mask-robust", "controlled")
    kinds.append(robust.assign(**facts, evaluator="mask-robust", reference="controlled"))
    return pd.concat(kinds, ignore_index=True)


def make_modal_sets() -> pd.DataFrame:
    sets = ("I II aVR V1", "III aVR V2 V5", "aVR V1 V3 V6")
    facts = {"role": "audit", "policy": "ecg-on-demand", "trained_on": "controlled", "k": 4}
    return pd.DataFrame([facts | {"rank": 1 + i, "leads": leads, "share": 0.3 / 2**i} for i, leads in enumerate(sets)])


def make_headroom() -> pd.DataFrame:
    facts = {"role": "selection", "evaluator": "controlled"}
    first = [{"statistic": "first lead", "k": 1, "label": lead, "value": i / 66} for i, lead in enumerate(LEADS)]
    fixed = [{"statistic": "fixed", "k": k, "label": "I II", "value": 0.6 - 0.01 * k} for k in BUDGETS]
    oracle = [{"statistic": "oracle", "k": k, "label": np.nan, "value": 0.4 - 0.01 * k} for k in BUDGETS]
    return pd.DataFrame([facts | row for row in first + fixed + oracle])


def make_reliability() -> pd.DataFrame:
    facts = {"role": "audit", "evaluator": "controlled", "k": 4}
    return pd.DataFrame(
        [
            facts | {"policy": policy, "label": label, "bin": b, "count": 100 * b, "probability": (b + 0.5) / 10}
            for policy in ("ecg-on-demand", "mga", "reference")
            for label in ("CD", "MI", "pooled")
            for b in range(8)
        ]
    ).assign(frequency=lambda frame: 0.8 * frame["probability"])


def make_effects() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    parts = []
    for policy in ("ecg-on-demand", "mga"):
        delta = rng.normal(-0.02, 0.1, 200)
        delta[:2] = -1.153, 4.891
        facts = {"role": "audit", "policy": policy, "evaluator": "controlled", "k": 4}
        parts.append(pd.DataFrame(facts | {"patient": np.arange(200), "delta": delta, "uncertainty": 0.5}))
    return pd.concat(parts, ignore_index=True)


def make_patients() -> pd.DataFrame:
    facts = {"role": "audit", "versus": "reference", "evaluator": "controlled", "reference_metric": "nll", "k": 4}
    return pd.DataFrame(
        [
            facts | {"policy": policy, "statistic": f"Q{q} {what}", "value": -0.01 * q, "lo": -0.02 * q, "hi": 0.01}
            for policy in ("ecg-on-demand", "mga")
            for q in range(1, 5)
            for what in ("mean", "benefit rate")
        ]
    ).assign(label=np.nan)


SOURCES = ("seeds of the network", "draws of the training masks", "seeds of the policy", "all of these together")


def make_variance() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Intervals of I over patients, references and four sources, and five replications of each source."""
    rng, rows, own = np.random.default_rng(2), [], []
    for each in make_interactions().query("reference == 'own' and role == 'evaluation'").itertuples():
        if each.evaluator != "strong":
            continue
        key = {"role": "evaluation", "quantity": "interaction", "policy": each.policy, "evaluator": "strong"}
        key |= {"baseline_evaluator": "controlled", "k": each.k, "metric": each.metric}
        facts = {"interval_kind": "conditional", "source": "", "value": each.interaction, "lo": each.lo, "hi": each.hi}
        rows.append(key | facts)
        rows.append(rows[-1] | {"interval_kind": "with_selection", "source": "references", "lo": each.lo - 0.002})
        for source in SOURCES:
            values = each.interaction + rng.normal(0, 0.004, 5)
            own += [
                key | {"source": source, "replication": j, "value": v, "lo": v - 0.01, "hi": v + 0.01}
                for j, v in enumerate(values, 1)
            ]
            mean = values.mean()
            facts = {"interval_kind": "with_seeds", "source": source, "value": mean, "lo": mean - 0.014}
            rows.append(key | facts | {"hi": mean + 0.014})
            rows.append(rows[-1] | {"quantity": "contrast", "value": 9.0})
            rows.append(rows[-2] | {"role": "audit", "value": 9.0})
    own += [each | {"role": "audit", "value": 9.0} for each in own]
    return pd.DataFrame(rows), pd.DataFrame(own)


def make_transfer() -> pd.DataFrame:
    """Policies of two kinds, trained on two evaluators and read by three, one of which lacks a budget."""
    rng, rows = np.random.default_rng(3), []
    trained = {"mga": "controlled", "strong-mga": "strong", "ecg-on-demand": "controlled"}
    for (policy, on), reader, k, metric in product(
        trained.items(), ("controlled", "strong", "mask-robust"), (2, 4), ("nll", "auroc")
    ):
        if (reader, k) != ("mask-robust", 2):
            delta = rng.normal(0, 0.02)
            facts = {"role": "evaluation", "policy": policy, "trained_on": on, "evaluator": reader, "k": k}
            rows.append(facts | {"metric": metric, "delta": delta, "lo": delta - 0.01, "hi": delta + 0.01})
            rows.append(rows[-1] | {"role": "audit", "delta": 9.0})
    return pd.DataFrame(rows)


def make_results() -> dict[str, pd.DataFrame]:
    return {
        "contrasts": make_contrasts(),
        "interactions": make_interactions(),
        "modal_sets": make_modal_sets(),
        "headroom": make_headroom(),
        "reliability": make_reliability(),
        "patients": make_patients(),
        "patient_effects": make_effects(),
        **dict(zip(("variance", "replications"), make_variance(), strict=True)),
        "transfer": make_transfer(),
    }


@pytest.fixture(scope="module")
def plan() -> Plan:
    return read_plan(Path(str(files("leadwise") / "studies" / "ptbxl.toml")))


@pytest.fixture(scope="module")
def results() -> dict[str, pd.DataFrame]:
    return make_results()


def words(ax: Axes) -> str:
    return " ".join(" ".join(text.get_text().split()) for text in [*ax.texts, ax.title, ax._left_title])


def drawn_points(ax: Axes, label: str) -> np.ndarray:
    line = next(line for line in ax.lines if line.get_label() == label)
    return np.column_stack([np.asarray(values, dtype=float) for values in line.get_data()])


def segments(ax: Axes) -> list[np.ndarray]:
    """The intervals drawn, each collection's as (n, 2, 2)."""
    return [np.array(each.get_segments()) for each in ax.collections if isinstance(each, LineCollection)]


PANELS: dict[str, Callable[..., Axes]] = {
    "acquisition loop": lambda _, ax: plot_acquisition_loop(ax),
    "transfer": lambda _, ax: plot_transfer(ax),
    "modal sets": lambda r, ax: plot_modal_sets(r("modal_sets"), ax),
    "headroom": lambda r, ax: plot_headroom(r("headroom"), ax),
    "first lead": lambda r, ax: plot_first_lead(r("headroom"), ax),
    "paired": lambda r, ax: plot_paired_contrasts(r("contrasts"), r("interactions"), ax),
    "interactions": lambda r, ax: plot_interaction_rows(r("interactions"), ax=ax),
    "policies": lambda r, ax: plot_policy_contrasts(r("contrasts"), ax=ax),
    "reliability": lambda r, ax: plot_reliability(r("reliability"), ax),
    "sorted": lambda r, ax: plot_sorted_effects(r("patient_effects"), ax),
    "quartiles": lambda r, ax: plot_effect_quartiles(r("patients"), ax),
    "transfer matrix": lambda r, ax: plot_transfer_matrix(r("transfer"), ax=ax),
    "cumulative": lambda r, ax: plot_cumulative_benefit(r("patient_effects"), ax),
    "variance": lambda r, ax: plot_variance(r("variance"), r("replications"), ax),
}
FROM_FRAMES = [name for name in PANELS if name not in ("acquisition loop", "transfer")]


@pytest.mark.parametrize("panel", PANELS.values(), ids=PANELS)
def test_draws_on_given_axes_and_makes_its_own(panel: Callable[..., Axes], results: dict[str, pd.DataFrame]) -> None:
    import matplotlib.pyplot as plt

    open_before = plt.get_fignums()
    given = Figure().subplots()
    assert panel(results.__getitem__, given) is given
    own = panel(results.__getitem__, None)
    assert own.figure is not given.figure
    assert plt.get_fignums() == open_before, "pyplot keeps no figure of ours"
    assert own.get_title(loc="left") == given.get_title(loc="left") != ""
    assert "No rows" not in words(own)


@pytest.mark.parametrize("missing", [pd.DataFrame(), None], ids=["no frame", "other rows"])
@pytest.mark.parametrize("name", FROM_FRAMES)
def test_what_is_missing_is_a_sentence(
    name: str, missing: pd.DataFrame | None, results: dict[str, pd.DataFrame]
) -> None:
    def frame(name: str) -> pd.DataFrame:
        return results[name].iloc[:0] if missing is None else missing

    ax = PANELS[name](frame, None)
    assert words(ax).strip().startswith("No rows for ")
    assert words(ax).strip().endswith(".")
    assert not ax.lines
    assert not ax.axison


def test_diagrams_name_the_lead_the_budget_and_the_evaluators() -> None:
    loop = words(plot_acquisition_loop(first_lead="V2", k=3))
    assert "V2 is first" in loop
    assert "fewer than 3" in loop
    assert all(lead in loop for lead in LEADS)
    transfer = words(plot_transfer(baseline="mine", evaluator="yours"))
    assert "mine" in transfer
    assert "$I = D_{Y} - D_{M}$" in transfer
    alike = words(plot_transfer(baseline="strong", evaluator="stronger"))
    assert r"D_{\mathrm{stronger}} - D_{\mathrm{strong}}" in alike


def test_modal_sets_are_dots_bars_and_shares_of_every_policy(results: dict[str, pd.DataFrame]) -> None:
    frame = results["modal_sets"]
    other = frame.assign(policy="mine", leads=["aVR V6"] * 3, share=[0.6, 0.1, 0.1])
    ax = plot_modal_sets(pd.concat([frame, other]), top=2)
    chosen = [list(line.get_xdata()) for line in ax.lines if line.get_linestyle() == "-" and len(line.get_xdata()) < 12]
    sets = [[0, 1, 3, 6], [2, 3, 7, 10], [3, 11], [3, 11]]
    assert [each for each in chosen if each != [0, 1]] == sets
    widths = [bar.get_width() for bar in ax.patches]
    assert np.array(widths) / widths[0] == pytest.approx([1, 0.5, 2, 1 / 3])
    assert [text.get_text() for text in ax.texts] == ["30.0%", "15.0%", "60.0%", "10.0%"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["ECG-on-Demand", "mine"]
    assert "audit role" in words(ax)
    (alone,) = plot_modal_sets(pd.concat([frame, other]), policies=["mine"], top=1).get_yticklabels()
    assert alone.get_text() == "mine"


def test_figure_1_shows_all_sets_then_first_leads_then_headroom(
    results: dict[str, pd.DataFrame], plan: Plan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As the paper letters them: (c) sets, (d) the oracle's first lead, (e) its headroom."""
    sets = results["modal_sets"]
    everyone = pd.concat([sets.assign(policy=name) for name in ("ccga", "mga", "ecg-on-demand", "mine")])
    drawn: list[Figure] = []
    write = figures._write
    monkeypatch.setattr(figures, "_write", lambda figure, *rest: (drawn.append(figure), write(figure, *rest)))
    draw_figures(results | {"modal_sets": everyone}, plan, tmp_path)
    axes = {ax.get_title(loc="left")[:3]: ax for ax in drawn[0].axes}
    assert list(axes) == ["(a)", "(b)", "(c)", "(d)", "(e)"]
    labels = [tick.get_text() for tick in axes["(c)"].get_yticklabels()]
    assert labels == ["ECG-on-Demand", "MGA", "CCGA"], "in the order of the plan, which has no other"
    assert "First lead of the oracle" in axes["(d)"].get_title(loc="left")
    assert "headroom" in axes["(e)"].get_title(loc="left")


@pytest.mark.parametrize("compared", [(), (3, 8), (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)])
def test_figure_1_grows_with_its_policies(
    results: dict[str, pd.DataFrame], plan: Plan, compared: tuple[int, ...]
) -> None:
    """No set stands in another's line, however many policies a study has; of many it shows those of its pairs."""
    names = [f"mga-trained-elsewhere-{number}" for number in range(20 if compared else 12)]
    pairs = [PolicyPair(policies=[names[0], names[other]], evaluators=["strong"]) for other in compared]
    family = plan.interactions[0].model_copy(update={"policies": names[:2]})
    study = {"policies": dict.fromkeys(names, plan.policies["mga"]), "pairs": pairs, "interactions": [family]}
    many = plan.model_copy(update=study)
    shown = [names[number] for number in (0, 1, *compared)] if compared else names
    sets = pd.concat([results["modal_sets"].assign(policy=name) for name in names])
    (first,) = [each for each in compositions() if each.name == "figure1"]
    figure = first.compose(Shown(results | {"modal_sets": sets}, many))
    figure.draw_without_rendering()
    (ax,) = [ax for ax in figure.axes if ax.get_title(loc="left").startswith("(c)")]
    assert [label.get_text().replace("\n", "") for label in ax.get_yticklabels()] == shown
    line = SMALL / 72 * figure.dpi
    assert ax.bbox.height > 2 * len(shown) * line
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert all(above.y0 > below.y1 for above, below in pairwise(boxes))


def test_headroom_marks_the_oracle_as_not_deployable(results: dict[str, pd.DataFrame]) -> None:
    ax = plot_headroom(results["headroom"])
    fixed = drawn_points(ax, "best fixed set")
    assert fixed[:, 1].tolist() == pytest.approx([0.6 - 0.01 * k for k in BUDGETS])
    oracle = drawn_points(ax, "greedy oracle: not deployable")
    assert oracle[:, 1].tolist() == pytest.approx([0.4 - 0.01 * k for k in BUDGETS])
    assert len(ax.lines) == 2, "there is no exhaustive oracle in the frame"
    assert "selection role" in words(ax)


def test_first_lead_has_a_bar_for_every_lead(results: dict[str, pd.DataFrame]) -> None:
    frame = results["headroom"]
    ax = plot_first_lead(frame[frame["label"] != "III"])
    heights = [bar.get_height() for bar in ax.patches]
    assert heights == pytest.approx([0 if lead == "III" else i / 66 for i, lead in enumerate(LEADS)])
    assert "not deployable" in words(ax)


@pytest.mark.parametrize("metric", ["nll", "brier", "ece"])
def test_paired_contrasts_show_both_arms_and_the_interaction(metric: str, results: dict[str, pd.DataFrame]) -> None:
    ax = plot_paired_contrasts(
        results["contrasts"], results["interactions"], metric=metric, policies=["ecg-on-demand", "mga"]
    )
    paper = published().query("metric == @metric")
    for arm, column in (("controlled", "d_controlled"), ("strong", "d_strong")):
        assert drawn_points(ax, f"{arm} evaluator")[:, 0].tolist() == pytest.approx(paper[column].tolist())
    bounds = segments(ax)[0][:, :, 0]
    assert bounds == pytest.approx(np.column_stack([paper["d_controlled"] - 0.004, paper["d_controlled"] + 0.003]))
    assert len(ax.get_yticks()) == 10, "two policies at five budgets"
    column = [text.get_text() for text in ax.texts]
    for each in paper.itertuples():
        assert f"+{1e3 * each.interaction:.1f}" in column
        assert f"[{1e3 * each.lo:.1f}, {1e3 * each.hi:.1f}]" in column
    assert "negative favours adaptation" in ax.get_xlabel()
    assert "evaluation role" in words(ax)


def test_paired_contrasts_keep_rows_that_one_metric_lacks(results: dict[str, pd.DataFrame]) -> None:
    contrasts = results["contrasts"]
    fewer = contrasts[(contrasts["metric"] != "ece") | (contrasts["k"] == 4)]
    none = results["interactions"].iloc[:0]
    ax = plot_paired_contrasts(fewer, none, metric="ece", baseline="controlled", evaluator="strong")
    assert len(ax.get_yticks()) == 15
    assert len(drawn_points(ax, "strong evaluator")) == 3
    assert "+" not in words(ax), "without interactions the column is empty"


def test_paired_contrasts_of_any_two_evaluators(results: dict[str, pd.DataFrame]) -> None:
    names = {"controlled": "mine", "strong": "yours"}
    contrasts = results["contrasts"].replace({"evaluator": names, "reference_evaluator": names})
    ax = plot_paired_contrasts(contrasts, results["interactions"], baseline="mine", evaluator="yours")
    assert len(drawn_points(ax, "evaluator mine")) == 10


def test_interaction_rows_are_four_by_five(results: dict[str, pd.DataFrame]) -> None:
    ax = plot_interaction_rows(results["interactions"], policy="mga")
    mesh = next(each for each in ax.collections if isinstance(each, QuadMesh))
    own = published().query("policy == 'mga' and metric == 'nll'")["interaction"].to_numpy()
    robust = published("mask-robust", "controlled").query("policy == 'mga' and metric == 'nll'")
    expected = np.stack([own, 0.5 * own, -own, robust["interaction"].to_numpy()])
    np.testing.assert_allclose(np.ma.filled(mesh.get_array(), np.nan).reshape(4, 5), expected)
    assert [label.get_text() for label in ax.get_xticklabels()] == [str(k) for k in BUDGETS]
    assert ax.texts[0].get_text().startswith(f"+{1e3 * own[0]:.1f}\n")


def test_interaction_rows_leave_out_what_is_missing(results: dict[str, pd.DataFrame]) -> None:
    frame = results["interactions"]
    frame = frame[(frame["evaluator"] == "strong") & ~((frame["reference"] == "own") & (frame["k"] == 3))]
    ax = plot_interaction_rows(frame)
    assert len(ax.get_yticks()) == 3
    assert ax.texts[1].get_text() == "–", "own references at k = 3"


MATRIX = {"policies": ["strong-mga", "ecg-on-demand", "mga"], "evaluators": ["controlled", "strong", "mask-robust"]}


@pytest.mark.parametrize("metric", ["nll", "auroc"])
def test_the_matrix_shows_every_cell_with_its_sign(metric: str, results: dict[str, pd.DataFrame]) -> None:
    kinds, readers = {"strong-mga": "mga", "mga": "mga", "ecg-on-demand": "e"}, MATRIX["evaluators"]
    ax = plot_transfer_matrix(results["transfer"], metric, 2, kinds=kinds, evaluators=readers)
    rows = results["transfer"].query("role == 'evaluation' and k == 2 and metric == @metric")
    found = {(row["policy"], row["evaluator"]): row for row in rows.to_dict("records")}
    assert [label.get_text() for label in ax.get_yticklabels()] == ["Strong-MGA", "MGA", "ECG-on-Demand"]
    places = [(policy, reader) for policy in kinds for reader in readers]
    said = {place: text.get_text() for place, text in zip(places, ax.texts, strict=True)}
    cells = [patch for patch in ax.patches if patch.get_fill()]
    for place, cell in zip(places, cells, strict=True):
        if place not in found:
            assert said[place] == "–"
            continue
        delta = found[place]["delta"]
        assert said[place] == f"{1e3 * delta:+.1f}".replace("-", "−") + "*" * (abs(delta) > 0.01)
        red, _, blue, _ = cell.get_facecolor()
        assert (blue > red) == ((delta < 0) == (metric == "nll")), "blue favours adaptation"
    framed = [patch.get_xy()[0] // 1 for patch in ax.patches if not patch.get_fill()]
    assert framed == [1, 0, 0]  # strong; controlled twice
    tops = [cell.get_y() for cell in cells[::3]]
    assert tops[1] - tops[0] == 1 < tops[2] - tops[1], "kinds stand apart"
    assert ("more is better" in words(ax)) == (metric == "auroc")


def test_the_matrix_has_a_panel_for_each_metric_and_each_budget(results: dict[str, pd.DataFrame], plan: Plan) -> None:
    matrix = plan.model_copy(update={"transfer": Transfer.model_validate(MATRIX)})
    shown = Shown(results, matrix)
    panels = {
        each.name: [words(ax) for ax in each.compose(shown).axes if ax.axison]
        for each in compositions()
        if each.needs == "transfer"
    }
    assert [title.split("10³")[1] for title in panels["transfer"]] == [
        " · D in NLL, k = 4",
        " · D in AUROC, k = 4; more is better",
    ]
    assert [title.split("k = ")[1] for title in panels["transfer-budgets"]] == ["2", "4"]
    first = next(each for each in compositions() if each.name == "transfer").compose(shown).axes[0]
    labels = [label.get_text() for label in first.get_yticklabels()]
    assert labels == ["Strong-MGA", "MGA", "ECG-on-Demand"], "policies of a kind stand together"


def test_policy_contrasts_equal_the_deltas(results: dict[str, pd.DataFrame]) -> None:
    ax = plot_policy_contrasts(results["contrasts"], "strong", "brier")
    paper = published().query("metric == 'brier'")
    mga = paper.query("policy == 'mga'")["d_strong"].to_numpy()
    assert drawn_points(ax, "MGA")[:, 1] == pytest.approx(mga)
    assert drawn_points(ax, "Strong-MGA")[:, 1] == pytest.approx(0.4 * mga)
    np.testing.assert_allclose(segments(ax)[1][:, :, 1], np.column_stack([mga - 0.004, mga + 0.003]))
    places = [drawn_points(ax, name)[:, 0].round(1) for name in ("ECG-on-Demand", "MGA", "Strong-MGA")]
    assert (np.array(places).round() == np.arange(5)).all(), "each beside its budget"
    assert "negative favours adaptation" in ax.get_ylabel()


def test_controlled_effects_show_every_policy(results: dict[str, pd.DataFrame]) -> None:
    named = results["contrasts"].replace({"policy": {"mga": "my own policy"}})
    ax = plot_policy_contrasts(named, "controlled", "ece")
    paper = published().query("metric == 'ece' and policy == 'mga'")
    assert drawn_points(ax, "my own policy")[:, 1] == pytest.approx(paper["d_controlled"].to_numpy())
    assert len(drawn_points(ax, "ECG-on-Demand")) == 5


def test_the_audit_role_stands_in_for_the_evaluation(results: dict[str, pd.DataFrame]) -> None:
    contrasts = results["contrasts"]
    ax = plot_policy_contrasts(contrasts[contrasts["role"] == "audit"], "strong")
    assert "audit role" in words(ax)
    assert (drawn_points(ax, "MGA")[:, 1] == 9.0).all()


def test_an_interval_may_lie_beside_its_estimate(results: dict[str, pd.DataFrame]) -> None:
    """As bootstrap intervals of an ECE do."""
    beside = results["contrasts"].assign(lo=lambda frame: frame["delta"] + 0.001)
    assert "No rows" not in words(plot_policy_contrasts(beside))


def test_reliability_draws_bins_that_are_not_empty(results: dict[str, pd.DataFrame]) -> None:
    ax = plot_reliability(results["reliability"])
    assert len(ax.collections) == 3
    for scatter in ax.collections:
        offsets = np.asarray(scatter.get_offsets())
        assert len(offsets) == 7, "the first bin is empty"
        assert offsets[:, 1] == pytest.approx(0.8 * offsets[:, 0])
        sizes = scatter.get_sizes()
        assert sizes / sizes[0] == pytest.approx(np.arange(1, 8)), "area is proportional to the count"
    assert "ECE-matched fixed set" in ax.get_legend_handles_labels()[1]


def test_reliability_labels_have_a_panel_each(results: dict[str, pd.DataFrame]) -> None:
    figure = plot_reliability_labels(results["reliability"])
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["pooled", "CD", "MI"]
    assert len(figure.legends) == 1
    given = Figure()
    assert plot_reliability_labels(results["reliability"], given) is given
    assert "No rows" in words(plot_reliability_labels(pd.DataFrame()).axes[0])


def test_sorted_effects_show_the_centre_and_say_the_range(results: dict[str, pd.DataFrame]) -> None:
    ax = plot_sorted_effects(results["patient_effects"])
    y = np.asarray(ax.lines[0].get_ydata(), dtype=float)
    assert len(y) == 196, "the central 98% of 200"
    assert (np.diff(y) >= 0).all()
    assert y.max() < 1
    assert "full range −1.15 to +4.89" in words(ax)
    assert "200 patients" in words(ax)


def test_quartiles_equal_the_means(results: dict[str, pd.DataFrame]) -> None:
    ax = plot_effect_quartiles(results["patients"])
    assert drawn_points(ax, "MGA")[:, 1] == pytest.approx([-0.01, -0.02, -0.03, -0.04])
    assert segments(ax)[0][:, 0, 1] == pytest.approx([-0.02, -0.04, -0.06, -0.08])


def test_cumulative_benefit_ends_at_the_mean(results: dict[str, pd.DataFrame]) -> None:
    effects = results["patient_effects"]
    ax = plot_cumulative_benefit(effects)
    points = drawn_points(ax, "MGA")
    delta = effects[effects["policy"] == "mga"]["delta"]
    assert points[0].tolist() == [0, 0]
    assert points[-1] == pytest.approx([1, -delta.mean()])
    assert points[:, 1].max() == pytest.approx(-delta[delta < 0].sum() / len(delta))


def test_each_interval_of_an_interaction_has_its_row_and_each_replication_its_point(
    results: dict[str, pd.DataFrame],
) -> None:
    frame, own = results["variance"], results["replications"]
    ax = plot_variance(frame, own, policy="mga", k=4)
    cell = "role == 'evaluation' and quantity == 'interaction' and policy == 'mga' and k == 4 and metric == 'nll'"
    rows = frame.query(cell)
    assert [text.get_text().replace("\n", " ") for text in ax.get_yticklabels()] == [
        "patients",
        "patients and references",
        *(f"patients and {source}" for source in SOURCES),
    ]
    drawn = [each[0, :, 0] for each in segments(ax)]
    np.testing.assert_allclose(drawn, rows[["lo", "hi"]])
    column = [text.get_text() for text in ax.texts]
    assert column[0].startswith(f"+{1e3 * rows['value'].iloc[0]:.1f} [{1e3 * rows['lo'].iloc[0]:.1f}, ")
    points = drawn_points(ax, "each replication’s own estimate")
    expected = [own.query(cell + " and source == @source")["value"] for source in SOURCES]
    assert points[:, 0].tolist() == pd.concat(expected).tolist()
    assert points[:, 1].tolist() == pytest.approx(np.repeat(np.arange(2, 6) + 0.3, 5))
    assert "k = 4: I in NLL, evaluation role" in words(ax)
    assert "strong minus controlled" in ax.get_xlabel()


def test_intervals_over_seeds_are_shown_where_there_are_some(
    results: dict[str, pd.DataFrame], plan: Plan, tmp_path: Path
) -> None:
    assert "variance.svg" in draw_figures(results, plan, tmp_path / "with")
    without = results | {"replications": results["replications"].iloc[:0]}
    assert "variance.svg" not in draw_figures(without, plan, tmp_path / "without")


def test_files_are_whole_accessible_and_the_same_every_time(
    results: dict[str, pd.DataFrame], plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = [each for each in compositions() if each.name in ("figure3", "patients")]
    monkeypatch.setattr(figures, "compositions", lambda: two)
    written = draw_figures(results, plan, tmp_path / "once")
    assert sorted(written) == ["figure3.pdf", "figure3.svg", "patients.pdf", "patients.svg"]
    assert sorted(path.name for path in (tmp_path / "once").iterdir()) == sorted(written)
    again = draw_figures(results, plan, tmp_path / "twice")
    for name, path in written.items():
        assert path.read_bytes() == again[name].read_bytes()
    assert written["patients.pdf"].read_bytes().startswith(b"%PDF")

    ids = []
    for name in ("figure3.svg", "patients.svg"):
        root = ElementTree.parse(written[name]).getroot()
        assert root.get("role") == "img"
        own = [each.get("id") for each in root.iter() if each.get("id")]
        assert set(root.get("aria-labelledby", "").split()) <= set(own)
        ids += list(set(own))
        assert not list(root.iter("{http://www.w3.org/2000/svg}text")), "letters are paths"
    assert len(ids) == len(set(ids)), "figures may stand on one page"


def test_every_figure_is_drawn_from_a_full_run(results: dict[str, pd.DataFrame], plan: Plan) -> None:
    shown = Shown(results, plan)
    for each in compositions():
        panels = each.compose(shown).axes
        assert panels
        assert not [words(ax) for ax in panels if "No rows" in words(ax)], each.name
        assert "{" not in each.described(shown)


def test_a_run_without_results_still_has_all_files(plan: Plan, tmp_path: Path) -> None:
    written = draw_figures({}, plan, tmp_path)
    always = [each for each in compositions() if not each.needs]
    assert 0 < len(always) < len(compositions())
    assert set(written) == {f"{each.name}.{suffix}" for each in always for suffix in ("svg", "pdf")}
    assert all(path.stat().st_size for path in written.values())


def renamed(names: dict[str, str], without: tuple[str, ...] = ()) -> Plan:
    """The published plan with other names, and without some of its tables."""

    def walk(said: Any) -> Any:
        if isinstance(said, dict):
            return {names.get(key, key): walk(value) for key, value in said.items()}
        if isinstance(said, list):
            return [walk(each) for each in said]
        return names.get(said, said) if isinstance(said, str) else said

    said = tomllib.loads((files("leadwise") / "studies" / "ptbxl.toml").read_text(encoding="utf-8"))
    kinds = {table: {name: each["kind"] for name, each in said[table].items()} for table in ("evaluators", "policies")}
    other = {key: value for key, value in walk(said).items() if key not in without}
    for table, of in kinds.items():  # a kind keeps its name
        for name, kind in of.items():
            other[table][names.get(name, name)]["kind"] = kind
    return Plan.model_validate(other)


def test_a_run_of_others_shows_its_own_evaluators_policies_and_budget(results: dict[str, pd.DataFrame]) -> None:
    names = {"controlled": "mine", "strong": "yours", "ecg-on-demand": "greedy", "mga": "lazy", "strong-mga": "third"}
    columns = ("evaluator", "baseline_evaluator", "reference_evaluator", "reference", "policy")
    theirs = {
        name: frame.replace({column: names for column in columns if column in frame}) for name, frame in results.items()
    }
    theirs["reliability"] = theirs["reliability"].assign(k=3)
    theirs["references"] = pd.DataFrame([{"evaluator": "mine", "metric": "nll", "k": 1, "leads": "V6"}])
    shown = Shown(theirs, renamed(names))
    assert (shown.baseline, shown.evaluator, shown.first_lead) == ("mine", "yours", "V6")
    for each in compositions():
        assert not [words(ax) for ax in each.compose(shown).axes if "No rows" in words(ax)], each.name


def test_a_plan_that_compares_nothing_has_figures_of_its_contrasts(results: dict[str, pd.DataFrame]) -> None:
    shown = Shown(results, renamed({}, without=("interactions", "pairs", "hypotheses")))
    for each in (one for one in compositions() if not one.needs):  # the others' frames would have no rows
        said = " ".join(map(words, each.compose(shown).axes))
        assert ": I in" not in said, each.name
        assert "10³ · I" not in said, each.name
