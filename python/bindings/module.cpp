#include "bindings/bindings.hpp"

NB_MODULE(_core, m) {
  nanobind::set_leak_warnings(false);  // an exception that is alive at the end of the interpreter holds its objects
  m.doc() = "The C++ core of Waywiser";
  bind_base(m);
  bind_topology(m);
  bind_path(m);
  bind_measure(m);
  bind_contest(m);
  bind_policy(m);
  bind_peer_report(m);
  bind_device(m);
  bind_comm(m);
  bind_halo(m);
  bind_heap(m);
  bind_table(m);
  bind_storage(m);
  bind_sim(m);
  bind_bench(m);
  bind_other_machine(m);
  bind_offload(m);
  bind_offload_server(m);
}
