"""Names of `info` elements for facts that hwloc XML cannot express; their values are JSON objects."""

LINK = "WaywiserLink"
DEVICE = "WaywiserDevice"
ATTRIBUTES = "WaywiserAttributes"
