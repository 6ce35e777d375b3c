"""For every record, the leads that a policy chose."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.leads import LEADS, LeadSet


@dataclass(frozen=True, eq=False)
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
            raise InputError(
                f"Policy {self.policy} chose a lead twice for record {record}; {k} different ones were due."
            )
        absent = self.masks & ~self.records.available
        if absent.any():
            record, lead = np.argwhere(absent)[0]
            raise InputError(
                f"Policy {self.policy} chose {LEADS[lead]} for record {self.records.ids[record]}, which lacks it."
            )

    @property
    def k(self) -> int:
        """The budget."""
        return self.order.shape[1]

    @property
    def masks(self) -> Bool[np.ndarray, "n 12"]:
        """Which leads each record was given."""
        masks = np.zeros((len(self.order), len(LEADS)), dtype=bool)
        np.put_along_axis(masks, self.order, True, axis=1)
        return masks

    @property
    def lead_sets(self) -> list[LeadSet]:
        return [LeadSet.of(row.tolist()) for row in self.order]
