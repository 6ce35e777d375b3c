"""Base of the learned policies: how they meet states, learn from them, choose, and are kept on disk."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Float64, Int
from pydantic import model_validator

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError, PlanError
from leadwise.evaluators.contract import Evaluator, Fitted, evaluator_name, evaluator_sha256
from leadwise.evaluators.scoring import Scorer, Scorers
from leadwise.evaluators.statistics import STATISTICS
from leadwise.leads import LEADS, lead_index, order_masks
from leadwise.policies.contract import Material
from leadwise.policies.observation import Observation
from leadwise.policies.rollout import Rollout, check_budget
from leadwise.policies.state_network import WEIGHTS, StateNetwork
from leadwise.policies.states import States, random_states
from leadwise.registry import Count, Seed, Settings, Share, Trials
from leadwise.store import check_tensors, read_tensors, whole_file, write_tensors

if TYPE_CHECKING:
    import torch

Found = TypeVar("Found")
FORMAT = "leadwise policy 1"
BUDGETS = (2, 3, 4, 6, 8)
READINGS = 11 * 1.1
"""For each state that a policy learns from: the state, the leads that could come next, a tenth more for validation."""
VALIDATION_SHARE = 0.1
"""Validation states for each training state: enough to see when to stop, and readings are dear."""


class StatesSettings(Settings):
    """Settings in a plan of a policy that learns from states of the train role."""

    target: str
    """The evaluator whose NLL is to be reduced."""
    state: str | None = None
    """The evaluator whose probabilities the policy sees; by default the target."""
    states: Count = 44_000
    seed: Seed = 0

    @property
    def evaluators(self) -> list[str]:
        return list(dict.fromkeys([self.target, self.state or self.target]))

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of the policy beside those that every such policy takes."""
        return {}

    def memory(self, sizes: Mapping[str, int], labels: int, length: int) -> Mapping[str, float]:
        del sizes, labels, length
        return {"states": 5_000 * self.states}


class LearnedSettings(StatesSettings):
    """Settings of a learned policy in a plan; see `LearnedPolicy` and `StateNetwork`."""

    own: Share = 0.5
    hidden: Count = 256
    epochs: Count = 20
    batch: Count = 1024

    @model_validator(mode="after")
    def _states_are_enough(self) -> "LearnedSettings":
        try:
            rounds_of(self.states, self.own)
        except InputError as error:
            raise PlanError(f"'states': {error}") from None
        return self

    @property
    def options(self) -> dict[str, Any]:
        return {"own": self.own, "network": StateNetwork(self.hidden, self.epochs, self.batch)}

    def cost(self, sizes: Mapping[str, int]) -> Mapping[str, float]:
        del sizes
        return {"state": self.states, f"read {self.target}": READINGS * self.states}

    def memory(self, sizes: Mapping[str, int], labels: int, length: int) -> Mapping[str, float]:
        network = 16 * self.hidden * (self.hidden + 160) + 24 * self.hidden * min(self.batch, self.states)
        return {**super().memory(sizes, labels, length), "hidden": network, "epochs": 50 * self.epochs}


