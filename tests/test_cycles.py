"""Where checkpoints and runs lie: every way to name one, numbers, links, and what fits none or several."""

import os
from pathlib import Path

import pytest

from rlvr import cycles, folders, records
from rlvr.cycles import Run, find_adapter
from rlvr.errors import RlvrError
from rlvr.status import new_status


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


# ---------------------------------------------------------------------------------------------------------------------
# Runs


def make_cycle(name: str, parent: str = "", model: str = "new", state: str = "done") -> Run:
    """A finished cycle with an adapter; `parent` is the cycle it was warm-started from."""
    folder = Path("training", model, name)
    make_adapter(folder / "adapter")
    records.write(folder / "status.json", new_status("train", state, step=1))
    if parent:
        (folder / "parent").symlink_to(f"../{parent}/adapter")
    return Run(model, name, "train", folder)


def make_eval(model: str, *participants: str) -> Run:
    with cycles.locked():
        run = folders.next_eval(model, participants)
        with folders.made(run, participants=participants) as files:
            records.write(files.status, new_status("eval", "done"))
    return run


@pytest.fixture
def new():
    """A model with three cycles, each warm-started from the one before."""
    Path("training/new").mkdir()
    Path("training/new/model.toml").touch()
    return [make_cycle("001"), make_cycle("002", "001"), make_cycle("003", "002")]


def links() -> dict[str, str]:
    return {str(path): os.readlink(path) for path in Path("training/new").rglob("evals/*") if path.is_symlink()}


@pytest.mark.parametrize(
    ("participants", "name", "linked"),
    [
        (("base", "003"), "003/evals/base", {"base/evals/003": "../../003/evals/base"}),
        (("base", "001"), "001/evals/base", {"base/evals/001": "../../001/evals/base"}),
        (
            ("base", "001", "003"),
            "003/evals/base+001",
            {
                "base/evals/001+003": "../../003/evals/base+001",
                "001/evals/base+003": "../../003/evals/base+001",
            },
        ),
        # The same set in another order has the same name.
        (
            ("003", "base", "001"),
            "003/evals/base+001",
            {
                "base/evals/001+003": "../../003/evals/base+001",
                "001/evals/base+003": "../../003/evals/base+001",
            },
        ),
        (("003", "001"), "003/evals/001", {"001/evals/003": "../../003/evals/001"}),
        (("002",), "002/evals/alone", {}),
        (("base",), "base/evals/alone", {}),
        (("002", "002"), "002/evals/002", {}),
        (("base", "gemma_4_oeis_lora"), "base/evals/gemma_4_oeis_lora", {}),
        (
            ("base", "large-001", "002"),
            "002/evals/base+large-001",
            {"base/evals/002+large-001": "../../002/evals/base+large-001"},
        ),
    ],
)
def test_where_an_evaluation_lies_and_who_links_to_it(new, participants, name, linked):
    run = make_eval("new", *participants)
    assert run.name == name and run.files.status.is_file()
    assert links() == {f"training/new/{link}": target for link, target in linked.items()}
    for link in links():
        assert cycles.find_run(link).name == name
        assert (Path(link) / "status.json").samefile(run.files.status)
    assert [each.name for each in cycles.eval_runs("new")] == [name]  # once, however many links there are
    again, third = make_eval("new", *participants), make_eval("new", *participants)
    assert (again.name, third.name) == (f"{name}.2", f"{name}.3")
    assert len(links()) == 3 * len(linked) and all(Path(link).exists() for link in links())


def test_links_go_to_the_trash_with_their_evaluation(new):
    run = make_eval("new", "base", "001", "003")
    trash = folders.move_to_trash(run)
    assert links() == {} and (trash / "status.json").is_file()


@pytest.mark.parametrize("participants", [("base", "001", "003"), ("base",)])
def test_no_empty_folder_stays_behind_a_removed_evaluation(new, participants):
    before = sorted(map(str, Path("training/new").rglob("*")))
    folders.move_to_trash(make_eval("new", *participants))
    assert sorted(map(str, Path("training/new").rglob("*"))) == before
    one, other = make_eval("new", *participants), make_eval("new", *participants)
    folders.move_to_trash(one)
    assert [run.name for run in cycles.all_runs("new")] == ["001", "002", "003", other.name]
    assert len(links()) == len(participants) - 1


def test_what_fails_while_a_run_is_made_leaves_nothing(new):
    before = sorted(map(str, Path("training").rglob("*")))
    run = folders.next_eval("new", ("base", "003"))
    with pytest.raises(OSError, match="full"), folders.made(run, participants=("base", "003")) as files:
        files.config.write_text("x")
        assert not run.folder.exists()
        raise OSError("full")
    assert sorted(map(str, Path("training").rglob("*"))) == before
    # What an interrupted command left aside is in nobody's way, and no run.
    Path("training/new/003/evals/.new").mkdir(parents=True)
    Path("training/new/.new").mkdir()
    assert [each.name for each in cycles.all_runs("new")] == ["001", "002", "003"]
    assert folders.children(new[2]) == []
    make_eval("new", "base", "003")
    assert sorted(os.listdir("training/new/003/evals")) == ["base"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("003", "003"),
        ("3", "003"),
        ("latest", "003"),
        ("new/002", "002"),
        ("training/new/002", "002"),
        ("training/new/002/", "002"),
        ("003/evals/base", "003/evals/base"),
        ("3/evals/base", "003/evals/base"),
        ("base/evals/003", "003/evals/base"),
        ("training/new/base/evals/003", "003/evals/base"),
    ],
)
def test_every_way_to_name_a_run(new, text, name):
    make_eval("new", "base", "003")
    run = cycles.find_run(text, None if text.startswith("training") else "new")
    assert (run.model, run.name) == ("new", name)
    assert run.folder.resolve() == Path("training/new", name).resolve()


