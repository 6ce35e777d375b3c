"""The frozen bundle: evaluators, policies, references and plan, with their hashes, in a directory that can travel."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadwise.cohort.cohort import Cohort, Records
from leadwise.cohort.identity import PTBXL, Identity, fold_sizes, resembles_ptbxl
from leadwise.cohort.roles import Token
from leadwise.errors import InputError, one_line
from leadwise.memory import too_large
from leadwise.run.facts import Facts, read_facts
from leadwise.run.ledger import Freeze
from leadwise.run.parts import Parts
from leadwise.run.plan import Plan, read_plan
from leadwise.store import atomic_file, changed_files, file_sha256, lies_within

if TYPE_CHECKING:  # what only knows a bundle's files need not wait for what loads them
    import pandas as pd

    from leadwise.evaluators.contract import Evaluator, SavedEvaluator
    from leadwise.policies.contract import SavedPolicy
    from leadwise.references import References

FORMAT = "leadwise bundle 1"
CONTENTS = "bundle.json"
FROZEN = "freeze.json"
"""Beside the list of contents and not in it: a clock in the list would make equal bundles differ."""
_KINDS = ("evaluators", "policies", "references")
SHIPPED_SELECTION = "8e8ccbc69ce84ac6c060c7bac59f04ea0935f6a40cbf60bbdbb961f84b76b3b2"
"""Fingerprint of the records that the shipped references were searched on: fold 10 of PTB-XL 1.0.3."""


class _Contents(Facts):
    format: str
    cohort: dict[str, Any]
    files: dict[str, str]


class _Frozen(Freeze):
    bundle: str
    """SHA-256 of the list of contents."""


class Bundle:
    """Everything that was frozen before anybody looked; nothing in it is ever fitted again."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        contents = self.path / CONTENTS
        try:
            facts = read_facts(_Contents, contents.read_bytes())
            if facts.format != FORMAT:
                raise ValueError(f"it is of format '{one_line(facts.format)}'")
            self.files: Mapping[str, str] = facts.files
            self.cohort = Identity.read(facts.cohort)
            outside = [name for name in [CONTENTS, *self.files] if not lies_within(self.path, name)]
            if outside:
                raise ValueError(f"'{one_line(outside[0])}' leads out of the bundle")
        except FileNotFoundError:
            raise InputError(f"{self.path} is no frozen bundle: it has no {CONTENTS}.") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{contents} is damaged: {error}; take the bundle from the run again.") from None

    @classmethod
    def pretrained(cls) -> "Bundle":
        """The bundle that ships with leadwise: the published protocol on PTB-XL, frozen before the evaluation role."""
        return cls(pretrained_bundle())

    def __repr__(self) -> str:
        kinds = ", ".join(f"{len(self.files_of(kind))} {kind}" for kind in _KINDS)
        return f"<Bundle {self.path}: {kinds}>"

    @property
    def sha256(self) -> str:
        """Hash of the list of contents, and so of everything."""
        return sha256((self.path / CONTENTS).read_bytes()).hexdigest()

    @property
    def freeze(self) -> Freeze | None:
        """When it was frozen; None if it does not say."""
        path = self.path / FROZEN
        if not path.exists():
            return None
        try:
            frozen = read_facts(_Frozen, path.read_bytes())
            if frozen.bundle != self.sha256:
                raise ValueError("it is of another bundle")
        except ValueError as error:
            raise InputError(f"{path} is damaged: {error}; take the bundle from the run again.") from None
        return Freeze(time=frozen.time, head=frozen.head)

    def problems(self) -> list[str]:
        """A sentence for every file that is not what was frozen, and for every kind of file that there is none of."""
        try:
            problems = changed_files(self.path, self.files, CONTENTS, *([FROZEN] if self.freeze else []))
        except InputError as error:
            problems = [str(error)]
        lacking = [kind for kind in _KINDS[:2] if not self.files_of(kind)]
        lacking += ["plan.toml"] * ("plan.toml" not in self.files)
        return problems + [f"{self.path / CONTENTS} lists no {kind}, which every bundle has." for kind in lacking]

    def open(self, cohort: Cohort, role: str) -> Cohort:
        """The cohort with the seal opened as far as scoring a role needs it.

        Only a whole bundle whose plan has the cohort's roles does that, and of what is sealed as PTB-XL only one that
        was frozen on PTB-XL, or on other folds of this very cohort.
        """
        problems = self.problems()
        if problems:
            raise InputError(f"The bundle does not open the seal: {problems[0]}")
        if cohort.roles != self.plan.cohort_roles():
            raise InputError(
                f"{self.path} was frozen for other roles than {cohort.source} is read with; use its plan's."
            )
        if not cohort.role(role).sealed:
            return cohort
        if resembles_ptbxl(fold_sizes(cohort.patients, cohort.folds)) and self.cohort.kind != PTBXL:
            known = cohort.identity.folds.items() & self.cohort.folds.items()
            if not known or cohort.identity.differs_from(self.cohort):
                raise InputError(
                    f"{self.path} was frozen on {self.cohort.title}; the seal on {cohort.source}, which has folds of "
                    "PTB-XL, opens only for a bundle that was frozen on PTB-XL or on this very cohort."
                )
        return replace(cohort, token=Token(self.sha256, self.files["plan.toml"], cohort.table_sha256))

    @cached_property
    def plan(self) -> Plan:
        return read_plan(self.path / "plan.toml")

    @cached_property
    def _parts(self) -> Parts:
        return Parts(self.plan, self.files_of("evaluators"), self.files_of("policies"))

    @cached_property
    def evaluators(self) -> dict[str, "SavedEvaluator"]:
        """By name, in the order of the plan."""
        return self._parts.evaluators

    @cached_property
    def policies(self) -> dict[str, "SavedPolicy"]:
        """By name, in the order of the plan."""
        return self._parts.policies

    @cached_property
    def references(self) -> dict[str, "References"]:
        """By evaluator."""
        from leadwise.references import References

        return {name: References.load(file) for name, file in self.files_of("references").items()}

    @cached_property
    def tables(self) -> dict[str, "pd.DataFrame"]:
        """Tables, made before the freeze, about the roles that were used for fitting and choosing."""
        return {name: _read_table(file) for name, file in self.files_of("tables").items()}

    def files_of(self, kind: str) -> dict[str, Path]:
        """Files by name: of its evaluators, policies, references or tables."""
        return {Path(name).stem: self.path / name for name in self.files if Path(name).parent.name == kind}


