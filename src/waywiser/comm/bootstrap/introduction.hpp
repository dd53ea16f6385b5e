#pragma once

#include <string>
#include <vector>

#include "waywiser/comm/bootstrap/wire.hpp"

namespace waywiser {

// A worker of UCX for some transports and network devices only, beside the engine's.
struct RailOffer {
  std::string name;  // what it uses
  std::vector<std::byte> address;
};

// What each rank tells the others when it joins.
struct Introduction {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::string version;     // of the program's Waywiser
  std::string plan;        // fingerprint of the plan that it follows; empty: none
  std::string machine_id;  // equal where two ranks share memory
  std::string host;        // name of the machine, for people
  std::uint64_t process = 0;
  std::vector<std::byte> address;     // of its UCX worker
  bool gpus = false;                  // it may send out of a GPU
  std::string cores;                  // that it may run on
  std::string mailbox;                // what LaneMailbox offers; empty: none
  std::string ucx = {};               // version of its UCX
  std::vector<RailOffer> rails = {};  // for what the plan wants between machines
  std::string node = {};              // fingerprint of the machine; empty: the plan does not tell nodes apart
  std::string encrypted = {};         // where it takes encrypted messages of other machines; empty: UCX carries them
};

void write(WireWriter& writer, const Introduction& introduction);
Introduction read_introduction(WireReader& reader);  // throws invalid_input

// What keeps a rank out of a group whose root is `root`; empty when nothing does.
std::string difference(const Introduction& root, const Introduction& other);

// Of this machine: the boot, and the spaces of names that separate containers.
std::string machine_id();
std::string host_name();

}  // namespace waywiser
