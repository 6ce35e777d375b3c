"""Files of tensors that were damaged, one tensor at a time."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from leadwise.store import read_tensors, write_tensors


def damaged_files(path: Path, format: str, undefined: tuple[str, ...] = ()) -> Iterator[tuple[Path, str]]:
    """A file beside this one for everything that can be wrong with each of its tensors, and the tensor's name.

    Those in ``undefined`` hold NaN by right; they get one more.
    """
    tensors, facts = read_tensors(path, format)
    del facts["format"]
    rng = np.random.default_rng(0)
    for name, tensor in tensors.items():
        others = [
            None,
            tensor.astype(np.float16 if tensor.dtype != np.float16 else np.float32),
            tensor[None],
            tensor[1:],
        ]
        if tensor.dtype.kind == "f":
            places = np.flatnonzero(np.isfinite(tensor)) if name in undefined else np.arange(tensor.size)
            for value in (np.nan, np.inf, -np.inf):
                wrong = tensor.copy()
                wrong.flat[rng.choice(places)] = value
                others.append(wrong)
        for number, other in enumerate(others):
            changed = path.with_name(f"{name}-{number}.safetensors")
            rest = {key: value for key, value in tensors.items() if key != name}
            write_tensors(changed, rest if other is None else rest | {name: other}, format, facts)
            yield changed, name
    more = path.with_name("more.safetensors")
    write_tensors(more, tensors | {"more": np.zeros(1)}, format, facts)
    yield more, "more"


def with_facts(path: Path, format: str, **changes: object) -> Path:
    """The file with other facts."""
    tensors, facts = read_tensors(path, format)
    del facts["format"]
    changed = path.with_name("facts.safetensors")
    write_tensors(changed, tensors, format, facts | changes)
    return changed
