"""Orders and customers are spread over all ranks; each rank joins those that belong to it, and sums them up.

waywiser run -n 4 python examples/13_tables.py
"""

import numpy as np
import pyarrow as pa

import waywiser as ww
from waywiser import table

CUSTOMERS, ORDERS = 1000, 20_000

group = ww.join()
chance = np.random.default_rng(group.rank)

# Each rank has some of the customers, and orders of any of them.
mine = np.arange(group.rank, CUSTOMERS, group.size)
customers = pa.table({"customer": mine, "city": np.array(["Graz", "Kiel", "Lyon"])[mine % 3]})
orders = pa.table({"customer": chance.integers(0, 2 * CUSTOMERS, ORDERS), "euros": chance.integers(1, 100, ORDERS)})

# Rows of one customer meet at one rank; orders of unknown customers match nothing.
known = table.merge(group, orders, customers, "customer")
by_city = table.group_by(group, known, "city", [("euros", "sum"), ("euros", "count")])
ordered = table.sort(group, by_city, "city")

rows = group.all_gather_objects((orders.num_rows, known.num_rows, ordered.to_pylist()))
if group.rank == 0:
    print(f"{sum(known for _, known, _ in rows)} of {sum(given for given, _, _ in rows)} orders have a customer")
    for city in [each for *_, cities in rows for each in cities]:
        print(f"{city['city']}: {city['euros_count']} orders, {city['euros_sum']} euros", flush=True)
