#pragma once

// The loops of a convolution layer with filters of 3 x 3 and zeros beyond the border of its images.
#include <cstdint>

#include "apps/parallel.hpp"

namespace apps {

constexpr int channels = 16, taps = 9;
constexpr int pairs = channels * channels;  // of what comes in and what goes out

#if defined(__CUDACC__)
constexpr std::int64_t lanes = 1;
#else
constexpr std::int64_t lanes = 16;  // neighbouring pixels that a thread of a host computes together
#endif

// A rank's part of images, each channel by itself, with a ghost on each side.
struct Pixels {
  std::int64_t images, rows, columns;

  APPS_CALLABLE std::int64_t width() const { return columns + 2; }
  APPS_CALLABLE std::int64_t plane() const { return (rows + 2) * width(); }
  // The first own pixel of a row of a plane; planes are counted through the images.
  APPS_CALLABLE std::int64_t at(std::int64_t plane_number, std::int64_t row) const {
    return plane_number * plane() + (row + 1) * width() + 1;
  }
  std::int64_t planes() const { return images * channels; }
  std::int64_t with_ghosts() const { return planes() * plane(); }
};

// Whole numbers from -most to most without any pattern: all sums of the layer are then exact, in any order.
APPS_CALLABLE inline float whole_noise(std::uint64_t seed, std::uint64_t index, int most) {
  std::uint64_t mixed = (seed * 0x100000001b3u + index + 1) * 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed ^= mixed >> 27;
  return static_cast<float>(static_cast<int>((mixed >> 33) % static_cast<unsigned>(2 * most + 1)) - most);
}

// What images and gradients hold: known for each pixel of the whole image in every step, zero outside.
struct KnownPixels {
  std::int64_t rows, columns;  // of the whole image
  std::uint64_t seed;

  APPS_CALLABLE float operator()(std::int64_t plane, std::int64_t y, std::int64_t x) const {
    if (y < 0 || x < 0 || y >= rows || x >= columns) return 0;
    return whole_noise(seed, static_cast<std::uint64_t>((plane * rows + y) * columns + x), 2);
  }
};

// One output plane's pixels from all input planes of its image: weights[to][from][tap].
struct Convolve {
  Pixels pixels;
  const float *from, *weights;
  float* to;
  std::int64_t first_row, first_column, rows, columns;  // the part that is computed

  // `row` counts through the planes, `block` groups of pixels.
  APPS_CALLABLE void operator()(std::int64_t row, std::int64_t block) const {
    const std::int64_t plane = row / rows, y = first_row + row % rows, x = block * lanes;
    if (x + lanes <= columns)
      compute<lanes>(plane, y, first_column + x);
    else
      for (std::int64_t each = x; each < columns; ++each) compute<1>(plane, y, first_column + each);
  }
  std::int64_t blocks() const { return (columns + lanes - 1) / lanes; }

  template <std::int64_t count>
  APPS_CALLABLE void compute(std::int64_t plane, std::int64_t y, std::int64_t x) const {
    const std::int64_t image = plane / channels, width = pixels.width();
    const float* weight = weights + plane % channels * channels * taps;
    float sums[count] = {};
    for (int channel = 0; channel < channels; ++channel) {
      const float* corner = from + pixels.at(image * channels + channel, y) + x - width - 1;
      for (int tap = 0; tap < taps; ++tap, ++weight) {
        const float* pixel = corner + tap / 3 * width + tap % 3;
        for (std::int64_t lane = 0; lane < count; ++lane) sums[lane] += *weight * pixel[lane];
      }
    }
    float* result = to + pixels.at(plane, y) + x;
    for (std::int64_t lane = 0; lane < count; ++lane) result[lane] = sums[lane];
  }
};

// Pixels by their place: what they hold, and what comes of them. Arrays have (planes + 2) planes, as FusedField counts.
struct FillPixel {
  static constexpr int blocks_at_once = 3;
  Pixels pixels;
  KnownPixels known;
  std::int64_t first_row, first_column;
  float* values;

  APPS_CALLABLE void operator()(const std::int64_t (&place)[3], std::int64_t at) const {
    values[at] = known(place[0], first_row + place[1], first_column + place[2]);
  }
  APPS_CALLABLE void steady(const std::int64_t (&place)[3], std::int64_t at) const { (*this)(place, at); }
};
struct ConvolvePixel {
  static constexpr int blocks_at_once = 3;
  Convolve loop;

  APPS_CALLABLE void operator()(const std::int64_t (&place)[3], std::int64_t /*at*/) const {
    loop.compute<1>(place[0], place[1], place[2]);
  }
  APPS_CALLABLE void steady(const std::int64_t (&place)[3], std::int64_t at) const { (*this)(place, at); }
};

// The gradient of the weights of one pair of channels, from one row of one image: parts[row of all images][pair][tap].
struct WeightGradient {
  Pixels pixels;
  const float *input, *gradient;
  float* parts;

  APPS_CALLABLE void operator()(std::int64_t row, std::int64_t pair) const {
    const std::int64_t image = row / pixels.rows, y = row % pixels.rows, width = pixels.width();
    const float* out = gradient + pixels.at(image * channels + pair / channels, y);
    const float* corner = input + pixels.at(image * channels + pair % channels, y) - width - 1;
    float sums[taps][lanes] = {};
    std::int64_t x = 0;
    for (; x + lanes <= pixels.columns; x += lanes)
      for (int tap = 0; tap < taps; ++tap)
        for (std::int64_t lane = 0; lane < lanes; ++lane)
          sums[tap][lane] += out[x + lane] * corner[tap / 3 * width + tap % 3 + x + lane];
    for (; x < pixels.columns; ++x)
      for (int tap = 0; tap < taps; ++tap) sums[tap][0] += out[x] * corner[tap / 3 * width + tap % 3 + x];
    for (int tap = 0; tap < taps; ++tap) {
      float all = 0;
      for (std::int64_t lane = 0; lane < lanes; ++lane) all += sums[tap][lane];
      parts[(row * pairs + pair) * taps + tap] = all;
    }
  }
};

APPS_CALLABLE inline float known_weight(std::int64_t to, std::int64_t from, std::int64_t tap) {
  return whole_noise(7, static_cast<std::uint64_t>((to * channels + from) * taps + tap), 1);
}

}  // namespace apps
