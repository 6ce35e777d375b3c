"""Masked training: what a step sees, which epoch is kept, and that a kill at any moment changes nothing.

Started as a program, this file trains in children that kill themselves where they are told to; the tests then go on
from what those left behind.
"""

import json
import math
import os
import re
import resource
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch

from leadwise.cohort.cohort import Records
from leadwise.errors import InputError, LeadwiseError, LeadwiseWarning
from leadwise.evaluators.masked_resnet import augmentation, checkpoint
from leadwise.evaluators.masked_resnet import training as module
from leadwise.evaluators.masked_resnet.checkpoint import BEST, CHECKPOINT, CHECKPOINT_BEFORE, FORMAT, HISTORY
from leadwise.evaluators.masked_resnet.evaluator import NetworkEvaluator
from leadwise.evaluators.masked_resnet.recipe import Recipe
from leadwise.evaluators.masked_resnet.training import Training, train_network
from leadwise.evaluators.masks import CARDINALITIES, frozen_masks, possible_masks
from leadwise.evaluators.scoring import score
from leadwise.leads import LEADS
from leadwise.metrics import nll
from leadwise.store import read_tensors, write_tensors
from trainings import COHORT, LENGTH, RECIPE, TRAIN, VALIDATION, WIDTHS, make_training, some_allocations

WATCHED = ("masked_resnet/training.py", "masked_resnet/checkpoint.py", "leadwise/store.py")
"""Where a training is killed at any line."""


def for_epochs(epochs: int) -> Recipe:
    return RECIPE.model_copy(update={"epochs": epochs})


# children ------------------------------------------------------------------------------------------------------------


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before(times: int, of: Any, name: str, act: Callable[..., Any] = lambda *_: die(), when: str = "") -> None:
    """Act instead of a function when it is called so many times with an argument that ends like this."""
    original, left = getattr(of, name), [times]

    def watched(*given: Any, **named: Any) -> Any:
        left[0] -= str(given[-1]).endswith(when) if when else 1
        return act(*given, **named) if not left[0] else original(*given, **named)

    setattr(of, name, watched)


