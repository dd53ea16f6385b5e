#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "waywiser/sim/model_path.hpp"
#include "waywiser/sim/program.hpp"

namespace waywiser::sim {

// One transfer along a path in a world, the input of a model. The path's places are `from.device`, `to.device`.
struct TimedTransfer {
  const World& world;
  ModelPath path;
  Spot from, to;
  Bytes bytes = 0;
  int lane = 0;   // transfers of other lanes are issued by other CPU threads
  int slots = 1;  // buffers at each end, which a stream of transfers uses in turn

  double cost(std::string_view name) const { return cost(from, name); }
  double cost(const Spot& spot, std::string_view name) const { return world.node(spot.node).costs()[name]; }
  const NodeModel& node() const { return world.node(from.node); }  // where it starts
  const Topology& topology() const { return node().topology(); }
  bool remote() const { return from.node != to.node; }
  std::string unit(const Spot& spot, const std::string& what) const;
  // The CPU thread that issues the transfer: each lane has its own.
  std::string cpu() const;
};

// How a mechanism spends its time: the model of the transport of the same name.
struct Model {
  std::string_view mechanism;
  std::optional<std::string> (*why_not)(const TimedTransfer&);
  Program (*program)(const TimedTransfer&);  // reads every parameter of the path, or it is an error
};
std::span<const Model> models();
// Empty: the path can be simulated. Otherwise the reason, in words.
std::optional<std::string> why_unavailable(const TimedTransfer& transfer);
// Throws unavailable with that reason; invalid_input: a parameter has no meaning for the path.
Program program(const TimedTransfer& transfer);

Program copy_engine_program(const TimedTransfer& transfer);
Program sm_copy_program(const TimedTransfer& transfer);
Program host_copy_program(const TimedTransfer& transfer);
Program host_staged_program(const TimedTransfer& transfer);
Program bar_copy_program(const TimedTransfer& transfer);
Program courier_program(const TimedTransfer& transfer);
Program relay_program(const TimedTransfer& transfer);
Program split_program(const TimedTransfer& transfer);
Program ucx_local_program(const TimedTransfer& transfer);
Program ucx_remote_program(const TimedTransfer& transfer);
Program ucx_shared_program(const TimedTransfer& transfer);
Program ucx_staged_program(const TimedTransfer& transfer);
// The NICs that UCX takes at one end of the path. Throws unavailable: there is none of the name that the path says.
std::vector<std::string> rails_at(const TimedTransfer& transfer, const Spot& spot);
// UCX from the host memory beside one end to that beside the other.
Leg host_wire(const TimedTransfer& transfer);

// Turns the leg into that of a copy engine between pageable host memory and a GPU: the CPU copies a piece to or from a
// buffer of the driver at pageable.h2d_rate or pageable.d2h_rate, and the engine moves it, in turn: 1 / rate = 1 /
// pageable + 1 / engine.
void make_pageable(const TimedTransfer& transfer, Leg& leg, bool to_host);
// A leg that a copy engine of a GPU carries: gpu.h2d, gpu.d2h, gpu.out or gpu.local.
Leg engine_leg(const TimedTransfer& transfer, const Spot& from, const Spot& to, Links links = Links::all);

}  // namespace waywiser::sim
