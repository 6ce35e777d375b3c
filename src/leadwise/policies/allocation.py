"""For every record, the leads that a policy chose."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np
from jaxtyping import Bool, Int

from leadwise.cohort.cohort import Records, Selection
from leadwise.errors import InputError
from leadwise.leads import LEADS, LeadSet, lead_names, mask_bits, order_masks
from leadwise.notebook import html_table


@dataclass(frozen=True, eq=False, repr=False)
class Allocation:
    """The ordered leads that a policy chose for budget k, for each of its records."""

    records: Records
    policy: str
    trained_on: str
    """Name of the evaluator that the policy was trained on; empty for one that was not."""
    order: Int[np.ndarray, "n k"]
    """Lead indices in order of acquisition."""

    def __post_init__(self) -> None:
        n, k = self.order.shape
        if n != len(self.records):
            raise InputError(f"Policy {self.policy} chose for {n} records, but there are {len(self.records)}.")
        if not 1 <= k <= len(LEADS) or self.order.min(initial=0) < 0 or self.order.max(initial=0) >= len(LEADS):
            raise InputError(f"Policy {self.policy} chose leads that do not exist; they are numbered 0 to 11.")
        repeats = self.masks.sum(axis=1) != k
        if repeats.any():
            record = self.records.ids[np.argmax(repeats)]
            twice = f"Policy {self.policy} chose a lead twice for record {record}"
            raise InputError(f"{twice}; {k} different ones were due.")
        absent = self.masks & ~self.records.available
        if absent.any():
            record, lead = np.argwhere(absent)[0]
            to = f"record {self.records.ids[record]}"
            raise InputError(f"Policy {self.policy} chose {LEADS[lead]} for {to}, which lacks it.")

    def __repr__(self) -> str:
        often = "".join(f", {leads} for {count} of them" for leads, count in self._commonest(1))
        return f"<{self._title}{often}>"

    def _repr_html_(self) -> str:
        """The lead sets that were chosen most often."""
        n = len(self.records)
        rows = [(leads, f"{count:,}", f"{100 * count / n:.1f}%") for leads, count in self._commonest(5)]
        return html_table(self._title, ("leads", "records", "share"), rows)

    @property
    def _title(self) -> str:
        trained = f" trained on {self.trained_on}" if self.trained_on else ""
        return f"Allocation of {self.policy}{trained}, k = {self.k}: {len(self.records)} records"

    def _commonest(self, top: int) -> list[tuple[str, int]]:
        """The lead sets that were chosen most often, and for how many records."""
        bits, counts = np.unique(mask_bits(self.masks), return_counts=True)
        most = (-counts).argsort(kind="stable")[:top]
        return list(zip(lead_names(bits[most]), counts[most].tolist(), strict=True))

    @property
    def k(self) -> int:
        """The budget."""
        return self.order.shape[1]

    @property
    def masks(self) -> Bool[np.ndarray, "n 12"]:
        """Mask of the leads that each record was given."""
        return order_masks(self.order)

    @property
    def lead_sets(self) -> list[LeadSet]:
        return [LeadSet.of(row.tolist()) for row in self.order]

    @cached_property
    def sha256(self) -> str:
        """Hash of who was given what by whom; equal allocations have equal ones."""
        digest = sha256("\n".join((self.policy, self.trained_on, str(self.k))).encode())
        for array in (self.records.ids, self.records.patients, self.order):
            digest.update(array.astype("<i8").tobytes())
        return digest.hexdigest()

    def having(self, leads: LeadSet) -> "Allocation":
        """The part of it that is for records that have all of these leads."""
        has = ~(leads.mask & ~self.records.available).any(axis=1)
        if has.all():
            return self
        if not has.any():
            raise InputError(
                f"No record of {self.records.name} has all of {leads}, which {self.policy} is to be compared with at "
                f"k = {self.k}; search references among the leads that these records have."
            )
        return self.select(has)

    def select(self, which: Selection) -> "Allocation":
        """The part of it that is for some of its records."""
        return Allocation(self.records.select(which), self.policy, self.trained_on, self.order[which])
