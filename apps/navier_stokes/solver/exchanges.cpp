#include "apps/navier_stokes/solver/exchanges.hpp"

#include <algorithm>
#include <chrono>
#include <map>

namespace flow {

waywiser::Seconds Exchanges::now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::size_t Exchanges::add(const waywiser::HaloPartition& partition, apps::Array<double>& values,
                           std::size_t components) {
  const waywiser::HaloArray field = values.field(components);
  all_.emplace_back(group_, partition, std::span(&field, 1));
  return all_.size() - 1;
}

void Exchanges::fill(std::size_t number) {
  if (!timed_) return processor_.exchange(all_[number]);
  processor_.wait();  // so that the time is that of the exchange alone
  const waywiser::Seconds begun = now();
  processor_.exchange(all_[number]);
  processor_.wait();
  spent_.exchanges += now() - begun;
  ++spent_.exchange_calls;
}

double Exchanges::max(double value) {
  group_.all_reduce(std::span<const double>(&value, 1), std::span<double>(&value, 1), waywiser::ReduceOp::max);
  return value;
}

void Exchanges::use(waywiser::HaloVariant variant) {
  ++choices_;
  for (waywiser::HaloExchange& each : all_) each.use(variant);
}

void Exchanges::tune(waywiser::Seconds seconds) {
  ++choices_;
  processor_.wait();
  for (waywiser::HaloExchange& each : all_) each.tune(seconds);
}

bool Exchanges::by_kernels() const {
  return std::ranges::all_of(
      all_, [](const waywiser::HaloExchange& each) { return each.variant() == waywiser::HaloVariant::direct; });
}

std::string Exchanges::variants() const {
  std::map<std::string, int> used;
  for (const waywiser::HaloExchange& each : all_) ++used[std::string(name(each.variant()))];
  std::string text;
  for (const auto& [variant, times] : used)
    text += (text.empty() ? "" : ", ") + variant + " " + std::to_string(times) + "x";
  return text;
}

waywiser::HaloCounts Exchanges::counts() const {
  waywiser::HaloCounts all;
  for (const waywiser::HaloExchange& each : all_) all += each.counts(each.variant());
  return all;
}

}  // namespace flow
