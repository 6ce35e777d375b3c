"""Masks of exact cardinality, which evaluators are trained and compared on."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Int

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError
from leadwise.leads import LEADS

CARDINALITIES = (1, 2, 3, 4, 6, 8, 12)


def random_masks(
    n: int, rng: np.random.Generator, cardinalities: Sequence[int] = CARDINALITIES
) -> Bool[np.ndarray, "n 12"]:
    """k uniform over the cardinalities, then uniform over the lead sets of that size, for each of n records."""
    k = rng.choice(cardinalities, n)
    return rng.random((n, 12)).argsort(1).argsort(1) < k[:, None]


def frozen_masks(n: int) -> Bool[np.ndarray, "n 12"]:
    """The one draw on which epochs, recipes and seeds are compared: a mask for each record of a fold in turn."""
    return random_masks(n, np.random.default_rng(7))


def training_masks(
    rows: Int[np.ndarray, " b"],
    available: Bool[np.ndarray, "n 12"],
    allocations: Sequence[Bool[np.ndarray, "budgets n 12"]],
    rng: np.random.Generator,
) -> tuple[Bool[np.ndarray, "b 12"], Int[np.ndarray, " b"]]:
    """A mask for each record of a batch, and where it came from: −1 for a random one, else which of the allocations.

    Without allocations all are random. With them every other mask is, and the rest come in equal numbers from each
    policy's own allocations for that record, at a budget drawn uniformly. ``rows`` are in random order already, so the
    place in the batch may decide the source: each batch then has exactly its shares.
    """
    place = np.arange(len(rows))
    source = np.where(place % 2 == 1, place // 2 % len(allocations), -1) if allocations else np.full(len(rows), -1)
    masks = random_masks(len(rows), rng)
    for number, allocation in enumerate(allocations):
        own = source == number
        masks[own] = allocation[rng.integers(len(allocation), size=int(own.sum())), rows[own]]
    return possible_masks(masks, available[rows]), source


def check_allocations(allocations: Mapping[str, Bool[np.ndarray, "budgets n 12"]], train: Records) -> None:
    """Raise unless every policy has, for each training record, masks of leads that the record has."""
    for policy, masks in allocations.items():
        if masks.ndim != 3 or not len(masks) or masks.shape[1:] != (len(train), len(LEADS)):
            but = (
                f"but {train.name} has {len(train)} records; give masks of shape (budgets, {len(train)}, {len(LEADS)})"
            )
            raise InputError(f"Policy {policy} has masks of shape {masks.shape}, {but}.")
        absent, empty = masks & ~train.available, ~masks.any(axis=2)
        if absent.any():
            _, record, lead = np.argwhere(absent)[0]
            raise InputError(f"Policy {policy} chose {LEADS[lead]} for record {train.ids[record]}, which lacks it.")
        if empty.any():
            _, record = np.argwhere(empty)[0]
            raise InputError(f"Policy {policy} chose no lead for record {train.ids[record]}; every mask needs one.")


def possible_masks(masks: Bool[np.ndarray, "n 12"], available: Bool[np.ndarray, "n 12"]) -> Bool[np.ndarray, "n 12"]:
    """Masks without the leads that a record lacks; all that it has, where nothing else is left."""
    left = masks & available
    return np.where(left.any(axis=1, keepdims=True), left, available)
