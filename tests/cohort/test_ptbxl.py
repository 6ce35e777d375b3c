"""The reader on trees that are right, and on trees that are wrong in every way we could think of."""

import csv
import multiprocessing
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import wfdb
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.signal import resample

from leadwise.cohort.ptbxl import _resample, read_ptbxl
from leadwise.cohort.roles import Roles
from leadwise.errors import CohortError, LeadwiseError, PlanError

Row = dict[str, str]


def rows_of(tree: Path) -> list[Row]:
    with (tree / "ptbxl_database.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def rewrite(tree: Path, rows: list[Row]) -> None:
    with (tree / "ptbxl_database.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def edit(tree: Path, change: Callable[[list[Row]], None]) -> None:
    rows = rows_of(tree)
    change(rows)
    rewrite(tree, rows)


def a_record(tree: Path) -> Path:
    return tree / rows_of(tree)[5]["filename_lr"]


def test_agrees_with_wfdb(tree: Path) -> None:
    cohort = read_ptbxl(tree, Roles({"train": tuple(range(1, 11))}))
    rows = rows_of(tree)
    assert cohort.records.ids.tolist() == [int(row["ecg_id"]) for row in rows]
    assert cohort.records.patients.tolist() == [int(float(row["patient_id"])) for row in rows]
    for position in (0, 17, 119):
        theirs = wfdb.rdrecord(str(tree / rows[position]["filename_lr"]))
        ours = cohort.records.signals.millivolts(slice(position, position + 1))[0]
        np.testing.assert_allclose(ours, theirs.p_signal.T, atol=1e-6)
    assert cohort.sampling_rate == 100
    assert cohort.version is None
    assert cohort.identity.kind == "synthetic"


def test_labels_follow_the_rule(tree: Path) -> None:
    def change(rows: list[Row]) -> None:
        rows[0]["scp_codes"] = "{'IMI': 0.0, 'SR': 0.0}"  # a likelihood of 0 counts
        rows[1]["scp_codes"] = "{'SR': 100.0}"  # a rhythm is no diagnosis
        rows[2]["scp_codes"] = "{}"
        rows[3]["scp_codes"] = "{'IMI': 15.0, 'CLBBB': 100.0, 'LVH': 50.0}"

    edit(tree, change)
    cohort = read_ptbxl(tree, Roles({"train": tuple(range(1, 11))}))
    assert cohort.label_names == ("CD", "HYP", "MI", "NORM", "STTC")
    assert cohort.records.labels[:4].tolist() == [
        [False, False, True, False, False],
        [False] * 5,
        [False] * 5,
        [True, True, True, False, False],
    ]


def test_age_and_sex(tree: Path) -> None:
    def change(rows: list[Row]) -> None:
        rows[0] |= {"age": "300.0", "sex": "1"}
        rows[1] |= {"age": "", "sex": ""}
        rows[2] |= {"age": "45.0", "sex": "0", "pacemaker": "ja, pacemaker"}

    edit(tree, change)
    records = read_ptbxl(tree).records
    assert np.isnan(records.age[:2]).all()
    assert records.age[2] == 45
    assert records.sex[:3].tolist() == [1, -1, 0]
    assert records.quality[2, 5]


def test_some_folds_only(tree: Path) -> None:
    rewrite(tree, [row for row in rows_of(tree) if row["strat_fold"] in ("7", "10")])
    cohort = read_ptbxl(tree)
    assert "validation" in cohort
    assert "train" not in cohort
    assert set(cohort["selection"].folds) == {10}
    with pytest.raises(CohortError, match="no record for the train role"):
        cohort["train"]


def as_500_hz(tree: Path, unrecorded: slice = slice(0)) -> None:
    """Rewrite the tree as if only 500 Hz recordings had been fetched; V1 lacks some samples, V2 has none."""
    for row in rows_of(tree):
        record = wfdb.rdrecord(str(tree / row["filename_lr"]))
        fast = resample(record.p_signal, 5000, axis=0)
        if unrecorded.stop:
            fast[unrecorded, 6], fast[:, 7] = np.nan, np.nan
        target = tree / row["filename_hr"]
        target.parent.mkdir(parents=True, exist_ok=True)
        wfdb.wrsamp(
            target.name,
            fs=500,
            units=["mV"] * 12,
            sig_name=record.sig_name,
            p_signal=fast,
            fmt=["16"] * 12,
            adc_gain=[1000.0] * 12,
            baseline=[0] * 12,
            write_dir=str(target.parent),
        )
    shutil.rmtree(tree / "records100")


def test_500_hz_is_resampled_and_said(tree: Path) -> None:
    rewrite(tree, rows_of(tree)[:30])
    before = read_ptbxl(tree, Roles({"train": tuple(range(1, 11))})).records.signals[:]
    as_500_hz(tree)
    with pytest.warns(UserWarning, match="only 500 Hz recordings; they are resampled to 100 Hz"):
        cohort = read_ptbxl(tree, Roles({"train": tuple(range(1, 11))}))
    after = cohort.records.signals[:]
    assert cohort.sampling_rate == 100
    assert after.shape == before.shape
    # all but the edges and the last few hertz survive the round trip
    inner = slice(50, -50)
    error = (after[..., inner].astype(float) - before[..., inner]).std() / before[..., inner].std()
    assert error < 0.1


def test_missing_samples_are_counted_at_the_rate_that_is_kept(tree: Path) -> None:
    rewrite(tree, rows_of(tree)[:10])
    as_500_hz(tree, slice(1000, 4000))
    with pytest.warns(UserWarning, match="500 Hz"):
        cohort = read_ptbxl(tree)
    assert cohort.missing[0].tolist() == [0] * 6 + [600, 1000] + [0] * 4
    assert cohort.records.available[0].tolist() == [True] * 7 + [False] + [True] * 4


def test_blank_lines_in_the_table_are_no_rows(tree: Path) -> None:
    with (tree / "ptbxl_database.csv").open("a") as file:
        file.write("\n\n")
    assert len(read_ptbxl(tree)) == 120


def test_resampling_removes_what_would_alias() -> None:
    time = np.arange(5000) / 500
    slow, fast = (np.broadcast_to(1000 * np.sin(2 * np.pi * f * time), (1, 12, 5000)).astype(np.int16) for f in (5, 90))
    assert _resample(slow, 500).std() == pytest.approx(1000 / np.sqrt(2), rel=0.01)
    assert _resample(fast, 500)[..., 50:-50].std() < 20  # plain decimation would show it at 10 Hz in full


# every way in which a tree can be wrong: how to break it, and what the sentence must say


def no_directory(tree: Path) -> None:
    shutil.rmtree(tree)


def no_database(tree: Path) -> None:
    (tree / "ptbxl_database.csv").unlink()


def no_statements(tree: Path) -> None:
    (tree / "scp_statements.csv").unlink()


def no_records(tree: Path) -> None:
    shutil.rmtree(tree / "records100")


def version_1_0_1(tree: Path) -> None:
    row = rows_of(tree)[0]
    rewrite(tree, [row | {"ecg_id": str(number), "patient_id": f"{number}.0"} for number in range(1, 21_838)])


def missing_dat(tree: Path) -> None:
    a_record(tree).with_suffix(".dat").unlink()


def missing_header(tree: Path) -> None:
    a_record(tree).with_suffix(".hea").unlink()


def truncated_dat(tree: Path) -> None:
    os.truncate(a_record(tree).with_suffix(".dat"), 23_998)


def overlong_dat(tree: Path) -> None:
    with a_record(tree).with_suffix(".dat").open("ab") as file:
        file.write(b"\0\0")


def wrong_checksum(tree: Path) -> None:
    path = a_record(tree).with_suffix(".dat")
    content = bytearray(path.read_bytes())
    content[5000] ^= 1
    path.write_bytes(content)


def edit_header(tree: Path, old: str, new: str) -> None:
    path = a_record(tree).with_suffix(".hea")
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new, 1))


