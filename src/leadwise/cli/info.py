"""leadwise info: what runs here."""

import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import platformdirs
import typer

_PACKAGES = ("leadwise", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "torch", "wfdb", "matplotlib")
_PACKAGES_FAST = ("openvino", "onnx", "onnxscript", "onnxruntime")


def info(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Versions, CPU capability, threads, back ends, caches."""
    facts = collect()
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    for section, content in facts.items():
        lines = content.items() if isinstance(content, dict) else [("", content)]
        for number, (name, value) in enumerate(lines):
            print(f"{section if number == 0 else '':<10}{name + ' ' if name else ''}{value}")


def collect() -> dict[str, Any]:
    """What `info` prints, as data."""
    import torch

    from leadwise.evaluators.masked_resnet.engines import has_openvino

    return {
        "versions": {"Python": platform.python_version()}
        | {name: _version(name) for name in _PACKAGES + _PACKAGES_FAST},
        "system": platform.platform(),
        "cpu": {
            "capability": torch.backends.cpu.get_cpu_capability(),
            "cores": os.cpu_count(),
            "torch threads": torch.get_num_threads(),
        },
        "engine": "openvino" if has_openvino() else "torch (install leadwise[fast] for a faster one)",
        "devices": {
            "cpu": "yes",
            "cuda": _yes(torch.cuda.is_available()),
            "mps": _yes(torch.backends.mps.is_available()),
        },
        "caches": {
            "cohorts": os.environ.get("LEADWISE_CACHE")
            or f"beside each tree in .leadwise, else {platformdirs.user_cache_dir('leadwise')}"
        },
    }


def _yes(available: bool) -> str:
    return "yes" if available else "no"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
