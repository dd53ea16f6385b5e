#pragma once

#include <vector>

#include "apps/parallel.hpp"

namespace flow {

// Means over time in owned cells: of the velocity and the pressure, and of the squares of the velocity's deviations
// from its mean, which are the diagonal of the Reynolds stresses. Each step counts with its end and its length.
class FlowMeans {
 public:
  static constexpr int components = 7;  // velocity, pressure, squares

  FlowMeans(apps::Processor& processor, std::int64_t owned);

  void add(double step, const double* velocity, const double* pressure);
  double time() const { return time_; }  // that the steps have together
  // Of each cell its components.
  std::vector<double> values() const { return values_.values(); }
  // No values: from the beginning.
  void set(const std::vector<double>& values, double time);

 private:
  apps::Processor& processor_;
  const std::int64_t owned_;
  apps::Array<double> values_;
  double time_ = 0;
};

}  // namespace flow
