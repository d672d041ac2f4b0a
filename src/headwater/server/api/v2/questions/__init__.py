"""The questions of `headwater.insight`, one route each: what it reads of the store, and its answer."""

from headwater.server.api.v2.questions import (
    audit,
    difference,
    doctor,
    evidence,
    freshness,
    impact,
    tags,
    trace,
    why,
)

__all__ = ["MODULES"]

MODULES = (audit, difference, doctor, evidence, freshness, impact, tags, trace, why)