def half_a_file(tensors: dict[str, np.ndarray], path: Path, metadata: dict[str, str]) -> None:
    from safetensors.numpy import save

    content = save(tensors, metadata)
    path.write_bytes(content[: len(content) // 2])
    die()


def only_small_files(tensors: dict[str, np.ndarray], path: Path, metadata: dict[str, str]) -> None:
    """As on a full disk: the system itself refuses to write on."""
    from safetensors import numpy

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        numpy.serialize_file(numpy._flatten(tensors, []), path, metadata=metadata)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def killed_after_best(*given: Any) -> None:
    saved(*given)
    die()


def killed_after_note(*given: Any) -> None:
    noted(*given)
    die()


saved, noted = NetworkEvaluator.save, Training._note


def train_for_lines(directory: Path, last: int | None = None) -> int:
    """Train up to the so-manieth line of the modules that train and write; how many there were."""
    done = [0]

    def line(_frame: Any, event: str, _arg: Any) -> Any:
        done[0] += event == "line"
        if done[0] == last:
            die()
        return line

    def call(frame: Any, _event: str, _arg: Any) -> Any:
        return (
            line
            if frame.f_code.co_filename.endswith(("evaluators/masked_resnet/training.py", "leadwise/store.py"))
            else None
        )

    sys.settrace(call)
    make_training(directory).run(0.0)
    sys.settrace(None)
    return done[0]


def child(directory: str, moment: str, number: int, seconds: float, threads: int, epochs: int) -> None:
    """Train, and die at a moment, when it has come so many times."""
    from safetensors import numpy

    torch.set_num_threads(threads)
    if moment == "line":
        train_for_lines(Path(directory), number)
    elif moment == "step":
        before(number, torch.optim.AdamW, "step")
    elif moment == "draft":
        before(number, numpy, "save_file", half_a_file)
    elif moment == "renaming":
        before(number, Path, "replace", when=CHECKPOINT_BEFORE)
    elif moment == "between names":
        before(number, Path, "replace", when=f"/{CHECKPOINT}")
    elif moment == "best":
        before(number, NetworkEvaluator, "save", killed_after_best)
    elif moment == "note":
        before(number, Training, "_note", killed_after_note)
    make_training(Path(directory), recipe=for_epochs(epochs)).run(seconds)


def nursery() -> None:
    """Says how many lines a training has; then forks a child for each order, and says how it ended."""
    torch.set_num_threads(1)  # no threads of its own may be lost by forking
    with tempfile.TemporaryDirectory() as directory:
        print(train_for_lines(Path(directory)), flush=True)
    for order in sys.stdin:
        if not (pid := os.fork()):
            try:
                child(*json.loads(order))
            except BaseException as error:
                print(error, file=sys.stderr)
                os._exit(1)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


class Nursery:
    """Forking from a process that has trained before is much faster than starting one each time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.orders, self.answers = process.stdin, process.stdout
        self.lines = int(self.answers.readline())

    def train(
        self, directory: Path, moment: str, number: int, seconds: float = 0.0, threads: int = 1, epochs: int = 3
    ) -> int:
        """How a child ended that was to die at a moment."""
        print(json.dumps([str(directory), moment, number, seconds, threads, epochs]), file=self.orders, flush=True)
        return int(self.answers.readline())


@pytest.fixture(scope="module")
def children() -> Iterator[Nursery]:
    there = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, __file__], stdin=-1, stdout=-1, text=True, env=there) as process:
        yield Nursery(process)


# what an uninterrupted training gives --------------------------------------------------------------------------------


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Several would only wait for each other on networks this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that nobody disturbed."""
    directory = tmp_path_factory.mktemp("whole")
    make_training(directory).run(math.inf)
    return directory


def history(directory: Path) -> list[dict[str, Any]]:
    """One row an epoch, without the clock."""
    rows = [json.loads(line) for line in (directory / HISTORY).read_text().splitlines()]
    assert all(row.pop("seconds") >= 0 for row in rows)
    return rows


def goes_on(directory: Path, whole: Path, **other: Any) -> None:
    """To the very same end."""
    evaluator, expected = make_training(directory, **other).run(math.inf), NetworkEvaluator.load(whole / BEST)
    assert evaluator.sha256 == expected.sha256
    assert evaluator.facts == expected.facts
    assert history(directory) == history(whole)
    assert NetworkEvaluator.load(directory / BEST).sha256 == expected.sha256
    ours, theirs = (read_tensors(where / CHECKPOINT, FORMAT) for where in (directory, whole))
    assert all(np.array_equal(ours[0][name], value) for name, value in theirs[0].items())


def position(path: Path) -> tuple[int, int]:
    _, facts = read_tensors(path, FORMAT)
    return facts["epoch"], facts["step"]


@pytest.fixture
def half(tmp_path: Path) -> Path:
    """A training that was interrupted in the second epoch: its checkpoints are of steps 1 and 2 there."""
    interrupt(tmp_path, epoch=1, step=2)
    return tmp_path


def interrupt(directory: Path, epoch: int, step: int, **other: Any) -> None:
    """Ctrl-C after so many epochs and steps, each of which left a checkpoint."""
    training = make_training(directory, **other)
    original = training.learn

    def learn(rows: np.ndarray) -> float:
        if (training.epoch, training.step) == (epoch, step):
            raise KeyboardInterrupt
        return original(rows)

    training.learn = learn  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        training.run(-1.0)


def test_a_training_without_a_directory_is_the_same(whole: Path) -> None:
    evaluator = train_network(
        TRAIN, VALIDATION, recipe=RECIPE, widths=WIDTHS, seed=3, allocations=some_allocations(), device="cpu"
    )
    assert evaluator.sha256 == NetworkEvaluator.load(whole / BEST).sha256


def test_memory_is_kept_while_it_runs_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting is the whole process's: asking a training whether it made some weights leaves it alone."""
    calls: list[int] = []
    monkeypatch.setattr(module, "keep_freed_memory", lambda: calls.append(1))
    training = make_training(recipe=Recipe(epochs=1, batch=8, full_epochs=1))
    assert not calls
    training.run(math.inf)
    assert calls


def test_another_seed_is_another_training(whole: Path) -> None:
    assert make_training(seed=4).run(math.inf).sha256 != NetworkEvaluator.load(whole / BEST).sha256


def test_the_callers_random_numbers_are_left_alone() -> None:
    recipe = Recipe(epochs=1, batch=8, full_epochs=1)
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    one = make_training(recipe=recipe).run(math.inf)
    assert torch.equal(torch.rand(3), expected)
    assert make_training(recipe=recipe).run(math.inf).sha256 == one.sha256, "nor do they matter"


def test_what_remains(whole: Path) -> None:
    assert {path.name for path in whole.iterdir()} == {CHECKPOINT, CHECKPOINT_BEFORE, BEST, HISTORY}


def test_a_finished_training_is_not_done_again(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Training, "learn", lambda *_: pytest.fail("it learns"))
    goes_on(whole, whole)


def test_it_learns() -> None:
    """Eight records that it sees again and again, as they are."""
    recipe = Recipe(
        epochs=40, batch=8, crop=LENGTH, learning_rate=0.02, dropout=0.0, noise=0.0, scaling=0.0, shift=False
    )
    training = make_training(recipe=recipe, allocations={"all": TRAIN.available[None]})
    losses = []
    for training.epoch in range(30):
        losses.append(training.learn(np.arange(8)))
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.1


# kills ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moment", "number", "seconds", "left"),
    [
        ("step", 8, 0.0, (2, 1)),
        ("step", 8, 1e9, (2, 0)),
        ("draft", 1, 0.0, None),
        ("draft", 6, 0.0, (1, 1)),
        ("draft", 8, 0.0, (1, 3)),  # of the best weights
        ("renaming", 4, 0.0, (1, 0)),
        ("between names", 6, 0.0, (1, 1)),
        ("best", 1, 0.0, (1, 3)),
        ("best", 1, 1e9, (1, 0)),
        ("note", 3, 1e9, (2, 0)),
    ],
)
def test_a_kill_changes_nothing(
    children: Nursery, whole: Path, tmp_path: Path, moment: str, number: int, seconds: float, left: Any
) -> None:
    """In an epoch, in the midst of a file, between two names, between the best weights and the checkpoint."""
    assert children.train(tmp_path, moment, number, seconds) == -signal.SIGKILL
    found = [tmp_path / name for name in (CHECKPOINT, CHECKPOINT_BEFORE) if (tmp_path / name).exists()]
    assert (position(found[0]) if found else None) == left
    assert len(list(tmp_path.glob(".*"))) == (moment in ("draft", "between names")), "a file that was being written"
    goes_on(tmp_path, whole)
    assert {path.name for path in tmp_path.iterdir()} == {CHECKPOINT, CHECKPOINT_BEFORE, BEST, HISTORY}


def test_a_kill_at_any_line(children: Nursery, whole: Path, tmp_path: Path) -> None:
    """Of training and of writing files; each training is killed twice, the second time further on."""
    seed = secrets.randbits(32)
    print("seed", seed)
    for number in np.random.default_rng(seed).integers(1, children.lines, size=4):
        print("line", number, "of", children.lines)
        directory = tmp_path / str(number)
        assert children.train(directory, "line", int(number)) == -signal.SIGKILL
        assert children.train(directory, "line", int(number)) in (-signal.SIGKILL, 0)
        goes_on(directory, whole)


def test_a_kill_with_two_threads(children: Nursery, tmp_path: Path) -> None:
    torch.set_num_threads(2)
    try:
        make_training(tmp_path / "whole", recipe=for_epochs(1)).run(math.inf)
        assert children.train(tmp_path / "killed", "step", 2, threads=2, epochs=1) == -signal.SIGKILL
        goes_on(tmp_path / "killed", tmp_path / "whole", recipe=for_epochs(1))
    finally:
        torch.set_num_threads(1)


def test_an_interruption_changes_nothing(whole: Path, half: Path) -> None:
    assert position(half / CHECKPOINT) == (1, 2)
    assert position(half / CHECKPOINT_BEFORE) == (1, 1)
    goes_on(half, whole)


def test_checkpoints_are_written_as_often_as_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, written = [0.0], []
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    training = make_training(tmp_path)
    learn, save = training.learn, training._save_checkpoint

    def slow(rows: np.ndarray) -> float:
        clock[0] += 10
        return learn(rows)

    training.learn = slow  # type: ignore[method-assign]
    training._save_checkpoint = lambda: (written.append((training.epoch, training.step)), save())[1]  # type: ignore
    training.run(15.0)
    assert written == [(0, 2), (1, 0), (1, 2), (2, 0), (2, 2), (3, 0)], "and after every epoch"


# checkpoints that do not fit -----------------------------------------------------------------------------------------


ANEW = "No whole checkpoint is left, so the training begins anew."


def other_records() -> Records:
    labels = COHORT._labels.copy()
    labels[TRAIN.rows[0]] ^= True
    return replace(COHORT, _labels=labels)["train"]


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"recipe": for_epochs(5)}, "recipe"),
        ({"seed": 4}, "seed"),
        ({"name": "robust"}, "name"),
        ({"widths": (4, 4, 8, 16)}, "widths"),
        ({"allocations": {}}, "allocations"),
        ({"allocations": some_allocations(seed=6)}, "allocations"),
        ({"seed": 4, "widths": (4, 4, 8, 16)}, "seed, widths"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_checkpoint_of_another_training(half: Path, other: dict[str, Any], named: str) -> None:
    before = {path: path.read_bytes() for path in half.iterdir()}
    with pytest.raises(InputError, match=rf"checkpoint\.safetensors belongs to another training: {named} differ; name"):
        make_training(half, **other).run(math.inf)
    assert {path: path.read_bytes() for path in half.iterdir()} == before, "and nothing is touched"


@pytest.mark.parametrize("role", ["train", "validation"])
def test_a_checkpoint_of_other_records(half: Path, role: str) -> None:
    records = {"train": TRAIN, "validation": VALIDATION}
    records[role] = other_records() if role == "train" else COHORT["selection"]
    settings = {"recipe": RECIPE, "widths": WIDTHS, "seed": 3, "allocations": some_allocations(), "device": "cpu"}
    with pytest.raises(InputError, match=f"belongs to another training: {role} differ"):
        Training(**records, directory=half, **settings).run(math.inf)


def test_policies_in_another_order_are_the_same_policies(half: Path, whole: Path) -> None:
    evaluator = make_training(half, allocations=dict(reversed(some_allocations().items()))).run(math.inf)
    assert evaluator.sha256 == NetworkEvaluator.load(whole / BEST).sha256


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_truncated_checkpoint(whole: Path, half: Path, share: float) -> None:
    truncate(half / CHECKPOINT, share)
    with pytest.warns(LeadwiseWarning, match=r"checkpoint\.safetensors is not a readable .* Going on from the checkpo"):
        goes_on(half, whole)


def test_no_whole_checkpoint_at_all(whole: Path, half: Path) -> None:
    """Both are named, and it begins anew."""
    truncate(half / CHECKPOINT, 0.5)
    truncate(half / CHECKPOINT_BEFORE, 0.5)
    with pytest.warns(LeadwiseWarning) as told:
        goes_on(half, whole)
    assert [str(each.message).split()[0] for each in told] == [str(half / CHECKPOINT), str(half / CHECKPOINT_BEFORE)]
    assert all(str(each.message).endswith(ANEW) for each in told)


def test_the_only_checkpoint_is_truncated(whole: Path, half: Path) -> None:
    truncate(half / CHECKPOINT, 0.5)
    (half / CHECKPOINT_BEFORE).unlink()
    with pytest.warns(LeadwiseWarning, match=rf"checkpoint\.safetensors is not a readable .*\. {ANEW}$"):
        goes_on(half, whole)


@pytest.mark.parametrize("tensor", ["network.stem.weight", "averaged.stem_norm.running_var", "exp_avg_sq.last.bias"])
def test_a_checkpoint_with_a_number_that_is_none(whole: Path, half: Path, tensor: str) -> None:
    tensors, facts = read_tensors(half / CHECKPOINT, FORMAT)
    del facts["format"]
    tensors[tensor].flat[1] = np.nan
    write_tensors(half / CHECKPOINT, tensors, FORMAT, facts)
    said = rf"checkpoint\.safetensors is not a whole .* \(tensor '{tensor}' holds nan at .* Going on from the checkpo"
    with pytest.warns(LeadwiseWarning, match=said):
        goes_on(half, whole)


def truncate(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])


