#pragma once

#include <string>
#include <vector>

#include "waywiser/comm/bootstrap/shared_text.hpp"
#include "waywiser/comm/message/wire.hpp"

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
  SharedText version;     // of the program's Waywiser
  SharedText plan;        // fingerprint of its plan; empty: none
  SharedText machine_id;  // equal if two ranks share memory: the members of a group have tried it
  SharedText host;        // name of the machine, for people
  std::uint64_t process = 0;
  std::vector<std::byte> address;     // of its UCX worker
  bool gpus = false;                  // whether it may send out of a GPU
  SharedText cores;                   // the cores that it may run on
  std::string mailbox;                // LaneMailbox::offer(); empty: none
  SharedText ucx = {};                // version of its UCX
  std::vector<RailOffer> rails = {};  // for the plan's paths between machines
  std::string node = {};              // fingerprint of the machine; empty: the plan does not distinguish nodes
  std::string encrypted = {};         // where it accepts encrypted messages of other machines; empty: UCX carries them
  std::string reach = {};             // ReachTrial::offer(); empty: none
  SharedText system = {};             // equal for ranks of one running kernel, whether they share memory or not
};

void write(WireWriter& writer, const Introduction& introduction);
Introduction read_introduction(WireReader& reader);  // throws invalid_input
// Of all ranks of a job, by rank: what is equal for neighbours in the table is there once.
void write_table(WireWriter& writer, const std::vector<Introduction>& ranks);
std::vector<Introduction> read_table(WireReader& reader, std::size_t ranks);  // throws invalid_input
// The parts that a rank knows once it has opened UCX: address, rails, mailbox, node.
void write_offers(WireWriter& writer, const Introduction& introduction);
void read_offers(WireReader& reader, Introduction& introduction);  // throws invalid_input

// Why a rank does not fit a group whose root is `root`; empty: it fits.
std::string difference(const Introduction& root, const Introduction& other);

// Identifies this machine: its boot, and the namespaces that separate containers on a network.
std::string machine_id();
// Its boot alone.
std::string system_id();
// The namespace of this process: "net", "ipc".
std::string namespace_id(const std::string& kind);
std::string host_name();

}  // namespace waywiser
