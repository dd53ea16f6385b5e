// An all-reduce over ranks that have one link each way to a switch that is no limit, in SimGrid. Prints the completion
// time, and the time and memory that the simulation took. `beside_simgrid.py` compiles it, runs it with each of
// SimGrid's models, and the same in Waywiser beside it.
//
// simgrid_collectives ring|doubling RANKS BYTES RATE LATENCY [--cfg=...]
//
// ring: 2 (n - 1) rounds, in each of which every rank sends a block of BYTES / n to the next. doubling: log2 n rounds,
// in each of which it exchanges all with the rank whose number differs in one bit; where n is no power of two, the
// first pairs of ranks meet before, one of each takes part for both, and gives the other the sum at the end. A rank
// begins a round when its messages of the last one have arrived; sums take no time.

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

namespace {

double finished = 0;

struct Rank {
  std::string kind;
  int ranks = 0, rank = 0;
  double bytes = 0;

  static sg4::Mailbox* between(int from, int to) {
    return sg4::Mailbox::by_name(std::to_string(from) + ">" + std::to_string(to));
  }
  sg4::CommPtr send(int to, double size) const {
    static char payload = 0;
    return between(rank, to)->put_async(&payload, static_cast<std::uint64_t>(size));
  }
  void receive(int from) const { between(from, rank)->get<char>(); }
  void exchange(int to, int from, double size) const {
    const sg4::CommPtr sent = send(to, size);
    receive(from);
    sent->wait();
  }

  void doubling() const {
    int power = 1;
    while (2 * power <= ranks) power *= 2;
    const int pairs = ranks - power;
    const bool in_pair = rank < 2 * pairs;
    if (in_pair && rank % 2 == 0) {
      send(rank + 1, bytes)->wait();
      return receive(rank + 1);
    }
    if (in_pair) receive(rank - 1);
    const int place = in_pair ? rank / 2 : rank - pairs;
    for (int bit = 1; bit < power; bit *= 2) {
      const int other = place ^ bit, peer = other < pairs ? 2 * other + 1 : other + pairs;
      exchange(peer, peer, bytes);
    }
    if (in_pair) send(rank - 1, bytes)->wait();
  }

  void operator()() const {
    if (kind == "ring")
      for (int round = 0; round < 2 * (ranks - 1); ++round)
        exchange((rank + 1) % ranks, (rank + ranks - 1) % ranks, bytes / ranks);
    else
      doubling();
    finished = sg4::Engine::get_clock();
  }
};

}  // namespace

int main(int count, char** words) {
  sg4::Engine engine(&count, words);
  if (count != 6) {
    std::fprintf(stderr, "simgrid_collectives ring|doubling RANKS BYTES RATE LATENCY\n");
    return 2;
  }
  const std::string kind = words[1];
  const int ranks = std::atoi(words[2]);
  const double bytes = std::atof(words[3]), rate = std::atof(words[4]), latency = std::atof(words[5]);
  auto* const zone = sg4::create_star_zone("all");
  std::vector<sg4::Host*> hosts;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string name = std::to_string(rank);
    hosts.push_back(zone->create_host(name, 1e9)->seal());
    auto* const up = zone->create_link("u" + name, rate)->set_latency(latency / 2)->seal();
    auto* const down = zone->create_link("d" + name, rate)->set_latency(latency / 2)->seal();
    zone->add_route(hosts.back()->get_netpoint(), nullptr, nullptr, nullptr, {sg4::LinkInRoute(up)}, false);
    zone->add_route(nullptr, hosts.back()->get_netpoint(), nullptr, nullptr, {sg4::LinkInRoute(down)}, false);
  }
  zone->seal();
  for (int rank = 0; rank < ranks; ++rank)
    sg4::Actor::create(std::to_string(rank), hosts[static_cast<std::size_t>(rank)], Rank{kind, ranks, rank, bytes});
  const std::clock_t before = std::clock();
  engine.run();
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  std::printf("{\"seconds\": %.9g, \"cpu_s\": %.3f, \"gib\": %.3f}\n", finished,
              static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC,
              static_cast<double>(used.ru_maxrss) / (1 << 20));
  return 0;
}
