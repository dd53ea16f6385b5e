// What choosing costs for a message: nanoseconds for people on standard error, JSON on standard output.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <random>
#include <vector>

#include "waywiser/policy/chooser.hpp"

namespace {

using namespace waywiser;

// Eight GPUs, all operations, one and two processes, twelve ranges each: larger than what real machines give.
Plan large_plan() {
  Plan plan;
  for (const int processes : {1, 2})
    for (const Operation operation : operations)
      for (int range = 0; range < 12; ++range) {
        PlanRow row{{.operation = std::string(name(operation)), .processes = processes}};
        for (int source = 0; source < 8; ++source)
          for (int destination = 0; destination < 8; ++destination)
            if (source != destination) row.key.pairs.emplace_back(gpu(source), gpu(destination));
        row.from_bytes = range == 0 ? 0 : (Bytes{5} << (2 * range));
        row.to_bytes = range == 11 ? INT64_MAX : (Bytes{5} << (2 * range + 2)) - 1;
        row.ways = {{{"copy_engine"}}};
        plan.rows.push_back(row);
      }
  return plan;
}

struct Message {
  Place source, destination;
  Operation operation;
  Bytes bytes;
};

std::vector<Message> random_messages(std::size_t count) {
  std::mt19937_64 random(1);
  std::vector<Message> messages(count);
  for (Message& message : messages) {
    const int source = static_cast<int>(random() % 8);
    message = {gpu(source), gpu(static_cast<int>((source + 1 + random() % 7) % 8)), operations[random() % 4],
               random() >> (34 + random() % 30)};
  }
  return messages;
}

// The median of 21 passes over all messages, so that a busy machine does not decide.
double nanoseconds(const Chooser& chooser, const std::vector<Message>& messages) {
  std::vector<double> passes;
  Bytes sum = 0;
  for (int pass = 0; pass < 21; ++pass) {
    const Seconds start = now_seconds();
    for (int again = 0; again < 20; ++again)
      for (const Message& message : messages)
        sum += chooser.choose(message.source, message.destination, 1, message.operation, message.bytes)->from_bytes;
    passes.push_back((now_seconds() - start) / 20 / static_cast<double>(messages.size()) * 1e9);
  }
  if (sum == 0) std::fputs("no row was found\n", stderr);
  std::nth_element(passes.begin(), passes.begin() + 10, passes.end());
  return passes[10];
}

}  // namespace

int main() {
  const Chooser chooser(large_plan());
  const double cost = nanoseconds(chooser, random_messages(4096));
  std::fprintf(stderr, "choosing costs %.1f ns per message\n", cost);
  std::cout << Json{{"benchmark", "choose"}, {"nanoseconds_per_message", cost}, {"limit", 100}}.dump() << '\n';
  return cost <= 100 ? 0 : 1;
}
