#include "waywiser/heap/heap.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bindings/argument.hpp"
#include "bindings/bindings.hpp"
#include "bindings/gpus.hpp"
#include "bindings/group_call.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser {
namespace {

using one_sided::Comparison, one_sided::SignalOp;

Comparison parse_comparison(const std::string& text) {
  const std::pair<const char*, Comparison> all[] = {{"==", Comparison::eq}, {"!=", Comparison::ne},
                                                    {">", Comparison::gt},  {">=", Comparison::ge},
                                                    {"<", Comparison::lt},  {"<=", Comparison::le}};
  for (const auto& [sign, comparison] : all)
    if (text == sign) return comparison;
  throw Error(ErrorKind::invalid_input, "comparison is ==, !=, >, >=, < or <=, not " + quoted(text, 20));
}

SignalOp parse_signal_op(const std::string& text) {
  if (text == "set") return SignalOp::set;
  if (text == "add") return SignalOp::add;
  throw Error(ErrorKind::invalid_input, "op is 'set' or 'add', not " + quoted(text, 20));
}

// A part of a heap's memory, which its Python object keeps.
struct HeapPart : MemoryOwner {};

// What kernels of other languages read, by place: waywiser/triton.py has the numbers.
nb::list words_of(const one_sided::HeapTerms& heap, const one_sided::TeamTerms& team) {
  using one_sided::FaultNotice, one_sided::TeamCounters;
  static_assert(offsetof(FaultNotice, failed) == 0 && offsetof(FaultNotice, offset) == 8 &&
                offsetof(FaultNotice, wanted) == 24 && offsetof(FaultNotice, seen) == 32 &&
                offsetof(FaultNotice, comparison) == 40 && offsetof(FaultNotice, stopped) == 64 &&
                offsetof(TeamCounters, arrived) == 0);
  constexpr std::size_t most = std::size(one_sided::HeapTerms{}.ranks);
  nb::list words;
  const auto address = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at); };
  for (const std::uintptr_t each :
       {static_cast<std::uintptr_t>(heap.rank), static_cast<std::uintptr_t>(heap.size), heap.deadline_ns,
        address(heap.notice), heap.bytes, static_cast<std::uintptr_t>(team.rank),
        static_cast<std::uintptr_t>(team.size), address(heap.ranks[heap.rank]), offsetof(TeamCounters, arrivals),
        std::uintptr_t{most}})
    words.append(each);
  for (const std::byte* memory : heap.ranks) words.append(address(memory));
  for (const int member : team.members) words.append(member);
  for (int i = 0; i < static_cast<int>(most); ++i) {
    const std::byte* memory = i < team.size ? heap.ranks[team.members[i]] : nullptr;
    words.append(memory == nullptr ? 0 : address(memory) + heap.counters + team.slot * sizeof(TeamCounters));
  }
  return words;
}

using HeapBytes = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;

// Keeps the group that it was made of. Calls without a stream use one of its own and are over when they return.
class PyHeap {
 public:
  PyHeap(nb::handle group, const Argument<std::string>& name, const Argument<Bytes>& bytes,
         const Argument<std::optional<int>>& index)
      : group_(nb::borrow(group)) {
    const std::string& called = name("name");
    const Bytes size = bytes("nbytes");
    const std::optional<int> at = index("gpu");
    without_gil([&] {
      const Place place = at ? gpu(*at) : host(0);
      heap_.emplace(of(), called, place, size);
      platform_ = at ? of().platform() : std::shared_ptr<Platform>(open_host_platform());
      stream_ = platform_->open_stream(place);
    });
  }
  PyHeap(PyHeap&&) = default;
  PyHeap& operator=(PyHeap&&) = default;
  ~PyHeap() {
    if (group_.is_valid() && interpreter_ends()) outlive_interpreter(std::move(*this));
  }

  std::string name() const { return heap_->name(); }
  Bytes bytes() const { return heap_->local().bytes; }
  std::uintptr_t address(const Argument<int>& rank) const {
    return reinterpret_cast<std::uintptr_t>(heap_->peer(rank("rank")).data);
  }
  std::string why_proxied(const Argument<int>& rank) const { return heap_->why_proxied(rank("rank")); }
  Bytes inbox_bytes(const Argument<Bytes>& most) const { return heap_->inbox_bytes(most("most")); }
  const std::string& why_no_lines() const { return heap_->why_no_lines(); }
  Gpus gpus() const { return {platform_}; }
  GpuMemory part(const Argument<Bytes>& offset, const Argument<Bytes>& bytes) const {
    auto owner = std::make_unique<HeapPart>();
    owner->region = slice(offset("offset"), bytes("bytes"));
    owner->allocation = Allocation::gpu;
    return {platform_, Memory(std::move(owner))};
  }
  static HeapBytes host_part(nb::handle self, const Argument<Bytes>& offset, const Argument<Bytes>& bytes) {
    const Region region = nb::cast<const PyHeap&>(self).slice(offset("offset"), bytes("bytes"));
    return HeapBytes(region.data, {region.bytes}, self);
  }