class StatesPolicy(Fitted, ABC):
    """A policy that learns from states of the train role and takes the lead with the largest score.

    - ``target``: the evaluator whose NLL is to be reduced;
    - ``first_lead``: ranking of the leads; every record begins with the first that it has;
    - ``state_evaluator``: whose probabilities the policy sees; the target's if None;
    - ``states``: number of training states. Each costs the target one reading for every lead that could come next and
      one for the state itself; a slow evaluator can afford the default;
    - ``budgets``: those that it is meant for;
    - ``seed``: for everything random.
    """

    Settings: type[StatesSettings]
    kind: str
    scores_are_gains: bool
    budget_agnostic: bool
    kept: tuple[str, ...]
    """Names of the settings in its file."""

    def __init__(
        self,
        target: Evaluator,
        first_lead: Sequence[str],
        state_evaluator: Evaluator | None,
        name: str | None,
        states: int,
        budgets: Sequence[int],
        seed: int,
    ) -> None:
        for budget in budgets:
            check_budget(budget)
        if max(budgets, default=0) < 2:
            raise InputError("A policy learns what to choose after the first lead; give it a budget of two or more.")
        self.target, self.first_lead = target, ranking_of_all(first_lead)
        self.state_evaluator = target if state_evaluator is None else state_evaluator
        self.name, self.states, self.budgets, self.seed = name or self.kind, states, tuple(budgets), seed

    @classmethod
    def make(cls, settings: Any, material: Material) -> "StatesPolicy":
        """Train one."""
        target, state = (material.evaluators[name] for name in (settings.target, settings.state or settings.target))
        common = {"name": material.name, "states": settings.states, "budgets": material.budgets, "seed": settings.seed}
        policy = cls(target, material.ranking, state_evaluator=state, **common, **settings.options)
        return policy.fit(material.train, material.validation, material.directory)

    @abstractmethod
    def fit(self, train: Records, validation: Records, memory: Path | None = None) -> "StatesPolicy":
        """Learn from the train role; the validation role says when to stop, if it is asked.

        In the directory ``memory``, the evaluators' readings are kept as they are made, and found again.
        """

    @abstractmethod
    def scores(self, observation: Observation) -> Float64[np.ndarray, "n 12"]:
        """One number a lead, larger for better ones; predicted gains in NLL where ``scores_are_gains``."""

    def choose(self, observation: Observation) -> Int[np.ndarray, " n"]:
        """The lead with the largest score among those that can be chosen."""
        return np.where(observation.candidates, self.scores(observation), -np.inf).argmax(axis=1)

    @classmethod
    def load(cls, path: Path, evaluators: Mapping[str, Evaluator], _policies: object = None) -> "StatesPolicy":
        """Read what `save` wrote; the evaluators, found by name, must be those it was trained with, by hash."""
        with whole_file(path, "policy"):
            tensors, facts = read_policy(path, cls.kind)
            trained_with: dict[str, Any] = {}
            for what in ("target", "state_evaluator"):
                trained_with[what] = named(facts[what]["name"], evaluators, path)
                this = identity(trained_with[what])
                if this != facts[what]:
                    theirs = f"{path} was trained with the {what.replace('_', ' ')} {_shown(facts[what])}"
                    raise InputError(f"{theirs}; this is {_shown(this)}.")
            settings = facts["settings"]
            if "network" in cls.kept:
                settings["network"] = StateNetwork(**settings["network"])
            policy = cls(**trained_with, **settings)
            policy._restore(tensors, facts)
        return policy

    @abstractmethod
    def _restore(self, tensors: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        """Take what was learned from a file; raises unless it is sound."""

    def _facts(self, **others: Any) -> dict[str, Any]:
        """Facts in its file."""
        evaluators = {"target": identity(self.target), "state_evaluator": identity(self.state_evaluator)}
        return {"kind": self.kind, "settings": self._settings(), **others, **evaluators}

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.kept}

    def __repr__(self) -> str:
        target, state = evaluator_name(self.target), evaluator_name(self.state_evaluator)
        sees = "" if self.state_evaluator is self.target else f", sees {state}"
        return f"<{type(self).__name__} {self.name}: trained on {target}{sees}, begins with {self.first_lead[0]}>"


