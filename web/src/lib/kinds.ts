import type { IconName } from "../ui/icons";
import type { JobFacts, MapNode } from "./types";

export interface Kind {
  icon: IconName;
  label: string;
  /** Where there is little room. */
  short?: string;
}

const STORES: Record<string, Kind> = {
  kafka: { icon: "topic", label: "Kafka topic" },
  s3: { icon: "bucket", label: "S3" },
  s3a: { icon: "bucket", label: "S3" },
  gs: { icon: "bucket", label: "Cloud Storage", short: "GCS" },
  abfss: { icon: "bucket", label: "Azure storage", short: "Azure" },
  wasbs: { icon: "bucket", label: "Azure storage", short: "Azure" },
  hdfs: { icon: "bucket", label: "HDFS" },
  iceberg: { icon: "iceberg", label: "Iceberg table", short: "Iceberg" },
  delta: { icon: "delta", label: "Delta table" },
  hudi: { icon: "delta", label: "Hudi table" },
  postgres: { icon: "database", label: "PostgreSQL" },
  postgresql: { icon: "database", label: "PostgreSQL" },
  mysql: { icon: "database", label: "MySQL" },
  mssql: { icon: "database", label: "SQL Server" },
  sqlserver: { icon: "database", label: "SQL Server" },
  oracle: { icon: "database", label: "Oracle" },
  db2: { icon: "database", label: "Db2" },
  mongodb: { icon: "leaf", label: "MongoDB" },
  cassandra: { icon: "database", label: "Cassandra" },
  elasticsearch: { icon: "index", label: "Elasticsearch", short: "Elastic" },
  opensearch: { icon: "index", label: "OpenSearch" },
  redis: { icon: "memory", label: "Redis" },
  clickhouse: { icon: "warehouse", label: "ClickHouse" },
  snowflake: { icon: "warehouse", label: "Snowflake" },
  bigquery: { icon: "warehouse", label: "BigQuery" },
  redshift: { icon: "warehouse", label: "Redshift" },
  hive: { icon: "warehouse", label: "Hive" },
  file: { icon: "file", label: "File" },
  http: { icon: "globe", label: "HTTP" },
  https: { icon: "globe", label: "HTTP" },
};

export function storeKind(store: string, type = ""): Kind {
  const known = STORES[store];
  if (known) return known;
  if (type.toLowerCase() === "stream") return { icon: "topic", label: "Stream" };
  return { icon: "table", label: type.toLowerCase() === "file" ? "File" : "Dataset" };
}

export function jobKind(job: Pick<JobFacts, "integration" | "type" | "processing">): Kind {
  const streaming = job.processing.toLowerCase() === "streaming";
  switch (job.integration.toLowerCase()) {
    case "kafka_connect":
    case "connect":
    case "debezium":
      if (job.type === "source")
        return { icon: "plug", label: "Source connector", short: "Source" };
      if (job.type === "sink") return { icon: "plug", label: "Sink connector", short: "Sink" };
      return { icon: "plug", label: "Connector" };
    case "spark":
      if (job.type === "application")
        return { icon: "spark", label: "Spark application", short: "Spark app" };
      return { icon: "spark", label: streaming ? "Spark stream" : "Spark job" };
    case "kafka":
      if (job.type === "consumer_group")
        return { icon: "readers", label: "Consumer group", short: "Group" };
      if (job.type === "transactional_producer")
        return { icon: "wave", label: "Transactional producer", short: "Producer" };
      return { icon: "wave", label: "Kafka client" };
    case "flink":
      return { icon: "wave", label: "Flink job" };
    case "airflow":
      return { icon: "fan", label: "Airflow" };
    case "dbt":
      return { icon: "model", label: "dbt" };
    default:
      return streaming
        ? { icon: "wave", label: "Streaming job", short: "Stream" }
        : { icon: "gear", label: "Job" };
  }
}

export function nodeKind(node: MapNode): Kind {
  return node.kind === "job" ? jobKind(node) : storeKind(node.store, node.type);
}
