"""The signal model behind the synthetic cohort: a rotating cardiac dipole, seen by nine electrodes.

The ventricles are eight walls. Each wall is a current dipole that points outwards, fires once a beat at its own moment
(the R wave is time 0) and recovers in the T wave; atria add two dipoles for the P wave. Their sum is the rotating
heart vector. A disease is a row of `CONDITIONS`: it changes the voltage, delay, width, recovery or injury current of
some walls, and so it shows most in the leads that look at those walls.

Axes are Frank's: x to the patient's left, y to the feet, z to the back. Units are millivolts and seconds.
"""

from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
from jaxtyping import Float, Float32, Int, Int16
from numpy.random import Generator

from leadwise.cohort.conditions import CONDITIONS, LEAD_FIELD, WALLS
from leadwise.leads import LIMB_FROM_I_AND_II

PerRecord = Float[np.ndarray, "n"]
Time = Float32[np.ndarray, "t"]
Moment = Float[np.ndarray, "n 1"] | float

SAMPLING_RATE = 100
SAMPLES = 1000

_WALL_TABLE = np.array(list(WALLS.values()))
_WALL_DIPOLE = _WALL_TABLE[:, :3]
_WALL_OUTWARD = _WALL_DIPOLE / np.linalg.norm(_WALL_DIPOLE, axis=1, keepdims=True)
_WALL_MOMENT, _WALL_WIDTH, _WALL_RECOVERY = _WALL_TABLE[:, 3:].T

_ATRIA_DIPOLE = np.array([[0.025, 0.080, -0.035], [0.065, 0.055, 0.045]])  # right, left
_ATRIA_MOMENT = np.array([-0.165, -0.135])
_ATRIA_WIDTH = 0.020

_DOWER = np.array(list(LEAD_FIELD.values()))
# against Wilson's central terminal RA + LA + LL = 0, so I = LA − RA and II = LL − RA give the limb electrodes
_LIMB_FIELD = np.array([[-1, -1], [2, -1], [-1, 2]]) / 3 @ _DOWER[:2]
_CHEST_FIELD = _DOWER[2:]

_PROXIMITY = 0.35
"""Factor by which a chest electrode's wall, right under it, is louder than a distant dipole would be."""


_EFFECT = {
    effect: np.array([[getattr(c, effect).get(wall, 0.0) for wall in WALLS] for c in CONDITIONS.values()])
    for effect in ("voltage", "delay", "widening", "recovery", "injury")
}
_EFFECT |= {
    effect: np.array([getattr(condition, effect) for condition in CONDITIONS.values()])
    for effect in ("atria", "conduction", "recovery_time")
}


@dataclass(frozen=True)
class Hearts:
    """n patients' hearts and chests: what stays the same from one recording of a patient to the next."""

    voltage: Float[np.ndarray, "n 8"]
    moment: Float[np.ndarray, "n 8"]
    width: Float[np.ndarray, "n 8"]
    recovery: Float[np.ndarray, "n 8"]
    injury: Float[np.ndarray, "n 8"]
    atria: Float[np.ndarray, "n 2"]
    conduction: PerRecord
    recovery_time: PerRecord
    rotation: Float[np.ndarray, "n 3 3"]
    electrodes: Float[np.ndarray, "n 9 3"]