def test_a_run_keeps_its_name_where_training_or_a_model_is_a_link(new, tmp_path):
    Path("disk").mkdir()
    Path("training/new").rename("disk/of a friend")
    Path("training/new").symlink_to(tmp_path / "disk/of a friend")
    make_eval("new", "base", "003")
    for text in ("training/new/003", str(tmp_path / "training/new/003")):
        assert str(cycles.find_run(text)) == "new/003"
    assert str(cycles.find_run("training/new/base/evals/003")) == "new/003/evals/base"
    assert folders.participant_name(Path("training/new/003/adapter"), "new") == "003"
    assert [run.name for run in folders.children(new[1])] == ["003"]


def test_what_is_no_run_is_refused_with_the_nearest(new):
    with pytest.raises(RlvrError, match=r"model 'new' has no run '004': did you mean '00"):
        cycles.find_run("004", "new")
    with pytest.raises(RlvrError, match="did you mean 'latest'"):
        cycles.find_run("latst", "new")
    with pytest.raises(RlvrError, match="training/knew: no such model: did you mean 'new'"):
        cycles.choose_model("knew")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("knew/001", "training/knew: no such model: did you mean 'new'"),
        ("xyzzy/latest", "training/xyzzy: no such model: make it with"),
        ("xyzzy/003/evals/base", "training/xyzzy: no such model: make it with"),
        ("training/new/009", "model 'new' has no run 'training/new/009'"),
        ("003/evals/bse", "model 'new' has no run '003/evals/bse'"),
        ("auto/001", "model 'new' has no run 'auto/001'"),
        ("base/evals/009", "model 'new' has no run 'base/evals/009'"),
    ],
)
def test_what_is_not_there_is_it_the_model_or_the_run(new, text, message):
    cycles.remember_model("new")
    with pytest.raises(RlvrError, match=message):
        cycles.find_run(text)


def test_without_a_name_the_running_one_is_meant_else_the_newest_cycle(new, monkeypatch):
    assert cycles.default_run("new").name == "003"
    records.write(new[0].files.status, new_status("train", "running", pid=os.getpid(), started=1.0))
    monkeypatch.setattr("rlvr.status.is_alive", lambda *_: True)
    assert cycles.default_run("new").name == "001"


def test_dependents_are_counted_by_where_links_lead_not_by_number(new):
    assert [run.name for run in folders.children(new[0])] == ["002"]
    # A cycle that was warm-started from another model's 003 does not depend on the own one.
    other = make_cycle("004")
    (other.folder / "parent").symlink_to("../../large/001/adapter")
    assert [run.name for run in folders.children(new[0])] == ["002"]
    make_eval("new", "base", "001", "003")
    assert [run.name for run in folders.children(new[0])] == ["002", "003/evals/base+001"]
    assert [run.name for run in folders.children(new[2])] == ["003/evals/base+001"]


@pytest.mark.parametrize(
    ("state", "step", "metrics", "unused"),
    [
        ("failed", 0, "", True),
        ("killed", 0, "", True),
        ("failed", 0, "{}\n", False),  # it made a step that its supervisor did not live to see
        ("failed", 1, "{}\n", False),
        ("pending", 0, "", False),
    ],
)
def test_a_number_is_used_again_when_the_cycle_never_made_a_step(new, state, step, metrics, unused):
    for name in ("004", "005"):
        Path("training/new", name).mkdir()
        records.write(Path("training/new", name, "status.json"), new_status("train", state, step=step))
        Path("training/new", name, "metrics.jsonl").write_text(metrics)
    run, replaced = folders.next_cycle("new")
    assert run.name == ("004" if unused else "006")
    assert [each.name for each in replaced] == (["005", "004"] if unused else [])


def test_names_that_are_no_numbers_of_ours_are_left_alone(new):
    for name in ("0007", "12", "auto", "notes", ".new"):
        Path("training/new", name).mkdir()
    Path("training/new/1000").mkdir()
    assert [run.name for run in cycles.cycle_runs("new")] == ["001", "002", "003", "1000"]
    make_cycle("1001")
    assert folders.next_cycle("new")[0].name == "1002"


def test_half_written_checkpoints_are_passed_over(new):
    files = new[0].files
    assert cycles.whole_checkpoints(files) == []
    for step, (state, weights) in {
        9: ("{}", "x"),
        10: ("{}", "x"),
        11: ("{}", ""),
        12: ("{", "x"),
        13: ("", "x"),
    }.items():
        folder = files.checkpoints / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        (folder / "trainer_state.json").write_text(state)
        (folder / "adapter_model.safetensors").write_text(weights)
    (files.checkpoints / "checkpoint-14").mkdir()
    assert [path.name for path in cycles.whole_checkpoints(files)] == ["checkpoint-9", "checkpoint-10"]
