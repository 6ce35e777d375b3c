"""In which order a run's ledger tells that things were fitted, frozen and scored."""

from typing import Any

from leadwise.cohort.roles import SCORED
from leadwise.run.contents import RunContents
from leadwise.run.freeze import frozen_bundle, told_freeze

Receipt = dict[str, Any]


class Chronology:
    """What happened before and after the freeze of the bundle that the results are of.

    A directory may have seen several bundles, when a plan was changed and run again.
    """

    def __init__(self, contents: RunContents) -> None:
        self.receipts, bundle = contents.receipts, contents.bundle.sha256
        self.frozen: Receipt | None = None
        """When the bundle was frozen, or, if that was elsewhere, taken over."""
        self.freeze = told_freeze(self.receipts, bundle)
        """The freeze itself, wherever it was; None where the bundle was taken over and does not say."""
        self.scorings: list[Receipt] = []
        """Beginnings of scoring with this bundle."""
        self.earlier: list[Receipt] = []
        """Beginnings of scoring with other bundles, before this one was frozen."""
        current = ""
        for receipt in self.receipts:
            current = frozen_bundle(receipt) or current
            if self.frozen is None and current == bundle:
                self.frozen = receipt
            if receipt["event"] == "begin" and receipt["stage"] in SCORED:
                if current == bundle:
                    self.scorings.append(receipt)
                elif self.frozen is None:
                    self.earlier.append(receipt)

    @property
    def elsewhere(self) -> bool:
        """Whether the bundle came from another run, so that this one fitted nothing."""
        return self.frozen is not None and self.frozen["event"] == "bundle"

    @property
    def of_freeze(self) -> str:
        """When the bundle was frozen, and if that was elsewhere, when it was taken over; a part of a sentence."""
        if self.frozen is None:
            return ""
        if not self.elsewhere:
            return f"frozen at {when(self.frozen)}"
        taken = f"taken over from another run at {when(self.frozen)}"
        if self.freeze is None:
            return f"{taken}; the bundle does not say when it was frozen"
        moment = f"{clock(self.freeze.time)} (head of that run's ledger {self.freeze.head})"
        return f"frozen, as the bundle says, at {moment}, and {taken}"

    @property
    def between(self) -> list[Receipt]:
        """Beginnings from the freeze to the last scoring with this bundle."""
        if self.frozen is None or not self.scorings:
            return []
        numbers = range(self.frozen["number"] + 1, self.scorings[-1]["number"] + 1)
        return [each for each in self.receipts if each["event"] == "begin" and each["number"] in numbers]

    def fitting(self, prefix: str = "") -> list[Receipt]:
        """Beginnings of stages that are no scoring, by the beginning of their names."""
        begun = [each for each in self.receipts if each["event"] == "begin"]
        return [each for each in begun if each["stage"] not in SCORED and each["stage"].startswith(prefix)]


def when(receipt: Receipt) -> str:
    """A receipt's clock, to the second, and its number."""
    return f"{clock(receipt['time'])} (receipt {receipt['number']})"


def clock(time: str) -> str:
    """What a clock said, to the second."""
    return f"{time[:19].replace('T', ' ')} UTC"
