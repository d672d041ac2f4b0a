"""Keep `licences.json`, the licence of everything that is pinned, as an SPDX expression.

`python -m scripts.licences` checks that each pin has one and that each is one that we accept;
`--write` reads them anew from what is installed: the metadata of Python packages, the page's lock,
and the lab's jars in the download cache (`headwater lab fetch`). What cannot be read there keeps its
entry; what nobody states is in STATED, looked up by hand.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, metadata
from typing import TYPE_CHECKING

from headwater.lab.files.artifacts import lock
from headwater.lab.files.cache import Cache
from scripts.pins import ROOT, Pin, pins

if TYPE_CHECKING:
    from importlib.metadata import PackageMetadata
    from pathlib import Path

KEPT = ROOT / "scripts/licences.json"
GPL = "GPL-2.0-only WITH Classpath-exception-2.0"
CDDL_OR_GPL, EPL_OR_GPL = f"CDDL-1.1 OR {GPL}", f"EPL-2.0 OR {GPL}"
ACCEPTED = {
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0"),
    *("PSF-2.0", "Unicode-3.0", "Zlib"),
    # Used as they are, beside our code and never inside it.
    *("CDDL-1.0", "CDDL-1.1", "EPL-1.0", "EPL-2.0", "LGPL-3.0-only", "MPL-1.1", "MPL-2.0"),
    *("LGPL-2.1-only", GPL),
}
# By name, or by the organisation of a jar.
STATED = {
    "exceptiongroup": "MIT",
    "pandas": "BSD-3-Clause",
    "psycopg-binary": "LGPL-3.0-only",
    "python-dateutil": "Apache-2.0 OR BSD-3-Clause",
    "tomli": "MIT",
    "uvloop": "Apache-2.0 OR MIT",
    "com.dynatrace.hash4j": "Apache-2.0",
    "com.google.re2j": "BSD-3-Clause",
    "com.squareup.okhttp3": "Apache-2.0",
    "com.squareup.okio": "Apache-2.0",
    "com.squareup.retrofit2": "Apache-2.0",
    "com.worldturner.medeia": "Apache-2.0",
    "com.yammer.metrics": "Apache-2.0",
    "io.apicurio": "Apache-2.0",
    "io.debezium": "Apache-2.0",
    "io.delta": "Apache-2.0",
    "javax.activation:activation": "CDDL-1.0",
    "javax.activation:javax.activation-api": CDDL_OR_GPL,
    "javax.annotation": CDDL_OR_GPL,
    "javax.xml.bind": CDDL_OR_GPL,
    "org.apache.hudi": "Apache-2.0",
    "org.apache.orc": "Apache-2.0",
    "org.apache.parquet": "Apache-2.0",
    "org.apache.spark": "Apache-2.0",
    "org.glassfish.jersey.containers": EPL_OR_GPL,
    "org.glassfish.jersey.core": EPL_OR_GPL,
    "org.glassfish.jersey.inject": EPL_OR_GPL,
    "org.jetbrains.kotlin": "Apache-2.0",
    "org.pcollections": "MIT",
    "org.reactivestreams": "CC0-1.0",
    "org.roaringbitmap": "Apache-2.0",
    "org.slf4j": "MIT",
    "software.amazon.awssdk": "Apache-2.0",
    "software.amazon.eventstream": "Apache-2.0",
}
# What people write for the identifiers of SPDX; the first that fits.
WORDS = (
    (r"classpath|gpl2? ?w/ ?cpe", GPL),
    (r"cddl\W*1\.0|common development and distribution license \(cddl\) version 1\.0", "CDDL-1.0"),
    (r"cddl", "CDDL-1.1"),
    (r"epl\W*(v|version )?2|eclipse public license[^,]*2", "EPL-2.0"),
    (r"epl\W*(v|version )?1|eclipse public license[^,]*1", "EPL-1.0"),
    (r"edl|eclipse distribution", "BSD-3-Clause"),
    (r"lgpl 2\.1", "LGPL-2.1-only"),
    (r"mpl\W*1\.1", "MPL-1.1"),
    (r"mpl\W*2|mozilla public license 2", "MPL-2.0"),
    (r"apache|asl 2", "Apache-2.0"),
    (r"bsd\W*2", "BSD-2-Clause"),
    (r"bsd", "BSD-3-Clause"),
    (r"\bmit\b", "MIT"),
    (r"isc\b", "ISC"),
    (r"cc0|public\W?domain", "CC0-1.0"),
)
LICENCE_FILE = re.compile(r"(META-INF/)?LICEN[CS]E[^/]*", re.IGNORECASE)


def spdx(text: str) -> str:
    """The identifier of one licence in people's words; nothing for words that are not known."""
    if text in ACCEPTED:
        return text
    return next((name for words, name in WORDS if re.search(words, text.lower())), "")


