"""Which Java is found, and what is said when it will not do; the javas are small scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headwater.errors import EnvironmentProblem
from headwater.lab import java
from headwater.lab.java import find_java

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    JavaHome = Callable[[str], Path]


def says(version: str) -> str:
    return f"""echo 'openjdk version "{version}" 2025-04-15' >&2"""


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("21", 21), ("21.0.2", 21), ("17-ea", 17)]
)
def test_a_supported_java_is_taken(java_home: JavaHome, version: str, major: int) -> None:
    home = java_home(says(version))
    assert find_java() == (home / "bin" / "java", major)


def test_what_a_jvm_picked_up_is_no_version(java_home: JavaHome) -> None:
    java_home("echo 'Picked up JAVA_TOOL_OPTIONS: -Dversion=8' >&2\n" + says("17.0.1"))
    assert find_java().major == 17


@pytest.mark.parametrize(
    ("version", "major"), [("11.0.2", 11), ("25.0.1", 25), ("25", 25), ("1.8.0_392", 8)]
)
def test_another_version_is_named(java_home: JavaHome, version: str, major: int) -> None:
    home = java_home(says(version))
    with pytest.raises(EnvironmentProblem) as caught:
        find_java()
    assert caught.value.exit_code == 3
    assert caught.value.message == (
        f"JAVA_HOME ({home}) is Java {major}; the lab runs on Java 17 or 21"
    )
    assert "JAVA_HOME" in str(caught.value.hint)


@pytest.mark.parametrize(
    "script", ["exit 0", "echo hello", r"printf '\377\376 odd' >&2; exit 3", "kill -9 $$"]
)
def test_odd_output_is_no_version(java_home: JavaHome, script: str) -> None:
    java_home(script)
    with pytest.raises(EnvironmentProblem, match="does not say its version"):
        find_java()


def test_a_java_that_takes_too_long_is_not_called_another_version(
    java_home: JavaHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = java_home("exec sleep 60")
    monkeypatch.setattr(java, "VERSION_SECONDS", 0.2)
    with pytest.raises(EnvironmentProblem) as caught:
        find_java()
    assert caught.value.message == f"{home}/bin/java did not say its version within 0 s"
    assert "try again" in str(caught.value.hint)


def test_a_java_that_cannot_be_run(java_home: JavaHome) -> None:
    home = java_home("")
    (home / "bin" / "java").write_text("#!/no/such/interpreter\n")
    with pytest.raises(EnvironmentProblem, match="does not say its version"):
        find_java()


def test_a_java_home_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match=r"there is no bin/java in it"):
        find_java()


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "PLACES", ())


@pytest.mark.usefixtures("nothing_installed")
def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="no Java") as caught:
        find_java()
    assert "install Java 17 or 21" in str(caught.value.hint)


def test_the_java_of_the_path(java_home: JavaHome, monkeypatch: pytest.MonkeyPatch) -> None:
    home = java_home(says("17"))
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", f"{home / 'bin'}")
    assert find_java().executable == home / "bin" / "java"


def test_one_that_is_installed_is_named_rather_than_asked_for(
    java_home: JavaHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = java_home(says("21.0.1"))
    monkeypatch.setattr(java, "PLACES", (str(tmp_path.relative_to("/") / "*"),))
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(EnvironmentProblem) as caught:
        find_java()
    assert caught.value.hint == f"one is here: export JAVA_HOME={home}"