class LearnedPolicy(StatesPolicy):
    """A policy that asks a small network for one number a lead.

    It learns in two rounds: from states with random leads, then, from scratch, from those and from states that its own
    rollouts on training records led to, so that it has met in training what it meets at work. ``own`` is the share of
    the latter; ``network`` the network to be trained, for other widths and schedules; the rest is as for every
    `StatesPolicy`. ``readings_`` says how many readings the target made, those of the validation role included.
    """

    Settings = LearnedSettings
    kept = ("first_lead", "name", "states", "own", "budgets", "seed", "network")

    def __init__(
        self,
        target: Evaluator,
        first_lead: Sequence[str],
        state_evaluator: Evaluator | None = None,
        name: str | None = None,
        states: int = 44_000,
        own: float = 0.5,
        budgets: Sequence[int] = BUDGETS,
        seed: int = 0,
        network: StateNetwork | None = None,
    ) -> None:
        rounds_of(states, own)  # raises if there are too few states to learn from
        super().__init__(target, first_lead, state_evaluator, name, states, budgets, seed)
        self.own, self.network, self.unit_ = own, network or StateNetwork(), 1.0

    @classmethod
    def trials(cls, settings: LearnedSettings, train: Records, validation: Records) -> Trials:
        """A training on the cheapest evaluator, whose readings cost next to nothing."""
        from leadwise.evaluators.logistic import LogisticEvaluator

        states = min(2000, settings.states)
        policy = cls(LogisticEvaluator(repeats=1).fit(train), LEADS, states=states, **settings.options)
        return {"state": (states, lambda: policy.fit(train, validation))}

    def fit(self, train: Records, validation: Records, memory: Path | None = None) -> "LearnedPolicy":
        roles = [_Role(self, train, memory), _Role(self, validation, memory)]
        self.network.standardise(roles[0].statistics, train.available)
        rng = np.random.default_rng([self.seed, 1])
        rounds = rounds_of(self.states, self.own)
        self._prepare(train)
        for number, counts in enumerate(rounds):
            for role, count in zip(roles, counts, strict=True):
                role.meet(count, rng, at_random=number == 0)
            (x, y), (x_held, y_held) = (self._examples(role, number, rng) for role in roles)
            self.unit_ = float(np.nanstd(y)) or 1.0  # to an evaluator that never changes its mind all leads are alike
            what, held_out = f"Training {self.name}, round {number + 1} of {len(rounds)}", (x_held, y_held / self.unit_)
            self.history_ = self.network.fit(x, y / self.unit_, self._loss, held_out, self.seed + number, what)
        self.readings_ = sum(role.scorer.readings for role in roles)
        return self

    def scores(self, observation: Observation) -> Float64[np.ndarray, "n 12"]:
        remaining = np.full(len(observation), observation.remaining)
        return self.unit_ * self.network(self._inputs(observation, remaining))

    def _inputs(self, seen: Any, remaining: Int[np.ndarray, " n"]) -> Float64[np.ndarray, "n d"]:
        budget = None if self.budget_agnostic else remaining
        return self.network.inputs(seen.statistics, seen.mask, seen.probabilities, budget)

    def _prepare(self, train: Records) -> None:
        """Learn from the train role what needs no states."""

    def _examples(
        self, role: "_Role", number: int, rng: np.random.Generator
    ) -> tuple[Float64[np.ndarray, "m d"], Float64[np.ndarray, "m 12"]]:
        states = role.states
        inputs = self._inputs(role.rollout.observe(states.positions, states.masks, 0), states.remaining)
        return inputs, self._targets(role.scorer, states, inputs, number, rng)

    @abstractmethod
    def _targets(
        self, scorer: Scorer, states: States, inputs: Float64[np.ndarray, "m d"], number: int, rng: np.random.Generator
    ) -> Float64[np.ndarray, "m 12"]:
        """Target outputs of the network, NaN where there is none."""

    @abstractmethod
    def _loss(self, outputs: "torch.Tensor", targets: "torch.Tensor") -> "torch.Tensor":
        """Loss between the network's outputs and the targets."""

    def save(self, path: Path) -> None:
        """Write one safetensors file, settings and the evaluators' hashes included."""
        tensors = self.network.weights_ | {"mean": self.network.mean_, "scale": self.network.scale_} | self._tensors()
        write_tensors(path, tensors, FORMAT, self._facts(unit=self.unit_))

    def _restore(self, tensors: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        network = self.network
        width = 12 * len(STATISTICS) + 12 + len(self.state_evaluator.labels) + (not self.budget_agnostic)
        own = {name: (tensor.dtype.str, tensor.shape) for name, tensor in self._tensors().items()}
        check_tensors(tensors, network.tensors_due(width, kept_type(tensors, "0_weight", "<f2", "<f4")) | own)
        if not (isinstance(facts["unit"], int | float) and facts["unit"] > 0):
            raise ValueError(f"its unit is {facts['unit']}, where a number above zero is due")
        self.unit_, network.mean_, network.scale_ = facts["unit"], tensors["mean"], tensors["scale"]
        network.weights_ = {name: tensors[name] for name in WEIGHTS}
        self._take_tensors(tensors)

    def _settings(self) -> dict[str, Any]:
        network = ("hidden", "epochs", "batch", "learning_rate", "weight_decay", "dropout")
        return super()._settings() | {"network": {name: getattr(self.network, name) for name in network}}

    def _tensors(self) -> dict[str, np.ndarray]:
        """Further tensors of the file."""
        return {}

    def _take_tensors(self, tensors: dict[str, np.ndarray]) -> None:
        """Take from ``tensors`` what `_tensors` put in."""


class _Role:
    """One role as a learning policy meets it."""

    def __init__(self, policy: LearnedPolicy, records: Records, memory: Path | None) -> None:
        self.policy, self.records = policy, records
        scorers = Scorers(records, memory)
        self.rollout, self.scorer = Rollout(policy, records, scorers), scorers.of(policy.target)
        self.statistics = self.rollout.statistics
        self.states = States(np.empty(0, int), np.empty((0, len(LEADS)), bool), np.empty(0, int))

    def meet(self, count: int, rng: np.random.Generator, at_random: bool) -> None:
        """Add states with random leads, or those that the policy comes through."""
        self.states += self.random(count, rng) if at_random else self.visited(count, rng)

    def random(self, count: int, rng: np.random.Generator) -> States:
        ranking = [lead_index(lead) for lead in self.policy.first_lead]
        return random_states(self.records, ranking, count, self.policy.budgets, rng)

    def visited(self, count: int, rng: np.random.Generator) -> States:
        """States that the policy comes through on its way to each budget, on some of the records."""
        budgets = [k for k in self.policy.budgets if k > 1]
        each = max(1, count // sum(k - 1 for k in budgets))
        leads = self.records.lead_counts
        visited = States(np.empty(0, int), np.empty((0, len(LEADS)), bool), np.empty(0, int))
        for k in budgets:
            enough = np.flatnonzero(leads >= k)
            chosen = np.sort(rng.choice(enough, min(len(enough), each), replace=False))
            order = self.rollout.allocate_at(chosen, k) if len(chosen) else np.empty((0, k), int)
            for step in range(1, k):
                masks = order_masks(order[:, :step])
                visited += States(chosen, masks, np.full(len(chosen), k - step))
        return visited


def rounds_of(states: int, own: float) -> list[tuple[int, int]]:
    """Training and validation states of each round of training; raises unless each has some of both."""
    if not 0 <= own < 1:
        raise InputError(f"A share of {own} of own states is impossible; it lies between 0 and 1, and below 1.")
    shares = [1.0] if own <= 0 else [1.0 - own, own]
    rounds = [(int(share * states), int(share * states * VALIDATION_SHARE)) for share in shares]
    training, validation = min(rounds)
    if not validation:
        raise InputError(
            f"With {states:,} states a round of training learns from {training}; it needs {1 / VALIDATION_SHARE:.0f} "
            "or more, so that the validation has one. Take more states."
        )
    return rounds


def ranking_of_all(first_lead: Sequence[str]) -> tuple[str, ...]:
    """A ranking of all twelve leads that begins with the given ones; a text is one or more leads by name."""
    first_lead = first_lead.split() if isinstance(first_lead, str) else first_lead
    if not isinstance(first_lead, Iterable):
        raise InputError(f"The first lead is given as {first_lead!r}; name it, as in 'aVR'.")
    given = [LEADS[lead_index(lead)] for lead in first_lead]
    if not given or len(set(given)) != len(given):
        raise InputError(f"The first lead is given as '{' '.join(first_lead)}'; name one or more different leads.")
    return (*given, *(lead for lead in LEADS if lead not in given))


def identity(evaluator: Evaluator) -> dict[str, str | None]:
    """Name and hash of an evaluator, for a policy's file."""
    return {"name": evaluator_name(evaluator), "sha256": evaluator_sha256(evaluator)}


def named(name: Any, known: Mapping[str, Found], path: Path) -> Found:
    """The evaluator or policy that a file names; raises where it is not given."""
    if name not in known:
        raise InputError(f"{path} needs '{name}', which is not here; there are {', '.join(known) or 'none'}.")
    return known[name]


def kept_type(tensors: Mapping[str, np.ndarray], name: str, now: str, before: str) -> str:
    """The type that a tensor is due in: as it is written now, or as it was before policies were kept in short."""
    return before if name in tensors and tensors[name].dtype == np.dtype(before) else now


def read_policy(path: Path, kind: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Tensors and facts of a policy file, if it holds this kind of policy."""
    tensors, facts = read_tensors(path, FORMAT)
    if facts["kind"] != kind:
        raise InputError(f"{path} holds a policy of kind '{facts['kind']}', not '{kind}'.")
    return tensors, facts


def _shown(known: dict[str, str | None]) -> str:
    return f"{known['name']} ({(known['sha256'] or 'no hash')[:12]})"
