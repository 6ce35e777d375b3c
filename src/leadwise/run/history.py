"""History of a run, from its receipts: what was frozen when, scored with it, and made from what."""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from leadwise.run.ledger import (
    BEGINNING,
    Begin,
    BundleTaken,
    CohortRead,
    End,
    Freeze,
    OfStage,
    Receipt,
    Report,
    Results,
    Software,
    clock,
    read_receipts,
)
from leadwise.run.stage_names import FREEZE, evaluator_stage, is_search, scored_role

Kind = TypeVar("Kind", bound=Receipt)


class History:
    """Receipts of a run, and what follows from them."""

    def __init__(self, receipts: Iterable[Receipt]) -> None:
        self.receipts = tuple(receipts)

    @classmethod
    def read(cls, ledger: Path) -> "History":
        """That of a file; empty where there is none yet."""
        return cls(read_receipts(ledger))

    def __len__(self) -> int:
        return len(self.receipts)

    @property
    def head(self) -> str:
        """Hash of the last receipt, in which all others are chained."""
        return self.receipts[-1].sha256 if self.receipts else BEGINNING

    def place_of(self, head: str) -> int | None:
        """Number of the receipt that has this hash; None if none has."""
        return next((each.number for each in self.receipts if each.sha256 == head.strip().lower()), None)

    def first(self, count: int) -> "History":
        """History of its first receipts."""
        return History(self.receipts[:count])

    @property
    def before_report(self) -> "History":
        """Without the receipts of reports at its end, so that a report made again is the same, its head included."""
        return self.first(max((each.number for each in self.receipts if not isinstance(each, Report)), default=0))

    @cached_property
    def begun(self) -> list[Begin]:
        """Beginnings of stages."""
        return self._of(Begin)

    @cached_property
    def ended(self) -> list[End]:
        """Ends of stages."""
        return self._of(End)

    @property
    def staged(self) -> list[OfStage]:
        """Beginnings and ends of stages."""
        return self._of(OfStage)

    @property
    def fitted(self) -> list[Begin]:
        """Beginnings of stages that are no scoring."""
        return [each for each in self.begun if not scored_role(each.stage)]

    @property
    def searches(self) -> list[Begin]:
        """Beginnings of searches for references."""
        return [each for each in self.begun if is_search(each.stage)]

    @property
    def results(self) -> Results | None:
        """The last receipt about results."""
        return self._last(Results)

    @property
    def report(self) -> Report | None:
        """The last receipt about a report."""
        return self._last(Report)

    @property
    def cohorts(self) -> list[CohortRead]:
        """Receipts about the cohorts that were read."""
        return self._of(CohortRead)

    @property
    def bundles(self) -> list[str]:
        """SHA-256 of every bundle that was frozen or taken over."""
        return [bundle for each in self.receipts if (bundle := _bundle_of(each))]

    @property
    def result_files(self) -> set[str]:
        """Names of all files that were ever among the results."""
        return {name for each in self._of(Results) for name in each.files}

    @property
    def taken_over(self) -> bool:
        """True if a bundle came from elsewhere, so that nothing was fitted here."""
        return bool(self._of(BundleTaken))

    @property
    def scored_too_early(self) -> OfStage | None:
        """The first receipt of a scoring before anything was frozen."""
        for each in self.receipts:
            if _bundle_of(each):
                return None
            if isinstance(each, OfStage) and scored_role(each.stage):
                return each
        return None

    @property
    def software(self) -> dict[Software, list[str]]:
        """Each software and machine that wrote receipts, with the stages, or other events, that it worked on."""
        stages: dict[Software, dict[str, None]] = {}
        for each in self.receipts:
            named = each.stage if isinstance(each, OfStage) else each.event
            stages.setdefault(each.software, {})[named] = None
        return {software: list(names) for software, names in stages.items()}

    def trained_elsewhere(self, evaluator: str, seed: int) -> bool:
        """True if the network of a seed is one that ships: its stage ended without an account of the training."""
        stage = evaluator_stage(evaluator, seed)
        return any(each.stage == stage and "history.csv" not in each.outputs for each in self.ended)

    def of_bundle(self, bundle: str) -> "Chronology":
        """Chronology of a bundle (its SHA-256): events before and after its freeze."""
        return Chronology(self, bundle)

    def _of(self, kind: type[Kind]) -> list[Kind]:
        return [each for each in self.receipts if isinstance(each, kind)]

    def _last(self, kind: type[Kind]) -> Kind | None:
        return next((each for each in reversed(self.receipts) if isinstance(each, kind)), None)


