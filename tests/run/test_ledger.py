"""The chain of receipts: what is changed, removed or torn, and who says so."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from leadwise.errors import InputError
from leadwise.run.ledger import (
    BEGINNING,
    Begin,
    BundleTaken,
    CohortRead,
    End,
    Ledger,
    Receipt,
    Report,
    Results,
    read_receipts,
)
from receipts import COMMON, OF_EVENT, chained, history


def written(path: Path, count: int = 4) -> list[bytes]:
    """Lines of a new ledger."""
    ledger = Ledger(path)
    for number in range(count):
        outputs = {"a.csv": "0" * 64, "ä": "1"}
        ledger.add("end", stage=f"stage-{number}", key="k", outputs=outputs, sha256="0", seconds=number / 7)
    return path.read_bytes().splitlines(keepends=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


def test_each_receipt_holds_the_hash_of_the_line_before(path: Path) -> None:
    lines = written(path)
    previous = BEGINNING
    for number, (line, receipt) in enumerate(zip(lines, read_receipts(path), strict=True), start=1):
        assert (receipt.number, receipt.previous) == (number, previous)
        assert rfc8785.dumps(json.loads(line)) + b"\n" == line
        previous = sha256(line.removesuffix(b"\n")).hexdigest()
        assert receipt.sha256 == previous
    assert Ledger(path).head == previous
    assert read_receipts(path) == Ledger(path).receipts


def test_a_ledger_goes_on_where_it_was(path: Path) -> None:
    lines = written(path, 2)
    ledger = Ledger(path)
    ledger.add("more")
    assert path.read_bytes().splitlines(keepends=True)[:2] == lines
    assert [receipt.event for receipt in read_receipts(path)] == ["end", "end", "more"]
    assert ledger.receipts == read_receipts(path)


def test_no_ledger_yet(path: Path) -> None:
    assert read_receipts(path) == []
    assert Ledger(path).head == BEGINNING
    assert not path.exists()


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    return written(tmp_path_factory.mktemp("ledger") / "ledger.jsonl")


@given(data=st.data())
def test_any_changed_byte_is_named_with_its_line(
    lines: list[bytes], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Where the line is still a receipt, the next one tells; so the last line is left to the manifest."""
    number = data.draw(st.integers(0, len(lines) - 2), label="line")
    at = data.draw(st.integers(0, len(lines[number]) - 1), label="byte")
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != lines[number][at]), label="becomes")
    changed = lines[number][:at] + bytes([other]) + lines[number][at + 1 :]
    path = tmp_path_factory.getbasetemp() / "changed.jsonl"
    path.write_bytes(b"".join([*lines[:number], changed, *lines[number + 1 :]]))
    with pytest.raises(InputError, match=rf"changed\.jsonl, line ({number + 1}|{number + 2}): "):
        read_receipts(path)


@pytest.mark.parametrize("name", ["previous", "number", "event"])
def test_a_receipt_without_something_that_all_have(lines: list[bytes], path: Path, name: str) -> None:
    """Even where what is left is canonical JSON."""
    receipt = json.loads(lines[1])
    del receipt[name]
    path.write_bytes(lines[0] + rfc8785.dumps(receipt) + b"\n" + b"".join(lines[2:]))
    with pytest.raises(InputError, match=r", line [23]: "):
        read_receipts(path)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_removed_line_is_named(lines: list[bytes], path: Path, number: int) -> None:
    path.write_bytes(b"".join(lines[:number] + lines[number + 1 :]))
    with pytest.raises(InputError, match=rf", line {number + 1}: this is not a receipt as leadwise writes them"):
        read_receipts(path)


def test_a_removed_line_is_named_even_if_the_others_are_numbered_anew(lines: list[bytes], path: Path) -> None:
    receipts = [json.loads(line) for line in lines[:1] + lines[2:]]
    path.write_bytes(b"".join(rfc8785.dumps(each | {"number": i}) + b"\n" for i, each in enumerate(receipts, 1)))
    with pytest.raises(InputError, match=r", line 2: the receipt before it was changed or removed; the chain"):
        read_receipts(path)


def test_lines_that_changed_places(lines: list[bytes], path: Path) -> None:
    path.write_bytes(b"".join([lines[0], lines[2], lines[1], lines[3]]))
    with pytest.raises(InputError, match=", line 2: "):
        read_receipts(path)


@given(st.data())
def test_a_torn_last_line_is_overlooked_in_reading_and_repaired_in_writing(
    lines: list[bytes], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    kept = data.draw(st.integers(0, len(lines[-1]) - 1), label="bytes of the last line")
    path = tmp_path_factory.getbasetemp() / "torn.jsonl"
    torn = b"".join(lines[:-1]) + lines[-1][:kept]
    path.write_bytes(torn)
    assert len(read_receipts(path)) == len(lines) - 1
    assert path.read_bytes() == torn, "reading changes nothing"
    ledger = Ledger(path)
    assert path.read_bytes() == b"".join(lines[:-1])
    ledger.add("after")
    assert [each.number for each in read_receipts(path)] == list(range(1, len(lines) + 1))


def test_a_broken_ledger_is_not_written(lines: list[bytes], path: Path) -> None:
    broken = b"".join([lines[0], lines[2], lines[3]]) + b"torn"
    path.write_bytes(broken)
    with pytest.raises(InputError, match="line 2"):
        Ledger(path)
    assert path.read_bytes() == broken


# types ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "kind", "facts"),
    [
        ("begin", Begin, {"stage": "mga"}),
        ("end", End, {"stage": "mga"}),
        ("bundle", BundleTaken, {"sha256": "b"}),
        ("results", Results, {}),
        ("report", Report, {}),
        ("cohort", CohortRead, {}),
        ("an event of a later version", Receipt, {}),
    ],
)
def test_each_event_has_its_type(event: str, kind: type[Receipt], facts: dict[str, str]) -> None:
    (line,) = chained([COMMON | OF_EVENT.get(event, {}) | facts | {"event": event}])
    receipt = Receipt.read(line)
    assert type(receipt) is kind
    assert receipt.event == event
    for name in COMMON | OF_EVENT.get(event, {}) | facts:
        other = json.loads(line)
        del other[name]
        with pytest.raises(ValueError, match=f"1 validation error .*\\n{name}\\n"):
            Receipt.read(rfc8785.dumps(other))


def test_what_is_not_known_of_a_receipt_is_in_its_hash() -> None:
    one, two = (history({"event": "results", "more": more}).receipts[0] for more in (1, 2))
    assert one.model_dump() == two.model_dump()
    assert one.sha256 != two.sha256
    assert one != two


@pytest.mark.parametrize("line", [b"", b"[]", b"7", b"null", b'{"event":["begin"]}', b'{ "event":"report"}'])
def test_a_line_that_is_no_receipt(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        Receipt.read(line)
