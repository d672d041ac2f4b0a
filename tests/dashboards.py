"""The dashboard and the alert rules that are shipped, and which figures they ask for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[1] / "deploy"
NAME = re.compile(r"\bheadwater_\w+(?:\{[^}]*\})?")


def expressions() -> list[str]:
    """Every query of the dashboard and of the rules."""
    board = json.loads((DEPLOY / "grafana" / "headwater.json").read_text())
    found = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    rules: Any = yaml.safe_load((DEPLOY / "prometheus" / "headwater-rules.yml").read_text())
    return found + [rule["expr"] for group in rules["groups"] for rule in group["rules"]]


def asked_for(*, agent: bool) -> dict[str, set[str]]:
    """The figures of the agent, or of the server, that are asked for, and the labels they are asked by."""
    found: dict[str, set[str]] = {}
    for expression in expressions():
        grouped = {
            label.strip()
            for labels in re.findall(r"by \(([^)]*)\)", expression)
            for label in labels.split(",")
        }
        for name in NAME.findall(expression):
            bare, _, matchers = name.partition("{")
            if bare.startswith("headwater_agent_") == agent:
                labels = {*re.findall(r"(\w+)\s*[=!]", matchers), *grouped}
                found.setdefault(bare, set()).update(labels - {"instance", "job"})
    return found


def shown(text: str) -> dict[str, set[str]]:
    """The figures of a scrape and their labels; a figure without samples now has none."""
    found: dict[str, set[str]] = {}
    for kind, name in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE):
        ends = ("_bucket", "_sum", "_count") if name == "histogram" else ("",)
        found |= {kind + end: set() for end in ends}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? \S+$", text, re.MULTILINE):
        found[name].update(re.findall(r'(\w+)="', labels))
    return found


def lacking(text: str, *, agent: bool) -> dict[str, set[str]]:
    """What the dashboard and the rules ask for that a scrape does not have."""
    has = shown(text)
    asked = asked_for(agent=agent)
    assert len(asked) > 5, asked
    return {
        name: labels - has.get(name, set())
        for name, labels in asked.items()
        if name not in has or labels - has[name]
    }


def undocumented(text: str) -> set[str]:
    """The figures of a scrape that the page about operations does not explain."""
    page = (DEPLOY.parent / "docs" / "operations.md").read_text()
    names = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    return names - set(re.findall(r"`(headwater_\w+)`", page))
