#pragma once

#include <vector>
#include <waywiser/halo/partition.hpp>

#include "apps/navier_stokes/mesh/cell_list.hpp"

namespace flow {

// A symmetric matrix with weights w >= 0 between neighbours: (A x)_i = diagonal_i x_i - sum_j w_ij x_j. The diagonal is
// at least the sum of the weights. Rows are those of the cells that this rank owns, columns also its ghosts.
struct SparseRows {
  std::vector<Index> first;  // where each row begins, and the end
  std::vector<Index> column;
  std::vector<double> weight, diagonal;

  std::int64_t rows() const { return static_cast<std::int64_t>(diagonal.size()); }
};

// The same on the processor of the rank.
class Matrix {
 public:
  struct View {
    std::int64_t rows;
    const Index *first, *column;
    const double *weight, *diagonal;

    // Row i of the sum over neighbours.
    APPS_CALLABLE double neighbors(std::int64_t i, const double* x) const {
      double sum = 0;
      for (Index k = first[i]; k < first[i + 1]; ++k) sum += weight[k] * x[column[k]];
      return sum;
    }
    // Of row i, together.
    APPS_CALLABLE double weights(std::int64_t i) const {
      double sum = 0;
      for (Index k = first[i]; k < first[i + 1]; ++k) sum += weight[k];
      return sum;
    }
    APPS_CALLABLE double times(std::int64_t i, const double* x) const { return diagonal[i] * x[i] - neighbors(i, x); }
    APPS_CALLABLE Vector3 neighbor_vectors(std::int64_t i, const double* x) const {
      Vector3 sum;
      for (Index k = first[i]; k < first[i + 1]; ++k) sum += weight[k] * vector_at(x, column[k]);
      return sum;
    }
  };

  Matrix(apps::Processor& processor, const SparseRows& rows)
      : first_(processor, static_cast<std::int64_t>(rows.first.size())),
        column_(processor, static_cast<std::int64_t>(rows.column.size())),
        weight_(processor, static_cast<std::int64_t>(rows.weight.size())),
        diagonal_(processor, rows.rows()) {
    first_.assign(rows.first);
    column_.assign(rows.column);
    weight_.assign(rows.weight);
    diagonal_.assign(rows.diagonal);
  }

  View view() const { return {diagonal_.size(), first_.data(), column_.data(), weight_.data(), diagonal_.data()}; }

 private:
  apps::Array<Index> first_, column_;
  apps::Array<double> weight_, diagonal_;
};

}  // namespace flow
