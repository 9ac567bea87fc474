"""Where checkpoints lie: every way to name one, and what happens when a name fits none or several."""

from pathlib import Path

import pytest

from rlvr.cycles import find_adapter
from rlvr.errors import RlvrError


def make_adapter(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text("{}")
    return folder


@pytest.fixture(autouse=True)
def models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_adapter(Path("training/small/001/adapter"))
    make_adapter(Path("training/small/002/adapter"))
    make_adapter(Path("training/large/001/adapter"))
    make_adapter(Path("gemma_4_oeis_lora"))


@pytest.mark.parametrize(
    ("name", "model", "found"),
    [
        ("gemma_4_oeis_lora", "", "gemma_4_oeis_lora"),
        ("training/small/001", "", "training/small/001/adapter"),
        ("training/small/001/adapter", "", "training/small/001/adapter"),
        ("001", "large", "training/large/001/adapter"),
        ("1", "large", "training/large/001/adapter"),
        ("002", "", "training/small/002/adapter"),
    ],
)
def test_every_way_to_name_an_adapter(name, model, found):
    assert find_adapter(name, model) == Path(found)


def test_a_folder_of_that_name_comes_before_a_cycle():
    make_adapter(Path("001"))
    assert find_adapter("001") == Path("001")


def test_a_number_that_several_models_have_is_refused():
    with pytest.raises(RlvrError, match=r"may be any of training/large/001/adapter, training/small/001/adapter"):
        find_adapter("001")


@pytest.mark.parametrize("name", ["003", "nowhere", "training/small"])
def test_what_is_not_there_is_refused_by_name(name):
    with pytest.raises(RlvrError, match=f"no adapter '{name}'"):
        find_adapter(name)