def make_hearts(
    severity: Float[np.ndarray, "n conditions"], age: PerRecord, female: PerRecord, rng: Generator
) -> Hearts:
    """Hearts that differ as healthy ones do, changed by each of `CONDITIONS` in proportion to its severity.

    A wall's voltage is v · u · (1 + Σ_c severity_c · effect_c), where u is the patient's own log-normal factor;
    recovery, widths, delays, injury and the atria likewise.
    """
    n = len(severity)
    change = {name: severity @ effect for name, effect in _EFFECT.items()}
    size = 0.97 * _lognormal(rng, 0.20, (n, 1)) * (1 - 0.12 * female[:, None])
    size *= 1 + 0.004 * (50 - age[:, None]).clip(-25, 30)
    young_man = (1 - female) * ((50 - age) / 30).clip(0, 1)
    early_repolarisation = np.outer(0.01 + 0.06 * young_man * rng.random(n), [1.0, 2.0, 0.8, 0, 0.3, 0, 0, 0])
    return Hearts(
        voltage=size * _lognormal(rng, 0.22, (n, 8)) * (1 + change["voltage"]),
        moment=_WALL_MOMENT + 0.0025 * rng.standard_normal((n, 8)) + change["delay"],
        width=_WALL_WIDTH * _lognormal(rng, 0.08, (n, 1)) * (1 + change["widening"]),
        recovery=_lognormal(rng, 0.25, (n, 1)) * _lognormal(rng, 0.25, (n, 8)) * (1 + change["recovery"]),
        injury=early_repolarisation + 0.010 * rng.standard_normal((n, 8)) + change["injury"],
        atria=_lognormal(rng, 0.25, (n, 2)) * (1 + change["atria"]),
        conduction=0.015 * rng.standard_normal(n) + change["conduction"],
        recovery_time=_lognormal(rng, 0.04, n) * (1 + change["recovery_time"]),
        # hearts lie flatter with age: the axis turns to the left
        rotation=_turn(np.radians(18 * rng.standard_normal(n) - 0.4 * (age - 55)), 0, 1)
        @ _turn(np.radians(11 * rng.standard_normal(n)), 0, 2),
        electrodes=_electrode_field(n, rng),
    )


def _electrode_field(n: int, rng: Generator) -> Float[np.ndarray, "n 9 3"]:
    """Lead vectors of the nine electrodes: Dower's, on torsos and at chest positions that vary."""
    limb = _LIMB_FIELD + 0.04 * rng.standard_normal((n, 3, 3))
    limb -= limb.mean(1, keepdims=True)
    # a misplaced strip shifts all chest electrodes along the chest, a careless hand each of them
    place = np.arange(6) + 0.25 * rng.standard_normal((n, 1)) + 0.15 * rng.standard_normal((n, 6))
    left = np.clip(np.floor(place), 0, 4).astype(int)
    part = (place - left)[..., None]
    chest = (1 - part) * _CHEST_FIELD[left] + part * _CHEST_FIELD[left + 1]
    chest[..., 1] += 0.12 * rng.standard_normal((n, 1)) + 0.06 * rng.standard_normal((n, 6))
    return np.concatenate([limb, chest * _lognormal(rng, 0.15, (n, 1, 1))], axis=1)


def frontal_axis(hearts: Hearts) -> PerRecord:
    """The QRS axis in degrees, 0 towards lead I and 90 towards aVF, from the area of each wall's wave."""
    area = hearts.voltage * hearts.width
    vector = np.einsum("nw,wi,nji->nj", area, _WALL_DIPOLE, hearts.rotation)
    right, left, foot = np.einsum("nei,ni->en", hearts.electrodes[:, :3], vector)
    lead_i, lead_avf = left - right, foot - (right + left) / 2
    return np.asarray(np.degrees(np.arctan2(2 / np.sqrt(3) * lead_avf, lead_i)))


@dataclass(frozen=True)
class Recordings:
    """The circumstances of n recordings: rhythm, breathing, and what disturbs each electrode."""

    heart_rate: PerRecord
    """Beats a minute."""
    irregularity: PerRecord
    """Relative standard deviation of the time between beats."""
    fibrillation: PerRecord
    """1 where the atria fibrillate: no P wave, a fine flicker instead."""
    muscle: Float[np.ndarray, "n 9"]
    """Standard deviation of muscle noise at each electrode, mV."""
    wander: Float[np.ndarray, "n 9"]
    """Standard deviation of baseline wander at each electrode, mV."""
    burst: Float[np.ndarray, "n 9"]
    """Standard deviation of a short burst of noise at each electrode, mV."""


Rows = TypeVar("Rows", Hearts, Recordings)


def take(arrays: Rows, rows: Int[np.ndarray, "m"]) -> Rows:
    """The hearts or recordings at ``rows``, in that order."""
    return type(arrays)(**{part.name: getattr(arrays, part.name)[rows] for part in fields(arrays)})


