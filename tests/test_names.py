"""Which policies and evaluators a study has is said by its plan; the code knows none of the published study's names."""

import io
import re
import tokenize
from importlib.resources import files
from pathlib import Path

from leadwise.run.plan import read_plan

SOURCE = Path(str(files("leadwise")))
ROOMS = ("run", "findings", "report", "study")
DISPLAY_NAMES = SOURCE / "report" / "names.py"
"""The only module that may say how something of the published study is called."""


def named_in(source: str, names: set[str]) -> list[str]:
    """Names that stand in quotes in a module, alone or as a word of a list; doctests are left out."""
    found = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.STRING:
            text = re.sub(r"^\s*(>>>|\.\.\.).*$", "", token.string, flags=re.MULTILINE)
            quoted = re.findall(r"""(?=(["'`])([\w-]+)\1)""", text)
            found += [f"line {token.start[0]}: {name}" for _, name in quoted if name in names]
    return found


def test_names_are_found_where_they_stand() -> None:
    names = {"mga", "strong"}
    assert named_in('a = "mga"', names) == named_in("a = 'mga'", names) == ["line 1: mga"]
    assert named_in('f(\n"strong", "mga")', names) == ["line 2: strong", "line 2: mga"]
    assert named_in("a = f\"x['strong']\"", names) == ["line 1: strong"]
    assert named_in('"""Text.\n\n>>> f("mga")\n"""', names) == []
    assert named_in('strong = "mgaa"  # "mga"', names) == []
    assert named_in('"the strong evaluator"', names) == []


def test_no_module_of_the_upper_rooms_knows_the_published_study() -> None:
    plan = read_plan(SOURCE / "studies" / "ptbxl.toml")
    names = {*plan.evaluators, *plan.policies}
    assert {"controlled", "strong", "mask-robust", "ecg-on-demand", "mga", "random-subset"} <= names
    modules = [file for room in ROOMS for file in sorted((SOURCE / room).rglob("*.py")) if file != DISPLAY_NAMES]
    assert len(modules) > 50
    found = {str(file.relative_to(SOURCE)): named_in(file.read_text(), names) for file in modules}
    assert {name: places for name, places in found.items() if places} == {}
