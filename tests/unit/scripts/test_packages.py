"""What goes into the packages: declared dependencies, licences of others' work, the bill of materials."""

from __future__ import annotations

import json
import re
import shutil
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from scripts import audit, check_wheel, dependencies, licences
from scripts.pins import ROOT, Pin, pins
from scripts.sbom import sbom

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.full  # reads every module; `make check` runs the same on what is declared
def test_a_dependency_that_nothing_imports_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = dependencies.declared()
    assert real["httpx"] is False
    assert real["ruff"] is True
    wanted = {**real, "hypothesis": False, "left-pad": True}
    monkeypatch.setattr(dependencies, "declared", lambda: wanted)
    assert dependencies.problems() == [
        "hypothesis is declared and nothing imports it",  # only the tests do
        "left-pad is declared and nothing imports it",
    ]


@pytest.mark.full
def test_an_import_that_is_not_declared_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {k: v for k, v in dependencies.declared().items() if k != "msgspec"}
    monkeypatch.setattr(dependencies, "declared", lambda: wanted)
    assert dependencies.problems() == ["msgspec is imported and not declared"]


def test_a_pin_without_a_licence_that_we_accept_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = licences.licences()
    more = [*pins(), Pin("pypi", "unknown", "1"), Pin("npm", "shared", "1")]
    monkeypatch.setattr(licences, "pins", lambda: more)
    monkeypatch.setattr(
        licences, "licences", lambda: {**kept, "npm": {**kept["npm"], "shared": "AGPL-3.0-only"}}
    )
    assert licences.problems() == [
        "shared (npm): AGPL-3.0-only is not accepted",
        "unknown (pypi): no licence is known",
    ]


def test_licences_are_read_from_what_people_write(tmp_path: Path) -> None:
    assert licences.spdx("The Apache Software License, Version 2.0") == "Apache-2.0"
    assert licences.spdx("made up") == ""
    assert licences.any_of(["EPL 2.0", "GPL2 w/ CPE"]) == licences.EPL_OR_GPL
    jar = tmp_path / "one.jar"
    with zipfile.ZipFile(jar, "w") as packed:
        packed.writestr("META-INF/maven/g/other/pom.xml", "<licenses><name>MIT</name></licenses>")
        packed.writestr(
            "META-INF/MANIFEST.MF",
            "Bundle-License: https://opensource.org/licenses/B\r\n SD-3-Clause\r\n",
        )
    assert licences.of_jar(jar, "g:one") == "BSD-3-Clause"
    assert licences.of_jar(jar, "g:other") == "MIT"


def test_what_is_installed_here_has_the_licence_that_is_kept() -> None:
    assert licences.read("pypi")["pypi"] == licences.licences()["pypi"]


def test_the_bill_of_materials_lists_every_pin() -> None:
    bill = sbom()
    assert bill == json.loads(json.dumps(sbom())), "the same tree, the same bill"
    purls = [one["purl"] for one in bill["components"]]
    assert len(set(purls)) == len(purls)
    assert all(re.fullmatch(r"pkg:(pypi|npm|maven)/\S+@[^@\s]+", purl) for purl in purls)
    assert any(purl.startswith("pkg:npm/%40dagrejs/dagre@") for purl in purls)
    assert any(purl.startswith("pkg:maven/org.apache.kafka/kafka_2.13@") for purl in purls)
    locked = re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    names = {one["name"] for one in bill["components"] if one["purl"].startswith("pkg:pypi/")}
    assert {"httpx", "pyspark", "uvicorn", "mcp"} <= names < set(locked)
    assert "pytest" not in names
    assert all(one["licenses"] for one in bill["components"])


def test_an_audit_that_reached_nothing_does_not_pass_for_a_clean_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    skipped = {"dependencies": [{"name": "httpx", "skip_reason": "not found"}], "fixes": []}
    monkeypatch.setattr(audit, "answer", lambda command, *_: None if "npm" in command else skipped)
    monkeypatch.setattr("sys.argv", ["audit", "--strict"])
    assert audit.main() == 1
    assert capsys.readouterr().out.count("NOT AUDITED") == 2


def test_an_audit_names_what_is_vulnerable() -> None:
    vulnerable = {"name": "httpx", "version": "0.28.1", "vulns": [{"id": "PYSEC-1"}]}
    fine = {"name": "rich", "version": "15", "vulns": []}
    assert audit.python_findings({"dependencies": [vulnerable, fine]}) == (
        ["httpx 0.28.1: PYSEC-1"],
        2,
    )
    said = {
        "vulnerabilities": {"react": {"severity": "high"}},
        "metadata": {"dependencies": {"prod": 28}},
    }
    assert audit.page_findings(said) == (["react: high"], 28)


def test_a_page_that_no_browser_opened_is_named_and_fails_in_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "index.html").write_text('<script src="/a.js"></script>')
    (tmp_path / "a.js").touch()
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{served.server_port}"
        monkeypatch.delenv("CI", raising=False)
        assert "NOT OPENED" in check_wheel.page(url)
        monkeypatch.setenv("CI", "true")
        with pytest.raises(check_wheel.Failed, match="NOT OPENED"):
            check_wheel.page(url)
        served.shutdown()


def test_a_command_that_does_not_end_is_named_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def install(installed: check_wheel.Installed, wheel: Path) -> None:
        installed.run("sleep", "60", timeout=0.1)

    (tmp_path / "one.whl").touch()
    monkeypatch.setattr(check_wheel.Installed, "_install", install)
    monkeypatch.setattr(check_wheel, "contents", lambda dist: dist / "one.whl")
    monkeypatch.setattr("sys.argv", ["check_wheel", "--dist", str(tmp_path)])
    assert check_wheel.main() == 1
    assert capsys.readouterr().err == "error: sleep 60\nwas not done after 0.1 s\n"
