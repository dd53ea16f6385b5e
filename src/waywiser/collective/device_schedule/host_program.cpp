#include <deque>

#include "waywiser/collective/device_schedule/program_body.hpp"
#include "waywiser/collective/device_schedule/program_kernel.hpp"
#include "waywiser/kernels/block/host_block.hpp"

namespace waywiser::program {

namespace {

// Round by round, sends before receives: no block can wait for a later one.
template <typename Form>
void run(const ProgramArguments& terms) {
  constexpr unsigned threads = 32;  // a warp
  std::deque<block::HostBlock> blocks;
  std::deque<ProgramBody<block::HostBlock, Form>> bodies;
  for (unsigned index = 0; index < terms.blocks; ++index)
    bodies.emplace_back(blocks.emplace_back(index, terms.blocks, threads), terms);
  for (auto& body : bodies) body.begin();
  for (std::uint32_t round = 0; round < terms.round_count; ++round) {
    for (auto& body : bodies) body.give(round);
    for (auto& body : bodies) body.take(round);
  }
  for (auto& body : bodies) body.settle();
}

}  // namespace

void run_on_host(const ProgramArguments& terms) {
  block::begin_unless(terms.failed);
  with_form(terms.form, [&]<typename Form>() { run<Form>(terms); });
}

}  // namespace waywiser::program
