"""The schema registry: Apicurio, which speaks the Confluent API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.lab.files.artifacts import lock
from headwater.lab.ports import LOOPBACK
from headwater.lab.process import Command
from headwater.lab.services.base import Service, answers, only, version_of

if TYPE_CHECKING:
    from headwater.lab.services.base import LabContext

CONFLUENT_API = "/apis/ccompat/v7"
NATIVE_API = "/apis/registry/v2"


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
        prefix: "io.apicurio.registry.utils.converter.AvroConverter",
        **{f"{prefix}.apicurio.registry.{key}": value for key, value in settings.items()},
    }


class Registry(Service):
    name = "registry"
    title = "schema registry (Apicurio)"

    def version(self) -> str:
        return version_of("apicurio-registry-app")

    def command(self, lab: LabContext) -> Command:
        folder = lab.cache.unpacked(only(lock().bundle("registry")))
        runner = folder / f"apicurio-registry-app-{self.version()}-runner.jar"
        store = lab.home.data("registry") / "registry"
        flags = {
            "quarkus.http.host": LOOPBACK,
            "quarkus.http.port": lab.port("registry"),
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
        return Command(
            lab.run_java(
                "registry",
                "io.quarkus.runner.GeneratedMain",
                classpath=[runner, folder / "lib" / "*"],
                heap=192,
                flags=[f"-D{key}={value}" for key, value in flags.items()],
            )
        )

    def ready(self, lab: LabContext) -> bool:
        return answers(lab.url("registry", f"{CONFLUENT_API}/subjects")).status_code == 200

    def env(self, lab: LabContext) -> dict[str, str]:
        return {
            "REGISTRY_URL": lab.url("registry", CONFLUENT_API),
            "APICURIO_URL": lab.url("registry", NATIVE_API),
        }
