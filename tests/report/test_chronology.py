"""Which scoring belongs to which freeze."""

from pathlib import Path
from typing import Any

import pytest

from leadwise.cohort.identity import Identity
from leadwise.report.chronology import Chronology, when
from leadwise.run.bundle import Bundle
from leadwise.run.contents import RunContents
from leadwise.run.directory import RunDirectory
from leadwise.run.plan import Plan


def freeze(bundle: str) -> dict[str, Any]:
    return {"event": "end", "stage": "freeze", "outputs": {"bundle.json": bundle}, "time": "2026-11-18T06:47:09+00:00"}


def begin(stage: str) -> dict[str, Any]:
    return {"event": "begin", "stage": stage}


TAKEN = {"event": "bundle", "sha256": "ours"}
RESULTS = {"event": "results"}


@pytest.fixture
def chronology(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(Bundle, "sha256", "ours")

    def made(*receipts: dict[str, Any]) -> Chronology:
        numbered = [receipt | {"number": number} for number, receipt in enumerate(receipts, 1)]
        nobody, bundle = Identity("other", None, {}), Bundle.__new__(Bundle)
        return Chronology(RunContents(RunDirectory(Path()), Plan(), bundle, numbered, {}, nobody, nobody))

    return made


def numbers(receipts: list[dict[str, Any]]) -> list[int]:
    return [receipt["number"] for receipt in receipts]


def test_a_run(chronology: Any) -> None:
    found = chronology(begin("mga"), begin("freeze"), freeze("ours"), begin("audit"), begin("evaluation"), RESULTS)
    assert found.frozen["number"] == 3
    assert not found.elsewhere
    assert numbers(found.scorings) == numbers(found.between) == [4, 5]
    assert found.earlier == []
    assert numbers(found.fitting()) == [1, 2]
    assert numbers(found.fitting("mg")) == [1]


def test_a_bundle_from_elsewhere(chronology: Any) -> None:
    found = chronology(TAKEN, begin("audit"), RESULTS, TAKEN)
    assert found.frozen["number"] == 1, "taken again, it is still the same"
    assert found.elsewhere
    assert numbers(found.scorings) == [2]


def test_another_bundle_before_or_after(chronology: Any) -> None:
    before = chronology(freeze("other"), begin("audit"), begin("mga"), freeze("ours"), begin("audit"), RESULTS)
    assert numbers(before.earlier) == [2]
    assert numbers(before.scorings) == [5]
    assert numbers(before.between) == [5]
    after = chronology(freeze("ours"), begin("audit"), RESULTS, begin("mga"), freeze("other"), begin("audit"), RESULTS)
    assert after.earlier == []
    assert numbers(after.scorings) == [2]
    assert numbers(after.between) == [2], "what comes later belongs to another bundle"


def test_no_freeze(chronology: Any) -> None:
    found = chronology(begin("audit"), freeze("other"), begin("evaluation"))
    assert found.frozen is None
    assert not found.elsewhere
    assert found.scorings == found.between == []
    assert numbers(found.earlier) == [1, 3]


def test_a_freeze_elsewhere_is_not_the_taking_over(chronology: Any) -> None:
    taken = TAKEN | {"time": "2026-11-20T10:00:00.000+00:00"}
    said = {"time": "2026-11-18T06:47:09.735+00:00", "head": "f" * 64}
    found = chronology(taken | {"frozen": said}, begin("audit"), RESULTS)
    assert found.of_freeze == (
        f"frozen, as the bundle says, at 2026-11-18 06:47:09 UTC (head of that run's ledger {'f' * 64}), "
        "and taken over from another run at 2026-11-20 10:00:00 UTC (receipt 1)"
    )
    for unknown in (taken, taken | {"frozen": None}):
        assert chronology(unknown, begin("audit"), RESULTS).of_freeze == (
            "taken over from another run at 2026-11-20 10:00:00 UTC (receipt 1); the bundle does not say when it was "
            "frozen"
        )
    assert chronology(freeze("ours")).of_freeze == "frozen at 2026-11-18 06:47:09 UTC (receipt 1)"


def test_when() -> None:
    receipt = {"time": "2026-11-18T06:47:09.735+00:00", "number": 55}
    assert when(receipt) == "2026-11-18 06:47:09 UTC (receipt 55)"
