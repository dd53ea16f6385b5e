#include <atomic>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

#include "waywiser/collective/messages/message_body.hpp"
#include "waywiser/collective/messages/message_kernel.hpp"
#include "waywiser/kernels/block/host_block.hpp"

namespace waywiser::messages {
namespace {

constexpr unsigned threads_of_host = 4, threads_for_ll128 = 64;

template <Fit fit, typename Carry>
void each_block(const MessageArguments& terms, const MessagePart& part, bool places, Carry carry) {
  for (unsigned channel = 0; channel < part.blocks; ++channel) {
    const unsigned threads = part.kind == Kind::ll128 ? threads_for_ll128 : threads_of_host;
    block::HostBlock block(channel, part.blocks, threads);
    MessageBody<block::HostBlock, fit> body(block, terms, part, places, channel);
    carry(body);
  }
}

// One thread carries all channels of a part, in order, as at the other end.
template <Fit fit>
void run_joint_part_on_host(const MessageArguments& terms, const JointWork& work, std::uint32_t part) {
  const unsigned threads = work.parts[part].kind == Kind::ll128 ? threads_for_ll128 : threads_of_host;
  for (unsigned channel = 0; channel < work.parts[part].blocks; ++channel) {
    block::HostBlock block(channel, work.parts[part].blocks, threads);
    run_joint_channel<fit>(block, terms, work, part, channel);
  }
}

// The trap, which ends the whole kernel, if there was one.
template <typename Function>
std::exception_ptr trap_of(const MessageArguments& terms, Function function) {
  try {
    function();
  } catch (const Trap&) {
    std::atomic_ref(terms.notice->stop).store(1, std::memory_order_release);
    return std::current_exception();
  }
  return {};
}

// Both directions run at once, since each may wait for the peer's progress in the other one.
template <Fit fit>
void run(const MessageArguments& terms, const MessageWork& work) {
  std::exception_ptr sending;
  std::jthread giver;
  if (work.give.blocks != 0)
    giver = std::jthread([&] {
      sending =
          trap_of(terms, [&] { each_block<fit>(terms, work.give, work.places, [](auto& body) { body.send(); }); });
    });
  const std::exception_ptr receiving =
      trap_of(terms, [&] { each_block<fit>(terms, work.take, work.places, [](auto& body) { body.receive(); }); });
  if (giver.joinable()) giver.join();
  for (const std::exception_ptr& trap : {sending, receiving})
    if (trap) std::rethrow_exception(trap);
}

}  // namespace

void run_on_host(const MessageArguments& terms, const MessageWork& work) {
  block::begin_unless(work.failed);
  switch (fit_of(work)) {
    case Fit::ll: return run<Fit::ll>(terms, work);
    case Fit::ll128: return run<Fit::ll128>(terms, work);
    case Fit::long_ll128: return run<Fit::long_ll128>(terms, work);
    case Fit::any: return run<Fit::any>(terms, work);
  }
}

void run_on_host(const MessageArguments& terms, const JointWork& work) {
  block::begin_unless(work.failed);
  std::vector<std::exception_ptr> traps(work.count);
  {
    std::vector<std::jthread> parts;
    for (std::uint32_t part = 0; part < work.count; ++part)
      parts.emplace_back(
          [&, part] { traps[part] = trap_of(terms, [&] { run_joint_part_on_host<Fit::any>(terms, work, part); }); });
    if (work.own.bytes != 0) std::memcpy(work.own.to, work.own.from, work.own.bytes);
  }
  for (const std::exception_ptr& trap : traps)
    if (trap) std::rethrow_exception(trap);
}

}  // namespace waywiser::messages
