"""The diseases of the synthetic cohort, by SCP-ECG code: what each changes in which wall of the heart."""

from dataclasses import dataclass, field

WALLS = ("septum", "anterior", "lateral", "high lateral", "inferior", "posterior", "basal", "right")


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
    atria: tuple[float, float] = (0.0, 0.0)
    """Relative change of the right and of the left atrium's dipole."""
    conduction: float = 0.0
    """Seconds by which the ventricles follow the atria later."""
    recovery_time: float = 0.0
    """Relative lengthening of the QT interval."""
    mildest: float = 0.25
    """The least severity at which the condition is diagnosed."""


def _everywhere(value: float) -> dict[str, float]:
    return dict.fromkeys(WALLS, value)


def _infarct(**share: float) -> Condition:
    """Loss of the walls' voltage (Q waves, lost R), T inversion, and some ST elevation, by share of each wall."""
    walls = {wall.replace("_", " "): part for wall, part in share.items()}
    return Condition(
        voltage={wall: -1.6 * part for wall, part in walls.items()},
        widening={wall: 0.3 * part for wall, part in walls.items()},
        recovery={wall: -2.8 * part for wall, part in walls.items()},
        injury={wall: 0.08 * part for wall, part in walls.items()},
    )


def _ischaemia(**share: float) -> Condition:
    """ST depression and T inversion over the walls, voltage untouched."""
    walls = {wall.replace("_", " "): part for wall, part in share.items()}
    return Condition(
        recovery={wall: -2.6 * part for wall, part in walls.items()},
        injury={wall: -0.16 * part for wall, part in walls.items()},
    )


CONDITIONS: dict[str, Condition] = {
    "IMI": _infarct(inferior=1.0, posterior=0.15),
    "ASMI": _infarct(septum=0.8, anterior=1.0, lateral=0.1),
    "AMI": _infarct(septum=0.4, anterior=1.0, lateral=0.2),
    "ALMI": _infarct(anterior=0.7, lateral=0.5, high_lateral=0.6),
    "LMI": _infarct(lateral=0.6, high_lateral=1.0),
    "ILMI": _infarct(inferior=0.9, lateral=0.5),
    "PMI": _infarct(posterior=0.9, inferior=0.3),
    "CLBBB": Condition(
        voltage={"septum": -2.0, "anterior": -0.5, "lateral": -0.3, "posterior": 0.9, "right": -0.5},
        delay={"septum": 0.005, "anterior": 0.020, "lateral": 0.062, "high lateral": 0.060, "inferior": 0.035}
        | {"posterior": 0.045, "basal": 0.045},
        widening=_everywhere(1.5) | {"right": 0.0},
        recovery={"lateral": -2.0, "high lateral": -3.0, "inferior": -1.0, "posterior": -14.0},
        injury={"lateral": -0.06, "posterior": -0.16},
        mildest=0.6,
    ),
    "ILBBB": Condition(
        voltage={"septum": -1.5},
        delay={"lateral": 0.025, "high lateral": 0.028, "posterior": 0.02, "inferior": 0.018},
        widening=_everywhere(0.5),
        recovery={"lateral": -0.8, "posterior": -3.0},
    ),
    "CRBBB": Condition(
        voltage={"right": 1.5, "basal": -0.5, "posterior": -0.3},
        delay={"right": 0.062, "basal": 0.010},
        widening={"right": 1.2},
        recovery={"right": -5.0, "septum": -2.0},
        mildest=0.6,
    ),
    "IRBBB": Condition(delay={"right": 0.034}, widening={"right": 0.5}, voltage={"right": 0.2}),
    "LAFB": Condition(
        voltage={"high lateral": 2.2, "inferior": -0.2, "lateral": -0.15},
        delay={"inferior": -0.014, "high lateral": 0.010},
        widening={"high lateral": 0.3},
        mildest=0.4,
    ),
    "LPFB": Condition(
        voltage={"inferior": 0.7, "lateral": -0.45, "high lateral": 0.3},
        delay={"high lateral": -0.02, "inferior": 0.012},
    ),
    "IVCD": Condition(
        delay={"lateral": 0.02, "posterior": 0.03, "high lateral": 0.035, "right": 0.02, "inferior": 0.01},
        widening=_everywhere(0.7),
        voltage=_everywhere(-0.15),
    ),
    "1AVB": Condition(conduction=0.11, mildest=0.4),
    "LVH": Condition(
        voltage={"lateral": 0.9, "high lateral": 1.0, "posterior": 0.9, "anterior": 0.3, "inferior": 0.2},
        widening=_everywhere(0.1),
        recovery={"lateral": -1.6, "high lateral": -2.0},
        injury={"lateral": -0.07, "high lateral": -0.04},
        atria=(0.0, 0.3),
    ),
    "RVH": Condition(
        voltage={"right": 2.6, "lateral": -0.35, "posterior": -0.4},
        delay={"right": 0.012},
        recovery={"right": -6.0, "inferior": -0.8},
        injury={"right": -0.06},
        atria=(0.6, 0.0),
    ),
    "LAO/LAE": Condition(atria=(0.0, 1.6), mildest=0.5),
    "RAO/RAE": Condition(atria=(1.6, 0.0), mildest=0.5),
    "NDT": Condition(recovery=_everywhere(-0.95)),
    "NST_": Condition(injury=_everywhere(-0.03) | {"lateral": -0.08}, recovery=_everywhere(-0.5)),
    "ISC_": _ischaemia(anterior=0.5, lateral=0.7, inferior=0.5),
    "ISCAL": _ischaemia(anterior=0.9, lateral=0.8, high_lateral=0.5),
    "ISCAS": _ischaemia(septum=1.0, anterior=0.9),
    "ISCIN": _ischaemia(inferior=1.2),
    "ISCLA": _ischaemia(lateral=0.9, high_lateral=1.2),
    "DIG": Condition(
        injury={"lateral": -0.12, "inferior": -0.08, "anterior": -0.05}, recovery=_everywhere(-0.6), recovery_time=-0.08
    ),
    "LNGQT": Condition(recovery_time=0.16),
}
