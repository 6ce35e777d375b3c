"""Mistakes in a plan in one sentence, which names the key, what is wrong with it and what was perhaps meant."""

import re
from collections.abc import Iterable
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from leadwise.errors import one_line, right_one

_KINDS = {
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
}
"""Words for the right kind of value, by pydantic's name for the mistake."""


def first_problem(
    error: ValidationError, model: type[BaseModel], above: tuple[str, ...] = (), beside: Iterable[str] = ()
) -> str:
    """A sentence about a mistake in a part of a plan; ``beside`` are keys that stand with the part's own."""
    # a key that is misspelt is also missing; the misspelling says more
    problem = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    kind, value, path = problem["type"], problem["input"], problem["loc"]
    steps = [*above, *(step + 1 if isinstance(step, int) else step for step in path)]  # people count from one
    where = ".".join(short(step) for step in steps)
    if kind == "extra_forbidden":
        possible = [*part_at(model, path[:-1]).model_fields, *(beside if len(path) == 1 else ())]
        return f"'{where}' is not part of a plan; {right_one(path[-1], possible)}"
    if kind == "missing":
        return f"'{where}' is missing; add it."
    words: dict[type, str] = {dict: "a table", list: "a list", str: f"'{short(value)}'"}
    shown = short(words.get(type(value), str(value).lower()))  # as TOML has it
    if kind == "literal_error":
        named = re.findall("'([^']*)'", problem["ctx"]["expected"])
        return f"'{where}' is {shown}; {right_one(value, named)}"
    if kind in _KINDS:
        return f"'{where}' is {shown}; it should be {_KINDS[kind]}."
    said = problem["msg"].replace("Input", "it").replace(" after validation", "")
    return f"'{where}' is {shown}: {said[0].lower()}{said[1:]}."


def short(value: object) -> str:
    """A value as a sentence can hold it."""
    text = one_line(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def part_at(model: type[BaseModel], path: tuple[int | str, ...]) -> type[BaseModel]:
    """The part of a plan that a path of keys and positions leads to."""
    part: Any = model
    for step in path:
        inner = get_args(part)
        part = inner[-1] if inner else part.model_fields[step].annotation
    return part
