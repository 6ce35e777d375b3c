"""The frozen bundle: evaluators, policies, references and plan, with their hashes, in a directory that can travel."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from leadwise.cohort.cohort import Cohort, Records
from leadwise.cohort.identity import PTBXL, Identity
from leadwise.cohort.roles import Token
from leadwise.errors import InputError
from leadwise.evaluators.contract import evaluator_name, evaluator_sha256
from leadwise.evaluators.saved import load_evaluator
from leadwise.policies.saved import load_policy
from leadwise.references import References
from leadwise.run.plan import Plan, read_plan
from leadwise.store import atomic_file, changed_files, file_sha256

FORMAT = "leadwise bundle 1"
CONTENTS = "bundle.json"
SHIPPED_SELECTION = "8e8ccbc69ce84ac6c060c7bac59f04ea0935f6a40cbf60bbdbb961f84b76b3b2"
"""Fingerprint of the records that the shipped references were searched on: fold 10 of PTB-XL 1.0.3."""


class Bundle:
    """What was frozen before anybody looked; nothing in it is ever fitted again."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        contents = self.path / CONTENTS
        try:
            facts = json.loads(contents.read_text())
            if facts["format"] != FORMAT:
                raise ValueError(f"it is of format '{facts['format']}'")
            self.files: Mapping[str, str] = facts["files"]
            self.cohort = Identity.read(facts["cohort"])
        except FileNotFoundError:
            raise InputError(f"{self.path} is no frozen bundle: it has no {CONTENTS}.") from None
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{contents} is damaged: {error}; take the bundle from the run again.") from None

    @classmethod
    def pretrained(cls) -> "Bundle":
        """The bundle that ships with leadwise: the published protocol on PTB-XL, frozen before the evaluation role."""
        return cls(pretrained_bundle())

    def __repr__(self) -> str:
        kinds = ", ".join(f"{len(self._of(kind))} {kind}" for kind in ("evaluators", "policies", "references"))
        return f"<Bundle {self.path}: {kinds}>"

    @property
    def sha256(self) -> str:
        """Hash of the list of contents, and so of everything."""
        return sha256((self.path / CONTENTS).read_bytes()).hexdigest()

    def problems(self) -> list[str]:
        """A sentence for every file that is not what was frozen."""
        return changed_files(self.path, self.files, CONTENTS)

    def open(self, cohort: Cohort, role: str) -> Cohort:
        """The cohort with the seal opened as far as scoring a role needs it.

        Only a whole bundle whose plan has the cohort's roles does that, and of PTB-XL's sealed fold only one that was
        frozen on PTB-XL.
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
        if cohort.identity.kind == PTBXL != self.cohort.kind:
            raise InputError(
                f"{self.path} was frozen on {self.cohort.title}; the seal on {cohort.identity.title} opens only for a "
                "bundle that was frozen on it."
            )
        return replace(cohort, token=Token(self.sha256, self.files["plan.toml"], cohort.table_sha256))

    @cached_property
    def plan(self) -> Plan:
        return read_plan(self.path / "plan.toml")

    @cached_property
    def evaluators(self) -> dict[str, Any]:
        return {name: load_evaluator(file) for name, file in self._of("evaluators").items()}

    @cached_property
    def policies(self) -> dict[str, Any]:
        """All policies; cohort-state wraps another one, so it comes last."""
        loaded: dict[str, Any] = {}
        files = self._of("policies")
        for name in sorted(files, key=lambda name: name == "cohort-state"):
            loaded[name] = load_policy(files[name], self.evaluators, loaded)
        return loaded

    @cached_property
    def references(self) -> dict[str, References]:
        return {name: References.load(file) for name, file in self._of("references").items()}

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """What was said before the freeze about the roles that were used for fitting and choosing."""
        return {
            name: pd.read_csv(file) if file.suffix == ".csv" else pd.read_parquet(file)
            for name, file in self._of("tables").items()
        }

    def _of(self, kind: str) -> dict[str, Path]:
        return {Path(name).stem: self.path / name for name in self.files if Path(name).parent.name == kind}


def pretrained_bundle() -> Path:
    """Where the bundle lies that ships with leadwise."""
    return Path(str(files("leadwise") / "pretrained"))


def shipped_references(evaluator: Any, records: Records) -> References | None:
    """The search that ships, if it was made with just this evaluator on just these records."""
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
