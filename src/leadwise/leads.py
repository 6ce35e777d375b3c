"""The twelve leads, and `LeadSet`: a set of them as a 12-bit mask.

Bit i of a mask, index i of an array and position i in `LEADS` are always the same lead.
"""

import operator
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int, Int64

from leadwise.errors import LeadwiseError

LEADS = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")

_INDEX = {lead.upper(): index for index, lead in enumerate(LEADS)}

LIMB_FROM_I_AND_II: Float[np.ndarray, "6 2"] = np.array([[1, 0], [0, 1], [-1, 1], [-0.5, -0.5], [1, -0.5], [-0.5, 1]])
"""Row l gives limb lead l as a·I + b·II: Einthoven's III = II − I and Goldberger's aVR, aVL, aVF."""

_LIMB_BITS = 0b111111

_BIT = 1 << np.arange(len(LEADS))

ELECTRODES = ("RA", "LA", "LL", "V1", "V2", "V3", "V4", "V5", "V6")

_ELECTRODES: dict[str, tuple[str, ...]] = {"I": ("RA", "LA"), "II": ("RA", "LL"), "III": ("LA", "LL")}
_ELECTRODES |= dict.fromkeys(("aVR", "aVL", "aVF"), ELECTRODES[:3])
# a chest lead is measured against Wilson's central terminal, the mean of the three limb electrodes
_ELECTRODES |= {chest: (*ELECTRODES[:3], chest) for chest in ELECTRODES[3:]}


def lead_index(name: str) -> int:
    """Position of a lead in `LEADS`, whatever the case of its name.

    >>> lead_index("AVR")
    3
    """
    try:
        return _INDEX[name.strip().upper()]
    except KeyError:
        raise LeadwiseError(f"'{name}' is not a lead; the twelve leads are {' '.join(LEADS)}.") from None


