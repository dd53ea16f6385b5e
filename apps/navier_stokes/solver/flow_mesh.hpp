#pragma once

#include "apps/navier_stokes/mesh/local_mesh.hpp"
#include "apps/navier_stokes/solver/sparse_rows.hpp"

namespace flow {

// What the finite-volume operators need of a mesh, on the processor of the rank.
//
// A gradient at a face is coefficient * (outside - inside) + correction . (mean gradient): the over-relaxed splitting
// (Jasak 1996) of the area vector S = coefficient * d + correction with d from center to center, coefficient =
// |S|^2 / (d . S). A value at a face is weight * inside + (1 - weight) * outside + skew . (mean gradient): linear along
// d, then moved to the face's center; of a border face, skew is from the cell's center to the face's. Gradients in
// cells are least squares, weighted by 1 / |d|^2.
class FlowMesh {
 public:
  struct View {
    std::int64_t owned, cells, faces;
    const double* volume;
    const Index *inside, *outside;  // outside below 0: the border face -1 - outside
    const double *coefficient, *weight;
    const double *area, *correction, *skew;  // three components each
    const BoundaryCondition* boundary;
    const Index *first_face, *faces_of_cell;
    // The gradient in a cell is the sum over its faces of these times the difference across the face.
    const double *velocity_slope, *pressure_slope, *scalar_slope;

    APPS_CALLABLE const BoundaryCondition& border(Index outside_cell) const { return boundary[-1 - outside_cell]; }
    APPS_CALLABLE bool is_of(std::int64_t face, int boundary_name) const {
      return outside[face] < 0 && border(outside[face]).name == boundary_name;
    }
    // The velocity at a border face that is no outlet, beside a cell with the velocity `own`.
    APPS_CALLABLE Vector3 border_velocity(std::int64_t face, const Vector3& own) const {
      const BoundaryCondition& condition = border(outside[face]);
      if (!condition.symmetry) return condition.velocity;
      const Vector3 normal = vector_at(area, face);
      return own - (dot(own, normal) / dot(normal, normal)) * normal;
    }
    APPS_CALLABLE Vector3 mean(std::int64_t face, const double* vectors) const {
      const double w = weight[face];
      return w * vector_at(vectors, inside[face]) + (1 - w) * vector_at(vectors, outside[face]);
    }
  };

  FlowMesh(apps::Processor& processor, const LocalMesh& mesh);

  View view() const;
  // The greatest angle between d and S, in degrees, of this rank's faces.
  double largest_angle() const { return largest_angle_; }

 private:
  std::int64_t cells_;
  double largest_angle_ = 0;
  apps::Array<double> volume_, coefficient_, weight_, area_, correction_, skew_, velocity_slope_, pressure_slope_,
      scalar_slope_;
  apps::Array<Index> inside_, outside_, first_face_, faces_of_cell_;
  apps::Array<BoundaryCondition> boundary_;
};

// The matrix of - sum over faces of coefficient * (outside - inside), and so of minus the Laplacian times the volume:
// for pressures (0 at outlets, no gradient elsewhere), for velocities (given everywhere but at outlets), and for
// scalars (given where a border has a value).
SparseRows pressure_rows(const LocalMesh& mesh);
SparseRows velocity_rows(const LocalMesh& mesh);
SparseRows scalar_rows(const LocalMesh& mesh);

}  // namespace flow