class Chronology:
    """Events before and after the freeze of one bundle.

    A directory may have seen several, when a plan was changed and run again.
    """

    def __init__(self, history: History, bundle: str) -> None:
        self.history, self.bundle = history, bundle
        self.frozen: Receipt | None = None
        """When the bundle was frozen, or, if that was elsewhere, taken over."""
        self.scorings: list[Begin] = []
        """Beginnings of scoring with this bundle."""
        self.earlier: list[Begin] = []
        """Beginnings of scoring with other bundles, before this one was frozen."""
        current = ""
        for receipt in history.receipts:
            current = _bundle_of(receipt) or current
            if self.frozen is None and current == bundle:
                self.frozen = receipt
            if isinstance(receipt, Begin) and scored_role(receipt.stage):
                if current == bundle:
                    self.scorings.append(receipt)
                elif self.frozen is None:
                    self.earlier.append(receipt)

    @property
    def elsewhere(self) -> bool:
        """True if the bundle came from another run, so that this one fitted nothing."""
        return isinstance(self.frozen, BundleTaken)

    @property
    def freeze(self) -> Freeze | None:
        """The freeze itself, wherever it was; None where the bundle was taken over and does not say."""
        if isinstance(self.frozen, BundleTaken):
            return self.frozen.frozen
        return Freeze(time=self.frozen.time, head=self.frozen.sha256) if self.frozen else None

    @property
    def freeze_in_words(self) -> str:
        """When the bundle was frozen, and if that was elsewhere, when it was taken over; a part of a sentence."""
        if self.frozen is None:
            return ""
        if not self.elsewhere:
            return f"frozen at {self.frozen.when}"
        taken = f"taken over from another run at {self.frozen.when}"
        if self.freeze is None:
            return f"{taken}; the bundle does not say when it was frozen"
        moment = f"{clock(self.freeze.time)} (head of that run's ledger {self.freeze.head})"
        return f"frozen, as the bundle says, at {moment}, and {taken}"

    @property
    def between(self) -> list[Begin]:
        """Beginnings from the freeze to the last scoring with this bundle."""
        if self.frozen is None or not self.scorings:
            return []
        numbers = range(self.frozen.number + 1, self.scorings[-1].number + 1)
        return [each for each in self.history.begun if each.number in numbers]

    def times_earlier(self, role: str) -> int:
        """Number of scorings of a role with other bundles before this one was frozen."""
        return sum(scored_role(each.stage) == role for each in self.earlier)

    @property
    def artifacts(self) -> list[End]:
        """The ends of all stages that the results of the bundle rest on, in their order.

        A run may have carried out other plans before, so the chain is followed back from the scored roles: the receipt
        that begins a stage names the hashes of its inputs, the receipt that ends a stage names its outputs.
        """
        ended = {(each.stage, each.artifact): each for each in self.history.ended}
        inputs = {each.key: each.inputs for each in self.history.begun}
        frozen = {made for made, each in ended.items() if _bundle_of(each) == self.bundle}
        left, opened = list(frozen), ""
        for receipt in self.history.receipts:
            if isinstance(receipt, BundleTaken):
                opened = receipt.bundle  # frozen elsewhere; what follows is scored with it
            elif isinstance(receipt, End) and scored_role(receipt.stage):
                needs = inputs.get(receipt.key, {})
                if (FREEZE, needs.get(FREEZE)) in frozen or (FREEZE not in needs and opened == self.bundle):
                    left.append((receipt.stage, receipt.artifact))
        used: dict[int, End] = {}
        while left:
            end = ended.get(left.pop())
            if end and end.number not in used:  # a role of the cohort is no stage
                used[end.number] = end
                left += inputs.get(end.key, {}).items()
        return [used[number] for number in sorted(used)]


def _bundle_of(receipt: Receipt) -> str | None:
    """SHA-256 of the bundle that a receipt says was frozen or taken over; None if it is about something else."""
    if isinstance(receipt, BundleTaken):
        return receipt.bundle
    if isinstance(receipt, End) and receipt.stage == FREEZE:
        return receipt.outputs.get("bundle.json")
    return None
