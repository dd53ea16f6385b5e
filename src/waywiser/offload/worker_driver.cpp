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

std::uint64_t argument_of(const RemoteRequest& request, std::size_t place, std::uint64_t most) {
  if (place >= request.arguments.size() || request.arguments[place] > most)
    throw Error(ErrorKind::invalid_input, "a question with wrong numbers");
  return request.arguments[place];
}

}  // namespace

void RemoteWorker::carry_out_for_driver(const RemoteRequest& request) {
  switch (request.kind) {
    case RequestKind::copy: return copy(request);
    case RequestKind::fill: return fill(request);
    case RequestKind::get_part: return get_part(request);
    case RequestKind::start: return start(request);
    default: break;
  }
  std::string name(request.bytes, ' ');
  if (!name.empty()) channel_.receive_text({reinterpret_cast<std::byte*>(name.data()), name.size(), host(0)});
  RemoteReply told;
  attempt(request.function, [&] { told.text = answer_to(request, name); });
  reply(std::move(told));
}

void RemoteWorker::copy(const RemoteRequest& request) {
  attempt("copy", [&] {
    const HeldArray &to = find(request.array), &source = find(request.memory);
    const Region into = to.memory.slice(request.offset, request.bytes);
    const Region from = source.memory.slice(request.at, request.bytes);
    if (request.bytes == 0) return;
    const std::array<GpuWork::Kept, 2> keeps{to.owner, source.owner};
    work_.begin("copy", now_seconds(), keeps, [&](Stream& stream) { stream.copy(into, from); });
  });
}

// The pattern comes from the host once, and doubles on the GPU.
void RemoteWorker::fill(const RemoteRequest& request) {
  attempt("fill", [&] {
    const HeldArray array = find(request.array);
    const Region into = array.memory.slice(request.offset, request.bytes);
    const auto width = static_cast<std::size_t>(request.earlier);
    if ((width != 1 && width != 2 && width != 4) || request.bytes % width != 0)
      throw Error(ErrorKind::invalid_input, "units of " + std::to_string(request.earlier) + " bytes: 1, 2 or 4");
    if (request.bytes == 0) return;
    const Bytes first = std::min(request.bytes, pattern_bytes);
    auto pattern = std::make_shared<Memory>(
        setup_.platform->allocate(setup_.platform->nearest_host(setup_.gpu.index), first, Allocation::pinned));
    for (Bytes at = 0; at < first; at += width) std::memcpy(pattern->region().data + at, &request.at, width);
    const Region source = pattern->region().slice(0, first);
    const std::array<GpuWork::Kept, 2> keeps{array.owner, pattern};
    work_.begin("fill", now_seconds(), keeps, [&](Stream& stream) {
      stream.copy(into.slice(0, first), source);
      for (Bytes done = first; done < into.bytes; done *= 2) {
        const Bytes more = std::min(done, into.bytes - done);
        stream.copy(into.slice(done, more), into.slice(0, more));
      }
    });
  });
}

void RemoteWorker::get_part(const RemoteRequest& request) {
  RemoteReply told;
  std::optional<Region> part;
  Seconds begin = now_seconds();
  attempt(array_text(request.array), [&] {
    work_.settle();
    begin = now_seconds();
    const Region found = find(request.array).memory.slice(request.offset, request.bytes);
    if (request.memory != 0) {
      const Region into = client_memory_.find(request.memory, request.at, request.bytes);
      if (into.bytes != 0) copy_now(into, found);
      told.placed = true;
    } else {
      staging_.prepare(road_, found.bytes);
      part = found;
    }
    told.head = ArrayHead{DataType::uint8, false, {request.bytes}};
  });
  reply(std::move(told));
  if (part) staging_.send(road_, *part, [this](ConstRegion piece) { channel_.send(piece); });
  output_.add(begin, now_seconds());
}

// Its parameters are the client's: whatever addresses they have, they are of this process, which serves no one else.
void RemoteWorker::start(const RemoteRequest& request) {
  attempt("kernel", [&] {
    const auto [module, name] = kernels().named(request.array);
    work_.begin(name, now_seconds(), {}, [&, module = module](Stream& stream) {
      module->start(stream, name, request.shape, request.parameters);
    });
  });
}

std::string RemoteWorker::answer_to(const RemoteRequest& request, const std::string& name) {
  constexpr std::uint64_t any = ~std::uint64_t{0}, most_int = 0x7fffffff;
  const std::string& question = request.function;
  if (question == "gpu") return facts_of_gpu(*setup_.platform, setup_.gpu);
  if (question == "address") return std::to_string(reinterpret_cast<std::uintptr_t>(find(request.array).memory.data));
  if (question == "kernel") return json_of(kernels().find(request.array, argument_of(request, 0, any), name)).dump();
  if (question == "variable") {
    check_new(request.array);
    const auto module = kernels().module(argument_of(request, 0, any));
    const Region found = module->variable(name, setup_.gpu);
    arrays_.emplace(request.array, HeldArray{{DataType::uint8, false, {found.bytes}}, found, module});
    used_ += found.bytes;
    return Json{{"address", reinterpret_cast<std::uintptr_t>(found.data)}, {"bytes", found.bytes}}.dump();
  }
  const auto first = static_cast<int>(argument_of(request, 0, most_int));
  const std::uint64_t second = argument_of(request, 1, any);
  const auto [module, kernel] = kernels().named(request.array);
  if (question == "occupancy") return std::to_string(module->occupancy(kernel, first, second));
  if (question != "attribute") throw Error(ErrorKind::invalid_input, "nobody answers this question");
  module->set_attribute(kernel, first, static_cast<int>(argument_of(request, 1, most_int)));
  return json_of(module->facts(kernel)).dump();
}

}  // namespace waywiser
