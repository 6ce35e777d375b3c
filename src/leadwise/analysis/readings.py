"""Readings: evaluators' probabilities on the records of a role, the one memory that its results are made from."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float64, Int

from leadwise.analysis.bootstrap import PatientBootstrap
from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.evaluators.contract import Evaluator, evaluator_name
from leadwise.evaluators.scoring import Scorer, Scorers
from leadwise.leads import lead_names, mask_bits
from leadwise.metrics import record_brier, record_nll


class Readings:
    """Evaluators' probabilities on the records of a role; each distinct reading is made once.

    Allocations may leave some of the records out. In the directory ``memory`` readings are kept as they are made, for
    evaluators that take their time.
    """

    def __init__(
        self,
        records: Records,
        evaluators: Iterable[Evaluator],
        bootstrap: PatientBootstrap | None = None,
        memory: Path | None = None,
    ) -> None:
        self.records, self.bootstrap = records, bootstrap or PatientBootstrap(records)
        self.evaluators: dict[str, Evaluator] = {}
        for evaluator in evaluators:
            name = evaluator_name(evaluator)
            if self.evaluators.setdefault(name, evaluator) is not evaluator:
                raise InputError(f"Two evaluators are called '{name}'; give each a name of its own.")
        self.scorers = Scorers(records, memory, whole=True)
        """Scorers of the evaluators; a rollout on the same records may read with them, too."""
        self._used: dict[str, Scorer] = {}

    def __repr__(self) -> str:
        return f"<Readings of {len(self.records)} records by {', '.join(self.evaluators)}>"

    def resampled(self, bootstrap: PatientBootstrap, evaluators: Iterable[Evaluator]) -> "Readings":
        """The same readings with other replicates of the patients, and of these evaluators.

        What one of the two has read, the other does not read again.
        """
        other = Readings(self.records, evaluators, bootstrap)
        other.scorers, other._used = self.scorers, self._used
        return other

    def probabilities(
        self, evaluator: str, records: Records, masks: Sequence[Bool[np.ndarray, "n 12"]]
    ) -> list[Float64[np.ndarray, "n l"]]:
        """The evaluator's probabilities on ``records`` (a part of the role) for each of the mask matrices."""
        if evaluator not in self.evaluators:
            raise InputError(f"There is no evaluator '{evaluator}' here; there are {', '.join(self.evaluators)}.")
        if evaluator not in self._used:
            source = self.scorers.of(self.evaluators[evaluator])
            self._used[evaluator] = Scorer(source.evaluator, self.records, remember=True, source=source)
        positions = np.tile(self._positions(records), len(masks))
        answer = self._used[evaluator].pairs(positions, np.concatenate(masks))
        return list(answer.reshape(len(masks), len(records), -1))

    def used(self) -> Iterator[tuple[str, Int[np.ndarray, " m"], Bool[np.ndarray, "m 12"], Float64[np.ndarray, "m l"]]]:
        """Name, positions, masks and probabilities of all that was asked for, once, by evaluator.

        What a rollout has read on its way, with the same `scorers`, is not among it.
        """
        for name, scorer in self._used.items():
            yield name, *scorer.remembered

    def _positions(self, records: Records) -> Int[np.ndarray, " n"]:
        """Positions of these records among the role's."""
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
        labels = records.labels[positions]
        columns: dict[str, Any] = {"role": records.role, "evaluator": evaluator, "id": records.ids[positions]}
        columns |= {"patient": records.patients[positions], "leads": lead_names(mask_bits(masks))}
        columns |= {f"y_{name}": labels[:, i] for i, name in enumerate(records.label_names)}
        columns |= {f"p_{name}": probabilities[:, i] for i, name in enumerate(records.label_names)}
        columns |= {"nll": record_nll(labels, probabilities), "brier": record_brier(labels, probabilities)}
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)