@pytest.mark.filterwarnings("ignore:.*Going on from:leadwise.errors.LeadwiseWarning")
def test_a_kill_soon_after_a_truncated_checkpoint(children: Nursery, half: Path) -> None:
    truncate(half / CHECKPOINT, 0.5)
    assert children.train(half, "draft", 1) == -signal.SIGKILL
    assert position(half / CHECKPOINT_BEFORE) == (1, 1)


@pytest.mark.parametrize("elsewhere", ["AVX512, 1 threads, torch 2.13.0", "DEFAULT, 64 threads, torch 3.0"])
def test_a_checkpoint_of_another_machine(half: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: str) -> None:
    told = re.escape(f"another kind of machine ({checkpoint.machine()}, here {elsewhere}): the training goes on")
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "machine", lambda: elsewhere)
        with pytest.warns(LeadwiseWarning, match=told):
            evaluator = make_training(half).run(math.inf)
    assert len(history(half)) == RECIPE.epochs
    assert evaluator.facts["nll"] == min(row["nll"] for row in history(half) if row["nll"])


def test_the_machine_is_its_kind_its_threads_and_its_torch() -> None:
    assert f" {torch.get_num_threads()} threads, torch {torch.__version__}" in checkpoint.machine()
    assert torch.backends.cpu.get_cpu_capability() in checkpoint.machine()


