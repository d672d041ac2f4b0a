"""Connectors that are known by name, while their keys do not determine their datasets.

Their topics are shown; a mapping file can name the other side.
"""

from __future__ import annotations

from headwater.connect.derive.family import Plugin

_CONFLUENT = "io.confluent.connect."
_SOURCES = {
    "activemq": "ActiveMQSource activemq.ActiveMQSourceConnector",
    "eventhubs": "AzureEventHubsSource azure.eventhubs.EventHubsSourceConnector",
    "servicebus": "AzureServiceBusSource azure.servicebus.ServiceBusSourceConnector",
    "cloudwatch": "CloudWatchLogsSource aws.cloudwatch.logs.AwsCloudWatchSourceConnector",
    "dynamodb": "DynamoDbCdcSource dynamodb.DynamoDBSourceConnector",
    "github": "GithubSource github.GithubSourceConnector",
    "influxdb": "InfluxDB2Source",
    "jira": "JiraSource jira.JiraSourceConnector",
    "jms": "jms.JmsSourceConnector",
    "kinesis": "KinesisSource kinesis.KinesisSourceConnector",
    "mqtt": "MqttSource mqtt.MqttSourceConnector",
    "rabbitmq": "RabbitMQSource rabbitmq.RabbitMQSourceConnector",
    "salesforce": "SalesforceBulkApiSource SalesforceCdcSource SalesforcePlatformEventSource "
    "SalesforcePushTopicSource salesforce.SalesforceCdcSourceConnector",
    "servicenow": "ServiceNowSource servicenow.ServiceNowSourceConnector",
    "sqs": "SqsSource sqs.source.SqsSourceConnector",
    "syslog": "syslog.SyslogSourceConnector",
    "zendesk": "ZendeskSource zendesk.ZendeskSourceConnector",
}
_SINKS = {
    "azure search": "AzureCognitiveSearchSink azure.search.AzureSearchSinkConnector",
    "azure functions": "AzureFunctionsSink azure.functions.AzureFunctionsSinkConnector",
    "azure logs": "AzureLogAnalyticsSink",
    "bigtable": "BigTableSink gcp.bigtable.BigtableSinkConnector",
    "delta": "DatabricksDeltaLakeSink databricks.deltalake.DatabricksDeltaLakeSinkConnector",
    "dynamodb": "DynamoDbSink aws.dynamodb.DynamoDbSinkConnector",
    "influxdb": "InfluxDB2Sink influxdb.InfluxDBSinkConnector",
    "jms": "jms.JmsSinkConnector",
    "lambda": "LambdaSink aws.lambda.AwsLambdaSinkConnector",
    "mqtt": "MqttSink mqtt.MqttSinkConnector",
    "pinecone": "PineconeSink",
    "rabbitmq": "RabbitMQSink rabbitmq.sink.RabbitMQSinkConnector",
    "salesforce": "SalesforceBulkApiSink SalesforcePlatformEventSink SalesforceSObjectSink",
    "servicenow": "ServiceNowSink servicenow.ServiceNowSinkConnector",
    "singlestore": "com.singlestore.kafka.SingleStoreSinkConnector",
    "solace": "SolaceSink",
}


def _classes(names: str) -> tuple[str, ...]:
    return tuple(
        f"{_CONFLUENT}{name}" if "." in name and not name.startswith("com.") else name
        for name in names.split()
    )


PLUGINS = (
    *(
        Plugin(family, _classes(names), "source", ("topic", "kafka.topic"), stores="topics only")
        for family, names in _SOURCES.items()
    ),
    *(
        Plugin(family, _classes(names), "sink", ("topics",), stores="topics only")
        for family, names in _SINKS.items()
    ),
)
