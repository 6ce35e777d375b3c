"""leadwise info: what runs here."""

import ctypes
import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import platformdirs
import typer

_PACKAGES = ("leadwise", "numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "torch", "wfdb", "matplotlib")
_PACKAGES_FAST = ("openvino", "onnx", "onnxscript", "onnxruntime")
_MISSING = "not installed"


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
    """The data that `info` prints.

    Torch takes a second to import, so the processor, the environment and the driver are asked what torch would ask
    them. Receipts hold what torch itself says where it computed.
    """
    versions = {name: _version(name) for name in _PACKAGES + _PACKAGES_FAST}
    fast = versions["openvino"] != _MISSING
    cuda = "+cpu" not in versions["torch"] and _has_cuda()
    mps = (platform.system(), platform.machine()) == ("Darwin", "arm64")
    cohorts = f"beside each tree in .leadwise, else {platformdirs.user_cache_dir('leadwise')}"
    return {
        "versions": {"Python": platform.python_version()} | versions,
        "system": platform.platform(),
        "cpu": {"capability": _capability(), "cores": os.cpu_count(), "torch threads": _threads()},
        "engine": "openvino" if fast else "torch (install leadwise[fast] for a faster one)",
        "devices": {"cpu": "yes", "cuda": "yes" if cuda else "no", "mps": "yes" if mps else "no"},
        "caches": {"cohorts": os.environ.get("LEADWISE_CACHE") or cohorts},
    }


def _capability() -> str:
    """Capability that torch computes with on this processor, by the rule of its ``DispatchStub.cpp`` for x86."""
    from numpy._core._multiarray_umath import __cpu_features__ as features  # type: ignore[import-not-found]

    for capability, needed in (("AVX512", ("AVX512VL", "AVX512BW", "AVX512DQ", "FMA3")), ("AVX2", ("AVX2", "FMA3"))):
        if all(features.get(each) for each in needed):
            return capability
    return "DEFAULT"


def _threads() -> int:
    """Threads that torch takes unless it is told otherwise; where cores have two threads each, it takes one of them."""
    asked = next((os.environ[name] for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS") if name in os.environ), "")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(asked) if asked.isdigit() else usable


def _has_cuda() -> bool:
    """True if NVIDIA's driver is here and finds a device."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return driver.cuInit(0) == driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return _MISSING