# what goes wrong -----------------------------------------------------------------------------------------------------


def test_a_loss_that_is_no_number(half: Path, whole: Path) -> None:
    training = make_training(half)
    make = training.augmented.batch

    def spoilt(rows: np.ndarray, length: int, rng: np.random.Generator) -> Any:
        x, masks, y = make(rows, length, rng)
        if (training.epoch, training.step) == (2, 1):
            x[2] = np.nan
        return x, masks, y

    training.augmented.batch = spoilt  # type: ignore[method-assign]
    order = np.random.default_rng([3, 2, 0]).permutation(len(TRAIN))[8:13]
    ids = ", ".join(str(each) for each in TRAIN.ids[order])
    with pytest.raises(
        InputError, match=rf"^The loss of strong is nan in epoch 3, batch 2 of 3 \(records {ids}, …\); the"
    ):
        training.run(-1.0)
    assert position(half / CHECKPOINT) == (2, 1)
    tensors, _ = read_tensors(half / CHECKPOINT, FORMAT)
    assert all(np.isfinite(value).all() for value in tensors.values())
    goes_on(half, whole)


def test_weights_that_are_no_numbers_are_not_kept(half: Path, whole: Path) -> None:
    """The step that ruins them has a loss like any other; the next one tells, and the checkpoint is from before."""
    training = make_training(half)
    original = training.learn

    def ruin(rows: np.ndarray) -> float:
        loss = original(rows)
        with torch.no_grad():
            training.network.last.weight[0, 0] = torch.inf
        return loss

    training.learn = ruin  # type: ignore[method-assign]
    with pytest.raises(InputError, match=r"^The loss of strong is (nan|inf) in epoch 3, batch 1 of 3"):
        training.run(-1.0)
    assert position(half / CHECKPOINT) == (1, 2)
    goes_on(half, whole)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_weight_beyond_half_precision(sign: int) -> None:
    training = make_training(recipe=RECIPE.model_copy(update={"norm_batches": 0}))
    bias = training.averaged.weights()["last.bias"]
    bias[1] = sign * 65504.0
    assert training.evaluator().weights["last.bias"][1] == sign * 65504
    bias[1] = sign * 70_000.0
    with pytest.raises(InputError) as caught:
        training.evaluator()
    assert str(caught.value) == (
        "The weight last.bias of strong has come to 70000, where half precision ends at 65504; train with a lower "
        "learning rate."
    )


