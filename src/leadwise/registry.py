"""Kinds by name: what a plan can name, whether it is ours, another package's, or a class of the user's own.

A kind is a class. It has ``Settings``, a model of what a plan may say of it, and class methods that read, make or load
what it stands for; the contracts of the rooms say which. It is found by the name that it was registered under, by the
entry point of an installed package, or as ``module:object``.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from operator import attrgetter
from pkgutil import iter_modules
from typing import Annotated, Any, Generic, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field

from leadwise.errors import InputError, LeadwiseError, PlanError, one_line, right_one

LARGEST = 2**53 - 1
"""The largest whole number that every reader of JSON keeps; receipts and artifacts write settings as canonical JSON."""
Count = Annotated[int, Field(ge=1, le=LARGEST)]
Seed = Annotated[int, Field(ge=0, le=LARGEST)]
Share = Annotated[float, Field(ge=0, lt=1)]
Amount = Annotated[float, Field(ge=0)]
Budget = Annotated[int, Field(ge=1, le=12)]
"""A number of leads."""


class Part(BaseModel):
    """A part of a plan."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Settings(Part):
    """Settings of a kind, which a plan writes beside its name; those of every kind inherit from this."""

    @property
    def evaluators(self) -> Sequence[str]:
        """Names of the plan's evaluators that it is made from."""
        return ()

    @property
    def policies(self) -> Sequence[str]:
        """Names of the plan's policies that it is made from."""
        return ()

    @property
    def candidate(self) -> tuple[str, int] | None:
        """The evaluator and the seed of the candidate for it that this one is, where it is one."""
        return None

    @property
    def needs_patterns(self) -> bool:
        """True if making it needs the patterns of leads that the study's records have."""
        return False

    def cost(self, sizes: Mapping[str, int]) -> Mapping[str, float]:
        """Amounts of work by unit, for roles of these sizes; a forecast times each unit by the kind's ``trials``.

        The unit ``read NAME`` is a reading by the evaluator of that name, and always known.
        """
        del sizes
        return {}

    def disk(self) -> float:
        """Bytes that it leaves on the disk or needs there on the way, where they are many."""
        return 0.0

    def memory(self, sizes: Mapping[str, int], labels: int, length: int) -> Mapping[str, float]:
        """Bytes that settings of these names ask for, roughly, with so many labels and samples a record."""
        del sizes, labels, length
        return {}


Trials = Mapping[str, tuple[float, Callable[[], object]]]
"""For each unit of work an amount, and a call that does that amount."""
Made = TypeVar("Made", bound=type)
Class = TypeVar("Class", bound=type)


class Registry(Generic[Made]):
    """The kinds of one sort, in words ``what``: those that ``home`` and entry points of ``group`` add.

    A module of ``home`` has the name of its kind, as far as that is possible; ``methods`` are what a kind must have
    beside ``Settings``.
    """

    def __init__(self, what: str, group: str, home: str, methods: Sequence[str]) -> None:
        self.what, self.group, self.home, self.methods = what, group, home, methods
        self._kinds: dict[str, Any] = {}

    def register(self, name: str) -> Callable[[Class], Class]:
        """A decorator that makes a class known under a name."""

        def known(kind: Class) -> Class:
            self._kinds[name] = kind
            return kind

        return known

    def names(self) -> list[str]:
        """Names of all kinds that are registered or that installed packages add."""
        for module in iter_modules(import_module(self.home).__path__):
            import_module(f"{self.home}.{module.name}")
        return sorted({*self._kinds, *(point.name for point in entry_points(group=self.group))})

    def find(self, name: str) -> Made:
        """The kind of a name, or the class that ``module:object`` names."""
        kind: Any = self._registered(name)
        if kind is None and ":" in name:
            module, _, place = name.partition(":")
            kind = self._loaded(name, lambda: attrgetter(place)(import_module(module)))
        elif kind is None and name in self.names():
            kind = self._kinds.get(name)
            for point in entry_points(group=self.group, name=name):
                kind = kind or self._loaded(f"{name} of {point.value}", point.load)
        elif kind is None:
            raise PlanError(f"'{one_line(name)}' is no kind of {self.what}; {right_one(name, self.names())}")
        settings: Any = getattr(kind, "Settings", None)
        sound = isinstance(kind, type) and isinstance(settings, type) and issubclass(settings, Settings)
        if not (sound and all(callable(getattr(kind, method, None)) for method in self.methods)):
            raise InputError(
                f"{name} is no kind of {self.what}: it needs to be a class with 'Settings', which inherits from "
                f"leadwise.registry.Settings, and {' and '.join(map(repr, self.methods))}."
            )
        return cast(Made, kind)

    def of_file(self, kind: object, format: object, path: object) -> Made:
        """The kind that a saved file of this format says that it is of."""
        if not isinstance(kind, str):
            raise InputError(f"{path} is no {self.what} of leadwise; it holds '{format}'.")
        try:
            return self.find(kind)
        except LeadwiseError as error:
            raise InputError(f"{path}: {error}") from None

    def _registered(self, name: str) -> Any:
        """A kind that is registered, if need be by the module that has its name; others need not be imported for it."""
        module = f"{self.home}.{name.replace('-', '_')}"
        if name not in self._kinds and name.replace("-", "").isalnum() and find_spec(module) is not None:
            import_module(module)
        return self._kinds.get(name)

    def _loaded(self, where: str, load: Callable[[], Any]) -> Any:
        """The object that ``load`` imports; another's module may raise anything while it is imported."""
        try:
            return load()
        except Exception as error:
            raise InputError(f"The {self.what} {where} cannot be imported: {one_line(error)}.") from None
