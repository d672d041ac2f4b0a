import io.openlineage.client.OpenLineage;
import io.openlineage.client.OpenLineage.RunEvent.EventType;
import io.openlineage.client.OpenLineageClient;
import io.openlineage.client.transports.HttpTransport;
import java.net.URI;
import java.time.ZonedDateTime;
import java.util.List;
import java.util.UUID;

/** Reports runs of a job that reads one table, of which it knows one column: server, namespace, name, runs. */
public class Reader {
  public static void main(String[] words) throws Exception {
    OpenLineage build = new OpenLineage(URI.create("https://example.com/java"));
    try (OpenLineageClient client =
        OpenLineageClient.builder()
            .transport(HttpTransport.builder().uri(words[0]).build())
            .build()) {
      for (int number = 0; number < Integer.parseInt(words[3]); number++) {
        UUID run = UUID.randomUUID();
        for (EventType type : List.of(EventType.START, EventType.COMPLETE)) {
          var column = build.newSchemaDatasetFacetFieldsBuilder().name("price").type("DECIMAL(10,2)").build();
          var schema = build.newSchemaDatasetFacetBuilder().fields(List.of(column)).build();
          var table =
              build.newInputDatasetBuilder()
                  .namespace(words[1])
                  .name(words[2])
                  .facets(build.newDatasetFacetsBuilder().schema(schema).build())
                  .build();
          client.emit(
              build.newRunEventBuilder()
                  .eventType(type)
                  .eventTime(ZonedDateTime.now())
                  .run(build.newRunBuilder().runId(run).build())
                  .job(build.newJobBuilder().namespace("java").name("reader").build())
                  .inputs(List.of(table))
                  .outputs(List.of())
                  .build());
        }
      }
    }
  }
}
