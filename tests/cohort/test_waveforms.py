"""Our parser and wfdb's, and what the header allows beyond PTB-XL's own layout."""

from pathlib import Path

import numpy as np
import pytest
import wfdb

from leadwise.cohort.waveforms import CHUNK, read_waveforms
from leadwise.errors import CohortError
from leadwise.leads import LEADS

MICROVOLTS = np.random.default_rng(4).integers(-3000, 3000, (12, 400)).astype(np.int16)


def write(
    folder: Path, name: str, microvolts: np.ndarray = MICROVOLTS, leads: list[str] | None = None, **options: object
) -> Path:
    settings: dict[str, object] = {"fmt": ["16"] * 12, "adc_gain": [1000.0] * 12, "baseline": [0] * 12} | options
    wfdb.wrsamp(
        name,
        fs=100,
        units=["mV"] * 12,
        sig_name=leads or [lead.upper() for lead in LEADS],
        d_signal=microvolts.T.astype(np.int64),
        write_dir=str(folder),
        **settings,
    )
    return folder / name


def read(*records: Path) -> np.ndarray:
    return np.concatenate([part.microvolts for part in read_waveforms(records)])


def test_lead_order_is_read_from_the_header(tmp_path: Path) -> None:
    order = np.random.default_rng(1).permutation(12)
    shuffled = write(tmp_path, "shuffled", MICROVOLTS[order], [LEADS[i] for i in order])
    straight = write(tmp_path, "straight")
    np.testing.assert_array_equal(read(shuffled, straight, shuffled), [MICROVOLTS] * 3)


def test_other_formats_and_gains_go_through_wfdb(tmp_path: Path) -> None:
    small = (MICROVOLTS // 5).astype(np.int16)
    packed = write(tmp_path, "packed", small, fmt=["212"] * 12, adc_gain=[200.0] * 12, baseline=[7] * 12)
    np.testing.assert_array_equal(read(packed)[0], (small.astype(int) - 7) * 5)
    mixed = read(packed, write(tmp_path, "straight"))
    np.testing.assert_array_equal(mixed[1], MICROVOLTS)


def test_comments_and_descriptions_are_no_obstacle(tmp_path: Path) -> None:
    record = write(tmp_path, "commented", comments=["age: 50", "sex: F"])
    np.testing.assert_array_equal(read(record)[0], MICROVOLTS)


def test_checksums_are_verified_on_the_slow_path_too(tmp_path: Path) -> None:
    record = write(tmp_path, "commented", comments=["x"])
    content = bytearray(record.with_suffix(".dat").read_bytes())
    content[2400] ^= 1
    record.with_suffix(".dat").write_bytes(content)
    with pytest.raises(CohortError, match="does not match its header"):
        read(record)


def test_missing_samples_are_interpolated_and_counted(tmp_path: Path) -> None:
    gappy = MICROVOLTS.copy()
    gappy[2, 10:13] = [-32768, -32768, -32768]
    gappy[2, 9], gappy[2, 13] = 100, 500
    gappy[7] = -32768  # a lead that was not recorded
    gappy[8, :5] = -32768
    (part,) = read_waveforms([write(tmp_path, "gappy", gappy)])
    assert part.microvolts[0, 2, 9:14].tolist() == [100, 200, 300, 400, 500]
    assert not part.microvolts[0, 7].any()
    assert (part.microvolts[0, 8, :5] == gappy[8, 5]).all()
    assert part.missing[0].tolist() == [0, 0, 3, 0, 0, 0, 0, 400, 5, 0, 0, 0]


def test_units_other_than_volts_are_refused(tmp_path: Path) -> None:
    record = write(tmp_path, "odd")
    header = record.with_suffix(".hea")
    header.write_text(header.read_text().replace("/mV", "/mmHg"))
    with pytest.raises(CohortError, match="'mmhg'; it must be mV, µV or V"):
        read(record)


def test_microvolts_and_volts_are_understood(tmp_path: Path) -> None:
    record = write(tmp_path, "scaled")
    header = record.with_suffix(".hea")
    header.write_text(header.read_text().replace("1000.0(0)/mV", "1.0(0)/uV"))
    np.testing.assert_array_equal(read(record)[0], MICROVOLTS)


@pytest.mark.parametrize(
    "gain", ["0", "0(0)/mV", "-0.0/mV", "-1000.0(0)/mV", "inf(0)/mV", "nan/mV", "1e400(0)/mV", "many/mV"]
)
def test_gains_that_scale_nothing_are_refused(tmp_path: Path, gain: str) -> None:
    record = write(tmp_path, "record", comments=["gain 0"])
    header = record.with_suffix(".hea")
    header.write_text(header.read_text().replace("1000.0(0)/mV", gain, 1))
    with pytest.raises(CohortError, match=r"record\.hea gives lead I the gain '.*'; it must be a number above 0"):
        read(record)


def test_chunks_keep_the_order(tmp_path: Path) -> None:
    one, two = write(tmp_path, "one"), write(tmp_path, "two", -MICROVOLTS)
    parts = list(read_waveforms([one] * CHUNK + [two] * 3))
    assert [len(part.microvolts) for part in parts] == [CHUNK, 3]
    np.testing.assert_array_equal(parts[1].microvolts[0], -MICROVOLTS)


def test_an_absurd_length_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    record = write(tmp_path, "long")
    header = record.with_suffix(".hea")
    header.write_text(header.read_text().replace(" 12 100 400", " 12 100 99999999"))
    with pytest.raises(CohortError, match="its header promises 2,399,999,976"):
        read(record)
