"""The strong evaluator: a residual network over time that is told which leads it was given."""

from leadwise.evaluators.masked_resnet.kind import MaskedResNet as MaskedResNet
