#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <waywiser/base/error.hpp>
#include <waywiser/group/group.hpp>
#include <waywiser/halo/halo_exchange.hpp>

// Iterations of the loop that follows do not depend on each other: vector instructions need no checks of pointers.
#if defined(__clang__)
#define APPS_ANY_ORDER _Pragma("clang loop vectorize(assume_safety)")
#else
#define APPS_ANY_ORDER _Pragma("GCC ivdep")
#endif

namespace apps {

inline waywiser::Group join() { return waywiser::Group::join(); }

// Threads that wait for loops.
class HostThreads {
 public:
  explicit HostThreads(int threads) {
    if (threads < 1 || threads > 1024)
      throw waywiser::Error(waywiser::ErrorKind::invalid_input, std::to_string(threads) + " threads: 1 to 1024");
    for (int i = 1; i < threads; ++i) others_.emplace_back([this, i](const std::stop_token& stop) { serve(i, stop); });
  }
  HostThreads(const HostThreads&) = delete;
  HostThreads& operator=(const HostThreads&) = delete;
  ~HostThreads() {
    for (std::jthread& thread : others_) thread.request_stop();
    begin_.notify_all();
  }

  int count() const noexcept { return static_cast<int>(others_.size()) + 1; }

  // Calls part(k) for all k below count(), each on its own thread; returns when all have returned.
  void run(const std::function<void(int)>& part) {
    if (others_.empty()) return part(0);
    {
      const std::scoped_lock lock(mutex_);
      part_ = &part;
      running_ = others_.size();
      ++round_;
    }
    begin_.notify_all();
    part(0);
    std::unique_lock lock(mutex_);
    end_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  void serve(int number, const std::stop_token& stop) {
    for (std::uint64_t seen = 0;; ++seen) {
      const std::function<void(int)>* part = nullptr;
      {
        std::unique_lock lock(mutex_);
        if (!begin_.wait(lock, stop, [&] { return round_ != seen; })) return;
        part = part_;
      }
      (*part)(number);
      const std::scoped_lock lock(mutex_);
      if (--running_ == 0) end_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any begin_;
  std::condition_variable end_;
  const std::function<void(int)>* part_ = nullptr;
  std::uint64_t round_ = 0;
  std::size_t running_ = 0;
  std::vector<std::jthread> others_;  // the last member: they use all others
};

class Processor {
 public:
  explicit Processor(waywiser::Group& /*group*/, int threads = 1) : threads_(threads) {}

  static constexpr bool overlaps = true;
  waywiser::Place place() const noexcept { return waywiser::host(0); }

  template <typename Function>
  void for_each(std::int64_t count, Function f) {
    split(count, [&f](std::int64_t first, std::int64_t end) {
      APPS_ANY_ORDER
      for (std::int64_t i = first; i < end; ++i) f(i);
    });
  }
  template <typename Function>
  void for_each(std::int64_t rows, std::int64_t columns, Function f) {
    split(rows, [&f, columns](std::int64_t first, std::int64_t end) {
      for (std::int64_t row = first; row < end; ++row) {
        APPS_ANY_ORDER
        for (std::int64_t column = 0; column < columns; ++column) f(row, column);
      }
    });
  }

  template <typename Function>
  auto sum(std::int64_t count, Function f) {
    return fold(count, f, [](auto a, auto b) { return a + b; });
  }
  template <typename Function>
  auto sum(std::int64_t rows, std::int64_t columns, Function f) {
    using T = decltype(f(std::int64_t{}, std::int64_t{}));
    const auto plus = [](T a, T b) { return a + b; };
    std::vector<T> parts(static_cast<std::size_t>(rows));
    for_each(rows, [&](std::int64_t row) {
      parts[static_cast<std::size_t>(row)] =
          fold_run<T>(0, columns, [&f, row](std::int64_t column) { return f(row, column); }, plus);
    });
    return std::accumulate(parts.begin(), parts.end(), T{}, plus);
  }
  template <typename Function>
  auto max(std::int64_t count, Function f) {
    return fold(count, f, [](auto a, auto b) { return a < b ? b : a; });
  }

  void wait() noexcept {}
  void start(waywiser::HaloExchange& halo) { halo.start(); }
  void exchange(waywiser::HaloExchange& halo) { halo.exchange(); }

 private:
  static constexpr std::int64_t block = 4096;  // the parts of a sum, whatever the number of threads

  template <typename Range>
  void split(std::int64_t count, const Range& range) {
    const std::int64_t all = threads_.count();
    threads_.run([&](int k) { range(count * k / all, count * (k + 1) / all); });
  }
  template <typename Function, typename Combine>
  auto fold(std::int64_t count, Function f, Combine combine) {
    using T = decltype(f(std::int64_t{}));
    const std::int64_t blocks = (count + block - 1) / block;
    std::vector<T> parts(static_cast<std::size_t>(blocks));
    for_each(blocks, [&](std::int64_t k) {
      parts[static_cast<std::size_t>(k)] = fold_run<T>(k * block, std::min(count, (k + 1) * block), f, combine);
    });
    return std::accumulate(parts.begin(), parts.end(), T{}, combine);
  }
  // In several lanes, since an addition takes longer than a load.
  template <typename T, typename Function, typename Combine>
  static T fold_run(std::int64_t first, std::int64_t end, Function f, Combine combine) {
    constexpr int lanes = 8;
    T sums[lanes] = {};
    for (; first + lanes <= end; first += lanes)
      for (int lane = 0; lane < lanes; ++lane) sums[lane] = combine(sums[lane], f(first + lane));
    T all{};
    for (; first < end; ++first) all = combine(all, f(first));
    return std::accumulate(sums, sums + lanes, all, combine);
  }

  HostThreads threads_;
};

template <typename T>
class Array {
 public:
  Array(Processor& processor, std::int64_t size)
      : size_(static_cast<std::size_t>(size)), values_(new (std::align_val_t{64}) T[size_]) {
    // By the threads that use the values, so that the pages lie close to them.
    processor.for_each(size, [values = values_.get()](std::int64_t i) { values[i] = T{}; });
  }

  T* data() noexcept { return values_.get(); }
  const T* data() const noexcept { return values_.get(); }
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(size_); }
  waywiser::Elements elements() { return std::span(data(), size_); }
  waywiser::HaloArray field(std::size_t components = 1, bool planar = false) {
    return {elements(), components, planar};
  }
  std::vector<T> values() const { return {data(), data() + size_}; }
  void assign(std::span<const T> values) { std::ranges::copy(values, data()); }
  friend void swap(Array& a, Array& b) noexcept {
    std::swap(a.size_, b.size_);
    std::swap(a.values_, b.values_);
  }

 private:
  struct Free {
    void operator()(T* values) const { ::operator delete[](values, std::align_val_t{64}); }
  };
  static_assert(std::is_trivially_destructible_v<T>);

  std::size_t size_;
  std::unique_ptr<T[], Free> values_;
};

}  // namespace apps
