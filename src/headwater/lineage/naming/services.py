"""Web services and applications."""

from __future__ import annotations

from .store import Store

OURS = (
    Store(
        "http",
        "HTTP endpoint",
        "https://{host}",
        "{path}",
        443,
        ours=True,
        why="the URL itself, without user, query and fragment; 80 and 443 are not written",
    ),
    Store(
        "salesforce",
        "Salesforce",
        "salesforce://{host}",
        "{object}",
        443,
        ours=True,
        why="the instance's host, then the SObject, topic or channel",
    ),
    Store(
        "servicenow",
        "ServiceNow",
        "servicenow://{host}",
        "{table}",
        443,
        ours=True,
        why="the instance's host, then the table",
    ),
    Store(
        "jira",
        "Jira",
        "jira://{host}",
        "{resource}",
        443,
        ours=True,
        why="the site, then the resource",
    ),
    Store(
        "zendesk",
        "Zendesk",
        "zendesk://{host}",
        "{resource}",
        443,
        ours=True,
        why="the site, then the resource",
    ),
    Store(
        "github",
        "GitHub",
        "github://{host}",
        "{repository}/{resource}",
        443,
        (),
        (("host", "api.github.com"),),
        ours=True,
        why="the API's host, then owner/name/resource",
    ),
    Store(
        "lambda",
        "AWS Lambda",
        "lambda://{region}",
        "{function}",
        ours=True,
        why="a function is unique in a region",
    ),
    Store(
        "cloudwatch",
        "CloudWatch Logs",
        "cloudwatch://{region}",
        "{group}/{stream}",
        ours=True,
        why="the log group, then the stream",
    ),
)
