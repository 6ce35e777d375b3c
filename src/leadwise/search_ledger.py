"""What a search has finished, on disk: a line for each lead set, and what was answered about it."""

import json
import os
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float64

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.evaluators.contract import Evaluator, evaluator_name, evaluator_sha256
from leadwise.evaluators.table import TableEvaluator, logits_of
from leadwise.store import atomic_file


class SearchLedger:
    """Finished lead sets on disk, a line each; with a file for ``answers`` also the logits of every record.

    A lead set's logits are written before its line, and what has no line is written over: a kill leaves no line
    without its logits.
    """

    def __init__(self, path: Path, evaluator: Evaluator, records: Records, answers: Path | None = None) -> None:
        self.path, self.answers = path, answers
        self.values: dict[int, list[float]] = {}
        """Metrics of each lead set, by its bits."""
        self._shape = len(records), len(records.label_names)
        weights = evaluator_sha256(evaluator)
        head = {"evaluator": evaluator_name(evaluator), "weights": weights, "records": records.labels_sha256}
        if not path.exists():
            with atomic_file(path) as draft:
                draft.write_text(json.dumps(head) + "\n")
            return
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]  # what follows the last line break was torn by a kill
        try:
            first, *lines = [json.loads(line) for line in whole.splitlines()]
            self.values = {int(bits): [float(value) for value in metrics] for bits, *metrics in lines}
        except (ValueError, TypeError):
            raise InputError(f"{path} is not the ledger of a search; remove it, or name another file.") from None
        if first != head:
            raise InputError(f"{path} belongs to the search of another evaluator or other records; name another file.")
        os.truncate(path, len(whole))

    def add(
        self,
        metrics: dict[int, list[float]],
        probabilities: Float64[np.ndarray, "m k l"] | None,
        kept: Bool[np.ndarray, " n"],
    ) -> None:
        """Keep the metrics of some lead sets, by their bits, and what was answered about the records that are kept."""
        if self.answers is not None and probabilities is not None:
            logits = np.full((len(metrics), *self._shape), np.nan, dtype="<f4")
            logits[:, kept] = logits_of(probabilities)
            self.answers.touch()
            with self.answers.open("r+b") as file:
                file.seek(len(self.values) * 4 * self._shape[0] * self._shape[1])
                file.write(logits.tobytes())
                file.flush()
                os.fsync(file.fileno())
        self.values |= metrics
        with self.path.open("a") as file:
            file.writelines(json.dumps([bits, *values]) + "\n" for bits, values in metrics.items())
            file.flush()
            os.fsync(file.fileno())


def answers_of_search(evaluator: Evaluator, records: Records, ledger: Path, answers: Path) -> TableEvaluator | None:
    """What the evaluator answered in a search that kept it; None where it reads many lead sets at once."""
    if not answers.exists():
        return None
    bits = np.array(list(SearchLedger(ledger, evaluator, records).values), dtype=np.int64)
    logits = np.fromfile(answers, "<f4", count=len(bits) * len(records) * len(records.label_names))
    order = np.argsort(bits)
    table = logits.reshape(len(bits), len(records), -1)[order]
    labels, weights = list(records.label_names), evaluator_sha256(evaluator)
    return TableEvaluator(evaluator_name(evaluator), labels, weights, records.ids, bits[order], table)