def record(hearts: Hearts, recordings: Recordings, rng: Generator) -> Int16[np.ndarray, "n 12 t"]:
    """Ten seconds of twelve leads in microvolts.

    Electrode e reads Σ_s a_es · w_s(t), the waves w_s of the sources (walls, injury and recovery, atria) weighted by
    the electrode's view of their dipoles, plus the first-order effect of breathing, which swings and lifts the heart,
    plus noise. All leads are differences of electrodes, so noise obeys the limb-lead algebra as the heart does.
    """
    n = len(recordings.heart_rate)
    time = np.arange(SAMPLES, dtype=np.float32) / SAMPLING_RATE
    waves = _waves(hearts, recordings, time, rng)
    swing = np.radians(3.0) * _lognormal(rng, 0.4, n)
    upright = _view(hearts, hearts.rotation)
    swung = _view(hearts, _turn(swing, 0, 1) @ hearts.rotation) - upright
    breathing = _sine(0.2 + 0.1 * rng.random(n), rng, time)[:, None]
    lift = (0.04 * _lognormal(rng, 0.4, (n, 1, 1))).astype(np.float32)
    potential = (upright @ waves) * (1 + lift * breathing) + (swung @ waves) * breathing
    potential += _noise(recordings, time, rng)
    right, left, foot = potential[:, 0], potential[:, 1], potential[:, 2]
    chest = potential[:, 3:] - ((right + left + foot) / 3)[:, None]
    # the four derived limb leads come from the quantised I and II, so the algebra holds to half a microvolt
    first_two = np.rint(1000 * np.stack([left - right, foot - right], axis=1))
    limb = LIMB_FROM_I_AND_II.astype(np.float32) @ first_two
    return np.rint(np.concatenate([limb, 1000 * chest], axis=1)).clip(-32767, 32767).astype(np.int16)


def _view(hearts: Hearts, rotation: Float[np.ndarray, "n 3 3"]) -> Float32[np.ndarray, "n 9 12"]:
    """Potential at each electrode of a unit wave of each source: eight walls, ST segment, T wave, two atria.

    a_es = (f_e · d_s)(1 + p · max(0, f̂_e · û_s)²) with the lead vector f_e, the dipole d_s pointing towards û_s and,
    for chest electrodes only, the proximity p.
    """
    outward = np.einsum("nij,wj->nwi", rotation, _WALL_OUTWARD)
    view = np.einsum("nei,nwi->new", hearts.electrodes, outward)
    chest = view[:, 3:]
    distance = np.linalg.norm(hearts.electrodes[:, 3:], axis=2, keepdims=True)
    chest *= 1 + _PROXIMITY * np.maximum(chest / distance, 0) ** 2
    walls = view * (hearts.voltage * np.linalg.norm(_WALL_DIPOLE, axis=1))[:, None]
    injury = np.einsum("new,nw->ne", view, hearts.injury)
    recovery = np.einsum("new,nw->ne", view, hearts.recovery * _WALL_RECOVERY)
    atria = np.einsum("nei,nij,aj,na->nea", hearts.electrodes, rotation, _ATRIA_DIPOLE, hearts.atria)
    return np.concatenate([walls, injury[..., None], recovery[..., None], atria], axis=2).astype(np.float32)


def _waves(hearts: Hearts, recordings: Recordings, time: Time, rng: Generator) -> Float32[np.ndarray, "n 12 t"]:
    """Course of each source over the recording: one Gaussian a beat, lopsided for the ST segment and the T wave."""
    n = len(recordings.heart_rate)
    mean_interval = 60 / recordings.heart_rate
    beats = int(np.ceil(12.5 / mean_interval.min() / 0.6)) + 2
    interval = 1 + recordings.irregularity[:, None] * rng.standard_normal((n, beats))
    interval = mean_interval[:, None] * interval.clip(0.6, 1.6)
    peak = np.cumsum(interval, axis=1) - interval[:, :1] * (1 + rng.random((n, 1)))
    # index of the last R peak at or before each sample
    last = np.zeros((n, len(time)), dtype=np.intp)
    for beat in range(1, beats):
        last += time >= peak[:, beat, None]
    last = np.minimum(last, beats - 2)

    def at(values: Float[np.ndarray, "n beats"], beat: Int[np.ndarray, "n t"]) -> Float32[np.ndarray, "n t"]:
        return np.take_along_axis(values.astype(np.float32), beat, axis=1)

    since, until = time - at(peak, last), at(peak, last + 1) - time
    nearest = last + (until < since)
    from_nearest = np.where(until < since, -until, since)
    vigour = _lognormal(rng, 0.03, (n, beats))

    waves = np.empty((n, 12, len(time)), dtype=np.float32)
    for wall in range(8):
        waves[:, wall] = _bump(from_nearest, hearts.moment[:, wall, None], hearts.width[:, wall, None])
    waves[:, :8] *= at(vigour, nearest)[:, None]
    # repolarisation takes less time after a short interval, though less than in proportion
    pace = (at(interval, last) / 0.87) ** 0.4 * hearts.recovery_time[:, None].astype(np.float32)
    late = np.maximum(hearts.moment[:, 2:6].max(1, keepdims=True) - 0.012, 0)
    since_recovery = (since - late.astype(np.float32)) / pace
    waves[:, 8] = _bump(since_recovery, 0.10, 0.030, 0.060)
    waves[:, 9] = _bump(since_recovery, 0.25, 0.055, 0.038) * at(_lognormal(rng, 0.05, (n, beats)), last)
    sinus = (1 - recordings.fibrillation)[:, None].astype(np.float32)
    for side in range(2):
        p_moment = _ATRIA_MOMENT[side] - hearts.conduction[:, None]
        waves[:, 10 + side] = sinus * _bump(-until, p_moment, _ATRIA_WIDTH)
        # fibrillating atria flicker at 5 to 8 a second
        flicker = _sine(5 + 3 * rng.random(n), rng, time) * (1 + 0.5 * _sine(rng.random(n), rng, time))
        waves[:, 10 + side] += 0.4 * (1 - sinus) * flicker
    return waves


