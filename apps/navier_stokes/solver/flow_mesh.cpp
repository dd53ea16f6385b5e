#include "apps/navier_stokes/solver/flow_mesh.hpp"

#include <algorithm>
#include <array>
#include <numbers>

namespace flow {
namespace {

using Face = LocalMesh::Face;

Vector3 distance(const Face& face) {
  return face.outside < 0 ? face.from_inside : face.from_inside - face.from_outside;
}
double coefficient_of(const Face& face) { return dot(face.area, face.area) / dot(distance(face), face.area); }

enum class Unknown : std::uint8_t { velocity, pressure, scalar };
constexpr std::array unknowns = {Unknown::velocity, Unknown::pressure, Unknown::scalar};

// Whether a value is given at a border face.
bool is_given(const LocalMesh& mesh, const Face& face, Unknown what) {
  const BoundaryCondition& condition = mesh.boundary[static_cast<std::size_t>(-1 - face.outside)];
  return what == Unknown::scalar ? condition.has_scalar : condition.outlet == (what == Unknown::pressure);
}

using Slopes = std::array<std::vector<double>, unknowns.size()>;

// A symmetric 3 x 3 matrix.
struct Moments {
  double xx = 0, xy = 0, xz = 0, yy = 0, yz = 0, zz = 0;

  void add(double w, const Vector3& d) {
    xx += w * d.x * d.x, xy += w * d.x * d.y, xz += w * d.x * d.z;
    yy += w * d.y * d.y, yz += w * d.y * d.z, zz += w * d.z * d.z;
  }
  double determinant() const { return xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz); }
  Vector3 solve(const Vector3& b) const {
    const double d = determinant();
    const double a = yy * zz - yz * yz, e = xz * yz - xy * zz, f = xy * yz - xz * yy;
    const double g = xx * zz - xz * xz, h = xy * xz - xx * yz, i = xx * yy - xy * xy;
    return {(a * b.x + e * b.y + f * b.z) / d, (e * b.x + g * b.y + h * b.z) / d, (f * b.x + h * b.y + i * b.z) / d};
  }
};

// The weights of a cell's least-squares gradient, for each of its faces. Border faces count where a value is given
// there. If the others do not span the space, the gradient across borders is taken as 0.
std::vector<Vector3> slopes_of_cell(const LocalMesh& mesh, std::span<const Index> faces, Index cell, Unknown what) {
  Moments moments;
  std::vector<Vector3> rows;
  const auto given = [&](const Face& face) { return face.outside >= 0 || is_given(mesh, face, what); };
  if (mesh.dimensions == 2) moments.zz = 1;
  for (const Index f : faces) {
    const Face& face = mesh.faces[static_cast<std::size_t>(f)];
    const Vector3 d = face.inside == cell ? distance(face) : -distance(face);
    rows.push_back((given(face) ? 1 / dot(d, d) : 0) * d);
    if (given(face)) moments.add(1 / dot(d, d), d);
  }
  if (moments.determinant() < 1e-3) {
    for (const Index f : faces) {
      const Face& face = mesh.faces[static_cast<std::size_t>(f)];
      if (!given(face)) moments.add(1, (1 / norm(face.area)) * face.area);
    }
  }
  for (Vector3& row : rows) row = moments.solve(row);
  return rows;
}

Slopes slopes_of(const LocalMesh& mesh) {
  Slopes slopes;
  for (std::int64_t i = 0; i < mesh.owned; ++i) {
    const auto begin = mesh.first_face[static_cast<std::size_t>(i)],
               end = mesh.first_face[static_cast<std::size_t>(i) + 1];
    const auto faces =
        std::span(mesh.faces_of_cell).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    for (const Unknown what : unknowns)
      for (const Vector3& row : slopes_of_cell(mesh, faces, static_cast<Index>(i), what)) {
        std::vector<double>& into = slopes[static_cast<std::size_t>(what)];
        into.insert(into.end(), {row.x, row.y, row.z});
      }
  }
  return slopes;
}

SparseRows rows_of(const LocalMesh& mesh, Unknown what) {
  SparseRows rows;
  rows.first.push_back(0);
  for (std::int64_t i = 0; i < mesh.owned; ++i) {
    double diagonal = 0;
    for (Index k = mesh.first_face[static_cast<std::size_t>(i)]; k < mesh.first_face[static_cast<std::size_t>(i) + 1];
         ++k) {
      const Face& face = mesh.faces[static_cast<std::size_t>(mesh.faces_of_cell[static_cast<std::size_t>(k)])];
      const double coefficient = coefficient_of(face);
      if (face.outside >= 0) {
        rows.column.push_back(face.inside == i ? face.outside : face.inside);
        rows.weight.push_back(coefficient);
        diagonal += coefficient;
      } else if (is_given(mesh, face, what)) {
        diagonal += coefficient;
      }
    }
    rows.diagonal.push_back(diagonal);
    rows.first.push_back(static_cast<Index>(rows.column.size()));
  }
  return rows;
}

std::int64_t count(const auto& list) { return static_cast<std::int64_t>(list.size()); }

}  // namespace

