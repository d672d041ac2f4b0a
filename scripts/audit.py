"""Ask for known vulnerabilities of what is shipped: `make audit`.

pip-audit looks at the Python packages of `headwater[all]`, npm at the packages inside the page. Exit code
1 when something is found. A tool that cannot reach its data has audited nothing: that is printed, and
with `--strict` it is a failure too.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from scripts.pins import ROOT, page, python

PIP_AUDIT = ("--disable-pip", "--require-hashes", "--progress-spinner=off", "-f", "json", "-r")
LOCK = "deploy/locks/all.lock"


def answer(command: list[str], folder: str = ".") -> Any:
    """What a tool prints as JSON; nothing if it is not there or fails before it could ask."""
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, cwd=ROOT / folder, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return None


def python_findings(report: Any) -> tuple[list[str], int]:
    """What pip-audit found, and for how many packages it had an answer."""
    known = [one for one in (report or {}).get("dependencies", ()) if "vulns" in one]
    found = [f"{o['name']} {o['version']}: {v['id']}" for o in known for v in o["vulns"]]
    return found, len(known)


def page_findings(report: Any) -> tuple[list[str], int]:
    """What npm found, and for how many packages it had an answer."""
    if not isinstance(report, dict) or "vulnerabilities" not in report:
        return [], 0
    found = [f"{name}: {one['severity']}" for name, one in report["vulnerabilities"].items()]
    return found, report["metadata"]["dependencies"]["prod"]


def main() -> int:
    runner = [str(Path(sys.executable).with_name("uv")), "tool", "run", "pip-audit"]
    asked = {
        "Python": (python_findings(answer([*runner, *PIP_AUDIT, LOCK])), len(python())),
        "page": (
            page_findings(answer(["npm", "audit", "--omit=dev", "--json"], "web")),
            len(page()),
        ),
    }
    failed = False
    for what, ((found, answered), pinned) in asked.items():
        for one in found:
            print(f"{what}: {one}")
        if answered:
            print(
                f"{what}: {len(found)} known vulnerabilities, {answered} of {pinned} packages audited"
            )
        else:
            print(f"{what}: NOT AUDITED, the tool is missing or cannot reach its data from here")
        failed |= bool(found) or (not answered and "--strict" in sys.argv)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
