"""An evaluator that is a table: what another one answered about some lead sets, each on every record of a role."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.evaluators.contract import Evaluator, evaluator_name, evaluator_sha256
from leadwise.leads import LeadSet, mask_bits
from leadwise.store import read_tensors, whole_file, write_tensors

FORMAT = "leadwise table of logits 1"
LARGEST = 80.0
"""Logits are kept between this and its negative; beyond, a probability is 0 or 1 to the last digit."""


def logits_of(probabilities: Float64[np.ndarray, "*many l"]) -> Float32[np.ndarray, "*many l"]:
    """Logits as a table keeps them: in single precision, which is what networks compute in."""
    from scipy.special import logit

    with np.errstate(divide="ignore"):
        return np.clip(logit(probabilities), -LARGEST, LARGEST).astype(np.float32)


@dataclass(frozen=True, eq=False, repr=False)
class TableEvaluator:
    """The answers of an evaluator to every pair of some lead sets and some records."""

    name: str
    labels: Sequence[str]
    sha256: str | None
    """That of the evaluator that answered."""
    ids: Int[np.ndarray, " n"]
    bits: Int[np.ndarray, " s"]
    """Lead sets."""
    logits: Float32[np.ndarray, "s n l"]

    def __repr__(self) -> str:
        return f"<TableEvaluator {self.name}: {len(self.bits):,} lead sets on {len(self.ids):,} records>"

    def probabilities(
        self, signals: Float32[np.ndarray, "n 12 t"], masks: Bool[np.ndarray, "n 12"]
    ) -> Float64[np.ndarray, "n l"]:
        """Nothing: a table knows records by their ids and cannot read signals."""
        del signals, masks
        raise InputError(f"{self!r} knows records by their ids; it cannot read others.")

    def prepare(self, records: Records) -> "_PreparedTable":
        """The rows of the table for these records."""
        order = np.argsort(self.ids)
        place = order[np.minimum(np.searchsorted(self.ids, records.ids, sorter=order), len(order) - 1)]
        strange = self.ids[place] != records.ids
        if strange.any():
            raise InputError(f"{self!r} does not have record {records.ids[strange][0]} of {records.name}.")
        return _PreparedTable(self, place)

    def save(self, path: Path) -> None:
        """Write one safetensors file."""
        tensors = {"ids": self.ids, "bits": self.bits, "logits": self.logits}
        facts = {"kind": "table", "name": self.name, "labels": list(self.labels), "sha256": self.sha256}
        write_tensors(path, tensors, FORMAT, facts)

    @classmethod
    def load(cls, path: Path) -> "TableEvaluator":
        """Read what `save` wrote."""
        tensors, facts = read_tensors(path, FORMAT)
        with whole_file(path, "table of logits"):
            ids, bits, logits = (tensors[name] for name in ("ids", "bits", "logits"))
            if logits.shape != (len(bits), len(ids), len(facts["labels"])):
                raise ValueError(f"its logits have the shape {logits.shape}")
            return cls(facts["name"], facts["labels"], facts["sha256"], ids, bits, logits)


def as_read(evaluator: Evaluator, tables: Sequence[TableEvaluator]) -> Evaluator:
    """The evaluator, answering from a table where there is one of its weights, or of those that it derives from."""
    source = getattr(evaluator, "source", None)
    for table in tables:
        if table.sha256 is not None and table.sha256 == evaluator_sha256(evaluator):
            return replace(table, name=evaluator_name(evaluator))
        if source is not None and table.sha256 is not None and table.sha256 == evaluator_sha256(source):
            derived: Any = copy(evaluator)
            derived.source = table
            return cast(Evaluator, derived)
    return evaluator


class _PreparedTable:
    """A table's rows for some records."""

    def __init__(self, table: TableEvaluator, place: Int[np.ndarray, " n"]) -> None:
        self.table, self.place = table, place
        self.row = {int(bits): row for row, bits in enumerate(table.bits)}

    def probabilities(
        self, positions: Int[np.ndarray, " m"], masks: Bool[np.ndarray, "m 12"]
    ) -> Float64[np.ndarray, "m l"]:
        return self._probabilities(self.table.logits[self._rows(masks), self.place[positions]])

    def subsets(self, masks: Bool[np.ndarray, "s 12"]) -> Float64[np.ndarray, "s n l"]:
        """All lead sets on all records."""
        return self._probabilities(self.table.logits[self._rows(masks)[:, None], self.place])

    def _rows(self, masks: Bool[np.ndarray, "m 12"]) -> Int[np.ndarray, " m"]:
        asked = mask_bits(masks).tolist()
        for bits in asked:
            if bits not in self.row:
                raise InputError(f"{self.table!r} does not have the lead set '{LeadSet(bits)}'.")
        return np.array([self.row[bits] for bits in asked], dtype=int)

    @staticmethod
    def _probabilities(logits: Float32[np.ndarray, "... l"]) -> Float64[np.ndarray, "... l"]:
        if np.isnan(logits).any():
            raise InputError(
                "The table has no answer for a record that lacks the leads; ask for records that have them."
            )
        from scipy.special import expit

        return np.asarray(expit(logits.astype(np.float64)))