def any_of(texts: list[str]) -> str:
    """Several licences of which one can be chosen."""
    return " OR ".join(sorted({name for one in texts if (name := spdx(one.strip()))}))


def of_python(found: PackageMetadata) -> str:
    if expression := found.get_all("License-Expression"):
        return str(expression[0])
    classifiers = [one for one in found.get_all("Classifier") or () if one.startswith("License")]
    licence = (found.get_all("License") or [""])[0]
    return spdx(licence[:60]) or any_of(classifiers)  # some put the whole text there


def of_jar(path: Path, name: str) -> str:
    """From its pom, else its manifest, else the start of its licence's text."""
    with zipfile.ZipFile(path) as jar:
        names = jar.namelist()

        def text(name: str) -> str:
            return jar.read(name).decode(errors="replace") if name in names else ""

        pom = text(f"META-INF/maven/{name.replace(':', '/')}/pom.xml")
        section = "".join(re.findall(r"<licenses>.*?</licenses>", pom, re.DOTALL))
        if found := any_of(re.findall(r"<name>(.*?)</name>", section, re.DOTALL)):
            return found
        manifest = text("META-INF/MANIFEST.MF").replace("\r", "").replace("\n ", "")
        for line in re.findall(r"^Bundle-License: (.*)$", manifest, re.MULTILINE):
            return any_of(line.split(","))
        return next((spdx(text(one)[:200]) for one in names if LICENCE_FILE.fullmatch(one)), "")


def read(*kinds: str) -> dict[str, dict[str, str]]:
    """The licence of each pinned package of these kinds, all without one, as far as this machine knows."""
    kept: dict[str, dict[str, str]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    page = json.loads((ROOT / "web/package-lock.json").read_text())["packages"]
    cache, jars = Cache(), {f"{a.organisation}:{a.name}": a for a in lock().artifacts}

    def one(pin: Pin) -> str:
        stated = STATED.get(pin.name) or STATED.get(pin.name.split(":")[0])
        if stated or pin.kind == "npm":
            return stated or page[f"node_modules/{pin.name}"].get("license", "")
        found = ""
        if pin.kind == "pypi":
            with suppress(PackageNotFoundError):  # only on another Python
                found = of_python(metadata(pin.name))
        elif (path := cache.path(jars[pin.name])).suffix == ".jar" and path.exists():
            found = of_jar(path, pin.name)
        return found or kept.get(pin.kind, {}).get(pin.name, "")

    found: dict[str, dict[str, str]] = {}
    for pin in pins():
        if not kinds or pin.kind in kinds:
            found.setdefault(pin.kind, {})[pin.name] = one(pin)
    return found


def licences() -> dict[str, dict[str, str]]:
    """The licence of each package by kind and name, as kept."""
    kept: dict[str, dict[str, str]] = json.loads(KEPT.read_text())
    return kept


def problems() -> list[str]:
    """Pins without a licence, licences that we do not accept, and entries of what is not pinned."""
    kept, wanted = licences(), pins()
    wrong = []
    for kind, name in sorted({(pin.kind, pin.name) for pin in wanted}):
        expression = kept.get(kind, {}).get(name, "")
        parts = set(re.split(r" OR | AND ", expression.replace("(", "").replace(")", "")))
        if not expression:
            wrong.append(f"{name} ({kind}): no licence is known")
        elif not parts <= ACCEPTED:
            wrong.append(f"{name} ({kind}): {expression} is not accepted")
    known = {(kind, name) for kind, names in kept.items() for name in names}
    gone = known - {(pin.kind, pin.name) for pin in wanted}
    return wrong + [f"{name} ({kind}) is not pinned any more" for kind, name in sorted(gone)]


def main() -> int:
    if "--write" in sys.argv:
        found = {kind: dict(sorted(names.items())) for kind, names in read().items()}
        KEPT.write_text(json.dumps(found, indent=1) + "\n")
    wrong = problems()
    if wrong:
        print(
            *wrong,
            "mend: python -m scripts.licences --write, or STATED in scripts/licences.py",
            sep="\n",
        )
    else:
        count = sum(map(len, licences().values()))
        print(
            f"every package that is shipped or fetched has a licence that we accept: {count} packages"
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
