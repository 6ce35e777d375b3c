"""Facts that leadwise wrote as JSON, read again: each is of its type, or one short reason says which is not."""

import json
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError


class Facts(BaseModel):
    """Content of a JSON file of a run; fields that this version does not know are ignored."""

    model_config = ConfigDict(strict=True, frozen=True)


Kind = TypeVar("Kind", bound=Facts)


def read_facts(kind: type[Kind], text: str | bytes) -> Kind:
    """The facts of a JSON text; raises ValueError with what is wrong with the first of them."""
    try:
        return kind.model_validate(json.loads(text))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise ValueError(f"'{where}' {first['msg'].replace('Input', '').strip()}"[:200]) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
