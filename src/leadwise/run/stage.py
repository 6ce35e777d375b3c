"""Stages: what a run is made of. Each is done once, and done again only if something that it depends on has changed."""

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import rfc8785

from leadwise.errors import InputError
from leadwise.run.directory import RunDirectory
from leadwise.run.facts import Facts, read_facts
from leadwise.run.history import History
from leadwise.run.ledger import Ledger, outputs_sha256
from leadwise.store import atomic_directory, atomic_file, file_sha256, remove_drafts

Tell = Callable[[str], None]
"""Is told a line whenever a stage begins or ends."""
OUTPUTS = "outputs.json"
"""In every artifact: what it was made from, and the hash of each of its files."""


@dataclass(frozen=True)
class Stage:
    """One piece of work with declared inputs.

    Its key is the hash of its name, version, settings and the outputs that it needs; a key's artifact is made once.
    """

    name: str
    make: Callable[["Work"], None]
    """Writes its outputs into ``work.out``."""
    needs: tuple[str, ...] = ()
    """Stages, and roles of the cohort as ``role:train``, that it may use."""
    settings: Any = None
    """Settings that decide its outputs beside its inputs, as JSON."""
    version: int = 1
    """Bumped by hand whenever the same inputs would give other outputs."""
    cost: Mapping[str, float] = field(default_factory=dict)
    """Amounts of work by unit; see `leadwise.registry.Settings.cost`."""


@dataclass(frozen=True)
class Work:
    """Directories, inputs and study that a stage works with."""

    out: Path
    """An empty directory for its outputs."""
    scratch: Path
    """A directory that survives a kill, for checkpoints; removed when the stage is done."""
    inputs: Mapping[str, Path]
    """Artifacts of the stages that it needs."""
    readings: Path
    """A directory where evaluators' readings are kept for other stages; removed when all is frozen."""
    study: Any
    """Plan and cohort."""


@dataclass(frozen=True)
class Later:
    """A function of a module that is imported when it is called, as a stage's work."""

    module: str
    name: str
    arguments: tuple[object, ...] = ()

    def __call__(self, work: Work) -> None:
        getattr(import_module(self.module), self.name)(work, *self.arguments)


@dataclass(frozen=True)
class Artifact:
    """A finished stage."""

    path: Path
    key: str
    outputs: Mapping[str, str]
    """SHA-256 of each file."""

    @property
    def sha256(self) -> str:
        return outputs_sha256(self.outputs)


class _Outputs(Facts):
    stage: str
    version: int
    key: str
    settings: Any
    inputs: dict[str, str]
    outputs: dict[str, str]


class MissingInput(InputError):
    """A stage needs a role that the cohort does not have, or a stage that is not done."""


@dataclass
class Finder:
    """Finds what stages have made; it writes nothing."""

    directory: RunDirectory
    roles: Mapping[str, str]
    """Fingerprint of the records of each role that the cohort has."""
    done: dict[str, Artifact] = field(default_factory=dict)

    def find(self, stage: Stage) -> Artifact | None:
        """The artifact of a stage whose inputs are all known, if it was made before."""
        return read_artifact(self.place(stage))

    def place(self, stage: Stage) -> Path:
        """Place of a stage's artifact, whether it is made yet or not."""
        return self.directory.artifacts / stage.name / self.key(stage)[:16]

    def key(self, stage: Stage) -> str:
        facts = {"stage": stage.name, "version": stage.version, "settings": stage.settings}
        return sha256(rfc8785.dumps(facts | {"inputs": self.inputs(stage)})).hexdigest()

    def inputs(self, stage: Stage) -> dict[str, str]:
        """Hash of everything that a stage needs."""
        known = {name: artifact.sha256 for name, artifact in self.done.items()}
        known |= {f"role:{role}": fingerprint for role, fingerprint in self.roles.items()}
        for need in stage.needs:
            if need not in known and need.startswith("role:"):
                raise MissingInput(f"The cohort has no {need[5:]} role, which the stage {stage.name} needs.")
            if need not in known:
                raise MissingInput(f"The stage {stage.name} needs {need}, which is not done.")
        return {need: known[need] for need in stage.needs}


