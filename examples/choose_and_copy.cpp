// Reads a plan and moves bytes by the path that it gives for their size.
//   choose_and_copy waywiser-results/plan.json [BYTES]
#include <cstdio>
#include <cstring>

#include "waywiser/base/error.hpp"
#include "waywiser/policy/chooser.hpp"
#include "waywiser/transport/transport.hpp"

using namespace waywiser;

static void copy_by_plan(const char* plan_file, Bytes bytes) {
  const Chooser chooser(plan_from_json(read_json(plan_file), plan_file));
  const PlanRow* row = chooser.choose(host(0), host(0), 1, Operation::latency, bytes);
  if (row == nullptr) throw Error(ErrorKind::unavailable, "the plan has no path for host0>host0");

  const auto platform = open_host_platform();
  const TransportContext context{*platform};
  const auto transport = open_transport(row->path(), context);
  const auto stream = platform->open_stream(host(0));
  const Memory source = platform->allocate(host(0), bytes, Allocation::pageable);
  const Memory destination = platform->allocate(host(0), bytes, Allocation::pageable);
  std::memset(source.region().data, 7, bytes);

  transport->put(destination.region(), source.region(), *stream);
  transport->finish(*stream, Deadline::in(10));

  const bool intact = std::memcmp(destination.region().data, source.region().data, bytes) == 0;
  std::printf("%s bytes by %s: %s\n", format_bytes(bytes).c_str(), row->way().name.c_str(),
              intact ? "intact" : "WRONG");
}

int main(int count, char** arguments) {
  try {
    if (count < 2) throw Error(ErrorKind::invalid_input, "usage: choose_and_copy PLAN.json [BYTES]");
    copy_by_plan(arguments[1], count > 2 ? parse_bytes(arguments[2]) : 1 << 20);
  } catch (const Error& error) {
    std::fprintf(stderr, "choose_and_copy: %s\n", error.what());
    return 2;
  }
}
