"""leadwise: which ECG leads are worth recording for this patient, and does that choice still pay elsewhere?

Everything public is reachable as ``leadwise.NAME`` and is imported when it is first used, so that ``import leadwise``
costs nothing: no torch, no matplotlib, no wfdb. The names stand in ``__init__.pyi``, and only there.
"""

import ast
import os
from importlib import import_module
from pathlib import Path

# onnxruntime looks for this while it is imported: later, it has already looked up its maker's host
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

# as lazy_loader's attach_stub does, which knows relative imports only and is one more package to install
_HOME = {
    name.name: each.module
    for each in ast.parse(Path(__file__).with_suffix(".pyi").read_text()).body
    if isinstance(each, ast.ImportFrom) and each.module
    for name in each.names
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("leadwise")
    if name not in _HOME:
        raise AttributeError(f"module 'leadwise' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