def wrong_first_value(tree: Path) -> None:
    path = a_record(tree).with_suffix(".hea")
    lines = path.read_text().splitlines()
    words = lines[3].split()
    words[5] = str(int(words[5]) + 1)
    path.write_text("\n".join([*lines[:3], " ".join(words), *lines[4:]]) + "\n")


def missing_lead(tree: Path) -> None:
    path = a_record(tree).with_suffix(".hea")
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0].replace(" 12 ", " 11 "), *lines[1:-1]]) + "\n")


def duplicated_lead(tree: Path) -> None:
    edit_header(tree, " V6\n", " V5\n")


def unknown_lead(tree: Path) -> None:
    edit_header(tree, " V6\n", " V7\n")


def other_rate(tree: Path) -> None:
    edit_header(tree, " 12 100 1000", " 12 250 1000")


def empty_header(tree: Path) -> None:
    a_record(tree).with_suffix(".hea").write_text("")


def binary_header(tree: Path) -> None:
    a_record(tree).with_suffix(".hea").write_bytes(bytes(range(256)) * 4)


def missing_column(tree: Path) -> None:
    edit(tree, lambda rows: [row.pop("strat_fold") for row in rows] and None)


def missing_statement_column(tree: Path) -> None:
    path = tree / "scp_statements.csv"
    path.write_text(path.read_text().replace("diagnostic_class", "class", 1))


