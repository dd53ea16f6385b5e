#include "waywiser/measure/machine_meter.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/disturbance.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {
namespace {

constexpr int most_attempts = 3;
constexpr int first_repeats = 100;

}  // namespace

MachineMeter::MachineMeter(std::unique_ptr<Meter> within_one, std::unique_ptr<Meter> between_two,
                           std::string why_not_two)
    : within_one_(std::move(within_one)), between_two_(std::move(between_two)), why_not_two_(std::move(why_not_two)) {}

Meter& MachineMeter::of(const Path& path) const {
  if (path.source.other_machine() || path.destination.other_machine()) {
    if (!between_machines_) throw Error(ErrorKind::unavailable, "the other machine takes no part");
    return *between_machines_;
  }
  if (path.processes == 1) return *within_one_;
  if (!between_two_) throw Error(ErrorKind::unavailable, why_not_two_);
  return *between_two_;
}

std::optional<std::string> MachineMeter::why_unavailable(const Path& path) {
  const bool here = !path.source.other_machine() && !path.destination.other_machine();
  if (here && path.processes == 2 && !between_two_) return why_not_two_;
  return of(path).why_unavailable(path);
}

Bytes MachineMeter::largest(const Path& path) const {
  const Mechanism* mechanism = find_mechanism(path.mechanism);
  const Bytes most = of(path).largest(path);
  return mechanism == nullptr ? most : std::min(most, mechanism->most_bytes);
}

Bytes MachineMeter::smallest(const Path& path) const {
  const Mechanism* mechanism = find_mechanism(path.mechanism);
  return mechanism == nullptr || mechanism->least_bytes == nullptr ? 0 : mechanism->least_bytes(path);
}

Limit MachineMeter::limit(const Path& path, Operation operation) const { return of(path).limit(path, operation); }

std::optional<std::string> MachineMeter::verify(const Path& path, Operation operation, Bytes bytes) {
  return of(path).verify(path, operation, bytes);
}

Sample MachineMeter::take(const Path& path, Operation operation, Bytes bytes, int repetitions) {
  ++taken_;
  for (int attempt = 1;; ++attempt) {
    const bool last = attempt == most_attempts;
    const Disturbance disturbance;
    try {
      Sample sample = of(path).take(path, operation, bytes, repetitions);
      if (sample.disturbed.empty()) sample.disturbed = disturbance.disturbed();
      if (sample.disturbed.empty() || last || !may_repeat()) return sample;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::timeout || last || disturbance.disturbed().empty() || !may_repeat()) throw;
    }
  }
}

// If all samples are disturbed, repeating them must not take the whole time.
bool MachineMeter::may_repeat() { return ++repeated_ <= first_repeats + taken_ / 4; }

Seconds MachineMeter::first_use(const Path& path) { return of(path).first_use(path); }

}  // namespace waywiser
