#include <thread>

#include "waywiser/collective/fused/host_block.hpp"
#include "waywiser/collective/messages/message_body.hpp"
#include "waywiser/collective/messages/message_kernel.hpp"

namespace waywiser::messages {
namespace {

constexpr unsigned threads_of_host = 4, threads_for_lines = 64;

template <Fit fit, typename Carry>
void each_block(const Terms& terms, const Part& part, bool places, Carry carry) {
  for (unsigned channel = 0; channel < part.blocks; ++channel) {
    const unsigned threads = part.kind == Kind::lines ? threads_for_lines : threads_of_host;
    fused::HostBlock block(channel, part.blocks, threads);
    MessageBody<fused::HostBlock, fit> body(block, terms, part, places, channel);
    carry(body);
  }
}

// Each may wait for what the peer does in the other direction.
template <Fit fit>
void run(const Terms& terms, const Work& work) {
  std::jthread giver;
  if (work.give.blocks != 0)
    giver = std::jthread([&] { each_block<fit>(terms, work.give, work.places, [](auto& body) { body.send(); }); });
  each_block<fit>(terms, work.take, work.places, [](auto& body) { body.receive(); });
}

}  // namespace

void run_on_host(const Terms& terms, const Work& work) {
  switch (fit_of(work)) {
    case Fit::packets: return run<Fit::packets>(terms, work);
    case Fit::lines: return run<Fit::lines>(terms, work);
    case Fit::long_lines: return run<Fit::long_lines>(terms, work);
    case Fit::any: return run<Fit::any>(terms, work);
  }
}

}  // namespace waywiser::messages