def malformed_codes(tree: Path) -> None:
    edit(tree, lambda rows: rows[7].update(scp_codes="{'NORM': 100.0,, 'SR'"))


def unknown_code(tree: Path) -> None:
    edit(tree, lambda rows: rows[7].update(scp_codes="{'NOPE': 100.0}"))


def duplicate_id(tree: Path) -> None:
    edit(tree, lambda rows: rows[9].update(ecg_id=rows[4]["ecg_id"]))


def duplicate_path(tree: Path) -> None:
    edit(tree, lambda rows: rows[9].update(filename_lr=rows[4]["filename_lr"]))


def hostile_codes(tree: Path) -> None:
    edit(tree, lambda rows: rows[7].update(scp_codes="{" + "'A': 1    " * 40 + "!"))


def class_with_a_slash(tree: Path) -> None:
    path = tree / "scp_statements.csv"
    path.write_text(path.read_text().replace(",HYP,", ",../HYP,"))


def bad_id(tree: Path) -> None:
    edit(tree, lambda rows: rows[9].update(ecg_id="12.5"))


def id_with_a_point(tree: Path) -> None:
    edit(tree, lambda rows: rows[9].update(ecg_id="10.0"))


def column_twice(tree: Path) -> None:
    path = tree / "ptbxl_database.csv"
    path.write_text("".join(f"{line.split(',')[0]},{line}\n" for line in path.read_text().splitlines()))


def statement_column_twice(tree: Path) -> None:
    path = tree / "scp_statements.csv"
    path.write_text(path.read_text().replace(",form,", ",diagnostic,", 1))


def unknown_fold(tree: Path) -> None:
    edit(tree, lambda rows: rows[9].update(strat_fold="11"))


def no_patient(tree: Path) -> None:
    edit(tree, lambda rows: rows[9].update(patient_id=""))


def bad_age(tree: Path) -> None:
    edit(tree, lambda rows: rows[9].update(age="-4"))


def bad_sex(tree: Path) -> None:
    edit(tree, lambda rows: rows[9].update(sex="f"))


def path_outside(tree: Path) -> None:
    edit(tree, lambda rows: rows[9].update(filename_lr="../../etc/passwd"))


