"""A lab's home: made once, never over someone's files, its secrets for its owner alone."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec
import pytest

from headwater.errors import EnvironmentProblem, HeadwaterError, UsageError
from headwater.lab import home as homes
from headwater.lab.home import Home, LabSettings, default_home
from headwater.lab.lab import Lab

if TYPE_CHECKING:
    from pathlib import Path


def made(root: Path) -> Home:
    home = Home(root)
    with home.created():
        pass
    return home


def test_a_new_home_is_its_owners_alone(tmp_path: Path) -> None:
    home = made(tmp_path / "new" / "lab")
    assert home.root.stat().st_mode & 0o777 == 0o700
    assert (home.root / "lab.json").stat().st_mode & 0o777 == 0o600
    assert not (home.root / homes.LOCK).exists()


def test_keys_and_ports_stay_the_same(tmp_path: Path) -> None:
    first = made(tmp_path / "lab")
    port = first.port("kafka")
    again = made(tmp_path / "lab")
    assert again.settings == first.settings
    assert again.port("kafka") == port
    assert len(first.settings.cluster_id) == 22


def test_two_homes_have_different_keys(tmp_path: Path) -> None:
    one, two = made(tmp_path / "one").settings, made(tmp_path / "two").settings
    assert one.s3_secret_key != two.s3_secret_key
    assert one.postgres_password != two.postgres_password
    assert one.cluster_id != two.cluster_id


def test_a_folder_with_other_files_is_refused_and_not_touched(tmp_path: Path) -> None:
    (tmp_path / "lab.lock.txt").write_text("mine")
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(UsageError, match="not a lab's"), Home(tmp_path).created():
        pytest.fail("made a lab of it")
    assert {path.name for path in tmp_path.iterdir()} == {"lab.lock.txt", "thesis.tex"}


def test_an_empty_folder_will_do(tmp_path: Path) -> None:
    assert made(tmp_path).exists


@pytest.mark.parametrize("left", [homes.LOCK, ".lab.json-x7d2"])
def test_what_a_killed_command_left_is_no_hindrance(tmp_path: Path, left: str) -> None:
    (tmp_path / left).touch()
    assert made(tmp_path).exists


def test_a_file_in_place_of_the_home(tmp_path: Path) -> None:
    (tmp_path / "lab").write_text("mine")
    with pytest.raises(EnvironmentProblem, match="cannot be written") as caught:
        made(tmp_path / "lab")
    assert "--home" in str(caught.value.hint)
    with pytest.raises(EnvironmentProblem, match="cannot be read"):
        Lab(tmp_path / "lab").status()
    assert (tmp_path / "lab").read_text() == "mine"


def test_a_home_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentProblem, match="cannot be written"):
        made(tmp_path / "file" / "lab")


@pytest.mark.parametrize("content", ["", "{half", '{"ports": "none"}', "\udcff"])
def test_damaged_settings_are_named(tmp_path: Path, content: str) -> None:
    home = made(tmp_path / "lab")
    (home.root / "lab.json").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(EnvironmentProblem, match=r"lab\.json is damaged") as caught:
        Lab(home.root).env()
    assert "lab reset" in str(caught.value.hint)


def test_damaged_settings_do_not_stop_down_and_reset(tmp_path: Path) -> None:
    home = made(tmp_path / "lab")
    (home.root / "lab.json").write_text("{half")
    said: list[str] = []
    lab = Lab(home.root, notify=said.append)
    assert lab.down() == []
    assert "damaged" in said[0]
    lab.reset()
    assert not home.root.exists()


def test_reset_wipes_what_is_the_labs_and_nothing_else(tmp_path: Path) -> None:
    home = made(tmp_path / "lab")
    (home.data("kafka")).mkdir(parents=True)
    (home.root / "notes.txt").write_text("mine")
    Lab(home.root).reset()
    assert [path.name for path in home.root.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("there", [True, False])
def test_reset_refuses_a_folder_that_is_not_a_labs(tmp_path: Path, there: bool) -> None:
    (tmp_path / "data").mkdir()
    folder = tmp_path if there else tmp_path / "data"  # one with files, one empty
    with pytest.raises(UsageError, match="not a lab's folder"):
        Lab(folder).reset()
    assert (tmp_path / "data").is_dir()


def test_down_leaves_a_foreign_folder_alone(tmp_path: Path) -> None:
    (tmp_path / homes.LOCK).write_text("mine")
    assert Lab(tmp_path).down() == []
    assert (tmp_path / homes.LOCK).read_text() == "mine"


def test_down_and_reset_of_nothing(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "none")
    assert lab.down() == lab.reset() == []
    assert not (tmp_path / "none").exists()


def test_two_that_make_one_home_agree_on_its_keys(tmp_path: Path) -> None:
    both = threading.Barrier(2)
    found: list[LabSettings] = []

    def make() -> None:
        home = Home(tmp_path / "lab")
        assert home.settings.wanted == []  # read before either has made it
        both.wait()
        with home.created():
            found.append(home.settings)

    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1]


def test_a_second_command_says_that_it_waits(tmp_path: Path) -> None:
    home = made(tmp_path / "lab")
    said = threading.Event()
    order: list[str] = []

    def second() -> None:
        with Home(home.root).locked(said.set):
            order.append("second")

    thread = threading.Thread(target=second)
    with home.locked():
        thread.start()
        assert said.wait(60)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
    assert not (home.root / homes.LOCK).exists()


def test_what_a_command_is_about_to_start_has_not_died(tmp_path: Path) -> None:
    home = made(tmp_path / "lab")
    home.settings.wanted = ["s3"]
    home.save()
    with home.locked():
        assert [row.state for row in Lab(home.root).status(["s3"])] == ["starting"]
    assert [row.state for row in Lab(home.root).status(["s3"])] == ["died"]


def test_waiting_for_the_lock_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(homes, "LOCK_SECONDS", 0.2)
    home = made(tmp_path / "lab")
    with (
        home.locked(),
        pytest.raises(HeadwaterError, match="the other command"),
        Home(home.root).locked(),
    ):
        pytest.fail("two hold it")


def test_where_the_home_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HEADWATER_LAB_HOME", "")
    assert default_home() == tmp_path / ".local" / "share" / "headwater" / "lab"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert default_home() == tmp_path / "xdg" / "headwater" / "lab"
    monkeypatch.setenv("HEADWATER_LAB_HOME", "~/with space")
    assert Home().root == (tmp_path / "with space").resolve()


def test_settings_of_an_older_lab_are_read() -> None:
    read = msgspec.json.decode(b'{"wanted": ["kafka"], "later": 1}', type=LabSettings)
    assert read.wanted == ["kafka"]
    assert read.s3_secret_key
