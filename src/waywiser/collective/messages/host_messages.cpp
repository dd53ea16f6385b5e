#include <thread>

#include "waywiser/collective/fused/host_block.hpp"
#include "waywiser/collective/messages/message_body.hpp"
#include "waywiser/collective/messages/message_kernel.hpp"

namespace waywiser::messages {
namespace {

constexpr unsigned threads_of_host = 4, threads_for_lines = 64;

template <typename Carry>
void each_block(const Terms& terms, const Part& part, bool places, Carry carry) {
  for (unsigned channel = 0; channel < part.blocks; ++channel) {
    const unsigned threads = part.kind == Kind::lines ? threads_for_lines : threads_of_host;
    fused::HostBlock block(channel, part.blocks, threads);
    MessageBody<fused::HostBlock> body(block, terms, part, places, channel);
    carry(body);
  }
}

}  // namespace

// Each may wait for what the peer does in the other direction.
void run_on_host(const Terms& terms, const Work& work) {
  std::jthread giver;
  if (work.give.blocks != 0)
    giver = std::jthread([&] { each_block(terms, work.give, work.places, [](auto& body) { body.send(); }); });
  each_block(terms, work.take, work.places, [](auto& body) { body.receive(); });
}

}  // namespace waywiser::messages
