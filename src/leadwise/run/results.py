"""Every table of results: its columns, their types, and the columns that together name one row.

A column has one type wherever it stands. Numbers are numbers and names are text; a table without rows still has its
columns, and a name that does not apply is blank.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

KEYS = (
    *("role", "policy", "versus", "evaluator", "baseline_evaluator", "reference", "reference_evaluator"),
    *("reference_metric", "leads", "k", "metric", "statistic", "label", "policy_a", "policy_b", "baseline_policy"),
    "chosen",
)
"""All columns by which the rows of some table are known."""

_COLUMNS = {
    "float64": "value lo hi adaptive fixed delta d_baseline d_evaluator d_policy interaction lo_simultaneous "
    "hi_simultaneous a b share probability frequency nll brier uncertainty published published_lo published_hi ours "
    "ours_lo ours_hi orientation orientation_lo orientation_hi difference z sd sd_source df margin detectable "
    "corrected regret",
    "int64": "k id patient patients rank bin count undefined candidates replicates seed epoch records number cells "
    "cell present holding contradicted shared_patients replicate replication replications "
    "own_replicates sets kept",
    "bool": "chosen deployable decides",
    "Int64": "parameters fold orientation_cells orientation_holding orientation_contradicted all_zero",
    "boolean": "same_sign intervals_overlap",
}
_TYPES = {column: kind for kind, columns in _COLUMNS.items() for column in columns.split()}
"""Types of columns that hold no text; values of a type with a capital may be missing."""
_KINDS = {"float64": "fiu", "int64": "iu", "bool": "b", "Int64": "fiu", "boolean": "b"}
"""For each type the kinds (as NumPy calls them) that a column of a file may have."""
_OPEN = ("lo", "hi", "sd_source", "df")
"""Numbers that are missing where there is no interval, or none of this kind."""


@dataclass(frozen=True)
class Table:
    """A table of results."""

    name: str
    columns: tuple[str, ...]
    """All that it always has, in their order."""
    key: tuple[str, ...]
    """Those that together name one row."""
    large: bool = False
    """Has a row for every record or replicate, so it is written as Parquet only."""
    by_label: tuple[str, ...] = ()
    """Beginnings of further columns, one for each label of the cohort."""
    other_types: tuple[tuple[str, str], ...] = ()
    """Types of columns that have another type elsewhere."""

    def type_of(self, column: str) -> str:
        """The type of a column; blank for text."""
        return dict(self.other_types).get(column, _TYPES.get(column, ""))

    def frame(self, rows: pd.DataFrame | Iterable[dict[str, object]] = ()) -> pd.DataFrame:
        """The rows with all columns, in their order and of their types; names that are missing are blank."""
        given = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
        more = [column for column in given if str(column).startswith(self.by_label)] if self.by_label else []
        frame = given.reindex(columns=[*self.columns, *more]).reset_index(drop=True)
        texts = [column for column in self.columns if not self.type_of(column)]
        frame[texts] = frame[texts].astype(object).where(frame[texts].notna(), "")
        return frame.astype({column: self.type_of(column) for column in self.columns if self.type_of(column)})

    def problems(self, frame: pd.DataFrame) -> Iterator[str]:
        """Problems of a table that was read from a file: missing columns, and cells of another type."""
        more = [str(column) for column in frame if str(column).startswith(self.by_label)]
        for column in [*self.columns, *more]:
            if column not in frame:
                yield f"lacks the column '{column}' of its table {self.name}"
            elif len(frame) and not self.type_of(column) and column not in more:
                if not all(isinstance(cell, str) for cell in frame[column]):
                    yield f"has something else than text in the column '{column}' of its table {self.name}"
            elif len(frame):
                kind, cells = self.type_of(column) or "float64", frame[column]
                may_lack = kind[0].isupper() or column in (*_OPEN, *more)
                if cells.dtype.kind in _KINDS[kind]:
                    values = cells.to_numpy(float, na_value=np.nan)
                    if (np.isfinite(values) | (np.isnan(values) & may_lack)).all():
                        continue
                what = "true and false" if _KINDS[kind] == "b" else "finite numbers"
                yield f"has something else than {what} in the column '{column}' of its table {self.name}"


def _table(
    name: str, key: str, rest: str, large: bool = False, by_label: tuple[str, ...] = (), **other_types: str
) -> Table:
    """A table whose key columns, all but those that stand among the ``rest``, come first."""
    others = rest.split()
    first = [column for column in key.split() if column not in others]
    return Table(name, (*first, *others), tuple(key.split()), large, by_label, tuple(other_types.items()))


_TIDY = "role policy versus evaluator reference_metric k statistic label"
_TABLES = (
    _table("splits", "role", "folds records patients shared_patients all_zero", by_label=("prevalence_",)),
    _table("seeds", "evaluator seed role metric", "evaluator seed epoch role metric value chosen"),
    _table("evaluators", "evaluator", "kind parameters"),
    _table("references", "evaluator metric k", "leads value candidates"),
    _table("selection", "role evaluator metric k leads", "rank value probability"),
    _table(
        "selection_summary",
        "role evaluator metric k",
        "sets kept share replicates probability value corrected regret",
    ),
    _table("selection_choices", "role evaluator metric k replicate", "leads", large=True),
    _table("places", "role policy evaluator k metric", "value rank candidates"),
    _table("headroom", "role evaluator statistic k label", "value deployable"),
    _table("evaluator_quality", "role evaluator leads metric", "value lo hi"),
    _table("resamples", "role", "patients replicates seed sha256 own_replicates own_sha256"),
    _table("left_out", "role k id", "reason"),
    _table(
        "contrasts",
        "role policy evaluator reference_evaluator reference_metric k metric",
        "role policy trained_on evaluator reference_evaluator reference_metric k metric adaptive fixed delta lo hi",
    ),
    _table(
        "interactions",
        "role policy evaluator baseline_evaluator reference k metric",
        "role policy trained_on evaluator baseline_evaluator reference k metric d_baseline d_evaluator interaction "
        "lo hi lo_simultaneous hi_simultaneous",
    ),
    _table("paired", "role evaluator k metric policy_a policy_b", "a b delta lo hi"),
    _table("controls", "role policy evaluator k metric versus", "kind leads value lo hi"),
    _table(
        "variance",
        "role quantity policy evaluator baseline_evaluator k metric interval_kind source",
        "replications replicates value lo hi sd sd_source df",
    ),
    _table(
        "replications",
        "role source replication quantity policy evaluator baseline_evaluator k metric",
        "value lo hi",
    ),
    _table(
        "equivalence",
        "role policy evaluator reference_evaluator k metric",
        "delta lo hi margin sd detectable verdict",
    ),
    _table(
        "transfer",
        "role policy evaluator k metric",
        "role policy trained_on evaluator reference_metric k metric adaptive fixed delta lo hi",
    ),
    _table(
        "decomposition",
        "role policy evaluator baseline_evaluator recalibrated_evaluator recalibrated_baseline k metric statistic",
        "value lo hi",
    ),
    _table(
        "subgroups",
        "role quantity policy evaluator baseline_evaluator k metric group level",
        "records patients value lo hi",
    ),
    _table("gap_closed", "role evaluator k metric policy baseline_policy", "d_baseline d_policy share lo hi"),
    _table("calibration", _TIDY, "value lo hi undefined"),
    _table("reliability", "policy label bin role evaluator k", "policy label bin count probability frequency"),
    _table("patients", _TIDY, "value lo hi undefined"),
    _table("alignment", _TIDY, "value lo hi undefined"),
    _table("modal_sets", "role policy k rank", "role policy trained_on k rank leads share"),
    _table("patient_effects", "role policy evaluator k patient", "patient delta uncertainty", large=True),
    _table("allocations", "role policy k id", "role policy trained_on k id leads", large=True),
    _table(
        "replicates",
        "role policy evaluator reference_evaluator reference_metric baseline_evaluator reference k metric replicate",
        "role policy trained_on evaluator reference_evaluator reference_metric baseline_evaluator reference k metric "
        "replicate delta interaction",
        large=True,
    ),
    _table(
        "records",
        "role evaluator id leads",
        "role evaluator id patient leads nll brier",
        large=True,
        by_label=("y_", "p_"),
    ),
    _table(
        "hypotheses",
        "number role",
        "level quantity policies evaluator baseline reference budgets metrics expected cells present holding "
        "contradicted verdict value lo hi",
    ),
    _table(
        "published",
        "quantity",
        f"table {' '.join(KEYS)} column unit quantity where fold published published_leads published_lo published_hi "
        "ours ours_leads ours_lo ours_hi same_sign intervals_overlap orientation_role orientation orientation_leads "
        "orientation_lo orientation_hi patients difference z",
        k="Int64",
        chosen="boolean",
        patients="",
    ),
    _table(
        "claims",
        "claim",
        "claim where role cells holding contradicted verdict orientation_role orientation_cells orientation_holding "
        "orientation_contradicted",
    ),
    _table(
        "claim_cells",
        "claim role cell policy evaluator",
        "claim role decides quantity policy versus evaluator baseline reference k metric value lo hi verdict cell",
    ),
)
TABLES = {table.name: table for table in _TABLES}
