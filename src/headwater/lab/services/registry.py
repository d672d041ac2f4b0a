"""The schema registry: Apicurio, which speaks the Confluent API."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from headwater.lab.files.artifacts import lock
from headwater.lab.files.cache import write_atomically
from headwater.lab.login_proxy import LoginProxyConfig
from headwater.lab.ports import LOOPBACK
from headwater.lab.process import Command
from headwater.lab.services.base import Service, answers, only, version_of
from headwater.lab.services.logins import USER, registry_env, registry_login

if TYPE_CHECKING:
    from headwater.lab.services.base import LabContext

CONFLUENT_API = "/apis/ccompat/v7"
NATIVE_API = "/apis/registry/v2"
AVRO_CONVERTER = "io.apicurio.registry.utils.converter.AvroConverter"
# The port of the registry itself where a login proxy stands before it.
BEHIND = "registry-behind"


def avro_converter(native_url: str, side: str = "value") -> dict[str, str]:
    """A connector's settings for Avro in Confluent's wire format; `side` is key or value."""
    prefix = f"{side}.converter"
    settings = {
        "url": native_url,
        "as-confluent": "true",
        "use-id": "contentId",
        # Without this the schema's id goes into a header instead of before the record.
        "headers.enabled": "false",
        "auto-register": "true",
        "artifact-resolver-strategy": "io.apicurio.registry.serde.strategy.TopicIdStrategy",
    }
    return {
        prefix: AVRO_CONVERTER,
        **{f"{prefix}.apicurio.registry.{key}": value for key, value in settings.items()},
    }


class Registry(Service):
    name = "registry"
    title = "schema registry (Apicurio)"
    ports = ("registry", BEHIND)

    def version(self) -> str:
        return version_of("apicurio-registry-app")

    def command(self, lab: LabContext) -> Command:
        folder = lab.cache.unpacked(only(lock().bundle("registry")))
        runner = folder / f"apicurio-registry-app-{self.version()}-runner.jar"
        store = lab.home.data("registry") / "registry"
        secure = lab.home.settings.secure
        flags = {
            "quarkus.http.host": LOOPBACK,
            "quarkus.http.port": lab.port(BEHIND if secure else "registry"),
            "quarkus.log.level": "WARN",
            "quarkus.banner.enabled": "false",
            "quarkus.http.access-log.enabled": "false",
            "apicurio.storage.kind": "sql",
            "apicurio.storage.sql.kind": "h2",
            # By default H2 answers first and writes half a second later.
            "apicurio.datasource.url": f"jdbc:h2:file:{store};WRITE_DELAY=0;DB_CLOSE_ON_EXIT=FALSE",
        }
        # A jar's manifest names its libraries only when it is started with -jar; the class path
        # here is the runner itself and Quarkus finds the rest beside it.
        argv = lab.run_java(
            "registry",
            "io.quarkus.runner.GeneratedMain",
            classpath=[runner, folder / "lib" / "*"],
            heap=192,
            flags=[f"-D{key}={value}" for key, value in flags.items()],
        )
        return Command(self._gated(lab, argv) if secure else argv)

    def _gated(self, lab: LabContext, argv: list[str]) -> list[str]:
        """The same behind a proxy that asks for a login: this registry knows OpenID Connect only."""
        proxy = LoginProxyConfig(
            port=lab.port("registry"),
            behind=lab.url(BEHIND),
            users={USER: lab.home.settings.logins.registry},
            argv=argv,
        )
        path = lab.home.conf("registry-gate.json")
        write_atomically(path, msgspec.json.encode(proxy), 0o600)
        return [sys.executable, "-m", "headwater.lab.login_proxy", str(path)]

    def ready(self, lab: LabContext) -> bool:
        url = lab.url("registry", f"{CONFLUENT_API}/subjects")
        return answers(url, registry_login(lab)).status_code == 200

    def env(self, lab: LabContext) -> dict[str, str]:
        confluent = lab.url("registry", CONFLUENT_API)
        return {
            "REGISTRY_URL": confluent,
            "APICURIO_URL": lab.url("registry", NATIVE_API),
            **registry_env(lab),
            # Only of an address that is given is the login taken from the environment.
            **({"HEADWATER_CONNECT_REGISTRY_URL": confluent} if lab.home.settings.secure else {}),
        }
