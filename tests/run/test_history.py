"""What receipts tell: which scoring belongs to which freeze, and what results rest on."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import rfc8785

from leadwise.run.history import Chronology, History
from leadwise.run.ledger import BEGINNING, Receipt, clock
from receipts import COMMON, SOFTWARE, Told, history


def freeze(bundle: str) -> Told:
    return {"event": "end", "stage": "freeze", "outputs": {"bundle.json": bundle}}


def begin(stage: str, *roles: str) -> Told:
    return {"event": "begin", "stage": stage, "inputs": {f"role:{role}": f"of {role}" for role in roles}}


def end(stage: str, *files: str) -> Told:
    return {"event": "end", "stage": stage, "outputs": dict.fromkeys(files, "")}


TAKEN = {"event": "bundle", "sha256": "ours"}
RESULTS = {"event": "results"}
REPORT = {"event": "report"}


def ours(*told: Told) -> Chronology:
    return history(*told).of_bundle("ours")


def numbers(receipts: Sequence[Receipt]) -> list[int]:
    return [receipt.number for receipt in receipts]


# one history ---------------------------------------------------------------------------------------------------------


def test_nothing_yet(tmp_path: Path) -> None:
    empty = History.read(tmp_path / "ledger.jsonl")
    assert len(empty) == 0
    assert empty.head == BEGINNING
    assert (empty.results, empty.report, empty.cohorts, empty.bundles, empty.staged) == (None, None, [], [], [])
    assert empty.scored_too_early is None
    assert not empty.taken_over
    assert len(empty.before_report) == 0


def test_the_head_is_the_hash_of_the_last_line() -> None:
    found = history(begin("mga"), freeze("ours"), RESULTS)
    assert found.head == found.receipts[-1].sha256
    assert [found.place_of(each.sha256.upper() + " ") for each in found.receipts] == [1, 2, 3]
    assert found.place_of(BEGINNING) is None
    assert found.first(2).head == found.receipts[1].sha256


def test_reports_at_the_end_are_left_out() -> None:
    found = history(RESULTS, REPORT, RESULTS, REPORT, REPORT)
    assert numbers(found.before_report.receipts) == [1, 2, 3]
    assert found.before_report.report is not None
    assert found.before_report.report.number == 2
    assert numbers(found.before_report.before_report.receipts) == [1, 2, 3]


def test_the_last_receipts_of_their_kind() -> None:
    one, two = ({"event": "results", "files": {name: ""}} for name in ("a.csv", "b.csv"))
    cohorts = [{"event": "cohort", "cohort": {"kind": kind}} for kind in ("synthetic", "ptbxl")]
    found = history(*cohorts, one, REPORT, two, REPORT)
    assert found.results is not None
    assert found.report is not None
    assert (found.results.number, found.report.number) == (5, 6)
    assert found.result_files == {"a.csv", "b.csv"}
    assert [each.cohort["kind"] for each in found.cohorts] == ["synthetic", "ptbxl"]


def test_stages_and_their_roles() -> None:
    found = history(
        begin("cohort", "train", "audit"), begin("references/a/2", "selection"), begin("score/audit"), end("mga")
    )
    assert numbers(found.begun) == [1, 2, 3]
    assert numbers(found.ended) == [4]
    assert numbers(found.staged) == [1, 2, 3, 4]
    assert numbers(found.fitted) == [1, 2]
    assert numbers(found.searches) == [2]
    assert found.begun[0].roles == {"train": "of train", "audit": "of audit"}


def test_scoring_before_any_freeze() -> None:
    for early in (begin("score/audit"), end("score/evaluation")):
        found = history(begin("mga"), early, freeze("ours"), begin("score/audit")).scored_too_early
        assert found is not None
        assert found.number == 2
    assert history(freeze("ours"), begin("score/audit")).scored_too_early is None
    assert history(TAKEN, begin("score/audit")).scored_too_early is None
    assert history(begin("freeze"), begin("score/audit")).scored_too_early is not None, "it was only begun"


def test_each_machine_has_its_stages() -> None:
    other = {"software": SOFTWARE | {"threads": 8}}
    found = history(
        begin("controlled"), begin("mga") | other, begin("score/audit"), RESULTS, end("score/audit")
    ).software
    assert {software.threads: stages for software, stages in found.items()} == {
        2: ["controlled", "score/audit", "results"],
        8: ["mga"],
    }


def test_a_network_that_was_trained_here_has_an_account_of_it() -> None:
    found = history(
        end("evaluator/strong/seed-1", "strong.safetensors"),
        end("evaluator/strong/seed-2", "strong.safetensors", "history.csv"),
    )
    assert [found.trained_elsewhere("strong", seed) for seed in (1, 2, 3)] == [True, False, False]


# before and after a freeze -------------------------------------------------------------------------------------------


def test_a_run() -> None:
    found = ours(
        begin("mga"), begin("freeze"), freeze("ours"), begin("score/audit"), begin("score/evaluation"), RESULTS
    )
    assert found.frozen is not None
    assert found.frozen.number == 3
    assert not found.elsewhere
    assert found.freeze is not None
    assert (found.freeze.time, found.freeze.head) == (found.frozen.time, found.frozen.sha256)
    assert numbers(found.scorings) == numbers(found.between) == [4, 5]
    assert found.earlier == []
    assert found.history.bundles == ["ours"]


def test_a_bundle_from_elsewhere() -> None:
    found = ours(TAKEN, begin("score/audit"), RESULTS, TAKEN)
    assert found.frozen is not None
    assert found.frozen.number == 1, "taken again, it is still the same"
    assert found.elsewhere
    assert found.history.taken_over
    assert numbers(found.scorings) == [2]


def test_another_bundle_before_or_after() -> None:
    before = ours(freeze("other"), begin("score/audit"), begin("mga"), freeze("ours"), begin("score/audit"), RESULTS)
    assert numbers(before.earlier) == [2]
    assert (before.times_earlier("audit"), before.times_earlier("evaluation")) == (1, 0)
    assert numbers(before.scorings) == [5]
    assert numbers(before.between) == [5]
    after = ours(
        freeze("ours"), begin("score/audit"), RESULTS, begin("mga"), freeze("other"), begin("score/audit"), RESULTS
    )
    assert after.earlier == []
    assert numbers(after.scorings) == [2]
    assert numbers(after.between) == [2], "what comes later belongs to another bundle"
    assert after.history.bundles == ["ours", "other"]


def test_no_freeze() -> None:
    found = ours(begin("score/audit"), freeze("other"), begin("score/evaluation"))
    assert found.frozen is found.freeze is None
    assert found.freeze_in_words == ""
    assert not found.elsewhere
    assert found.scorings == found.between == []
    assert numbers(found.earlier) == [1, 3]


def test_a_freeze_elsewhere_is_not_the_taking_over() -> None:
    taken = TAKEN | {"time": "2026-11-20T10:00:00.000+00:00"}
    said = {"time": "2026-11-18T06:47:09.735+00:00", "head": "f" * 64}
    assert ours(taken | {"frozen": said}, begin("score/audit"), RESULTS).freeze_in_words == (
        f"frozen, as the bundle says, at 2026-11-18 06:47:09 UTC (head of that run's ledger {'f' * 64}), "
        "and taken over from another run at 2026-11-20 10:00:00 UTC (receipt 1)"
    )
    for unknown in (taken, taken | {"frozen": None}):
        assert ours(unknown, begin("score/audit"), RESULTS).freeze_in_words == (
            "taken over from another run at 2026-11-20 10:00:00 UTC (receipt 1); the bundle does not say when it was "
            "frozen"
        )
    assert ours(freeze("ours")).freeze_in_words == "frozen at 2026-11-18 06:47:09 UTC (receipt 1)"


def test_when() -> None:
    assert history(RESULTS).receipts[0].when == "2026-11-18 06:47:09 UTC (receipt 1)"
    assert clock(COMMON["time"]) == "2026-11-18 06:47:09 UTC"


# what results rest on ------------------------------------------------------------------------------------------------


class Writer:
    """Receipts as a run would write them."""

    def __init__(self) -> None:
        self.told: list[Told] = []

    def stage(self, name: str, key: str, inputs: dict[str, str], outputs: dict[str, str]) -> str:
        self.told.append({"event": "begin", "stage": name, "key": key, "inputs": inputs})
        self.told.append({"event": "end", "stage": name, "key": key, "outputs": outputs})
        return sha256(rfc8785.dumps(outputs)).hexdigest()

    def keys(self, bundle: str) -> list[str]:
        return [end.key for end in history(*self.told).of_bundle(bundle).artifacts]


def test_artifacts_of_another_plan_are_left_out() -> None:
    run = Writer()
    shared = run.stage("controlled", "c", {"role:train": "t"}, {"weights": "1"})
    for plan in ("old", "new"):
        mga = run.stage("mga", f"mga {plan}", {"controlled": shared}, {"policy": plan})
        frozen = run.stage("freeze", f"freeze {plan}", {"mga": mga}, {"bundle.json": f"bundle {plan}"})
        run.stage("score/audit", f"audit {plan}", {"role:audit": "a", "freeze": frozen}, {"results": plan})
    for plan in ("old", "new"):
        assert run.keys(f"bundle {plan}") == ["c", f"mga {plan}", f"freeze {plan}", f"audit {plan}"]


def test_a_bundle_from_elsewhere_was_scored_after_the_receipt_about_it() -> None:
    run = Writer()
    for bundle in ("one", "two"):
        run.told.append({"event": "bundle", "sha256": bundle})
        run.stage("score/evaluation", f"scored {bundle}", {"role:evaluation": "e"}, {"results": bundle})
    assert run.keys("two") == ["scored two"]


def test_an_end_without_a_beginning_rests_on_nothing() -> None:
    assert ours(freeze("ours")).artifacts[0].number == 1
