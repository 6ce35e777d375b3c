"""Origin of a report's numbers: hashes and software, as the receipts have them."""

from collections.abc import Iterator, Mapping

import pandas as pd

from leadwise.report.numbers import listing
from leadwise.run.contents import RunContents
from leadwise.run.history import History


def hash_frames(contents: RunContents) -> Iterator[tuple[tuple[str, str, str], pd.DataFrame]]:
    """Tables of hashes, each with its name, title and caption."""
    used = contents.chronology.artifacts
    rows = [(each.stage, each.key[:16], each.seconds, each.list_sha256) for each in used]
    artifacts = pd.DataFrame(rows, columns=["stage", "key", "seconds", "SHA-256"])
    where = "Every artifact that the results rest on, in artifacts/STAGE/KEY. The hash is that of its outputs.json, "
    yield ("used", "Artifacts", where + "which holds the hash of each of its files."), artifacts
    bundle, results = contents.bundle.files, contents.gathered.files
    yield ("frozen", "Bundle", "What was frozen before a scored role was looked at, in bundle/."), _files(bundle)
    yield ("results", "Results", "What all tables and figures of this report show, in results/."), _files(results)


def software_frame(history: History) -> pd.DataFrame:
    """A row for each software and machine that wrote receipts, with the stages that it worked on."""
    used = history.software
    rows = [
        (*(getattr(software, name) for name in _SOFTWARE), "all" if len(used) == 1 else listing(stages))
        for software, stages in used.items()
    ]
    return pd.DataFrame(rows, columns=[*_SOFTWARE.values(), "stages"])


_SOFTWARE = {"leadwise": "leadwise", "commit": "commit", "python": "Python", "numpy": "NumPy", "torch": "PyTorch"}
_SOFTWARE |= {"cpu": "CPU", "threads": "threads"}


def _files(hashes: Mapping[str, str]) -> pd.DataFrame:
    return pd.DataFrame(hashes.items(), columns=["file", "SHA-256"])