class Runner(Finder):
    """Runs stages in a directory, finds finished ones, and writes a receipt before and after each."""

    def __init__(
        self,
        directory: RunDirectory,
        ledger: Ledger,
        roles: Mapping[str, str],
        study: Any,
        tell: Tell = lambda _line: None,
    ) -> None:
        super().__init__(directory, roles)
        self.ledger, self.study, self.tell = ledger, study, tell

    def run(self, stage: Stage) -> Artifact:
        """The stage's artifact: found, or made."""
        artifact = self.find(stage)
        if artifact is None:
            artifact = self._make(stage)
        elif not any(each.key == artifact.key for each in History(self.ledger.receipts).ended):
            self._confirm(stage, artifact, None)  # a kill came between the last file and its receipt
        _remove_leftovers(artifact.path)
        self.done[stage.name] = artifact
        return artifact

    def _make(self, stage: Stage) -> Artifact:
        key, place, said = self.key(stage), self.place(stage), self.inputs(stage)
        scratch = place.with_name(f"{place.name}.unfinished")
        scratch.mkdir(parents=True, exist_ok=True)
        inputs = {need: self.done[need].path for need in stage.needs if need in self.done}
        self.ledger.add("begin", stage=stage.name, key=key, inputs=said)
        self.tell(f"{stage.name} …")
        shutil.rmtree(place, ignore_errors=True)  # without its list of outputs, nobody can tell what it holds
        start = time.monotonic()
        with atomic_directory(place) as draft:
            stage.make(Work(draft, scratch, inputs, self.directory.readings, self.study))
            outputs = {
                str(file.relative_to(draft)): file_sha256(file) for file in sorted(draft.rglob("*")) if file.is_file()
            }
            facts = {"stage": stage.name, "version": stage.version, "key": key, "settings": stage.settings}
            facts |= {"inputs": said, "outputs": outputs}
            with atomic_file(draft / OUTPUTS) as file:
                file.write_text(json.dumps(facts, indent=1) + "\n")
        artifact = Artifact(place, key, outputs)
        seconds = round(time.monotonic() - start, 3)
        self._confirm(stage, artifact, seconds)
        self.tell(f"{stage.name} done in {seconds:,.1f} s")
        return artifact

    def _confirm(self, stage: Stage, artifact: Artifact, seconds: float | None) -> None:
        """The receipt of a finished stage."""
        facts = {"outputs": dict(artifact.outputs), "sha256": file_sha256(artifact.path / OUTPUTS)}
        self.ledger.add("end", stage=stage.name, key=artifact.key, seconds=seconds, **facts)


def _remove_leftovers(place: Path) -> None:
    """Checkpoints of a finished stage, and drafts that kills have left."""
    shutil.rmtree(place.with_name(f"{place.name}.unfinished"), ignore_errors=True)
    remove_drafts(place)


def read_artifact(place: Path) -> Artifact | None:
    """A finished artifact; None where there is none."""
    path = place / OUTPUTS
    if not path.exists():
        return None
    try:
        facts = read_facts(_Outputs, path.read_bytes())
        return Artifact(place, facts.key, facts.outputs)
    except ValueError:
        raise InputError(f"{path} is damaged; remove {place}, and the stage will be done again.") from None


def in_order(stages: Sequence[Stage]) -> list[Stage]:
    """The same stages, every one after those that it needs."""
    known = {stage.name for stage in stages}
    left, ordered = list(stages), list[Stage]()
    while left:
        placed = {stage.name for stage in ordered}
        ready = [stage for stage in left if not {need for need in stage.needs if need in known} - placed]
        if not ready:
            raise InputError(f"Stages need each other in a circle: {', '.join(stage.name for stage in left)}.")
        ordered += ready
        left = [stage for stage in left if stage not in ready]
    return ordered
