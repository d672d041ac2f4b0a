"""What is pinned of others' work: Python packages of `headwater[all]`, the page's packages, the lab's jars."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from headwater.lab.files.artifacts import lock

ROOT = Path(__file__).parent.parent
PYTHON = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^ ;\\]+)(?P<rest>.*)$", re.MULTILINE)
# Headwater runs on Linux and macOS.
ELSEWHERE = re.compile(r"== '(win32|emscripten)'")
KINDS = {
    "pypi": "Python packages that `pip install 'headwater[all]'` brings",
    "npm": "packages inside the built page, their texts in `licences.txt` beside it",
    "maven": "files that the lab downloads",
}


class Pin(NamedTuple):
    """One version of one package; its kind is the type of a package URL."""

    kind: str
    name: str
    version: str
    hash: tuple[str, str] | None = None
    qualifiers: str = ""

    @property
    def purl(self) -> str:
        name = quote(self.name.replace(":", "/"), safe="/")
        return f"pkg:{self.kind}/{name}@{quote(self.version)}{self.qualifiers}"


def python() -> list[Pin]:
    """Without hashes: a version has one for each platform, and they are in the lock."""
    text = (ROOT / "deploy/locks/all.lock").read_text()
    found = PYTHON.finditer(text)
    return [Pin("pypi", m["name"], m["version"]) for m in found if not ELSEWHERE.search(m["rest"])]


def page() -> list[Pin]:
    packages = json.loads((ROOT / "web/package-lock.json").read_text())["packages"]
    found = []
    for path, one in packages.items():
        if path and not one.get("dev"):
            algorithm, _, digest = one["integrity"].partition("-")
            name = path.rpartition("node_modules/")[2]
            hashed = (algorithm.replace("sha", "SHA-"), base64.b64decode(digest).hex())
            found.append(Pin("npm", name, one["version"], hashed))
    return found


def jars() -> list[Pin]:
    found = []
    for one in lock().artifacts:
        more = {"classifier": one.classifier, "type": "" if one.type == "jar" else one.type}
        words = "&".join(f"{key}={value}" for key, value in more.items() if value)
        name = f"{one.organisation}:{one.name}"
        hashed = ("SHA-256", one.sha256)
        found.append(Pin("maven", name, one.version, hashed, f"?{words}" if words else ""))
    return found


def pins() -> list[Pin]:
    return [*python(), *page(), *jars()]
