"""leadwise data: check, synthesise or download a cohort."""

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leadwise.cli.tables import print_table
from leadwise.errors import InputError
from leadwise.store import atomic_file

if TYPE_CHECKING:
    from leadwise.cohort.cohort import Cohort

app = typer.Typer(no_args_is_help=True, help="Check, synthesise or download a cohort.")

Directory = Annotated[Path, typer.Argument(metavar="DIR", show_default=False)]


@app.command("check")
def check_command(
    directory: Directory,
    plan: Annotated[Path | None, typer.Option(help="Take the roles from this plan.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write check.json and a picture of each class here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Read and verify every record of DIR; print the cohort role by role, and oddities in its signals."""
    from leadwise.cohort.census import check_cohort
    from leadwise.cohort.ptbxl import read_ptbxl
    from leadwise.cohort.roles import PTBXL_ROLES
    from leadwise.run.plan import read_plan

    if out:
        _check_pictures_place(out)
    roles = read_plan(plan).cohort_roles() if plan else PTBXL_ROLES
    cohort = read_ptbxl(directory, roles, anew=True)
    result = check_cohort(cohort)
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        _print_check(cohort, result)
    if out:
        with atomic_file(out / "check.json") as draft:
            draft.write_text(json.dumps(result, indent=2) + "\n")
        pictures = _draw_classes(cohort, out)
        if not as_json:
            print(f"Wrote {out / 'check.json'} and {', '.join(path.name for path in pictures)} beside it.")


def _check_pictures_place(out: Path) -> None:
    """Raise unless a directory is new, empty, or has what `data check` wrote there before."""
    if not out.is_dir() or not any(out.iterdir()):
        return
    facts = None
    with suppress(OSError, ValueError):
        facts = json.loads((out / "check.json").read_text())
    if not (isinstance(facts, dict) and {"roles", "oddities"} <= facts.keys()):
        raise InputError(f"{out} is neither empty nor of an earlier check; name a new or an empty directory for --out.")


def _print_check(cohort: "Cohort", result: dict[str, Any]) -> None:
    from leadwise.cohort.census import ZERO

    size = f"{result['records']:,} records of {result['patients']:,} patients"
    print(f"{cohort.source}: {result['cohort']}, {size}")
    labels = cohort.label_names
    rows = []
    for role, row in result["roles"].items():
        counts = [f"{row[name]:,}" for name in ("records", "patients", "all_zero")]
        sealed = row["prevalence"] is None
        shares = ["sealed"] * len(labels) if sealed else [f"{100 * share:.1f}%" for share in row["prevalence"].values()]
        rows.append([role, _as_ranges(row["folds"]), *counts, *shares])
    print_table(["role", "folds", "records", "patients", "all-zero", *labels], rows, left=("role",))
    for role, folds in cohort.roles.folds.items():
        if role not in cohort:
            print(f"No record for the {role} role: nothing here is in fold {_as_ranges(list(folds))}.")
    for kind, count in Counter(oddity["kind"] for oddity in result["oddities"]).items():
        first = [oddity for oddity in result["oddities"] if oddity["kind"] == kind][:3]
        examples = "; ".join(f"record {oddity['ecg_id']} {oddity['leads']} {oddity['detail']}" for oddity in first)
        print(f"{kind}: {count} found ({examples}{'; …' if count > 3 else ''})")
        if kind == ZERO and count == len(cohort):
            print("No record has a wave in any lead: these are not recordings of hearts.")
    if not result["oddities"]:
        print("No oddities in the signals.")


def _as_ranges(folds: list[int]) -> str:
    """Consecutive folds as 1–6."""
    starts = [fold for fold in folds if fold - 1 not in folds]
    ends = [fold for fold in folds if fold + 1 not in folds]
    return " ".join(str(a) if a == b else f"{a}–{b}" for a, b in zip(starts, ends, strict=True))


def _draw_classes(cohort: "Cohort", out: Path) -> list[Path]:
    """One picture for each label: the first unsealed record that has it and as little else as possible."""
    import matplotlib.pyplot as plt
    import numpy as np
    from matplotlib.figure import Figure

    from leadwise.cohort.plots import plot_ecg

    records = cohort.records.select(~cohort.sealed)
    labels = records.labels
    pictures = []
    for index in np.flatnonzero(labels.any(axis=0)):
        company = np.where(labels[:, index], labels.sum(axis=1), len(cohort.label_names) + 1)
        axes = plot_ecg(records[int(company.argmin())])
        path = out / f"ecg-{cohort.label_names[index]}.png"
        with atomic_file(path) as draft:
            assert isinstance(axes.figure, Figure)
            axes.figure.savefig(draft, format="png", dpi=130)
            plt.close(axes.figure)
        pictures.append(path)
    return pictures


@app.command()
def synth(
    directory: Directory,
    records: Annotated[int, typer.Option(help="How many records.")] = 2000,
    seed: Annotated[int, typer.Option(help="Same seed, same cohort, to the byte.")] = 1,
) -> None:
    """Write a synthetic cohort in PTB-XL's own layout to DIR."""
    from leadwise.cohort.synthetic import write_synthetic

    write_synthetic(directory, records, seed)
    print(f"Wrote {records:,} synthetic records to {directory}.")


@app.command()
def fetch(
    directory: Directory,
    source: Annotated[str | None, typer.Option(help="Where to download from, if not from the publisher.")] = None,
) -> None:
    """Download PTB-XL v1.0.3 (100 Hz) to DIR, verifying every checksum; run it again to continue."""
    from leadwise.cohort.fetch import PTBXL_URL, fetch_ptbxl

    fetch_ptbxl(directory, source or PTBXL_URL)
    print(f"PTB-XL is complete in {directory}. Look at it with: leadwise data check {directory}")