SparseRows pressure_rows(const LocalMesh& mesh) { return rows_of(mesh, Unknown::pressure); }
SparseRows velocity_rows(const LocalMesh& mesh) { return rows_of(mesh, Unknown::velocity); }
SparseRows scalar_rows(const LocalMesh& mesh) { return rows_of(mesh, Unknown::scalar); }

FlowMesh::FlowMesh(apps::Processor& processor, const LocalMesh& mesh)
    : cells_(mesh.cells),
      volume_(processor, mesh.owned),
      coefficient_(processor, count(mesh.faces)),
      weight_(processor, count(mesh.faces)),
      area_(processor, 3 * count(mesh.faces)),
      correction_(processor, 3 * count(mesh.faces)),
      skew_(processor, 3 * count(mesh.faces)),
      velocity_slope_(processor, 3 * count(mesh.faces_of_cell)),
      pressure_slope_(processor, 3 * count(mesh.faces_of_cell)),
      scalar_slope_(processor, 3 * count(mesh.faces_of_cell)),
      inside_(processor, count(mesh.faces)),
      outside_(processor, count(mesh.faces)),
      first_face_(processor, count(mesh.first_face)),
      faces_of_cell_(processor, count(mesh.faces_of_cell)),
      boundary_(processor, count(mesh.boundary)) {
  std::vector<double> coefficient, weight, area, correction, skew;
  std::vector<Index> inside, outside;
  const auto add = [](std::vector<double>& to, const Vector3& v) { to.insert(to.end(), {v.x, v.y, v.z}); };
  for (const Face& face : mesh.faces) {
    const Vector3 d = distance(face);
    const bool border = face.outside < 0;
    const double w = border ? 0 : -dot(face.from_outside, face.area) / dot(d, face.area);
    inside.push_back(face.inside);
    outside.push_back(face.outside);
    coefficient.push_back(coefficient_of(face));
    weight.push_back(w);
    add(area, face.area);
    add(correction, face.area - coefficient.back() * d);
    add(skew, border ? face.from_inside : w * face.from_inside + (1 - w) * face.from_outside);
    const double cosine = std::min(1.0, dot(d, face.area) / (norm(d) * norm(face.area)));
    largest_angle_ = std::max(largest_angle_, std::acos(cosine) * 180 / std::numbers::pi);
  }
  const Slopes slopes = slopes_of(mesh);
  volume_.assign(mesh.volume);
  coefficient_.assign(coefficient);
  weight_.assign(weight);
  area_.assign(area);
  correction_.assign(correction);
  skew_.assign(skew);
  velocity_slope_.assign(slopes[0]);
  pressure_slope_.assign(slopes[1]);
  scalar_slope_.assign(slopes[2]);
  inside_.assign(inside);
  outside_.assign(outside);
  first_face_.assign(mesh.first_face);
  faces_of_cell_.assign(mesh.faces_of_cell);
  boundary_.assign(mesh.boundary);
}

FlowMesh::View FlowMesh::view() const {
  return {volume_.size(),         cells_,
          inside_.size(),         volume_.data(),
          inside_.data(),         outside_.data(),
          coefficient_.data(),    weight_.data(),
          area_.data(),           correction_.data(),
          skew_.data(),           boundary_.data(),
          first_face_.data(),     faces_of_cell_.data(),
          velocity_slope_.data(), pressure_slope_.data(),
          scalar_slope_.data()};
}

}  // namespace flow
