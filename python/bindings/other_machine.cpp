#include "bindings/other_machine.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "bindings/bindings.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/machine_connection.hpp"
#include "waywiser/measure/machine_service.hpp"
#include "waywiser/measure/peer_process.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace waywiser;

namespace {

constexpr Seconds meeting_patience = 60;
constexpr Seconds line_patience = 30;

std::pair<int, int> rank_and_size() {
  const Launch launch = read_launch();
  return {launch.rank, launch.size};
}

MachineConnection line_of(const Launch& launch) { return meet_other_machine(launch, Deadline::in(line_patience)); }

void look_for_signals() {
  const nb::gil_scoped_acquire acquired;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// Serves until rank 0 no longer needs this machine. Returns why it could not take part; empty: it did.
std::string serve_other(const std::string& program) {
  const nb::gil_scoped_release released;
  const Launch launch = read_launch();
  MachineConnection line = meet_other_machine(launch, Deadline::in(meeting_patience));
  if (line.same_machine) return "both ranks are on " + line.other.host;
  std::unique_ptr<PeerProgram> peer;
  const auto connect = [&] {
    peer.reset();
    const PeerSocket fresh = line_of(launch).line;
    peer = std::make_unique<PeerProgram>(program, fresh.socket, std::vector<std::string>(), fresh.seal);
  };
  MachineService(std::move(line.line), line.other.host).serve({connect, look_for_signals});
  return {};
}

void link_to_other(RemoteMachine* link) {
  const nb::gil_scoped_release released;
  const Launch launch = read_launch();
  MachineConnection line = meet_other_machine(launch, Deadline::in(meeting_patience));
  if (line.same_machine) throw Error(ErrorKind::unavailable, "both ranks are on " + line.other.host);
  const auto meet = [launch] { return std::move(line_of(launch).line); };
  new (link) RemoteMachine(std::move(line.line), line.other.host, meet);
}

}  // namespace

void bind_other_machine(nb::module_& m) {
  m.def("rank_and_size", rank_and_size, "What the launcher has set; 0 and 1 without one. Raises Error.");
  m.def(
      "serve_other_machine", serve_other, "peer_program"_a,
      "Rank 1: takes part in what rank 0 measures, until that needs it no more. Returns why it could not, or nothing. "
      "Raises Error when rank 0 ends before, or shows no sign of life for a minute.");
  nb::class_<RemoteMachine>(m, "OtherMachine",
                            "Rank 0's hold on the machine of rank 1. Making it raises Error; of kind unavailable when "
                            "both ranks are on one machine.")
      .def("__init__", link_to_other)
      .def("dismiss", &RemoteMachine::dismiss, nb::call_guard<nb::gil_scoped_release>(), "It is needed no more.");
}
