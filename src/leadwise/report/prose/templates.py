"""Templates of prose: what they can ask for, and how they are found."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from leadwise.evaluators.masks import CARDINALITIES
from leadwise.evaluators.statistics import STATISTICS
from leadwise.policies.learned import VALIDATION_SHARE
from leadwise.report.names import evaluator_title, spoken, the_evaluator
from leadwise.report.numbers import estimate, listing, number, percent, several
from leadwise.report.prose.words import folds_in_words
from leadwise.run.stage_names import scored_role


@cache
def templates() -> Environment:
    """The templates of this directory."""
    environment = Environment(
        loader=PackageLoader("leadwise.report", "prose"),
        autoescape=select_autoescape(default=False),  # the page escapes the paragraph as a whole
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    words = (listing, number, percent, several, spoken, the_evaluator, evaluator_title, scored_role)
    environment.filters |= {word.__name__: word for word in words}
    environment.filters |= {
        "found": lambda found: estimate(*found),
        "folds": folds_in_words,
        "capital": lambda text: f"{text[0].upper()}{text[1:]}",
    }
    environment.globals |= {"statistics": STATISTICS, "sizes": CARDINALITIES, "validation_share": VALIDATION_SHARE}
    return environment
