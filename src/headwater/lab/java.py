"""The Java that runs the lab's services."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from headwater.errors import EnvironmentProblem

SUPPORTED = (17, 21)
# A JVM starts in less than a second; on a machine that is busy with others it took half a minute.
VERSION_SECONDS = 120.0
PLACES = (
    "usr/lib/jvm/*",
    "Library/Java/JavaVirtualMachines/*/Contents/Home",
    "opt/homebrew/opt/openjdk@*",
)
INSTALL_HINT = (
    "install Java 17 or 21 (Debian, Ubuntu: apt install openjdk-17-jre-headless; "
    "macOS: brew install openjdk@17) and set JAVA_HOME to it"
)


class Java(NamedTuple):
    """A Java runtime that was asked for its version."""

    executable: Path
    major: int


def find_java() -> Java:
    """The runtime of JAVA_HOME, or else of PATH, if it is one the lab runs on."""
    home = os.environ.get("JAVA_HOME")
    if home:
        executable = Path(home, "bin", "java")
        source = f"JAVA_HOME ({home})"
        if not os.access(executable, os.X_OK):
            raise EnvironmentProblem(
                f"JAVA_HOME is {home}, but there is no bin/java in it", hint=_hint()
            )
    else:
        found = shutil.which("java")
        if found is None:
            raise EnvironmentProblem(
                "no Java: JAVA_HOME is not set and PATH has no java", hint=_hint()
            )
        executable = Path(found)
        source = str(executable)
    major = _major(executable)
    if major not in SUPPORTED:
        text = f"is Java {major}" if major else "does not say its version"
        raise EnvironmentProblem(f"{source} {text}; the lab runs on Java 17 or 21", hint=_hint())
    return Java(executable, major)


def _major(executable: Path) -> int:
    """The major version, 0 when it is not known."""
    try:
        printed = subprocess.run(
            [executable, "-version"],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=VERSION_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise EnvironmentProblem(
            f"{executable} did not say its version within {VERSION_SECONDS:.0f} s",
            hint="this machine may be busy: try again",
        ) from error
    except OSError:
        return 0
    match = re.search(r'version "(\d+)(?:\.(\d+))?', printed.stderr + printed.stdout)
    if not match:
        return 0
    return int(match[2]) if match[1] == "1" and match[2] else int(match[1])


def _hint() -> str:
    """Name a suitable runtime that is already on the machine before asking to install one."""
    for folder in sorted(folder for place in PLACES for folder in Path("/").glob(place)):
        executable = folder / "bin" / "java"
        with suppress(EnvironmentProblem):
            if os.access(executable, os.X_OK) and _major(executable) in SUPPORTED:
                return f"one is here: export JAVA_HOME={folder}"
    return INSTALL_HINT