def test_a_learning_rate_without_bounds(tmp_path: Path) -> None:
    recipe = RECIPE.model_copy(update={"learning_rate": 1e38})
    with pytest.raises(
        InputError, match=rf"^The loss of strong is (nan|inf).*the last good checkpoint is in {tmp_path}"
    ):
        make_training(tmp_path, recipe=recipe).run(-1.0)
    for name in (CHECKPOINT, CHECKPOINT_BEFORE):
        if (tmp_path / name).exists():
            tensors, _ = read_tensors(tmp_path / name, FORMAT)
            assert all(np.isfinite(value).all() for value in tensors.values())


@pytest.mark.parametrize("step", [1, 7])
def test_a_full_disk(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """The error is heard, the checkpoint before stays whole, nothing half-written stays, and a restart goes on."""
    from safetensors import numpy

    with monkeypatch.context() as patch:
        patch.setattr(numpy, "save_file", numpy.save_file)  # to be put back
        before(step, numpy, "save_file", only_small_files)
        with pytest.raises(Exception, match="File too large"):
            make_training(tmp_path).run(-1.0)
    assert not list(tmp_path.glob(".*"))
    if step > 1:
        assert position(tmp_path / CHECKPOINT_BEFORE) == (1, 2)
    goes_on(tmp_path, whole)


def test_a_full_disk_is_an_error_that_we_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors import numpy

    monkeypatch.setattr(numpy, "save_file", only_small_files)
    with pytest.raises((OSError, LeadwiseError)):
        make_training(tmp_path).run(-1.0)


def test_fewer_records_than_a_batch() -> None:
    with pytest.raises(
        InputError, match=r"^the train role has 30 records, fewer than one batch of 31; take a smaller b"
    ):
        make_training(recipe=Recipe(batch=31))


def test_allocations_of_other_records() -> None:
    masks = some_allocations()
    with pytest.raises(InputError) as caught:
        make_training(allocations=masks | {"mga": masks["mga"][:, :-1]})
    assert str(caught.value) == (
        "Policy mga has masks of shape (3, 29, 12), but the train role has 30 records; give masks of shape (budgets, "
        "30, 12)."
    )


@pytest.mark.parametrize("shape", [(30, 12), (0, 30, 12), (3, 30, 11), (12, 3, 30)])
def test_allocations_of_another_shape(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as for a user
    with pytest.raises(InputError, match=re.escape(f"Policy mga has masks of shape {shape}, but the train role")):
        make_training(allocations={"mga": np.ones(shape, dtype=bool)})


def test_allocations_that_no_record_can_have() -> None:
    record, lead = np.argwhere(~TRAIN.available)[0]
    masks = some_allocations()
    masks["ccga"][2, record, lead] = True
    with pytest.raises(InputError, match=f"^Policy ccga chose {LEADS[lead]} for record {TRAIN.ids[record]}, which la"):
        make_training(allocations=masks)
    masks["ccga"][2, record, lead] = False
    masks["mga"][1, 4] = False
    with pytest.raises(InputError, match=f"^Policy mga chose no lead for record {TRAIN.ids[4]}; every mask needs one"):
        make_training(allocations=masks)


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(InputError, match="no device 'meta' on this machine"):
        make_training(device="meta")


@pytest.mark.parametrize("epoch", [2, 3])
def test_the_best_weights_are_gone(tmp_path: Path, whole: Path, epoch: int) -> None:
    if epoch == 2:
        interrupt(tmp_path, epoch=2, step=1)
    else:
        shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    (tmp_path / BEST).unlink()
    with pytest.raises(LeadwiseError, match="best"):
        make_training(tmp_path).run(math.inf)


# what is kept --------------------------------------------------------------------------------------------------------


def measured(evaluator: NetworkEvaluator) -> float:
    masks = possible_masks(frozen_masks(len(VALIDATION)), VALIDATION.available)
    return nll(VALIDATION.labels, score(evaluator, VALIDATION, masks))


def test_the_best_epoch_is_kept_in_half_precision(whole: Path) -> None:
    rows, best = history(whole), NetworkEvaluator.load(whole / BEST, engine="torch")
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    assert [row["samples"] for row in rows] == [41, 41, LENGTH]
    assert [row["nll"] is None for row in rows] == [True, False, False]
    lowest = min(rows[1:], key=lambda row: row["nll"])
    assert (best.facts["epoch"], best.facts["nll"]) == (lowest["epoch"], lowest["nll"])
    assert {value.dtype for value in best.weights.values()} == {np.dtype(np.float16)}
    assert measured(best) == best.facts["nll"], "what was measured is what was written"
    assert measured(best.on("auto")) == pytest.approx(best.facts["nll"], abs=1e-5)
    assert best.facts["train"] == TRAIN.labels_sha256
    assert best.facts["recipe"] == RECIPE.model_dump()


@pytest.mark.parametrize(
    ("values", "best"), [([0.3, 0.2, 0.1], 3), ([0.3, 0.1, 0.2], 2), ([0.1, 0.3, 0.2], 1), ([0.2, 0.1, 0.1], 2)]
)
def test_whichever_epoch_is_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: list[float], best: int
) -> None:
    """Its weights come back, those of the others do not."""
    averaged, said = {}, iter(values)
    training = make_training(tmp_path, recipe=RECIPE.model_copy(update={"validate_every": 1}))

    def say(_labels: np.ndarray, _p: np.ndarray) -> float:
        averaged[training.epoch + 1] = {n: value.numpy() for n, value in training._settled().weights().items()}
        return next(said)

    monkeypatch.setattr(module, "nll", say)
    evaluator = training.run(math.inf)
    assert evaluator.facts["epoch"] == best
    assert evaluator.facts["nll"] == min(values)
    for name, value in evaluator.weights.items():
        np.testing.assert_array_equal(value, averaged[best][name].astype(np.float16))
    assert NetworkEvaluator.load(tmp_path / BEST).sha256 == evaluator.sha256


def test_the_evaluator_knows_how_leads_are_standardised(whole: Path) -> None:
    """Over the records that have the lead, in mV."""
    best = NetworkEvaluator.load(whole / BEST)
    signals = TRAIN.signals[:] / 1000
    for lead in range(12):
        there = signals[TRAIN.available[:, lead], lead]
        assert best.mean[lead] == pytest.approx(there.mean(), abs=1e-12)
        assert best.scale[lead] == pytest.approx(there.std(), rel=1e-9)


def test_the_average_of_the_weights() -> None:
    """A young one follows quickly, an old one by the recipe's decay."""
    training = make_training(recipe=RECIPE.model_copy(update={"averaging": 0.3}))
    expected = {name: value.double() for name, value in training.averaged.weights().items()}
    for step in range(3):
        training.step = step
        training.learn(np.arange(8))
        decay = min(0.3, (1 + step) / (10 + step))
        state = training.network.state_dict()
        expected = {name: decay * value + (1 - decay) * state[name] for name, value in expected.items()}
    for name, value in training.averaged.weights().items():
        torch.testing.assert_close(value.double(), expected[name], rtol=1e-4, atol=1e-6)
    assert not torch.equal(training.averaged.last.weight, training.network.state_dict()["last.weight"])


def test_averaged_weights_get_batch_statistics_of_their_own() -> None:
    """Of whole records, all batches alike; those of the first layer by hand."""
    training, batches = make_training(), []
    for training.step in range(3):
        training.learn(np.arange(8))
    original = training.augmented.batch

    def watch(*given: Any) -> Any:
        batches.append(original(*given))
        return batches[-1]

    training.augmented.batch = watch  # type: ignore[method-assign]
    before = {name: value.clone() for name, value in training.network.state_dict().items()}
    settled = training._settled().weights()
    assert [x.shape for x, _, _ in batches] == [(8, 12, LENGTH)] * 2
    assert not np.array_equal(batches[0][0], batches[1][0])
    weight = training.averaged.stem.weight.detach()[:, :, 0]
    seen = [torch.conv1d(torch.from_numpy(x), weight, stride=2, padding=7) for x, _, _ in batches]
    for name, of in (("mean", torch.mean), ("var", torch.var)):
        expected = torch.stack([of(each, dim=(0, 2)) for each in seen]).mean(dim=0)
        torch.testing.assert_close(settled[f"stem_norm.running_{name}"], expected, rtol=1e-3, atol=1e-5)
    for name, value in training.averaged.weights().items():
        assert torch.equal(settled[name], value) == ("running" not in name)
    assert all(torch.equal(value, before[name]) for name, value in training.network.state_dict().items())
    again = training._settled().weights()
    assert all(torch.equal(value, again[name]) for name, value in settled.items())


def test_averaged_weights_may_keep_the_statistics_of_the_way() -> None:
    training = make_training(recipe=RECIPE.model_copy(update={"norm_batches": 0}))
    training.learn(np.arange(8))
    made = training.evaluator().weights
    for name, value in training.averaged.weights().items():
        np.testing.assert_array_equal(made[name], value.numpy().astype(np.float16))


def test_an_evaluator_knows_its_training(whole: Path) -> None:
    evaluator = NetworkEvaluator.load(whole / BEST)
    assert make_training().made(evaluator)
    assert not make_training(seed=4).made(evaluator)
    assert not make_training(allocations={}).made(evaluator)


# what a step sees ----------------------------------------------------------------------------------------------------


def test_masks_of_a_whole_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half are random, a quarter is each policy's for that very record; no lead is there that is not available."""
    given, drawn = [masks for _, masks in sorted(some_allocations().items())], []
    original = augmentation.training_masks

    def watch(rows: np.ndarray, *rest: Any) -> Any:
        masks, source = original(rows, *rest)
        drawn.append((rows, masks, source))
        return masks, source

    monkeypatch.setattr(augmentation, "training_masks", watch)
    training = make_training(recipe=RECIPE.model_copy(update={"norm_batches": 0}))
    fed: list[np.ndarray] = []
    training.network.register_forward_pre_hook(lambda _, inputs: fed.append(inputs[1].numpy().astype(bool)))
    training.run(math.inf)
    assert len(drawn) == 9, "three steps in three epochs"
    orders = [tuple(np.concatenate([rows for rows, _, _ in drawn[3 * epoch : 3 * epoch + 3]])) for epoch in range(3)]
    assert len(set(orders)) == 3
    assert [len(set(order)) for order in orders] == [24, 24, 24], "no record comes twice"
    for (rows, masks, source), seen in zip(drawn, fed, strict=True):
        np.testing.assert_array_equal(masks, seen)
        assert [(source == which).sum() for which in (-1, 0, 1)] == [4, 2, 2]
        available = TRAIN.available[rows]
        assert not (masks & ~available).any()
        assert masks.any(axis=1).all()
        for row, mask, which in zip(rows, masks, source, strict=True):
            if which >= 0:
                assert any(np.array_equal(mask, one) for one in given[which][:, row])
            elif TRAIN.available[row].all():
                assert mask.sum() in CARDINALITIES


def test_every_step_draws_anew() -> None:
    training, seen = make_training(), []
    training.augmented.batch = lambda _rows, _length, rng: seen.append(rng.random()) or pytest.skip("seen")  # type: ignore
    for training.epoch in range(3):
        for training.step in range(3):
            with pytest.raises(pytest.skip.Exception):
                training.learn(np.arange(8))
    orders = [np.random.default_rng([3, epoch, 0]).random() for epoch in range(3)]
    assert len({*seen, *orders}) == 12


# the learning rate ---------------------------------------------------------------------------------------------------


def test_the_optimiser_is_given_that_learning_rate() -> None:
    training = make_training()
    for training.epoch, training.step in ((0, 0), (1, 1), (2, 2)):
        training.learn(np.arange(8))
        assert training.optimiser.param_groups[0]["lr"] == training.schedule.learning_rate(training.done)
        assert training.optimiser.param_groups[0]["weight_decay"] == RECIPE.weight_decay


if __name__ == "__main__":
    nursery()
