"""The recipe: every setting of a training of the strong evaluator's network."""

from typing import Annotated

from pydantic import Field

from leadwise.registry import LARGEST, Amount, Count, Part, Share


class Recipe(Part):
    """Settings of a training; the defaults are the recipe of the shipped weights."""

    epochs: Count = 48
    batch: Count = 128
    learning_rate: Annotated[float, Field(gt=0)] = 2e-3
    """Its peak: it rises over the first 30% of all steps and then falls to nothing."""
    weight_decay: Amount = 0.05
    dropout: Share = 0.3
    crop: Count = 500
    """Samples of the random windows that all but the last epochs read, each record anew: this saves time, and helps."""
    full_epochs: Count = 8
    """Number of the last epochs, which read whole records."""
    shift: bool = True
    """Rotate whole records in time by a random number of samples."""
    scaling: Amount = 0.1
    """Deviation of the logarithm of a random factor on each record's amplitude."""
    noise: Amount = 0.02
    """Deviation of white noise, in units of a lead's own deviation."""
    mixing: Amount = 0.0
    """α of the Beta(α, α) by which each record, and its labels, are blended with another's; 0 does not blend."""
    averaging: Share = 0.998
    """Decay, per step, of the running average of the weights, which is what is measured and kept."""
    norm_batches: Annotated[int, Field(ge=0, le=LARGEST)] = 16
    """Batches of whole records from which the averaged weights get batch statistics of their own; with 0 they get the
    average of the statistics on the way, which belong to other weights, and to crops."""
    validate_every: Count = 4
    """Epochs from one measurement to the next; those that read whole records are all measured."""
