#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>
#include <waywiser/halo/grid.hpp>

#include "apps/comparison.hpp"
#include "apps/convolution/layer.hpp"
#include "apps/exchange.hpp"
#include "apps/fused.hpp"
#include "apps/grid.hpp"

namespace apps {

// One rank's part of images that are cut in space: forward pass of one layer, and backward pass to its input and its
// weights. Each step has new images and new gradients of the output.
class Convolution {
 public:
  Convolution(waywiser::Group& group, waywiser::HaloGrid grid, std::int64_t images, int threads)
      : group_(group),
        processor_(group, threads),
        grid_(std::move(grid)),
        box_(grid_.boxes[static_cast<std::size_t>(group.rank())]),
        pixels_{images, box_.count[0], box_.count[1]},
        parts_(parts_for<Processor>(box_.count)),
        input_(processor_, pixels_.with_ghosts()),
        output_(processor_, pixels_.with_ghosts()),
        output_gradient_(processor_, pixels_.with_ghosts()),
        input_gradient_(processor_, pixels_.with_ghosts()),
        weights_(processor_, pairs * taps),
        turned_(processor_, pairs * taps),
        row_gradients_(processor_, images * box_.count[0] * pairs * taps),
        weight_gradient_(processor_, pairs * taps),
        exchange_input_(group, processor_, partition(), {field(input_)}),
        exchange_gradient_(group, processor_, partition(), {field(output_gradient_)}) {
    set_weights();
  }

  const waywiser::GridBox& box() const noexcept { return box_; }
  void use(const Way& way) {
    is_fused_ = way.is_fused();
    if (is_fused_) {
      for (std::optional<FusedField<float, 3>>* each : {&fused_input_, &fused_gradient_}) {
        if (!*each) each->emplace(group_, processor_, grid_of_planes(), 1, false, true);
        (*each)->use(way);
      }
      return;
    }
    exchange_input_.use(way);
    exchange_gradient_.use(way);
  }
  waywiser::HaloVariant variant() const noexcept { return exchange_input_.variant(); }

  void reset() {
    step_ = 0;
    sums_.clear();
  }
  void steps(std::int64_t count) {
    if (is_fused_) return fused_steps(count);
    for (; count > 0; --count) {
      ++step_;
      fill(input_, known_input());
      exchange_input_.start();
      convolve(input_, weights_, output_, parts_.inner);
      exchange_input_.finish();
      for (const CellBox& part : parts_.outer) convolve(input_, weights_, output_, part);

      fill(output_gradient_, known_gradient());
      exchange_gradient_.start();
      find_weight_gradient();
      exchange_gradient_.finish();
      convolve(output_gradient_, turned_, input_gradient_, {{0, 0}, box_.count});
      add_sums();
    }
    processor_.wait();
  }

  // 0: all that was computed since reset() is right, to the last bit.
  double error() {
    // For each step: the layer and its transpose are adjoint, <output, gradient> = <input, gradient of the input> =
    // <weights, gradient of the weights>. This holds only for ghosts of the same step.
    std::vector<double> all(sums_);
    group_.all_reduce(std::span(all), std::span(all));
    for (std::size_t i = 0; i < all.size(); i += 3)
      if (all[i] != all[i + 1] || all[i] != all[i + 2]) return differs;
    // The last step's results by the definition: all pixels that have read ghosts, and some others.
    return std::max(wrong_pixels(output_, known_input(), false), wrong_pixels(input_gradient_, known_gradient(), true));
  }

  // Of this rank's pixels, by plane: the output, then the gradient of the input; last the gradient of all weights.
  std::vector<double> results() {
    std::vector<double> found;
    for (const Array<float>* array : {&output_, &input_gradient_}) {
      const std::vector<float> all = array->values();
      for (std::int64_t plane = 0; plane < pixels_.planes(); ++plane)
        for (std::int64_t row = 0; row < pixels_.rows; ++row) {
          const auto first = all.begin() + pixels_.at(plane, row);
          found.insert(found.end(), first, first + pixels_.columns);
        }
    }
    std::vector<double> weights = weight_gradient_.values();
    group_.all_reduce(std::span(weights), std::span(weights));
    found.insert(found.end(), weights.begin(), weights.end());
    return found;
  }

