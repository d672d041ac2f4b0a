"""Every shape of streaming job, one after the other in one session."""

from __future__ import annotations

import json
import sys

from tests.integration.spark.programs import shapes

import headwater.spark

place_of = json.loads(sys.argv[1])
spark = headwater.spark.attach(shapes.session("shapes"))
for shape, given in place_of.items():
    place = shapes.Place(json.dumps(given))
    name = "" if shape in given.get("unnamed", []) else shape
    shapes.start(spark, place, shape, name, bounded=True).awaitTermination()
headwater.spark.flush(30)
