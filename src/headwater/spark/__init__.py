"""PySpark lineage without a jar: `headwater.spark.attach(spark)`, and every job reports itself."""

from __future__ import annotations

from headwater.spark.driver.attach import attach, detach, flush

__all__ = ["attach", "detach", "flush"]
