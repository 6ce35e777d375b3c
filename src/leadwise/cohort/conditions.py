"""The diseases of the synthetic cohort, by SCP-ECG code: what each changes in which wall of the heart."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_HEART = tomllib.loads(Path(__file__).with_name("heart.toml").read_text())

WALLS: dict[str, list[float]] = _HEART["walls"]
"""For each wall: x, y, z of the depolarisation dipole, its moment, its width, and the size of the recovery."""
LEAD_FIELD: dict[str, list[float]] = _HEART["lead_field"]
"""Voltage in I, II, V1 … V6 of a dipole of length one along x, y and z."""


@dataclass(frozen=True)
class Condition:
    """Effects of a disease at full severity, wall by wall; a partial severity has them in proportion."""

    voltage: dict[str, float] = field(default_factory=dict)
    """Relative change of the depolarisation dipole: −1 is a dead wall, below −1 what lies opposite prevails."""
    delay: dict[str, float] = field(default_factory=dict)
    """Seconds by which the wall fires later."""
    widening: dict[str, float] = field(default_factory=dict)
    """Relative lengthening of the wall's firing."""
    recovery: dict[str, float] = field(default_factory=dict)
    """Relative change of the recovery dipole: −1 flattens the T wave over the wall, −2 inverts it."""
    injury: dict[str, float] = field(default_factory=dict)
    """Injury current in mV: above zero the ST segment rises over the wall, below zero it sinks."""
    atria: Sequence[float] = (0.0, 0.0)
    """Relative change of the right and of the left atrium's dipole."""
    conduction: float = 0.0
    """Seconds by which the ventricles follow the atria later."""
    recovery_time: float = 0.0
    """Relative lengthening of the QT interval."""
    mildest: float = 0.25
    """The least severity at which the condition is diagnosed."""


_INFARCT = {"voltage": -1.6, "widening": 0.3, "recovery": -2.8, "injury": 0.08}
"""Loss of the walls' voltage (Q waves, lost R), T inversion, and some ST elevation."""
_ISCHAEMIA = {"recovery": -2.6, "injury": -0.16}
"""ST depression and T inversion over the walls, voltage untouched."""


def _condition(
    infarct: dict[str, float] | None = None, ischaemia: dict[str, float] | None = None, **effects: Any
) -> Condition:
    """A condition by its effects, ``everywhere`` standing for each wall that is not named, or by shares of walls."""
    for shares, effect_of in ((infarct, _INFARCT), (ischaemia, _ISCHAEMIA)):
        if shares:
            effects |= {
                effect: {wall: size * part for wall, part in shares.items()} for effect, size in effect_of.items()
            }
    for effect, sizes in effects.items():
        if isinstance(sizes, dict) and "everywhere" in sizes:
            effects[effect] = dict.fromkeys(WALLS, sizes["everywhere"]) | sizes
    return Condition(**effects)


CONDITIONS = {code: _condition(**effects) for code, effects in _HEART["conditions"].items()}
