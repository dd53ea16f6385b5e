#include "apps/navier_stokes/solver/operators.hpp"

namespace flow {
namespace {

using View = FlowMesh::View;

APPS_CALLABLE inline Vector3 row(const double* gradient, std::int64_t cell, int component) {
  return vector_at(gradient, 3 * cell + component);
}
// The mean gradient of each component at a face, times a vector.
APPS_CALLABLE inline Vector3 mean_times(const View& mesh, std::int64_t face, const double* gradient, const Vector3& v) {
  const Index a = mesh.inside[face], b = mesh.outside[face];
  const double w = mesh.weight[face];
  return {dot(w * row(gradient, a, 0) + (1 - w) * row(gradient, b, 0), v),
          dot(w * row(gradient, a, 1) + (1 - w) * row(gradient, b, 1), v),
          dot(w * row(gradient, a, 2) + (1 - w) * row(gradient, b, 2), v)};
}
APPS_CALLABLE inline Vector3 own_times(const double* gradient, std::int64_t cell, const Vector3& v) {
  return {dot(row(gradient, cell, 0), v), dot(row(gradient, cell, 1), v), dot(row(gradient, cell, 2), v)};
}
APPS_CALLABLE inline Vector3 at_face(const View& mesh, std::int64_t face, const double* velocity,
                                     const double* gradient) {
  return mesh.mean(face, velocity) + mean_times(mesh, face, gradient, vector_at(mesh.skew, face));
}

// Linear between two cells; given values at borders.
APPS_CALLABLE inline Vector3 linear_at(const View& mesh, std::int64_t face, const double* velocity) {
  const Index out = mesh.outside[face];
  if (out >= 0) return mesh.mean(face, velocity);
  const Vector3 own = vector_at(velocity, mesh.inside[face]);
  return mesh.border(out).outlet ? own : mesh.border_velocity(face, own);
}

// The stress of eddies at a face, 2 nu_t S times its area.
APPS_CALLABLE inline Vector3 eddy_stress(const View& mesh, std::int64_t face, const double* eddy,
                                         const double* velocity, const double* gradient) {
  const Index in = mesh.inside[face], out = mesh.outside[face];
  const Vector3 correction = vector_at(mesh.correction, face), own = vector_at(velocity, in);
  if (out < 0 && mesh.border(out).outlet) return {};
  if (out < 0)
    return eddy[in] *
           (mesh.coefficient[face] * (mesh.border_velocity(face, own) - own) + own_times(gradient, in, correction));
  const double w = mesh.weight[face];
  const Vector3 area = vector_at(mesh.area, face);
  const auto mean_row = [&](int i) { return w * row(gradient, in, i) + (1 - w) * row(gradient, out, i); };
  const Vector3 turned = area.x * mean_row(0) + area.y * mean_row(1) + area.z * mean_row(2);
  return (w * eddy[in] + (1 - w) * eddy[out]) * (mesh.coefficient[face] * (vector_at(velocity, out) - own) +
                                                 mean_times(mesh, face, gradient, correction) + turned);
}

}  // namespace

void compute_velocity_gradient(apps::Processor& processor, const View& mesh, const double* velocity, double* gradient) {
  processor.for_each(mesh.owned, [=] APPS_CALLABLE(std::int64_t i) {
    const Vector3 own = vector_at(velocity, i);
    Vector3 x, y, z;
    for (Index k = mesh.first_face[i]; k < mesh.first_face[i + 1]; ++k) {
      const Index f = mesh.faces_of_cell[k], out = mesh.outside[f];
      if (out < 0 && mesh.border(out).outlet) continue;
      const Vector3 other =
          out < 0 ? mesh.border_velocity(f, own) : vector_at(velocity, out == i ? mesh.inside[f] : out);
      const Vector3 slope = vector_at(mesh.velocity_slope, k), across = other - own;
      x += across.x * slope;
      y += across.y * slope;
      z += across.z * slope;
    }
    set_vector(gradient, 3 * i, x);
    set_vector(gradient, 3 * i + 1, y);
    set_vector(gradient, 3 * i + 2, z);
  });
}

void compute_pressure_gradient(apps::Processor& processor, const View& mesh, const double* pressure, double* gradient) {
  processor.for_each(mesh.owned, [=] APPS_CALLABLE(std::int64_t i) {
    Vector3 sum;
    for (Index k = mesh.first_face[i]; k < mesh.first_face[i + 1]; ++k) {
      const Index f = mesh.faces_of_cell[k], out = mesh.outside[f];
      if (out < 0 && !mesh.border(out).outlet) continue;
      const double other = out < 0 ? 0 : pressure[out == i ? mesh.inside[f] : out];
      sum += (other - pressure[i]) * vector_at(mesh.pressure_slope, k);
    }
    set_vector(gradient, i, sum);
  });
}

void compute_explicit_terms(apps::Processor& processor, const View& mesh, double viscosity, const double* eddy,
                            const double* velocity, const double* gradient, const double* flux, double* at_faces,
                            double* result) {
  processor.for_each(mesh.faces, [=] APPS_CALLABLE(std::int64_t f) {
    const Index in = mesh.inside[f], out = mesh.outside[f];
    const Vector3 correction = vector_at(mesh.correction, f);
    Vector3 carried, diffused;
    if (out >= 0) {
      carried = at_face(mesh, f, velocity, gradient);
      diffused = mean_times(mesh, f, gradient, correction);
    } else if (mesh.border(out).outlet) {
      // What comes back brings no momentum: as Esmaily Moghadam et al. (2011, Computational Mechanics 48, 277) with
      // beta = 1. Otherwise vortices that leave can grow without bound.
      if (flux[f] > 0) carried = vector_at(velocity, in);
    } else {
      carried = mesh.border_velocity(f, vector_at(velocity, in));
      diffused = own_times(gradient, in, correction);
    }
    const Vector3 stress = eddy == nullptr ? Vector3{} : eddy_stress(mesh, f, eddy, velocity, gradient);
    set_vector(at_faces, f, (-flux[f]) * carried + viscosity * diffused + stress);
  });
  processor.for_each(mesh.owned, [=] APPS_CALLABLE(std::int64_t i) {
    Vector3 sum;
    for (Index k = mesh.first_face[i]; k < mesh.first_face[i + 1]; ++k) {
      const Index f = mesh.faces_of_cell[k];
      sum += (mesh.inside[f] == i ? 1.0 : -1.0) * vector_at(at_faces, f);
    }
    set_vector(result, i, sum);
  });
}

void add_diffusion(apps::Processor& processor, const View& mesh, const Matrix::View& matrix, double share,
                   double border_share, const double* velocity, double* result) {
  processor.for_each(mesh.owned, [=] APPS_CALLABLE(std::int64_t i) {
    const Vector3 own = vector_at(velocity, i);
    Vector3 sum = matrix.neighbor_vectors(i, velocity) - matrix.diagonal[i] * own;
    for (Index k = mesh.first_face[i]; k < mesh.first_face[i + 1]; ++k) {
      const Index f = mesh.faces_of_cell[k], out = mesh.outside[f];
      if (out < 0 && !mesh.border(out).outlet) sum += border_share * mesh.coefficient[f] * mesh.border_velocity(f, own);
    }
    set_vector(result, i, vector_at(result, i) + share * sum);
  });
}

void keep_flux(apps::Processor& processor, const View& mesh, double share, const double* velocity,
               const double* gradient, double* skew_flux, double* flux) {
  processor.for_each(mesh.faces, [=] APPS_CALLABLE(std::int64_t f) {
    const Vector3 area = vector_at(mesh.area, f);
    const double skew = mesh.outside[f] < 0 ? 0 : dot(mean_times(mesh, f, gradient, vector_at(mesh.skew, f)), area);
    flux[f] = skew + share * (flux[f] - skew_flux[f] - dot(linear_at(mesh, f, velocity), area));
    skew_flux[f] = skew;
  });
}

void add_flux(apps::Processor& processor, const View& mesh, const double* velocity, double* flux) {
  processor.for_each(mesh.faces, [=] APPS_CALLABLE(std::int64_t f) {
    flux[f] += dot(linear_at(mesh, f, velocity), vector_at(mesh.area, f));
  });
}

void take_pressure_correction(apps::Processor& processor, const View& mesh, double time_step,
                              const double* pressure_gradient, const double* flux, double* result) {
  processor.for_each(mesh.faces, [=] APPS_CALLABLE(std::int64_t f) {
    const Index in = mesh.inside[f], out = mesh.outside[f];
    Vector3 gradient;
    if (out >= 0)
      gradient = mesh.mean(f, pressure_gradient);
    else if (mesh.border(out).outlet)
      gradient = vector_at(pressure_gradient, in);
    result[f] = flux[f] - time_step * dot(gradient, vector_at(mesh.correction, f));
  });
}

void take_pressure_flux(apps::Processor& processor, const View& mesh, double time_step, const double* pressure,
                        double* flux) {
  processor.for_each(mesh.faces, [=] APPS_CALLABLE(std::int64_t f) {
    const Index in = mesh.inside[f], out = mesh.outside[f];
    if (out < 0 && !mesh.border(out).outlet) return;
    flux[f] -= time_step * mesh.coefficient[f] * ((out < 0 ? 0 : pressure[out]) - pressure[in]);
  });
}

void compute_divergence(apps::Processor& processor, const View& mesh, double factor, const double* flux,
                        double* result) {
  processor.for_each(mesh.owned, [=] APPS_CALLABLE(std::int64_t i) {
    double sum = 0;
    for (Index k = mesh.first_face[i]; k < mesh.first_face[i + 1]; ++k) {
      const Index f = mesh.faces_of_cell[k];
      sum += mesh.inside[f] == i ? flux[f] : -flux[f];
    }
    result[i] = factor * sum;
  });
}

}  // namespace flow
