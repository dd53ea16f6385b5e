#include "apps/navier_stokes/solver/eddies.hpp"

namespace flow {
namespace {

// The rows of a tensor.
struct Tensor3 {
  Vector3 x, y, z;

  APPS_CALLABLE Tensor3 transposed() const { return {{x.x, y.x, z.x}, {x.y, y.y, z.y}, {x.z, y.z, z.z}}; }
  APPS_CALLABLE Tensor3 squared() const {
    const Tensor3 t = transposed();
    return {{dot(x, t.x), dot(x, t.y), dot(x, t.z)},
            {dot(y, t.x), dot(y, t.y), dot(y, t.z)},
            {dot(z, t.x), dot(z, t.y), dot(z, t.z)}};
  }
  APPS_CALLABLE Tensor3 symmetric() const {
    const Tensor3 t = transposed();
    return {0.5 * (x + t.x), 0.5 * (y + t.y), 0.5 * (z + t.z)};
  }
  APPS_CALLABLE double square_sum() const { return dot(x, x) + dot(y, y) + dot(z, z); }
};

APPS_CALLABLE inline double wale_rate(const Tensor3& gradient, double strain) {
  Tensor3 part = gradient.squared().symmetric();
  const double third = (part.x.x + part.y.y + part.z.z) / 3;
  part.x.x -= third, part.y.y -= third, part.z.z -= third;
  const double turned = part.square_sum();
  const double below = std::pow(strain, 2.5) + std::pow(turned, 1.25);
  return below > 0 ? std::pow(turned, 1.5) / below : 0;
}

}  // namespace

void compute_eddy_viscosity(apps::Processor& processor, const FlowMesh::View& mesh, int dimensions,
                            const EddyModel& model, const double* velocity_gradient, double* result) {
  const bool wale = model.kind == EddyModel::Kind::wale;
  const double factor = model.coefficient * model.coefficient;
  processor.for_each(mesh.owned, [=] APPS_CALLABLE(std::int64_t i) {
    const Tensor3 gradient{vector_at(velocity_gradient, 3 * i), vector_at(velocity_gradient, 3 * i + 1),
                           vector_at(velocity_gradient, 3 * i + 2)};
    const double strain = gradient.symmetric().square_sum();
    const double width = std::pow(mesh.volume[i], 1.0 / dimensions);
    result[i] = factor * width * width * (wale ? wale_rate(gradient, strain) : std::sqrt(2 * strain));
  });
}

}  // namespace flow