  void set_weights() {
    float *weights = weights_.data(), *turned = turned_.data();
    // Backwards, what comes from a pixel goes to it, through the filter turned by half a turn.
    processor_.for_each(pairs, taps, [=] APPS_CALLABLE(std::int64_t pair, std::int64_t tap) {
      weights[pair * taps + tap] = known_weight(pair / channels, pair % channels, tap);
      turned[pair * taps + tap] = known_weight(pair % channels, pair / channels, taps - 1 - tap);
    });
  }
  void fill(Array<float>& array, const KnownPixels& known) {
    float* values = array.data();
    const Pixels pixels = pixels_;
    const std::int64_t y0 = box_.first[0], x0 = box_.first[1];
    processor_.for_each(pixels.planes() * pixels.rows, pixels.columns,
                        [=] APPS_CALLABLE(std::int64_t row, std::int64_t column) {
                          const std::int64_t plane = row / pixels.rows, y = row % pixels.rows;
                          values[pixels.at(plane, y) + column] = known(plane, y0 + y, x0 + column);
                        });
  }
  void find_weight_gradient() {
    const std::int64_t rows = pixels_.images * pixels_.rows;
    processor_.for_each(rows, pairs, WeightGradient{pixels_, input(), output_gradient(), row_gradients_.data()});
    const float* parts = row_gradients_.data();
    double* sums = weight_gradient_.data();
    processor_.for_each(pairs * taps, [=] APPS_CALLABLE(std::int64_t i) {
      double sum = 0;
      for (std::int64_t row = 0; row < rows; ++row) sum += static_cast<double>(parts[row * pairs * taps + i]);
      sums[i] = sum;
    });
  }
  // This rank's part of the three products.
  void add_sums() {
    sums_.push_back(product(output_.data(), output_gradient()));
    sums_.push_back(product(input(), input_gradient_.data()));
    const float* weights = weights_.data();
    const double* gradient = weight_gradient_.data();
    sums_.push_back(processor_.sum(
        pairs * taps, [=] APPS_CALLABLE(std::int64_t i) { return static_cast<double>(weights[i]) * gradient[i]; }));
  }
  double product(const float* left, const float* right) {
    const Pixels pixels = pixels_;
    return processor_.sum(pixels.planes() * pixels.rows, pixels.columns,
                          [=] APPS_CALLABLE(std::int64_t row, std::int64_t column) {
                            const std::int64_t i = pixels.at(row / pixels.rows, row % pixels.rows) + column;
                            return static_cast<double>(left[i]) * static_cast<double>(right[i]);
                          });
  }
  double wrong_pixels(const Array<float>& array, const KnownPixels& known, bool turned) {
    const float* values = array.data();
    const Pixels pixels = pixels_;
    const std::int64_t y0 = box_.first[0], x0 = box_.first[1];
    return processor_.max(pixels.planes() * pixels.rows * pixels.columns, [=] APPS_CALLABLE(std::int64_t i) {
      const std::int64_t x = i % pixels.columns, y = i / pixels.columns % pixels.rows;
      const std::int64_t plane = i / pixels.columns / pixels.rows;
      const bool inside = x > 0 && y > 0 && x + 1 < pixels.columns && y + 1 < pixels.rows;
      if (inside && i % 997 != 0) return 0.0;
      float expected = 0;
      for (std::int64_t from = 0; from < channels; ++from)
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          const std::int64_t to = plane % channels;
          const float weight = turned ? known_weight(from, to, taps - 1 - tap) : known_weight(to, from, tap);
          expected += weight * known(plane / channels * channels + from, y0 + y + tap / 3 - 1, x0 + x + tap % 3 - 1);
        }
      return values[pixels.at(plane, y) + x] == expected ? 0.0 : differs;
    });
  }

  // A step's loops that fill an array put its outermost pixels into the neighbours' ghosts, and those that read ghosts
  // wait for them. Two steps write two arrays.
  void fused_steps(std::int64_t count) {
    const std::int64_t y0 = box_.first[0], x0 = box_.first[1];
    const auto convolved = [&](const float* from, Array<float>& weights, Array<float>& to) {
      return ConvolvePixel{{pixels_, from, weights.data(), to.data(), 0, 0, box_.count[0], box_.count[1]}};
    };
    for (; count > 0; --count) {
      const int turn = static_cast<int>(++step_ % 2);
      fused_input_->put_step(turn, FillPixel{pixels_, known_input(), y0, x0, fused_input_->array(turn)});
      fused_input_->wait_step(convolved(input(), weights_, output_));
      fused_gradient_->put_step(turn, FillPixel{pixels_, known_gradient(), y0, x0, fused_gradient_->array(turn)});
      find_weight_gradient();
      fused_gradient_->wait_step(convolved(output_gradient(), turned_, input_gradient_));
      add_sums();
    }
    fused_input_->wait();
    fused_gradient_->wait();
  }

 private:
  float* input() { return is_fused_ ? of_step(*fused_input_) : input_.data(); }
  float* output_gradient() { return is_fused_ ? of_step(*fused_gradient_) : output_gradient_.data(); }
  float* of_step(const FusedField<float, 3>& field) const {
    return field.array(static_cast<int>(step_ % 2)) + pixels_.plane();
  }
  // Planes are a dimension that is not cut.
  waywiser::HaloGrid grid_of_planes() const {
    waywiser::HaloGrid grid{{pixels_.planes(), grid_.shape[0], grid_.shape[1]}, {1, 1, 1}, {false, false, false}, {}};
    for (const waywiser::GridBox& box : grid_.boxes)
      grid.boxes.push_back({{0, box.first[0], box.first[1]}, {pixels_.planes(), box.count[0], box.count[1]}});
    return grid;
  }
  KnownPixels known_input() const { return {grid_.shape[0], grid_.shape[1], 2 * static_cast<std::uint64_t>(step_)}; }
  KnownPixels known_gradient() const {
    return {grid_.shape[0], grid_.shape[1], 2 * static_cast<std::uint64_t>(step_) + 1};
  }
  waywiser::HaloPartition partition() const { return waywiser::grid_partition(grid_, group_.rank()); }
  waywiser::HaloArray field(Array<float>& array) {
    return array.field(static_cast<std::size_t>(pixels_.planes()), true);
  }
  void convolve(const Array<float>& from, const Array<float>& weights, Array<float>& to, const CellBox& part) {
    const Convolve loop{pixels_,       from.data(),   weights.data(), to.data(),
                        part.first[0], part.first[1], part.count[0],  part.count[1]};
    processor_.for_each(pixels_.planes() * part.count[0], loop.blocks(), loop);
  }

  waywiser::Group& group_;
  Processor processor_;
  waywiser::HaloGrid grid_;
  waywiser::GridBox box_;
  Pixels pixels_;
  CellParts parts_;
  Array<float> input_, output_, output_gradient_, input_gradient_, weights_, turned_, row_gradients_;
  Array<double> weight_gradient_;
  Exchange exchange_input_, exchange_gradient_;
  std::optional<FusedField<float, 3>> fused_input_, fused_gradient_;  // once they are in use
  bool is_fused_ = false;
  std::int64_t step_ = 0;
  std::vector<double> sums_;  // of each step
};

}  // namespace apps
