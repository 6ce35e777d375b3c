"""Records and patients, role by role."""

from collections.abc import Iterator

from leadwise.report.tables.view import ReportTable, View, same

PLACE = 20
_COUNTS = {"records": "records", "patients": "patients", "all_zero": "without any label"}
_SHARED = {"shared_patients": "patients also in other roles"}


def tables(view: View) -> Iterator[ReportTable]:
    rows = view.rows("splits")
    counts = _COUNTS | (_SHARED if "shared_patients" in rows else {})
    rows = rows.assign(**{column: rows[column].astype("Int64") for column in counts if column in rows})
    shares = [str(column) for column in rows if str(column).startswith("prevalence_")]
    columns = same("role", "folds") | counts
    columns |= {column: f"share of {column.removeprefix('prevalence_')}" for column in shares}
    yield view.table(
        "splits",
        "Records and patients by role",
        "Which folds serve which purpose, how many records and patients they have, and how common each diagnostic "
        "label is. Records without any label stay in; of a role that nobody has looked at only the counts are known.",
        ["splits"],
        rows,
        columns,
    )
