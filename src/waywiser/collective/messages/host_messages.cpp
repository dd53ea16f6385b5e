#include <atomic>
#include <thread>

#include "waywiser/collective/messages/message_body.hpp"
#include "waywiser/collective/messages/message_kernel.hpp"
#include "waywiser/kernels/block/host_block.hpp"

namespace waywiser::messages {
namespace {

constexpr unsigned threads_of_host = 4, threads_for_lines = 64;

template <Fit fit, typename Carry>
void each_block(const MessageArguments& terms, const MessagePart& part, bool places, Carry carry) {
  for (unsigned channel = 0; channel < part.blocks; ++channel) {
    const unsigned threads = part.kind == Kind::lines ? threads_for_lines : threads_of_host;
    block::HostBlock block(channel, part.blocks, threads);
    MessageBody<block::HostBlock, fit> body(block, terms, part, places, channel);
    carry(body);
  }
}

// False: it has trapped, which ends the whole kernel.
template <typename Function>
bool ran(const MessageArguments& terms, Function function) {
  try {
    function();
    return true;
  } catch (const Trap&) {
    std::atomic_ref(terms.notice->stop).store(1, std::memory_order_release);
    return false;
  }
}

// Each may wait for what the peer does in the other direction.
template <Fit fit>
void run(const MessageArguments& terms, const MessageWork& work) {
  bool sent = true;
  std::jthread giver;
  if (work.give.blocks != 0)
    giver = std::jthread([&] {
      sent = ran(terms, [&] { each_block<fit>(terms, work.give, work.places, [](auto& body) { body.send(); }); });
    });
  const bool received =
      ran(terms, [&] { each_block<fit>(terms, work.take, work.places, [](auto& body) { body.receive(); }); });
  if (giver.joinable()) giver.join();
  if (!sent || !received) throw Trap();
}

}  // namespace

void run_on_host(const MessageArguments& terms, const MessageWork& work) {
  switch (fit_of(work)) {
    case Fit::packets: return run<Fit::packets>(terms, work);
    case Fit::lines: return run<Fit::lines>(terms, work);
    case Fit::long_lines: return run<Fit::long_lines>(terms, work);
    case Fit::any: return run<Fit::any>(terms, work);
  }
}

}  // namespace waywiser::messages