def _read_table(file: Path) -> "pd.DataFrame":
    """A table of a bundle, if it can be read and fits into memory."""
    import pandas as pd
    from pyarrow.parquet import read_metadata  # type: ignore[import-untyped]

    try:
        if file.suffix == ".csv":
            return pd.read_csv(file)
        size = read_metadata(file)
        # a file of some bytes can claim as many rows as it likes, where they are all alike
        problems = too_large(f"{file} with {size.num_rows:,} rows", 8 * size.num_rows * size.num_columns)
        if not problems:
            return pd.read_parquet(file)
    except (OSError, ValueError) as error:
        problems = [f"{file} cannot be read ({one_line(error)}); take the bundle from its run again."]
    raise InputError(problems[0])


def pretrained_bundle() -> Path:
    """Path of the bundle that ships with leadwise."""
    return Path(str(files("leadwise") / "pretrained"))


def shipped_references(evaluator: "Evaluator", records: Records) -> "References | None":
    """The search that ships, if it was made with just this evaluator on just these records."""
    from leadwise.evaluators.contract import evaluator_name, evaluator_sha256
    from leadwise.evaluators.saved import load_evaluator
    from leadwise.references import References

    bundle, name = pretrained_bundle(), evaluator_name(evaluator)
    weights, search = bundle / "evaluators" / f"{name}.safetensors", bundle / "references" / f"{name}.csv"
    if not search.exists() or records.fingerprint() != SHIPPED_SELECTION:
        return None
    return References.load(search) if evaluator_sha256(load_evaluator(weights)) == evaluator_sha256(evaluator) else None


def write_bundle(directory: Path, plan: Path, cohort: Identity, parts: Mapping[str, Mapping[str, Path]]) -> None:
    """Copy evaluators, policies, references and tables (by kind and name) and the plan, and list them with hashes.

    The list also says on which cohort all was made.
    """
    files = {f"{kind}/{name}{file.suffix}": file for kind, named in parts.items() for name, file in named.items()}
    files["plan.toml"] = plan
    for name, file in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, directory / name)
    hashes = {name: file_sha256(directory / name) for name in sorted(files)}
    with atomic_file(directory / CONTENTS) as draft:
        draft.write_text(json.dumps({"format": FORMAT, "cohort": cohort.facts, "files": hashes}, indent=1) + "\n")


def write_freeze(directory: Path, bundle: str, freeze: Freeze) -> None:
    """Let a bundle (its SHA-256) carry when it was frozen."""
    with atomic_file(directory / FROZEN) as draft:
        draft.write_text(json.dumps({"bundle": bundle, **freeze.model_dump()}, indent=1) + "\n")
