"""Ivy, the resolver inside PySpark, run as a program.

It finds Maven Central by itself, so no repository address stands in this code; a company's mirror
comes from `HEADWATER_MAVEN_MIRROR`.
"""

from __future__ import annotations

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import quoteattr

from headwater.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headwater.lab.files.artifacts import Artifact

MAVEN_XMLNS = "http://ant.apache.org/ivy/maven"


class Dependency(NamedTuple):
    """One module to ask Ivy for."""

    coordinate: str
    classifier: str = ""
    type: str = "jar"


def pyspark_jars() -> Path:
    """The folder of jars inside the installed PySpark."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise EnvironmentProblem(
            "PySpark is not installed, and the lab takes its resolver and Spark from it",
            hint="pip install 'headwater[lab]'",
        )
    return Path(spec.origin).parent / "jars"


def pyspark_jar(prefix: str) -> Path:
    """Path of the PySpark jar with this artifact name."""
    return next(iter(sorted(pyspark_jars().glob(f"{prefix}-[0-9]*.jar"))))


def command(
    java: Path, work: Path, dependencies: Iterable[Dependency], *, transitive: bool = False
) -> list[str]:
    """Write Ivy's two files into `work` and return the command that fills `work/cache`.

    A file lands there as `<organisation>/<name>:<version>:<classifier>:.<type>`.
    """
    work.mkdir(parents=True, exist_ok=True)
    settings = work / "settings.xml"
    mirror = os.environ.get("HEADWATER_MAVEN_MIRROR")
    root = f" root={quoteattr(mirror)}" if mirror else ""
    # Plug-ins live apart from each other, so the lock may hold several versions of one library.
    conflicts = "latest-revision" if transitive else "all"
    settings.write_text(
        f"""<ivysettings>
  <settings defaultResolver="maven" defaultConflictManager="{conflicts}"/>
  <caches defaultCacheDir={quoteattr(str(work / "cache"))}
    artifactPattern="[organisation]/[artifact]:[revision]:([classifier]):.[ext]"/>
  <resolvers>
    <ibiblio name="maven" m2compatible="true" usepoms="{str(transitive).lower()}"{root}/>
  </resolvers>
</ivysettings>
"""
    )
    module = work / "ivy.xml"
    entries = "\n".join(_entry(dependency, transitive) for dependency in dependencies)
    module.write_text(
        f"""<ivy-module version="2.0" xmlns:m="{MAVEN_XMLNS}">
  <info organisation="headwater" module="lab"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{entries}
  </dependencies>
</ivy-module>
"""
    )
    ivy = [str(java), "-jar", str(pyspark_jar("ivy"))]
    return [*ivy, "-settings", str(settings), "-ivy", str(module)]


def run(argv: list[str], log: Path, pass_fds: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Start Ivy with its chatter going to a file."""
    with log.open("wb") as out:
        return subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT, pass_fds=pass_fds)


def landing_name(artifact: Artifact) -> str:
    """How Ivy calls the file in its own cache."""
    return f"{artifact.name}:{artifact.version}:{artifact.classifier}:.{artifact.type}"


def _entry(dependency: Dependency, transitive: bool) -> str:
    organisation, name, version = dependency.coordinate.split(":")
    classifier = (
        f" m:classifier={quoteattr(dependency.classifier)}" if dependency.classifier else ""
    )
    kind = quoteattr(dependency.type)
    return (
        f"    <dependency org={quoteattr(organisation)} name={quoteattr(name)}"
        f' rev={quoteattr(version)} transitive="{str(transitive).lower()}" conf="default->default">'
        + (
            f"<artifact name={quoteattr(name)} type={kind} ext={kind}{classifier}/>"
            if not transitive or dependency.type != "jar" or dependency.classifier
            else ""
        )
        + "</dependency>"
    )