def patient_in_two_roles(tree: Path) -> None:
    def change(rows: list[Row]) -> None:
        rows[0] |= {"patient_id": "99999.0", "strat_fold": "3"}
        rows[1] |= {"patient_id": "99999.0", "strat_fold": "10"}

    edit(tree, change)


def short_row(tree: Path) -> None:
    with (tree / "ptbxl_database.csv").open("a") as file:
        file.write("1,2,3\n")


def not_text(tree: Path) -> None:
    with (tree / "ptbxl_database.csv").open("ab") as file:
        file.write(b"\xff\xfe\x00")


def no_rows(tree: Path) -> None:
    path = tree / "ptbxl_database.csv"
    path.write_text(path.read_text().splitlines()[0] + "\n")


BROKEN = {
    no_directory: "There is no directory",
    no_database: "has no ptbxl_database.csv",
    no_statements: "has no scp_statements.csv",
    no_records: "neither records100 nor records500",
    version_1_0_1: r"21,837 rows: this is PTB-XL v1\.0\.1",
    missing_dat: r"\.dat is missing; fetch it again",
    missing_header: r"\.hea is missing; fetch it again",
    truncated_dat: r"\.dat has 23,998 bytes where its header promises 24,000",
    overlong_dat: r"\.dat has 24,002 bytes where its header promises 24,000",
    wrong_checksum: r"\.dat does not match its header: checksum or first value of lead",
    wrong_first_value: r"\.dat does not match its header: checksum or first value of lead III",
    missing_lead: r"\.hea has no lead V6",
    duplicated_lead: r"\.hea names lead V5 more than once",
    unknown_lead: r"\.hea names a lead 'V7'",
    other_rate: "1000 samples at 250 Hz",
    empty_header: "not a readable WFDB header",
    binary_header: "not a readable WFDB header",
    missing_column: r"ptbxl_database\.csv has no column 'strat_fold'",
    missing_statement_column: r"scp_statements\.csv has no column 'diagnostic_class'",
    malformed_codes: r"line 9 \(ecg_id '8'\): scp_codes .* is not of the form",
    unknown_code: r"names 'NOPE', which scp_statements\.csv does not have",
    duplicate_id: "has ecg_id 5 twice, on lines 6 and 11",
    duplicate_path: "filename_lr records100/00000/00005_lr twice, on lines 6 and 11",
    hostile_codes: "is not of the form",
    class_with_a_slash: "must be one word",
    bad_id: "ecg_id '12.5' is not a whole number",
    id_with_a_point: "line 11 .*: ecg_id '10.0' is not a whole number; write it without a decimal point",
    column_twice: r"ptbxl_database\.csv has the column 'ecg_id' more than once",
    statement_column_twice: r"scp_statements\.csv has the column 'diagnostic' more than once",
    unknown_fold: "strat_fold 11 is unknown; folds are numbered 1 to 10",
    no_patient: "patient_id '' is not a whole number",
    bad_age: "age '-4' is not a number of years",
    bad_sex: "sex 'f' is neither",
    path_outside: "is not a path inside the tree",
    patient_in_two_roles: r"Patient 99999 has records in two roles, train \(fold 3\) and selection \(fold 10\)",
    short_row: "3 fields; the header has 28",
    not_text: "cannot be read",
    no_rows: "has no rows",
}


@pytest.mark.parametrize("damage", BROKEN, ids=lambda damage: damage.__name__)
def test_broken_trees_get_one_clear_sentence(damage: Callable[[Path], None], tree: Path, tmp_path: Path) -> None:
    damage(tree)
    with pytest.raises(LeadwiseError, match=BROKEN[damage]) as caught:
        read_ptbxl(tree)
    assert "\n" not in str(caught.value)
    left = [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.name != "lock"]
    if damage is not patient_in_two_roles:  # the reading was right there, the roles were not
        assert left == []


def test_a_plan_may_name_other_roles(tree: Path) -> None:
    patient_in_two_roles(tree)
    with pytest.raises(PlanError):
        read_ptbxl(tree)
    assert len(read_ptbxl(tree, Roles({"train": (1, 2), "validation": (5,)}))["train"])


