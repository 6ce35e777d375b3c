"""What evaluators make of leads on the records of a role: the one memory that a role's results are made from."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float64, Int

from leadwise.analysis.bootstrap import PatientBootstrap
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.evaluators.contract import evaluator_name
from leadwise.evaluators.scoring import Scorers
from leadwise.leads import LeadSet
from leadwise.metrics import record_brier, record_nll


class Readings:
    """What evaluators make of leads on the records of a role: each distinct reading is computed once.

    Parameters
    ----------
    records
        Everyone in the role; allocations may leave some out.
    evaluators
        The evaluators that read.
    bootstrap
        The role's resample.
    memory
        Directory where readings are kept as they are made, for evaluators that take their time.
    """

    def __init__(
        self,
        records: Records,
        evaluators: Iterable[Any],
        bootstrap: PatientBootstrap | None = None,
        memory: Path | None = None,
    ) -> None:
        self.records = records
        self.bootstrap = bootstrap or PatientBootstrap(records)
        self.evaluators: dict[str, Any] = {}
        for evaluator in evaluators:
            name = evaluator_name(evaluator)
            if self.evaluators.setdefault(name, evaluator) is not evaluator:
                raise InputError(f"Two evaluators are called '{name}'; give each a name of its own.")
        self.scorers = Scorers(records, memory)
        """What reads; a rollout on the same records may read with them, too."""
        self._used: dict[str, Int[np.ndarray, " m"]] = {}

    def __repr__(self) -> str:
        return f"<Readings of {len(self.records)} records by {', '.join(self.evaluators)}>"

    def probabilities(
        self, evaluator: str, records: Records, masks: Sequence[Bool[np.ndarray, "n 12"]]
    ) -> list[Float64[np.ndarray, "n l"]]:
        """The evaluator's probabilities on ``records`` (a part of the role) for each of the mask matrices."""
        if evaluator not in self.evaluators:
            raise InputError(f"There is no evaluator '{evaluator}' here; there are {', '.join(self.evaluators)}.")
        positions, together = np.tile(self._positions(records), len(masks)), np.concatenate(masks)
        answer = self.scorers.of(self.evaluators[evaluator]).pairs(positions, together)
        used = _codes(positions, together)
        self._used[evaluator] = np.union1d(self._used.get(evaluator, used), used)
        return list(answer.reshape(len(masks), len(records), -1))

    def used(self) -> Iterator[tuple[str, Int[np.ndarray, " m"], Bool[np.ndarray, "m 12"], Float64[np.ndarray, "m l"]]]:
        """Of each evaluator that was asked: the positions, masks and probabilities of all that was asked for, once.

        What a rollout has read on its way, with the same `scorers`, is not among it.
        """
        for name, used in self._used.items():
            positions, masks, probabilities = self.scorers.of(self.evaluators[name]).remembered
            asked = np.isin(_codes(positions, masks), used)
            yield name, positions[asked], masks[asked], probabilities[asked]

    def _positions(self, records: Records) -> Int[np.ndarray, " n"]:
        """Where these records stand among the role's."""
        order = np.argsort(self.records.ids, kind="stable")
        place = np.searchsorted(self.records.ids, records.ids, sorter=order)
        positions = order[np.minimum(place, len(order) - 1)]
        strange = self.records.ids[positions] != records.ids
        strange |= self.records.patients[positions] != records.patients  # another cohort may have the same ids
        if strange.any():
            raise InputError(
                f"Record {records.ids[np.argmax(strange)]} of {records.name} is not among those of {self.records.name}."
            )
        return positions


def readings_frame(readings: Readings) -> pd.DataFrame:
    """``records.parquet``: every (evaluator, record, lead set) that a result uses, once."""
    records, frames = readings.records, []
    for evaluator, positions, masks, probabilities in readings.used():
        labels, bits = records.labels[positions], masks @ (1 << np.arange(12))
        text = {each: str(LeadSet(int(each))) for each in np.unique(bits)}
        columns: dict[str, Any] = {
            "role": records.role,
            "evaluator": evaluator,
            "id": records.ids[positions],
            "patient": records.patients[positions],
            "leads": [text[each] for each in bits],
        }
        columns |= {f"y_{name}": labels[:, i] for i, name in enumerate(records.label_names)}
        columns |= {f"p_{name}": probabilities[:, i] for i, name in enumerate(records.label_names)}
        columns |= {"nll": record_nll(labels, probabilities), "brier": record_brier(labels, probabilities)}
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def _codes(positions: Int[np.ndarray, " m"], masks: Bool[np.ndarray, "m 12"]) -> Int[np.ndarray, " m"]:
    """One number for each pair of record and mask."""
    return 4096 * positions + masks @ (1 << np.arange(12))
