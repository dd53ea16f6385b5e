#include "apps/navier_stokes/solver/flow_means.hpp"

#include "apps/navier_stokes/vector3.hpp"

namespace flow {

FlowMeans::FlowMeans(apps::Processor& processor, std::int64_t owned)
    : processor_(processor), owned_(owned), values_(processor, components * owned) {
  set({}, 0);
}

// The deviation from the old mean moves the mean by its share and the squares as in West (1979): nothing cancels.
void FlowMeans::add(double step, const double* velocity, const double* pressure) {
  time_ += step;
  const double share = step / time_;
  double* values = values_.data();
  processor_.for_each(owned_, [=] APPS_CALLABLE(std::int64_t i) {
    double* cell = values + components * i;
    for (int k = 0; k < 3; ++k) {
      const double deviation = velocity[3 * i + k] - cell[k];
      cell[k] += share * deviation;
      cell[4 + k] = (1 - share) * (cell[4 + k] + share * deviation * deviation);
    }
    cell[3] += share * (pressure[i] - cell[3]);
  });
}

void FlowMeans::set(const std::vector<double>& values, double time) {
  const bool none = values.empty();
  values_.assign(none ? std::vector<double>(static_cast<std::size_t>(components * owned_), 0.0) : values);
  time_ = none ? 0 : time;
}

}  // namespace flow
