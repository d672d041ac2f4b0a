"""Write the software bill of materials of this version as CycloneDX 1.6: `python -m scripts.sbom FILE`.

It is made of the pins (`scripts/pins.py`) and licences (`scripts/licences.json`) alone, so the same
tree gives the same file. Whatever builds and tests Headwater and is not in a package is not in it.
"""

from __future__ import annotations

import json
import sys
import uuid
from pathlib import Path
from typing import Any

import headwater
from scripts.licences import licences
from scripts.pins import Pin, pins

# Where a component comes in, as CycloneDX says it: the page is inside the wheel, Python packages are
# installed with it, and jars are fetched by those who start the lab.
SCOPES = {"npm": "required", "pypi": "required", "maven": "optional"}


def licence(expression: str) -> list[dict[str, Any]]:
    one = not {"OR", "AND", "WITH"} & set(expression.split())
    return [{"license": {"id": expression}}] if one else [{"expression": expression}]


def component(pin: Pin, expression: str) -> dict[str, Any]:
    group, _, name = pin.name.rpartition(":" if pin.kind == "maven" else "/")
    return {
        "type": "library",
        "bom-ref": pin.purl,
        **({"group": group} if group else {}),
        "name": name,
        "version": pin.version,
        "scope": SCOPES[pin.kind],
        **({"hashes": [{"alg": pin.hash[0], "content": pin.hash[1]}]} if pin.hash else {}),
        "licenses": licence(expression),
        "purl": pin.purl,
    }


def sbom() -> dict[str, Any]:
    kept = licences()
    purl = f"pkg:pypi/headwater@{headwater.__version__}"
    components = [component(pin, kept[pin.kind][pin.name]) for pin in pins()]
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([purl, components]))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{number}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": purl,
                "name": "headwater",
                "version": headwater.__version__,
                "licenses": licence("Apache-2.0"),
                "purl": purl,
            }
        },
        "components": components,
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(sbom(), indent=1) + "\n")
