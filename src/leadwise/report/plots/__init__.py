"""The panels that figures are made of: each draws one frame on one Axes."""
