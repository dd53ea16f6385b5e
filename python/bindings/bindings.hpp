#pragma once

#include <nanobind/nanobind.h>

// One function for each folder of src/waywiser, defined in the file of the same name.
void bind_base(nanobind::module_& m);
void bind_topology(nanobind::module_& m);
void bind_path(nanobind::module_& m);
void bind_measure(nanobind::module_& m);
void bind_contest(nanobind::module_& m);
void bind_policy(nanobind::module_& m);
void bind_peer_report(nanobind::module_& m);
void bind_device(nanobind::module_& m);
void bind_comm(nanobind::module_& m);
void bind_halo(nanobind::module_& m);
void bind_heap(nanobind::module_& m);
void bind_table(nanobind::module_& m);
void bind_storage(nanobind::module_& m);
void bind_sim(nanobind::module_& m);
void bind_bench(nanobind::module_& m);
void bind_other_machine(nanobind::module_& m);
void bind_offload(nanobind::module_& m);
void bind_offload_server(nanobind::module_& m);
