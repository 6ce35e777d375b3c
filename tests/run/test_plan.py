from importlib.resources import files
from pathlib import Path

import pytest

from leadwise.cohort.roles import PTBXL_ROLES
from leadwise.errors import PlanError
from leadwise.run.plan import Plan, read_plan


def test_default_and_shipped_plan_are_the_published_protocol() -> None:
    assert Plan().cohort_roles() == PTBXL_ROLES
    shipped = Path(str(files("leadwise") / "studies" / "ptbxl.toml"))
    assert read_plan(shipped).model_copy(update={"hypotheses": []}) == Plan()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[rolls]\ntrain = [1]", "'rolls' is not part of a plan; did you mean 'roles'"),
        ("zebra = 1", "'zebra' is not part of a plan; a plan has title, cohort, roles"),
        ("[roles]\ntrain = [1, 11]", "names fold 11"),
        ("[roles]\ntrian = [1]", "'trian' is not a role"),
        ("[roles]\ntrain = [1]\naudit = [1]", "Fold 1 is named twice"),
        ("[roles]\ntrain = ['1']", "'roles.train.0' is '1'"),
        ("roles = 3", "'roles' is 3"),
        ("[roles]", "names no role"),
        ("[roles", "not valid TOML"),
        ("[strong]\nseed = [1]", "'strong.seed' is not part of a plan; did you mean 'seeds'"),
        ("[strong.recipe]\nepoch = 3", "'strong.recipe.epoch' is not part of a plan; did you mean 'epochs'"),
        ("[strong.recipe]\nzebra = 3", "'strong.recipe' has epochs, batch"),
        ("[strong.recipe]\nepochs = 0", "'strong.recipe.epochs' is 0: input should be greater"),
        ("[strong.recipe]\ndropout = 1.0", "'strong.recipe.dropout' is 1.0"),
    ],
)
def test_wrong_plans_name_what_is_wrong(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(content)
    with pytest.raises(PlanError, match=message) as caught:
        read_plan(path)
    assert str(path) in str(caught.value)


def test_missing_plan(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="cannot be read: No such file"):
        read_plan(tmp_path / "none.toml")
