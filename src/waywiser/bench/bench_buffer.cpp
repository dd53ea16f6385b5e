#include "waywiser/bench/bench_buffer.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "waywiser/base/error.hpp"
#include "waywiser/kernels/pattern.hpp"

namespace waywiser {
namespace {

constexpr Seconds patience = 60;
constexpr std::uint64_t period = 16;

float number(std::uint64_t index) { return static_cast<float>(index % period); }

[[noreturn]] void report(const std::string& what, const std::string& problem) {
  throw Error(ErrorKind::corrupt, what + ": " + problem);
}

}  // namespace

BenchBuffer::BenchBuffer(Platform& platform, Place place, Bytes bytes, Allocation on_host)
    : platform_(platform),
      size_(bytes),
      memory_(platform.allocate(place, std::max<Bytes>(bytes, 1), place.is_gpu() ? Allocation::gpu : on_host)),
      stream_(platform.open_stream(place)) {
  fill(0, bytes, 0);  // pages that were never written to are not there yet
}

void BenchBuffer::synchronize() { stream_->synchronize(Deadline::in(patience)); }

void BenchBuffer::fill(Bytes offset, Bytes length, std::uint64_t seed) {
  fill_pattern(*stream_, region(offset, length), seed);
  synchronize();
}

void BenchBuffer::check(Bytes offset, Bytes length, std::uint64_t seed, const std::string& what) {
  const Bytes wrong = count_mismatches(*stream_, region(offset, length), seed, Deadline::in(patience));
  if (wrong != 0) report(what, std::to_string(wrong) + " of " + std::to_string(length) + " bytes are wrong");
}

std::byte* BenchBuffer::on_host(Bytes length) {
  if (!memory_.region().place.is_gpu()) return memory_.region().data;
  if (copy_.region().bytes < length) copy_ = platform_.allocate(host(0), length, Allocation::pinned);
  return copy_.region().data;
}

void BenchBuffer::fill_numbers(Bytes length, std::uint64_t first) {
  if (length == 0) return;
  auto* values = reinterpret_cast<float*>(on_host(length));
  for (std::size_t i = 0; i < length / sizeof(float); ++i) values[i] = number(first + i);
  if (!memory_.region().place.is_gpu()) return;
  stream_->copy(region(0, length), copy_.region().slice(0, length));
  synchronize();
}

void BenchBuffer::check_sums(Bytes length, std::uint64_t first, int ranks, std::size_t offset,
                             const std::string& what) {
  if (length == 0) return;
  const std::byte* data = on_host(length);
  if (memory_.region().place.is_gpu()) {
    stream_->copy(copy_.region().slice(0, length), region(0, length));
    synchronize();
  }
  std::array<float, period> sums{};
  for (std::uint64_t i = 0; i < period; ++i)
    for (int rank = 0; rank < ranks; ++rank) sums[i] += number(first + static_cast<unsigned>(rank) + offset + i);
  const auto* values = reinterpret_cast<const float*>(data);
  for (std::size_t i = 0; i < length / sizeof(float); ++i)
    if (values[i] != sums[i % period])
      report(what, "element " + std::to_string(i) + " is " + std::to_string(values[i]) + ", not " +
                       std::to_string(sums[i % period]));
}

}  // namespace waywiser