def _noise(recordings: Recordings, time: Time, rng: Generator) -> Float32[np.ndarray, "n 9 t"]:
    """Muscle noise, a burst, baseline wander and mains hum, independent at each electrode."""
    n = len(recordings.heart_rate)
    start = 8 * rng.random((n, 1))
    within = ((time > start) & (time < start + 1.5)).astype(np.float32)[:, None]
    level = recordings.muscle[..., None] + recordings.burst[..., None] * within
    noise = level.astype(np.float32) * rng.standard_normal((n, 9, len(time)), dtype=np.float32)
    # wander: slow harmonics of 1/20 Hz whose power falls with frequency
    frequency = np.arange(1, 11) / 20
    angle = 2 * np.pi * frequency[:, None] * time
    basis = np.concatenate([np.cos(angle), np.sin(angle)]) / np.tile(frequency, 2)[:, None]
    basis /= np.sqrt((basis**2).mean(1).sum())
    weight = recordings.wander[..., None] * rng.standard_normal((n, 9, 20))
    noise += weight.astype(np.float32) @ basis.astype(np.float32)
    # At 100 Hz the mains lie on the Nyquist frequency; an anti-aliasing filter leaves little, which beats slowly.
    hum = _sine(50 - 0.1 * rng.random(n), rng, time)[:, None]
    noise += (0.0015 * _lognormal(rng, 0.8, (n, 9, 1))).astype(np.float32) * hum
    return noise


def _bump(
    time: Float32[np.ndarray, "n t"], moment: Moment, width: Moment, width_after: float | None = None
) -> Float32[np.ndarray, "n t"]:
    """exp(−((t − moment) / width)² / 2), with another width after the moment where one is given."""
    offset = time - np.asarray(moment, dtype=np.float32)
    if width_after is not None:
        width = np.where(offset < 0, width, width_after)
    return np.exp(-0.5 * (offset / np.asarray(width, dtype=np.float32)) ** 2)


def _sine(frequency: PerRecord, rng: Generator, time: Time) -> Float32[np.ndarray, "n t"]:
    """A sine of each frequency with a random phase."""
    phase = 2 * np.pi * rng.random(len(frequency))
    return np.sin(2 * np.pi * frequency[:, None] * time + phase[:, None]).astype(np.float32)


def _lognormal(rng: Generator, sigma: float, shape: int | tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """Factors around 1."""
    return np.exp(sigma * rng.standard_normal(shape))


def _turn(angle: PerRecord, i: int, j: int) -> Float[np.ndarray, "n 3 3"]:
    """Rotation matrices that turn axis i towards axis j."""
    turn = np.tile(np.eye(3), (len(angle), 1, 1))
    turn[:, i, i] = turn[:, j, j] = np.cos(angle)
    turn[:, j, i] = np.sin(angle)
    turn[:, i, j] = -turn[:, j, i]
    return turn
