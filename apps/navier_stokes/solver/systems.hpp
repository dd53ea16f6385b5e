#pragma once

#include "apps/navier_stokes/solver/flow_mesh.hpp"

namespace flow {

// The two linear systems of a step, for ConjugateGradient.

// volume * x + share * (minus the Laplacian's matrix) x, of three components; its diagonal is the preconditioner.
struct MomentumSystem {
  apps::Processor& processor;
  FlowMesh::View mesh;
  Matrix::View matrix;
  double share;

  void apply(const double* in, double* out) const {
    const MomentumSystem::Values all{mesh.volume, matrix, share};
    processor.for_each(matrix.rows, [=] APPS_CALLABLE(std::int64_t i) {
      const double own = all.volume[i] + all.share * all.matrix.diagonal[i];
      set_vector(out, i, own * vector_at(in, i) - all.share * all.matrix.neighbor_vectors(i, in));
    });
  }
  void precondition(const double* r, double* z) const {
    const MomentumSystem::Values all{mesh.volume, matrix, share};
    processor.for_each(matrix.rows, [=] APPS_CALLABLE(std::int64_t i) {
      set_vector(z, i, (1 / (all.volume[i] + all.share * all.matrix.diagonal[i])) * vector_at(r, i));
    });
  }

  // Weighted by the inverse of the diagonal: the square of a velocity times a volume. The plain norm of the residual
  // would be that of the largest cells, and leave the smallest ones, where the flow is, unsolved.
  double square(const double* r) const {
    const MomentumSystem::Values all{mesh.volume, matrix, share};
    return processor.sum(matrix.rows, [=] APPS_CALLABLE(std::int64_t i) {
      return dot(vector_at(r, i), vector_at(r, i)) / (all.volume[i] + all.share * all.matrix.diagonal[i]);
    });
  }

  struct Values {
    const double* volume;
    Matrix::View matrix;
    double share;
  };
};

inline void multiply(apps::Processor& processor, Matrix::View matrix, const double* in, double* out) {
  processor.for_each(matrix.rows, [=] APPS_CALLABLE(std::int64_t i) {
    out[i] = matrix.diagonal[i] * in[i] - matrix.neighbors(i, in);
  });
}

}  // namespace flow
