"""Memory of this machine, and complaints about what does not fit into it."""

import os


def too_large(what: str, needed: float) -> list[str]:
    """A sentence that says so if ``what`` would take more bytes of memory than this machine has; nothing if it fits."""
    has = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed <= has:
        return []
    return [
        f"{what} would take about {needed / 1e9:,.0f} GB of memory, and this machine has {has / 1e9:,.0f} GB; take a "
        "smaller number."
    ]