  // The bytes of a kernel's parameter of type HeapTerms.
  nb::bytes terms(nb::handle stream) {
    const one_sided::HeapTerms terms = for_kernels(stream);
    return nb::bytes(reinterpret_cast<const char*>(&terms), sizeof terms);
  }
  nb::list words(const HeapTeam& team, nb::handle stream) { return words_of(for_kernels(stream), team.terms()); }

  void set_deadline(const Argument<double>& seconds) { heap_->set_deadline(seconds("seconds")); }
  void check() const { heap_->check(); }
  void synchronize(nb::handle stream) {
    const StreamUse use(of(), stream, heap_->local().place);
    without_gil([&] { heap_->synchronize(use.stream() != nullptr ? *use.stream() : *stream_); });
  }
  // `before`: the stream in which the array is used, where `stream` is none.
  void put(nb::handle data, const Argument<int>& to, const Argument<Bytes>& offset, nb::handle stream,
           nb::handle before) {
    const ConstRegion give = input_bytes(of(), data);
    const int target = to("to");
    const Bytes at = offset("offset");
    if (give.place != heap_->local().place)
      throw Error(ErrorKind::invalid_input, "heap '" + name() + "': it is on " + text(heap_->local().place) +
                                                ", what is put is on " + text(give.place));
    static_cast<void>(slice(at, give.bytes));
    const StreamUse use(of(), before, give.place);
    without_gil([&] { use.settle(of()); });
    with(stream, [&](const Heap& heap, Stream& on) { heap.put(on, give, target, at); });
  }
  void signal(const Argument<int>& to, const Argument<Bytes>& offset, const Argument<std::uint64_t>& value,
              const Argument<std::string>& op, nb::handle stream) {
    const int target = to("to");
    const Bytes at = offset("offset");
    const std::uint64_t number = value("value");
    const SignalOp how = parse_signal_op(op("op"));
    with(stream, [&](const Heap& heap, Stream& on) { heap.signal(on, target, at, number, how); });
  }
  void wait(const Argument<Bytes>& offset, const Argument<std::string>& comparison,
            const Argument<std::uint64_t>& value, const Argument<std::optional<int>>& source, nb::handle stream) {
    const Bytes at = offset("offset");
    const Comparison how = parse_comparison(comparison("comparison"));
    const std::uint64_t number = value("value");
    const int from = checked_source(source("source"));
    with(stream, [&](const Heap& heap, Stream& on) { heap.wait(on, at, how, number, from); });
  }
  void wait_and_take(const Argument<Bytes>& offset, const Argument<std::uint64_t>& count,
                     const Argument<std::optional<int>>& source, nb::handle stream) {
    const Bytes at = offset("offset");
    const std::uint64_t number = count("count");
    const int from = checked_source(source("source"));
    with(stream, [&](const Heap& heap, Stream& on) { heap.wait_and_take(on, at, number, from); });
  }
  void barrier(const HeapTeam& team, nb::handle stream) {
    with(stream, [&](const Heap& heap, Stream& on) { heap.barrier(on, team); });
  }

  HeapTeam world() {
    std::optional<HeapTeam> team;
    without_gil([&] { team.emplace(heap_->world()); });
    return std::move(*team);
  }
  std::optional<HeapTeam> split(const Argument<int>& color, const Argument<int>& key) {
    const int of = color("color"), place = key("key");
    std::optional<HeapTeam> team;
    without_gil([&] { team = heap_->split(of, place); });
    return team;
  }
  std::optional<HeapTeam> split_strided(const Argument<int>& start, const Argument<int>& stride,
                                        const Argument<int>& size) {
    const int first = start("start"), step = stride("stride"), members = size("size");
    std::optional<HeapTeam> team;
    without_gil([&] { team = heap_->split_strided(first, step, members); });
    return team;
  }
  std::pair<HeapTeam, HeapTeam> split_2d(const Argument<int>& columns) {
    const int wide = columns("columns");
    std::optional<std::pair<HeapTeam, HeapTeam>> teams;
    without_gil([&] { teams.emplace(heap_->split_2d(wide)); });
    return std::move(*teams);
  }

