#pragma once

#include <cmath>

#include "apps/parallel.hpp"

namespace flow {

struct Vector3 {
  double x = 0, y = 0, z = 0;

  APPS_CALLABLE Vector3& operator+=(const Vector3& b) {
    x += b.x, y += b.y, z += b.z;
    return *this;
  }
};

APPS_CALLABLE inline Vector3 operator+(const Vector3& a, const Vector3& b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
APPS_CALLABLE inline Vector3 operator-(const Vector3& a, const Vector3& b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
APPS_CALLABLE inline Vector3 operator-(const Vector3& a) { return {-a.x, -a.y, -a.z}; }
APPS_CALLABLE inline Vector3 operator*(double s, const Vector3& a) { return {s * a.x, s * a.y, s * a.z}; }
APPS_CALLABLE inline double dot(const Vector3& a, const Vector3& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
APPS_CALLABLE inline double norm(const Vector3& a) { return std::sqrt(dot(a, a)); }
inline Vector3 cross(const Vector3& a, const Vector3& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

// Values of three components lie together: those of cell i begin at 3 * i.
APPS_CALLABLE inline Vector3 vector_at(const double* values, std::int64_t i) {
  return {values[3 * i], values[3 * i + 1], values[3 * i + 2]};
}
APPS_CALLABLE inline void set_vector(double* values, std::int64_t i, const Vector3& v) {
  values[3 * i] = v.x, values[3 * i + 1] = v.y, values[3 * i + 2] = v.z;
}

}  // namespace flow
