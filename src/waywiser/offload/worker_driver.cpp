#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/offload/worker.hpp"

namespace waywiser {
namespace {

constexpr Bytes pattern_bytes = Bytes{1} << 20;

Json json_of(const KernelFacts& facts) { return {{"parameters", facts.parameters}, {"attributes", facts.attributes}}; }

std::uint64_t argument_of(const requests::Ask& ask, std::size_t place, std::uint64_t most) {
  if (place >= ask.arguments.size() || ask.arguments[place] > most)
    throw Error(ErrorKind::invalid_input, "a question with wrong numbers");
  return ask.arguments[place];
}

}  // namespace

void RemoteWorker::carry_out(const requests::CopyBytes& copy) {
  attempt("copy", [&] {
    const HeldArray &to = find(copy.to.array), &source = find(copy.from);
    const Region into = find(copy.to), from = find({copy.from, copy.from_offset, copy.to.bytes});
    if (into.bytes == 0) return;
    const std::array<GpuWork::Kept, 2> keeps{to.owner, source.owner};
    work_.begin("copy", now_seconds(), keeps, [&](Stream& stream) { stream.copy(into, from); });
  });
}

// The pattern comes from the host once, and doubles on the GPU.
void RemoteWorker::carry_out(const requests::Fill& fill) {
  attempt("fill", [&] {
    const Region into = find(fill.part);
    const auto width = static_cast<std::size_t>(fill.unit);
    if ((width != 1 && width != 2 && width != 4) || into.bytes % width != 0)
      throw Error(ErrorKind::invalid_input, "units of " + std::to_string(fill.unit) + " bytes: 1, 2 or 4");
    if (into.bytes == 0) return;
    const Bytes first = std::min(into.bytes, pattern_bytes);
    auto pattern = std::make_shared<Memory>(
        setup_.platform->allocate(setup_.platform->nearest_host(setup_.gpu.index), first, Allocation::pinned));
    for (Bytes at = 0; at < first; at += width) std::memcpy(pattern->region().data + at, &fill.value, width);
    const Region source = pattern->region().slice(0, first);
    const std::array<GpuWork::Kept, 2> keeps{find(fill.part.array).owner, pattern};
    work_.begin("fill", now_seconds(), keeps, [&](Stream& stream) {
      stream.copy(into.slice(0, first), source);
      for (Bytes done = first; done < into.bytes; done *= 2) {
        const Bytes more = std::min(done, into.bytes - done);
        stream.copy(into.slice(done, more), into.slice(0, more));
      }
    });
  });
}

void RemoteWorker::carry_out(const requests::GetPart& get) {
  RemoteReply told;
  std::optional<Region> part;
  Seconds begin = now_seconds();
  attempt(array_text(get.part.array), [&] {
    work_.settle();
    begin = now_seconds();
    const Region found = find(get.part);
    if (get.place.memory != 0) {
      const Region into = find(get.place, found.bytes);
      if (into.bytes != 0) copy_now(into, found);
      told.placed = true;
    } else {
      staging_.prepare(road_, found.bytes);
      part = found;
    }
    told.head = ArrayHead{DataType::uint8, false, {found.bytes}};
  });
  reply(std::move(told));
  if (part) staging_.send(road_, *part, [this](ConstRegion piece) { channel_.send(piece); });
  output_.add(begin, now_seconds());
}

// Its parameters are the client's: whatever addresses they have, they are of this process, which serves no one else.
void RemoteWorker::carry_out(const requests::StartKernel& start) {
  attempt("kernel", [&] {
    const auto [module, name] = kernels().named(start.kernel);
    work_.begin(name, now_seconds(), {},
                [&, module = module](Stream& stream) { module->start(stream, name, start.shape, start.parameters); });
  });
}

void RemoteWorker::carry_out(const requests::Ask& ask) {
  std::string name(ask.name_bytes, ' ');
  if (!name.empty()) channel_.receive_text({reinterpret_cast<std::byte*>(name.data()), name.size(), host(0)});
  answer(ask.question, [&](RemoteReply& told) { told.text = answer_to(ask, name); });
}

std::string RemoteWorker::answer_to(const requests::Ask& ask, const std::string& name) {
  constexpr std::uint64_t any = ~std::uint64_t{0}, most_int = 0x7fffffff;
  const std::string& question = ask.question;
  if (question == "gpu") return facts_of_gpu(*setup_.platform, setup_.gpu);
  if (question == "address") return std::to_string(reinterpret_cast<std::uintptr_t>(find(ask.number).memory.data));
  if (question == "kernel") return json_of(kernels().find(ask.number, argument_of(ask, 0, any), name)).dump();
  if (question == "variable") {
    check_new(ask.number);
    const auto module = kernels().module(argument_of(ask, 0, any));
    const Region found = module->variable(name, setup_.gpu);
    arrays_.emplace(ask.number, HeldArray{{DataType::uint8, false, {found.bytes}}, found, module});
    used_ += found.bytes;
    return Json{{"address", reinterpret_cast<std::uintptr_t>(found.data)}, {"bytes", found.bytes}}.dump();
  }
  const auto first = static_cast<int>(argument_of(ask, 0, most_int));
  const std::uint64_t second = argument_of(ask, 1, any);
  const auto [module, kernel] = kernels().named(ask.number);
  if (question == "occupancy") return std::to_string(module->occupancy(kernel, first, second));
  if (question != "attribute") throw Error(ErrorKind::invalid_input, "nobody answers this question");
  module->set_attribute(kernel, first, static_cast<int>(argument_of(ask, 1, most_int)));
  return json_of(module->facts(kernel)).dump();
}

}  // namespace waywiser
