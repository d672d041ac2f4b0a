"""The files in `deploy/`: command lines that the program takes, nobody is root, no secret in a text.

None of them has run here. The manifests are held to the schemas of Kubernetes, which are in the linter's own
package; `make check-deploy` runs the linters of the other files.
"""

from __future__ import annotations

import json
import re
import shlex
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

import headwater
from tests.command_lines import parse

DEPLOY = Path(__file__).parents[3] / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
RESOURCES = [
    resource
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for resource in yaml.safe_load_all(path.read_text())
]
PODS = {
    one["metadata"]["name"]: one["spec"]["template"]["spec"]
    for one in RESOURCES
    if one["kind"] == "Deployment"
}


def stage(name: str) -> str:
    """The part of the Dockerfile that makes one image."""
    return re.split(rf"^FROM \S+ AS {name}$", DOCKERFILE, flags=re.MULTILINE)[1].split("\nFROM ")[0]


def words(name: str, instruction: str) -> list[str]:
    found = re.search(rf"^{instruction} (\[.*\])$", stage(name), re.MULTILINE)
    return list(json.loads(found[1])) if found else []


def started() -> list[Any]:
    """Every command line that starts Headwater."""
    lines = [
        pytest.param(words(n, "ENTRYPOINT") + words(n, "CMD"), id=n) for n in ("server", "agent")
    ]
    for path in UNITS:
        (line,) = re.findall(r"^ExecStart=(.*)$", path.read_text(), re.MULTILINE)
        lines.append(pytest.param(shlex.split(line), id=path.name))
    for name, pod in PODS.items():
        (container,) = pod["containers"]
        entry = words(name.removeprefix("headwater-"), "ENTRYPOINT")
        lines.append(pytest.param([*entry, *container["args"]], id=name))
    return lines


@pytest.mark.parametrize("line", started())
def test_the_program_takes_the_command_line(line: list[str]) -> None:
    assert Path(line[0]).name == "headwater"
    options = parse(line[1:])
    assert options.get("state", options.get("store")) is not None or line[1:] == [
        "connect",
        "watch",
    ]


def test_a_flag_that_is_not_there_is_refused() -> None:
    with pytest.raises(Exception, match="No such option"):
        parse(["server", "--stores", "x"])


@pytest.mark.parametrize("version", ["1.30", "1.37"])
@pytest.mark.parametrize(
    "resource", RESOURCES, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}"
)
def test_a_manifest_is_as_the_schema_of_kubernetes_has_it(
    resource: dict[str, Any], version: str
) -> None:
    kubernetes_validate.validate(resource, version, strict=True)


def test_a_manifest_with_a_field_that_kubernetes_does_not_know_is_refused() -> None:
    (deployment, *_) = (one for one in RESOURCES if one["kind"] == "Deployment")
    wrong = {**deployment, "spec": {**deployment["spec"], "replica": 2}}
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        kubernetes_validate.validate(wrong, "1.37", strict=True)


@pytest.mark.parametrize("name", PODS)
def test_a_pod_has_no_rights_it_does_not_need(name: str) -> None:
    pod = PODS[name]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] == 10001
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    # A Service called headwater-server would set HEADWATER_SERVER_PORT.
    assert pod["enableServiceLinks"] is False
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]
        image, _, tag = container["image"].partition(":")
        assert (image, tag) == (name, headwater.__version__)


def test_who_listens_is_asked_whether_it_is_well() -> None:
    (server,) = PODS["headwater-server"]["containers"]
    assert server["readinessProbe"]["httpGet"]["path"] == "/api/v2/health"
    assert {"startupProbe", "livenessProbe"} <= server.keys()
    (agent,) = PODS["headwater-agent"]["containers"]
    assert agent["readinessProbe"]["httpGet"]["path"] == "/health"
    assert f"--metrics-port={agent['ports'][0]['containerPort']}" in agent["args"]
    (service,) = (one for one in RESOURCES if one["kind"] == "Service")
    (budget,) = (one for one in RESOURCES if one["kind"] == "PodDisruptionBudget")
    (deployment,) = (one for one in RESOURCES if one["metadata"]["name"] == "headwater-server" and one["kind"] == "Deployment")  # fmt: skip
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == budget["spec"]["selector"]["matchLabels"] == labels
    assert service["spec"]["ports"][0]["port"] == server["ports"][0]["containerPort"] == 5000


def test_no_file_holds_a_secret() -> None:
    assert not [one for one in RESOURCES if one["kind"] == "Secret"]
    for path in DEPLOY.rglob("*"):
        if path.is_file() and path.suffix != ".lock":
            text = path.read_text()
            assert not re.search(r"://[^/\s@:]+:[^/\s@]+@", text), path
            assert not re.search(r"(PASSWORD|TOKEN|KEY)[\"']?\s*[=:]\s*[\"']?[\w-]{4,}", text), path


@pytest.mark.parametrize("name", ["server", "agent"])
def test_an_image_is_not_root_and_holds_pinned_packages_alone(name: str) -> None:
    assert "\nUSER 10001:10001\n" in stage(name)
    assert f"COPY --from=install-{name} /opt/headwater /opt/headwater" in stage(name)
    assert f"--require-hashes -r /tmp/{name}.lock" in stage(f"install-{name}")
    locked = (DEPLOY / "locks" / f"{name}.lock").read_text()
    pins = re.findall(r"^([\w.-]+)==", locked, re.MULTILINE)
    assert "psycopg-binary" in pins
    assert "pyspark" not in pins
    assert ("uvicorn" in pins) == (name == "server")


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_service_of_systemd_is_shut_in(path: Path) -> None:
    lines = set(path.read_text().splitlines())
    assert {
        "DynamicUser=yes",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "ProtectHome=yes",
        "CapabilityBoundingSet=",
        "MemoryDenyWriteExecute=yes",
        "Restart=on-failure",
    } <= lines


@pytest.mark.parametrize(("name", "extra"), [("server",) * 2, ("agent", "connect"), ("all",) * 2])
def test_a_lock_pins_what_is_declared_as_the_tests_run_with_it(name: str, extra: str) -> None:
    def pins(path: Path) -> set[str]:
        return set(re.findall(r"^([\w.-]+==[^ ;\\]+)", path.read_text(), re.MULTILINE))

    found = pins(DEPLOY / "locks" / f"{name}.lock")
    assert found <= pins(DEPLOY.parent / "requirements.lock")
    lines = requires("headwater") or ()
    ours = [
        line for line in lines if f"'{extra}'" in line.replace('"', "'") or "extra ==" not in line
    ]
    wanted = {re.split(r"[^\w.-]", line)[0].lower() for line in ours} - {"headwater"}
    assert wanted <= {pin.split("==")[0] for pin in found}, "make lock"