@dataclass(frozen=True)
class LeadSet:
    """A set of leads, as an immutable value.

    >>> LeadSet.parse("v5, III aVR v2")
    LeadSet('III aVR V2 V5')
    >>> len(LeadSet.parse("I II") | LeadSet.parse("II V1"))
    3
    """

    bits: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.bits < 1 << len(LEADS):
            raise LeadwiseError(f"{self.bits} is not a 12-bit lead mask; it must lie between 0 and 4095.")

    @classmethod
    def of(cls, leads: Iterable[str | int]) -> "LeadSet":
        """The set of the given leads, by name or by index."""
        if isinstance(leads, str):
            raise LeadwiseError(f"LeadSet.of takes several leads, not one text; read '{leads}' with LeadSet.parse.")
        bits = 0
        for lead in leads:
            if isinstance(lead, bool | np.bool_):
                raise LeadwiseError("LeadSet.of takes names or indices of leads; read a mask with LeadSet.from_mask.")
            index = lead_index(lead) if isinstance(lead, str) else operator.index(lead)
            if not 0 <= index < len(LEADS):
                raise LeadwiseError(f"There is no lead {index}; the twelve leads are numbered 0 to 11.")
            bits |= 1 << index
        return cls(bits)

    @classmethod
    def parse(cls, text: str) -> "LeadSet":
        """Read lead names separated by spaces or commas, or the name of a clinical set (``"6-lead"``)."""
        named = CLINICAL_SETS.get(text.strip().lower())
        return named if named is not None else cls.of(re.findall(r"[^\s,]+", text))

    @classmethod
    def from_mask(cls, mask: Iterable[object]) -> "LeadSet":
        """The set whose indicator over the twelve leads is ``mask``."""
        flags = [bool(flag) for flag in mask]
        if len(flags) != len(LEADS):
            raise LeadwiseError(f"A lead mask has 12 entries; this one has {len(flags)}.")
        return cls(sum(flag << index for index, flag in enumerate(flags)))

    @property
    def indices(self) -> tuple[int, ...]:
        """Positions of the members in `LEADS`, ascending."""
        return tuple(index for index in range(len(LEADS)) if self.bits >> index & 1)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the members in canonical order."""
        return tuple(LEADS[index] for index in self.indices)

    @property
    def mask(self) -> Bool[np.ndarray, "12"]:
        """Indicator over the twelve leads."""
        return bits_masks(np.array(self.bits))

    @property
    def follows(self) -> "LeadSet":
        """Every lead whose signal these leads determine, themselves included.

        The six limb leads are projections of one frontal-plane vector at six different angles, so any two of them
        determine the other four. Chest leads follow from nothing but themselves.

        >>> print(LeadSet.parse("III aVR V2").follows)
        I II III aVR aVL aVF V2
        """
        return LeadSet(self.bits | _LIMB_BITS) if (self.bits & _LIMB_BITS).bit_count() >= 2 else self

    @property
    def electrodes(self) -> tuple[str, ...]:
        """Electrodes that must be attached to record these leads.

        The right-leg electrode is the amplifier's ground, is always there, and is not counted.

        >>> LeadSet.parse("I").electrodes, LeadSet.parse("aVR V2").electrodes
        (('RA', 'LA'), ('RA', 'LA', 'LL', 'V2'))
        """
        needed = set().union(*(_ELECTRODES[name] for name in self.names))
        return tuple(electrode for electrode in ELECTRODES if electrode in needed)

    @cached_property
    def free(self) -> "LeadSet":
        """Every lead that the electrodes of this set give, its own members included.

        >>> print(LeadSet.parse("aVR V2").free)
        I II III aVR aVL aVF V2
        """
        attached = set(self.electrodes)
        return LeadSet.of(lead for lead in LEADS if attached.issuperset(_ELECTRODES[lead]))

    def limb_weights(self, lead: str) -> Float[np.ndarray, "12"]:
        """Weights w with ``lead = Σ w_l · signal_l`` over the members of this set.

        >>> LeadSet.parse("I II").limb_weights("III")[:2].tolist()
        [-1.0, 1.0]
        """
        index = lead_index(lead)
        weights = np.zeros(len(LEADS))
        if self.bits >> index & 1:
            weights[index] = 1.0
        elif self.follows.bits >> index & 1:
            pair = [member for member in self.indices if member < 6][:2]
            weights[pair] = np.linalg.solve(LIMB_FROM_I_AND_II[pair].T, LIMB_FROM_I_AND_II[index])
        else:
            raise LeadwiseError(f"{LEADS[index]} does not follow from the lead set '{self}'.")
        return weights

    def __len__(self) -> int:
        return self.bits.bit_count()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, lead: str | int) -> bool:
        index = lead_index(lead) if isinstance(lead, str) else operator.index(lead)
        return bool(self.bits >> index & 1)

    def __or__(self, other: "LeadSet") -> "LeadSet":
        return LeadSet(self.bits | other.bits)

    def __and__(self, other: "LeadSet") -> "LeadSet":
        return LeadSet(self.bits & other.bits)

    def __sub__(self, other: "LeadSet") -> "LeadSet":
        return LeadSet(self.bits & ~other.bits)

    def __str__(self) -> str:
        return " ".join(self.names)

    def __repr__(self) -> str:
        return f"LeadSet('{self}')"


ALL_LEADS = LeadSet(0b111111111111)

_CLINICAL = (LEADS, LEADS[:6], ("I", "II", "III", "V2"), ("I", "II", "V2"), ("I", "II"))
CLINICAL_SETS: dict[str, LeadSet] = {f"{len(leads)}-lead": LeadSet.of(leads) for leads in _CLINICAL}
"""The reduced-lead sets of the PhysioNet/Computing in Cardiology Challenge 2021."""


def mask_bits(masks: Bool[np.ndarray, "*many 12"]) -> Int64[np.ndarray, "*many"]:
    """The 12-bit mask of each row of indicators, as `LeadSet.bits` has it: Σ_l 2^l · m_l.

    >>> mask_bits(np.array([LeadSet.parse("I III").mask, ALL_LEADS.mask])).tolist()
    [5, 4095]
    """
    return masks @ _BIT


def bits_masks(bits: Int[np.ndarray, "*many"]) -> Bool[np.ndarray, "*many 12"]:
    """Indicators over the twelve leads of each 12-bit mask: what `mask_bits` was given.

    >>> np.flatnonzero(bits_masks(np.array([5]))[0]).tolist()
    [0, 2]
    """
    return (bits[..., None] & _BIT).astype(bool)


def order_masks(order: Int[np.ndarray, "n k"]) -> Bool[np.ndarray, "n 12"]:
    """Indicators over the twelve leads of each row of lead indices, in whatever order.

    >>> order_masks(np.array([[3, 0], [11, 2]])).nonzero()[1].tolist()
    [0, 3, 2, 11]
    """
    masks = np.zeros((len(order), len(LEADS)), dtype=bool)
    np.put_along_axis(masks, order, True, axis=1)
    return masks


def lead_names(bits: Int[np.ndarray, " sets"]) -> list[str]:
    """Printed lead set of each 12-bit mask; each different one is spelt out once.

    >>> lead_names(np.array([5, 2048, 5]))
    ['I III', 'V6', 'I III']
    """
    distinct, place = np.unique(bits, return_inverse=True)
    names = [str(LeadSet(each)) for each in distinct.tolist()]
    return [names[at] for at in place]


@cache
def subsets(k: int) -> Bool[np.ndarray, "sets 12"]:
    """All lead sets of size k as rows of a read-only 0/1 matrix, in lexicographic order of their indices.

    >>> subsets(4).shape
    (495, 12)
    """
    if not 1 <= k <= len(LEADS):
        raise LeadwiseError(f"A budget of {k} leads is impossible; k lies between 1 and 12.")
    masks = order_masks(np.array(list(combinations(range(len(LEADS)), k))))
    masks.flags.writeable = False
    return masks