 private:
  Group& of() const { return nb::cast<Group&>(group_); }
  Region slice(Bytes offset, Bytes bytes) const {
    const Region all = heap_->local();
    if (offset > all.bytes || bytes > all.bytes - offset)
      throw Error(ErrorKind::invalid_input, "heap '" + name() + "': " + std::to_string(bytes) + " bytes at offset " +
                                                std::to_string(offset) + " of " + std::to_string(all.bytes));
    return all.slice(offset, bytes);
  }
  one_sided::HeapTerms for_kernels(nb::handle stream) {
    if (!heap_->local().place.is_gpu())
      throw Error(ErrorKind::invalid_input, "heap '" + name() + "' is in host memory: no kernel uses it");
    const StreamUse use(of(), stream, heap_->local().place);
    return heap_->terms(use.stream() != nullptr ? *use.stream() : *stream_);
  }
  int checked_source(const std::optional<int>& source) const {
    if (!source) return one_sided::any_rank;
    static_cast<void>(heap_->why_proxied(*source));
    return *source;
  }
  template <typename Function>
  void with(nb::handle stream, Function call) {
    if (!stream.is_none() && !heap_->local().place.is_gpu())
      throw Error(ErrorKind::invalid_input, "heap '" + name() + "' is in host memory: it has no streams");
    const StreamUse use(of(), stream, heap_->local().place);
    without_gil([&] {
      call(*heap_, use.stream() != nullptr ? *use.stream() : *stream_);
      if (use.stream() == nullptr) heap_->synchronize(*stream_);
    });
  }

  nb::object group_;
  std::shared_ptr<Platform> platform_;
  std::optional<Heap> heap_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace
}  // namespace waywiser

void bind_heap(nb::module_& m) {
  using namespace waywiser;
  nb::class_<HeapTeam>(m, "HeapTeam", "Ranks of a heap. See waywiser.HeapTeam.")
      .def_prop_ro("rank", &HeapTeam::rank)
      .def_prop_ro("size", &HeapTeam::size)
      .def("terms", [](const HeapTeam& self) {
        return nb::bytes(reinterpret_cast<const char*>(&self.terms()), sizeof self.terms());
      });
  nb::class_<PyHeap>(m, "Heap", "See waywiser.Heap.")
      .def(nb::init<nb::handle, const Argument<std::string>&, const Argument<Bytes>&,
                    const Argument<std::optional<int>>&>(),
           "group"_a, "name"_a.none(), "nbytes"_a.none(), "gpu"_a.none())
      .def_prop_ro("name", &PyHeap::name)
      .def_prop_ro("nbytes", &PyHeap::bytes)
      .def("address", &PyHeap::address, "rank"_a.none())
      .def("why_proxied", &PyHeap::why_proxied, "rank"_a.none())
      .def("inbox_bytes", &PyHeap::inbox_bytes, "most"_a.none())
      .def("why_no_lines", &PyHeap::why_no_lines)
      .def("gpus", &PyHeap::gpus)
      .def("part", &PyHeap::part, "offset"_a.none(), "bytes"_a.none(), nb::keep_alive<0, 1>())
      .def("host_part", &PyHeap::host_part, "offset"_a.none(), "bytes"_a.none())
      .def("terms", &PyHeap::terms, "stream"_a.none())
      .def("words", &PyHeap::words, "team"_a, "stream"_a.none())
      .def("set_deadline", &PyHeap::set_deadline, "seconds"_a.none())
      .def("check", &PyHeap::check)
      .def("synchronize", &PyHeap::synchronize, "stream"_a.none())
      .def("put", &PyHeap::put, "data"_a.none(), "to"_a.none(), "offset"_a.none(), "stream"_a.none(), "before"_a.none())
      .def("signal", &PyHeap::signal, "to"_a.none(), "offset"_a.none(), "value"_a.none(), "op"_a.none(),
           "stream"_a.none())
      .def("wait", &PyHeap::wait, "offset"_a.none(), "comparison"_a.none(), "value"_a.none(), "source"_a.none(),
           "stream"_a.none())
      .def("wait_and_take", &PyHeap::wait_and_take, "offset"_a.none(), "count"_a.none(), "source"_a.none(),
           "stream"_a.none())
      .def("barrier", &PyHeap::barrier, "team"_a, "stream"_a.none())
      .def("world", &PyHeap::world)
      .def("split", &PyHeap::split, "color"_a.none(), "key"_a.none())
      .def("split_strided", &PyHeap::split_strided, "start"_a.none(), "stride"_a.none(), "size"_a.none())
      .def("split_2d", &PyHeap::split_2d, "columns"_a.none());
}