def build(tree: Path, barrier: "multiprocessing.synchronize.Barrier", answers: "multiprocessing.Queue[bytes]") -> None:
    barrier.wait()
    answers.put(read_ptbxl(tree, Roles({"train": tuple(range(1, 11))})).records.signals[:].tobytes())


def test_two_processes_build_the_cache_at_once(tree: Path, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(2), context.Queue()
    workers = [context.Process(target=build, args=(tree, barrier, answers)) for _ in range(2)]
    for worker in workers:
        worker.start()
    first, second = answers.get(timeout=60), answers.get(timeout=60)
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert first == second
    assert len(list((tmp_path / "cache").glob("*/*/signals.npy"))) == 1


# fuzzing: whatever is thrown at the reader, only our own errors come out


@pytest.fixture(scope="module")
def fuzz_tree(pristine_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = Path(shutil.copytree(pristine_tree, tmp_path_factory.mktemp("fuzz") / "cohort"))
    rewrite(tree, rows_of(tree)[:3])
    return tree


def mutated(content: bytes) -> st.SearchStrategy[bytes]:
    """Content with a few bytes replaced, removed or doubled."""
    splice = st.tuples(
        st.integers(0, len(content)),
        st.integers(0, 12),
        st.binary(max_size=8)
        | st.sampled_from(
            [
                b" ",
                b"\n",
                b"#",
                b"0",
                b"-1",
                b"99999999999999999999",
                b"nan",
                b"1e400",
                b"/",
                b"\x00",
                b"'",
                b'"',
                b",",
                b"12",
            ]
        ),
    )

    def apply(splices: list[tuple[int, int, bytes]]) -> bytes:
        changed = bytearray(content)
        for at, length, new in splices:
            changed[at : at + length] = new
        return bytes(changed)

    return st.lists(splice, min_size=1, max_size=4).map(apply)


def read_or_refuse(tree: Path) -> None:
    try:
        cohort = read_ptbxl(tree, Roles({"train": tuple(range(1, 11))}), anew=True)
    except LeadwiseError:
        return
    assert len(cohort) == len(cohort.records.signals[:])


FUZZ = settings(max_examples=150, suppress_health_check=list(HealthCheck))


@FUZZ
@given(data=st.data())
def test_fuzzed_headers(fuzz_tree: Path, data: st.DataObject) -> None:
    path = (fuzz_tree / rows_of(fuzz_tree)[1]["filename_lr"]).with_suffix(".hea")
    good = path.read_bytes()
    try:
        path.write_bytes(data.draw(mutated(good) | st.binary(max_size=200)))
        read_or_refuse(fuzz_tree)
    finally:
        path.write_bytes(good)


@FUZZ
@given(data=st.data(), name=st.sampled_from(["ptbxl_database.csv", "scp_statements.csv"]))
def test_fuzzed_tables(fuzz_tree: Path, data: st.DataObject, name: str) -> None:
    path = fuzz_tree / name
    good = path.read_bytes()
    try:
        path.write_bytes(data.draw(mutated(good) | st.binary(max_size=200)))
        read_or_refuse(fuzz_tree)
    finally:
        path.write_bytes(good)


@FUZZ
@given(data=st.data())
def test_fuzzed_fields(fuzz_tree: Path, data: st.DataObject) -> None:
    path = fuzz_tree / "ptbxl_database.csv"
    good = path.read_bytes()
    try:
        rows = rows_of(fuzz_tree)
        column = data.draw(st.sampled_from(sorted(rows[0])))
        rows[1][column] = data.draw(st.text(st.characters(codec="utf-8"), max_size=30) | st.integers().map(str))
        rewrite(fuzz_tree, rows)
        read_or_refuse(fuzz_tree)
    finally:
        path.write_bytes(good)
