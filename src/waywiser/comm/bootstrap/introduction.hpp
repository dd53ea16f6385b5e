#pragma once

#include <string>
#include <vector>

#include "waywiser/comm/bootstrap/wire.hpp"

namespace waywiser {

// A UCX worker beside the engine's, for certain transports and network devices only.
struct RailOffer {
  std::string name;  // the transports and devices
  std::vector<std::byte> address;
};

// What each rank tells the others when it joins.
struct Introduction {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::string version;     // of the program's Waywiser
  std::string plan;        // fingerprint of its plan; empty: none
  std::string machine_id;  // equal if two ranks share memory
  std::string host;        // name of the machine, for people
  std::uint64_t process = 0;
  std::vector<std::byte> address;     // of its UCX worker
  bool gpus = false;                  // whether it may send out of a GPU
  std::string cores;                  // the cores that it may run on
  std::string mailbox;                // LaneMailbox::offer(); empty: none
  std::string ucx = {};               // version of its UCX
  std::vector<RailOffer> rails = {};  // for the plan's paths between machines
  std::string node = {};              // fingerprint of the machine; empty: the plan does not distinguish nodes
  std::string encrypted = {};         // where it accepts encrypted messages of other machines; empty: UCX carries them
};

void write(WireWriter& writer, const Introduction& introduction);
Introduction read_introduction(WireReader& reader);  // throws invalid_input

// Why a rank does not fit a group whose root is `root`; empty: it fits.
std::string difference(const Introduction& root, const Introduction& other);

// Identifies this machine: its boot, and the namespaces that separate containers.
std::string machine_id();
std::string host_name();

}  // namespace waywiser
